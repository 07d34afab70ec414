// state.ts - the databases and containers that the tree shows.
import { signal } from "@preact/signals";
import { listAll, pathOf, request, type Json, type JsonObject } from "./api/client";
import { credential, keepCredential, type Opened } from "./api/session";
import { stepsOf } from "./parts/property_names";
import { texts } from "./texts";

export interface ContainerDefinition extends JsonObject {
    id: string;
    _rid: string;
    _etag: string;
    partitionKey: { paths: string[]; kind: string; version?: number };
}

export interface Database {
    id: string;
    _rid: string; // "" for a token, which cannot read databases
    containers: ContainerDefinition[];
}

export const databases = signal<Database[] | null>(null); // null: not read yet

const byId = (a: { id: string }, b: { id: string }): number => a.id.localeCompare(b.id);

async function readOpened(opened: Opened[]): Promise<Database[]> {
    const made = new Map<string, Database>();
    let failure: unknown;
    for (const { db, coll } of opened) {
        try {
            const { body } = await request<ContainerDefinition>("GET", pathOf("dbs", db, "colls", coll));
            const database = made.get(db) ?? { id: db, _rid: "", containers: [] };
            made.set(db, { ...database, containers: [...database.containers, body].sort(byId) });
        } catch (error) {
            failure = error;
        }
    }
    if (failure !== undefined) {
        databases.value = [...made.values()].sort(byId);
        throw failure;
    }
    return [...made.values()];
}

async function readAll(): Promise<Database[]> {
    const found = await listAll<{ id: string; _rid: string }>("dbs");
    return Promise.all(found.map(async ({ id, _rid }) => {
        const containers = await listAll<ContainerDefinition>(pathOf("dbs", id, "colls"));
        return { id, _rid, containers: containers.sort(byId) };
    }));
}

export async function readDatabases(): Promise<void> {
    const who = credential.value;
    try {
        databases.value = (who?.kind === "token" ? await readOpened(who.opened) : await readAll()).sort(byId);
    } catch (error) {
        databases.value ??= [];
        throw error;
    }
}

// Adds a container to what a token shows, if it opens that.
export async function openContainer(opened: Opened): Promise<void> {
    const who = credential.value;
    if (who?.kind !== "token")
        return;
    await request("GET", pathOf("dbs", opened.db, "colls", opened.coll));
    keepCredential({ ...who, opened: [...who.opened.filter(({ db, coll }) => db !== opened.db || coll !== opened.coll), opened] });
    await readDatabases();
}

export function findContainer(db: string, coll: string): ContainerDefinition | undefined {
    return databases.value?.find((database) => database.id === db)?.containers.find((container) => container.id === coll);
}

// "/address/city" or "/\"a/b\"" of a document; undefined if it has none.
function valueAt(document: JsonObject, path: string): unknown {
    let at: unknown = document;
    for (const name of stepsOf(path))
        at = name !== null && at !== null && typeof at === "object" ? (at as Record<string, unknown>)[name] : undefined;
    return at;
}

// The header that names a logical partition. Header values are ASCII; JSON can say everything with escapes.
export function keyValuesHeader(values: Json): Record<string, string> {
    const text = JSON.stringify(values).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return { "x-ms-documentdb-partitionkey": text };
}

// "[\"a\"]", as a user types it.
export function parseKey(text: string): Json[] {
    let values: unknown;
    try {
        values = JSON.parse(text);
    } catch {
        values = null;
    }
    if (!Array.isArray(values))
        throw new Error(texts.key.notOne);
    return values as Json[];
}

// The values of a document's partition key, one for each of its paths; {} for what is not there, as in the header.
function keyValues(container: ContainerDefinition, document: JsonObject): Json[] {
    return container.partitionKey.paths.map((path) => {
        const value = valueAt(document, path);
        return value === undefined ? {} : value as Json;
    });
}

// The header that names a document's logical partition.
export const keyHeader = (container: ContainerDefinition, document: JsonObject): Record<string, string> =>
    keyValuesHeader(keyValues(container, document));

// The same to be read by people.
export const keyWords = (container: ContainerDefinition, document: JsonObject): string =>
    keyValues(container, document).map((value) => JSON.stringify(value)).join(", ");
