// client.ts - requests to the server that has served this page.
//
// Paths are those of the protocol: "dbs/shop/colls/orders/docs/1". Ids in them are encoded by pathOf.
import { authorization } from "./sign";
import { credential, noteRefusal, type Credential } from "./session";
import { texts } from "../texts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export class ApiError extends Error {
    constructor(
        readonly status: number, readonly substatus: number, message: string, readonly body: Json,
        readonly headers = new Headers(), readonly ms = 0,
    ) {
        super(message);
    }

    get charge(): number {
        return chargeOf(this.headers);
    }
}

const chargeOf = (headers: Headers): number => Number(headers.get("x-ms-request-charge") ?? 0);

export interface Answer<T = Json> {
    status: number;
    body: T;
    charge: number; // request units
    ms: number;
    headers: Headers;
}

export interface RequestOptions {
    body?: Json | string;
    headers?: Record<string, string>;
    signal?: AbortSignal;
    as?: Credential; // instead of who is signed in
}

const TYPES = new Set([
    "dbs", "colls", "docs", "sprocs", "triggers", "udfs", "users", "permissions", "offers", "pkranges",
    "conflicts", "clientencryptionkeys",
]);

// "dbs", "a b", "colls" -> "dbs/a%20b/colls"
export function pathOf(...parts: string[]): string {
    return parts.map(encodeURIComponent).join("/");
}

// What a request is signed with: the type of the resource, and its link, or its parent's for a list.
export function signedParts(path: string): { type: string; link: string } {
    const parts = path.split("?")[0]!.split("/").filter((part) => part !== "").map(decodeURIComponent);
    if (parts[0] === "_orrery") {
        const dbs = parts.indexOf("dbs");
        return parts[dbs + 2] === "colls" ? { type: "colls", link: parts.slice(dbs, dbs + 4).join("/") } : { type: "", link: "" };
    }
    // Types stand at even places: dbs / id / colls / id ...
    const isList = parts.length % 2 === 1;
    const type = parts[isList ? parts.length - 1 : parts.length - 2] ?? "";
    const link = (isList ? parts.slice(0, -1) : parts).join("/");
    return { type: TYPES.has(type) ? type : "", link: type === "offers" ? link.replace(/^offers\//, "").toLowerCase() : link };
}

function messageOf(body: Json, status: number): string {
    const text = body !== null && typeof body === "object" && !Array.isArray(body) ? body["message"] : undefined;
    return typeof text === "string" ? text.split("\r\n")[0]! : texts.serverAnswered(status);
}

// A token for one partition key opens items with that key in the header only.
function tokenKey(who: Credential, path: string): Record<string, string> {
    if (who.kind !== "token")
        return {};
    const [, db, , coll, kind] = path.split("/").map(decodeURIComponent);
    const key = kind === "docs" ? who.opened.find((opened) => opened.db === db && opened.coll === coll)?.key ?? "" : "";
    return key === "" ? {} : { "x-ms-documentdb-partitionkey": key };
}

async function send(who: Credential, method: string, path: string, options: RequestOptions): Promise<Response> {
    const date = new Date().toUTCString();
    const { type, link } = signedParts(path);
    const headers: Record<string, string> = {
        authorization: await authorization(who, method, type, link, date),
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
        ...tokenKey(who, path),
        ...options.headers,
    };
    let body: string | undefined;
    if (options.body !== undefined) {
        body = typeof options.body === "string" ? options.body : JSON.stringify(options.body);
        headers["content-type"] ??= "application/json";
    }
    return fetch(`/${path}`, { method, headers, body: body ?? null, signal: options.signal ?? null, cache: "no-store", credentials: "omit" });
}

// Throws an ApiError for every answer that is not 2xx or 304.
export async function request<T = Json>(method: string, path: string, options: RequestOptions = {}): Promise<Answer<T>> {
    const begun = performance.now();
    const who = options.as ?? credential.value;
    if (who === null)
        throw new ApiError(401, 0, texts.signIn.nobody, null);
    const response = await send(who, method, path, options);
    const text = await response.text();
    let body: Json = null;
    if (text !== "") {
        try {
            body = JSON.parse(text) as Json;
        } catch {
            body = text;
        }
    }
    if (!response.ok && response.status !== 304) {
        const message = messageOf(body, response.status);
        noteRefusal(who, message);
        throw new ApiError(response.status, Number(response.headers.get("x-ms-substatus") ?? 0), message, body, response.headers, performance.now() - begun);
    }
    return {
        status: response.status,
        body: body as T,
        charge: chargeOf(response.headers),
        ms: performance.now() - begun,
        headers: response.headers,
    };
}

export interface Page<T> {
    rows: T[];
    next: string | null; // the continuation
    answer: Answer;
}

// A page of a feed: the one array in the answer.
export async function list<T = JsonObject>(path: string, next: string | null = null, options: RequestOptions & { size?: number } = {}): Promise<Page<T>> {
    const headers: Record<string, string> = { "x-ms-max-item-count": String(options.size ?? 100), ...options.headers };
    if (next !== null)
        headers["x-ms-continuation"] = next;
    const answer = await request<JsonObject>("GET", path, { ...options, headers });
    const rows = Object.values(answer.body ?? {}).find(Array.isArray) ?? [];
    return { rows: rows as T[], next: answer.headers.get("x-ms-continuation"), answer };
}

// All pages of a feed that is short, as all are but those of items.
export async function listAll<T = JsonObject>(path: string): Promise<T[]> {
    const rows: T[] = [];
    let next: string | null = null;
    do {
        const page: Page<T> = await list<T>(path, next, { size: 1000 });
        rows.push(...page.rows);
        next = page.next;
    } while (next !== null && rows.length < 10_000);
    return rows;
}
