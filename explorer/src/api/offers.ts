// offers.ts - the provisioned throughput of databases and containers.
import { request, type JsonObject } from "./client";

export type Mode = "none" | "manual" | "autoscale";

export interface Throughput {
    mode: Mode;
    ru: string; // as it was typed; the server decides what is allowed
}

// What a mode begins with: the least that the service has.
export const startOf = (mode: Mode): Throughput => ({ mode, ru: mode === "autoscale" ? "1000" : "400" });

// The headers of a request that makes a database or a container.
export function throughputHeaders({ mode, ru }: Throughput): Record<string, string> {
    switch (mode) {
    case "none":
        return {};
    case "manual":
        return { "x-ms-offer-throughput": ru };
    case "autoscale":
        return { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: Number(ru) }) };
    }
}

export interface Offer extends JsonObject {
    id: string;
    _rid: string;
    _etag: string;
    offerResourceId: string;
    content: { offerThroughput: number; offerAutopilotSettings?: { maxThroughput: number } };
}

export interface OfferState {
    offer: Offer;
    minimum: number; // the least that it can be set to
    isPending: boolean; // partitions are being split or merged
}

// By the _rid of its database or container; null if that has none of its own.
export async function findOffer(rid: string): Promise<OfferState | null> {
    const found = await request<{ Offers: Offer[] }>("POST", "offers", {
        body: { query: "SELECT * FROM c WHERE c.offerResourceId = @rid", parameters: [{ name: "@rid", value: rid }] },
        headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true" },
    });
    const offer = found.body.Offers[0];
    return offer === undefined ? null : readOffer(offer._rid);
}

async function readOffer(rid: string): Promise<OfferState> {
    const { body, headers } = await request<Offer>("GET", `offers/${rid}`);
    return {
        offer: body,
        minimum: Number(headers.get("x-ms-cosmos-min-throughput") ?? 0),
        isPending: headers.get("x-ms-offer-replace-pending") === "true",
    };
}

export function throughputOf({ content }: Offer): Throughput {
    const maximum = content.offerAutopilotSettings?.maxThroughput;
    return maximum === undefined ? { mode: "manual", ru: String(content.offerThroughput) } : { mode: "autoscale", ru: String(maximum) };
}

const withContent = (offer: Offer, wanted: Throughput): JsonObject => ({
    ...offer,
    content: wanted.mode === "manual" ? { offerThroughput: Number(wanted.ru) } : { offerAutopilotSettings: { maxThroughput: Number(wanted.ru) } },
});

// From autoscale to manual takes two requests: the first one lets the server choose the number.
export async function changeOffer(offer: Offer, wanted: Throughput): Promise<void> {
    const path = `offers/${offer._rid}`;
    const isMoved = throughputOf(offer).mode !== wanted.mode;
    if (isMoved && wanted.mode === "manual") {
        const moved = await request<Offer>("PUT", path, {
            body: offer, headers: { "if-match": offer._etag, "x-ms-cosmos-migrate-offer-to-manual-throughput": "true" },
        });
        offer = moved.body;
        if (offer.content.offerThroughput === Number(wanted.ru))
            return;
    }
    const headers: Record<string, string> = { "if-match": offer._etag };
    if (isMoved && wanted.mode === "autoscale")
        headers["x-ms-cosmos-migrate-offer-to-autopilot"] = "true";
    await request("PUT", path, { body: withContent(offer, wanted), headers });
}
