// query.ts - a page of a query, with everything that the server tells about it.
import { ApiError, request, type Answer, type Json, type JsonObject } from "./client";

export interface Filter {
    filter: string;
    index?: string;
    estimatedItems?: number;
    foundItems?: number;
    of?: Filter[];
}

export interface PartitionPlan {
    by: string;
    items: number;
    where?: Filter;
}

export interface IndexUse {
    used: string[];
    wouldHelp: string[];
}

export interface QueryPage {
    rows: Json[];
    next: string | null;
    charge: number;
    ms: number;
    metrics: [string, string][];
    plan: PartitionPlan[];
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

// A long plan is cut by the server; then there is none.
function planOf(answer: Answer): PartitionPlan[] {
    try {
        const plan = JSON.parse(decodeURIComponent(answer.headers.get("x-orrery-explain") ?? "{}")) as { partitions?: PartitionPlan[] };
        return plan.partitions ?? [];
    } catch {
        return [];
    }
}

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
        rows: (answer.body["Documents"] ?? []) as Json[],
        next: answer.headers.get("x-ms-continuation"),
        charge: answer.charge,
        ms: Number(answer.headers.get("x-ms-request-duration-ms") ?? answer.ms),
        metrics: (answer.headers.get("x-ms-documentdb-query-metrics") ?? "").split(";").filter((part) => part !== "").map((part) => part.split("=") as [string, string]),
        plan: planOf(answer),
        indexes: indexesOf(answer),
    };
}
