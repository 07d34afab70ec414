// query.ts - a page of a query, with everything that the server tells about it.
import { keywords } from "virtual:language";
import { asStep } from "../parts/property_names";
import { ApiError, request, type Answer, type Json, type JsonObject } from "./client";

export interface Filter {
    filter: string;
    index?: string;
    estimatedItems?: number;
    foundItems?: number;
    of?: Filter[];
}

export interface PartitionPlan {
    partition: string; // its id
    by: string;
    items?: number; // not if another node of a cluster has looked
    where?: Filter;
}

export interface IndexUse {
    used: string[];
    wouldHelp: string[];
}

export interface QueryPage {
    number: number; // of each answer another one
    rows: Json[];
    next: string | null;
    charge: number;
    ms: number;
    metrics: [string, string][];
    visited: number | null; // physical partitions; null if the server did not say
    plan: PartitionPlan[]; // of the first of them
    indexes: IndexUse | null;
}

// Where a query is wrong: places in its text.
export interface QueryFault {
    from: number;
    to: number;
    message: string;
}

export function faultsOf(error: unknown): QueryFault[] {
    if (!(error instanceof ApiError) || error.status !== 400)
        return [];
    try {
        const { errors } = JSON.parse(error.message) as { errors: { location?: { start: number; end: number }; message: string }[] };
        return errors.flatMap(({ location, message }) => location === undefined ? [] : [{ from: location.start, to: location.end, message }]);
    } catch {
        return [];
    }
}

interface SingleIndex { IndexSpec: string }
interface CompositeIndex { IndexSpecs: string[] }
interface IndexMetrics {
    UtilizedSingleIndexes: SingleIndex[];
    PotentialSingleIndexes: SingleIndex[];
    UtilizedCompositeIndexes: CompositeIndex[];
    PotentialCompositeIndexes: CompositeIndex[];
}

function indexesOf(answer: Answer): IndexUse | null {
    const header = answer.headers.get("x-ms-cosmos-index-utilization");
    if (header === null)
        return null;
    const found = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), (c) => c.charCodeAt(0)))) as IndexMetrics;
    const single = (rows: SingleIndex[]): string[] => rows.map((row) => row.IndexSpec);
    const composite = (rows: CompositeIndex[]): string[] => rows.map((row) => `(${row.IndexSpecs.join(", ")})`);
    return {
        used: [...single(found.UtilizedSingleIndexes), ...composite(found.UtilizedCompositeIndexes)],
        wouldHelp: [...single(found.PotentialSingleIndexes), ...composite(found.PotentialCompositeIndexes)],
    };
}

// The server explains some partitions only, and fewer if the header would be long.
function planOf(answer: Answer): { visited: number | null; plan: PartitionPlan[] } {
    try {
        const told = JSON.parse(decodeURIComponent(answer.headers.get("x-orrery-explain") ?? "{}")) as { partitions?: PartitionPlan[]; partitionsVisited?: number };
        return { visited: told.partitionsVisited ?? null, plan: told.partitions ?? [] };
    } catch {
        return { visited: null, plan: [] };
    }
}

// Whether a query can call a function by this name: it is written after "udf.", where nothing can be quoted.
const words: ReadonlySet<string> = new Set(keywords);
export const isCallable = (id: string): boolean => asStep(id, words).startsWith(".");

let answers = 0;

export interface Parameter extends JsonObject { name: string; value: Json }

export async function queryPage(docs: string, query: string, next: string | null, parameters: Parameter[] = []): Promise<QueryPage> {
    const headers: Record<string, string> = {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "true",
        "x-ms-documentdb-query-enablecrosspartition": "true",
        "x-ms-documentdb-populatequerymetrics": "true",
        "x-ms-cosmos-populateindexmetrics": "true",
        "x-orrery-explain": "true",
        "x-ms-max-item-count": "100",
    };
    if (next !== null)
        headers["x-ms-continuation"] = next;
    const answer = await request<JsonObject>("POST", docs, { body: { query, parameters }, headers });
    return {
        number: ++answers,
        rows: (answer.body["Documents"] ?? []) as Json[],
        next: answer.headers.get("x-ms-continuation"),
        charge: answer.charge,
        ms: Number(answer.headers.get("x-ms-request-duration-ms") ?? answer.ms),
        metrics: (answer.headers.get("x-ms-documentdb-query-metrics") ?? "").split(";").filter((part) => part !== "").map((part) => part.split("=") as [string, string]),
        ...planOf(answer),
        indexes: indexesOf(answer),
    };
}
