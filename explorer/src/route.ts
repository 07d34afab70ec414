// route.ts - which page is shown: the part of the address after '#', so that a page can be bookmarked and
// the browser's own buttons work.
import { computed, signal } from "@preact/signals";
import { hasUnsaved, mayDiscard } from "./parts/unsaved";

export const TABS = ["items", "query", "map", "feed", "scripts", "settings"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
    | { page: "overview" }
    | { page: "cluster" }
    | { page: "users"; db: string }
    | { page: "container"; db: string; coll: string; tab: Tab }
    | { page: "none" };

export function parseRoute(hash: string): Route {
    let parts: string[];
    try {
        parts = hash.replace(/^#\/?/, "").split("/").filter((part) => part !== "").map(decodeURIComponent);
    } catch {
        return { page: "none" };
    }
    const [kind, db, what, coll, tab] = parts;
    if (kind === undefined)
        return { page: "overview" };
    if (kind === "cluster" && db === undefined)
        return { page: "cluster" };
    if (kind !== "dbs" || db === undefined)
        return { page: "none" };
    if (what === "users")
        return { page: "users", db };
    if (what === "colls" && coll !== undefined)
        return { page: "container", db, coll, tab: TABS.find((known) => known === tab) ?? "items" };
    return { page: "none" };
}

export const CLUSTER_LINK = "#/cluster";
export const usersLink = (db: string): string => `#/dbs/${encodeURIComponent(db)}/users`;
export const containerLink = (db: string, coll: string, tab: Tab = "items"): string =>
    `#/dbs/${encodeURIComponent(db)}/colls/${encodeURIComponent(coll)}/${tab}`;

const hash = signal(location.hash);

// Entries of the browser's history are numbered, so that a change of the address can be taken back whichever way it went:
// by a link, which makes an entry without a number, or by the buttons of the browser.
interface Numbered { at: number }
let at = (history.state as Numbered | null)?.at ?? 0;
history.replaceState({ at } satisfies Numbered, "");

// A page with something unsaved stays until the user has said that it may go.
addEventListener("hashchange", () => {
    const wanted = location.hash;
    const to = (history.state as Numbered | null)?.at ?? null;
    if (wanted === hash.value) {
        at = to ?? at;
        return;
    }
    if (hasUnsaved()) {
        history.go(to === null ? -1 : at - to);
        void mayDiscard().then((may) => { if (may) to === null ? go(wanted) : history.go(to - at); });
        return;
    }
    if (to === null)
        history.replaceState({ at: ++at } satisfies Numbered, "");
    else
        at = to;
    hash.value = wanted;
});

export const route = computed(() => parseRoute(hash.value));

export function go(link: string): void {
    location.hash = link;
}
