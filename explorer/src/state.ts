// state.ts - the databases and containers that the tree shows.
import { signal } from "@preact/signals";
import { listAll, pathOf, type JsonObject } from "./api/client";

export interface ContainerDefinition extends JsonObject {
    id: string;
    _rid: string;
    _etag: string;
    partitionKey: { paths: string[]; kind: string; version?: number };
}

export interface Database {
    id: string;
    containers: ContainerDefinition[];
}

export const databases = signal<Database[] | null>(null); // null: not read yet

export async function readDatabases(): Promise<void> {
    const found = await listAll<{ id: string }>("dbs");
    const made = await Promise.all(found.map(async ({ id }) => {
        const containers = await listAll<ContainerDefinition>(pathOf("dbs", id, "colls"));
        return { id, containers: containers.sort((a, b) => a.id.localeCompare(b.id)) };
    }));
    databases.value = made.sort((a, b) => a.id.localeCompare(b.id));
}

export function findContainer(db: string, coll: string): ContainerDefinition | undefined {
    return databases.value?.find((database) => database.id === db)?.containers.find((container) => container.id === coll);
}

// "/address/city" of a document; undefined if it has none.
function valueAt(document: JsonObject, path: string): unknown {
    let at: unknown = document;
    for (const name of path.replace(/^\//, "").split("/"))
        at = at !== null && typeof at === "object" ? (at as Record<string, unknown>)[name.replace(/^"(.*)"$/, "$1")] : undefined;
    return at;
}

// The header that names a document's logical partition.
export function keyHeader(container: ContainerDefinition, document: JsonObject): Record<string, string> {
    const values = container.partitionKey.paths.map((path) => {
        const value = valueAt(document, path);
        return value === undefined ? {} : value;
    });
    // Header values are ASCII; JSON can say everything with escapes.
    const text = JSON.stringify(values).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return { "x-ms-documentdb-partitionkey": text };
}

// The values of a document's partition key, to be read by people.
export function keyWords(container: ContainerDefinition, document: JsonObject): string {
    return container.partitionKey.paths.map((path) => JSON.stringify(valueAt(document, path) ?? {})).join(", ");
}
