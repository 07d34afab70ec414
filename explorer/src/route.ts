// route.ts - which page is shown: the part of the address after '#', so that a page can be bookmarked and
// the browser's own buttons work.
import { computed, signal } from "@preact/signals";

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
addEventListener("hashchange", () => { hash.value = location.hash; });

export const route = computed(() => parseRoute(hash.value));

export function go(link: string): void {
    location.hash = link;
}
