// new_resource.tsx - the dialogs that make databases and containers. What the server refuses is shown at the field that
// its message is about.
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { linter } from "@codemirror/lint";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, pathOf, request, type Json, type JsonObject } from "../api/client";
import { findOffer, startOf, throughputHeaders, type Throughput } from "../api/offers";
import { Dialog } from "../parts/dialog";
import { Editor } from "../parts/editor";
import { ChoiceField, Group, TextField } from "../parts/fields";
import { tell, wordsOf } from "../parts/notices";
import { ThroughputFields } from "../parts/throughput";
import { timeToLiveBody, TimeToLiveFields, timeToLiveOf } from "../parts/time_to_live";
import { containerLink, go, route } from "../route";
import { databases, readDatabases } from "../state";
import { texts } from "../texts";

export type FieldName = "id" | "key" | "throughput" | "ttl" | "unique" | "policy" | "form";
export interface Refusal { field: FieldName; words: string }

// Words of the server's messages, the most telling first.
const FIELDS: [RegExp, FieldName][] = [
    [/defaultTtl/i, "ttl"],
    [/unique ?key/i, "unique"],
    [/partition ?key/i, "key"],
    [/throughput|offer|request units|autopilot/i, "throughput"],
    [/index|(included|excluded)Paths/i, "policy"],
    [/\bid\b|\bname\b|exists/i, "id"],
];

export function refusalOf(error: unknown): Refusal {
    const words = wordsOf(error);
    if (!(error instanceof ApiError) || ![400, 409].includes(error.status))
        return { field: "form", words };
    return { field: error.status === 409 ? "id" : FIELDS.find(([pattern]) => pattern.test(error.message))?.[1] ?? "form", words };
}

export class BadPolicy extends Error {}

export function parsePolicy(text: string): JsonObject {
    let found: Json;
    try {
        found = JSON.parse(text) as Json;
    } catch (error) {
        throw new BadPolicy(String((error as Error).message));
    }
    if (found === null || typeof found !== "object" || Array.isArray(found))
        throw new BadPolicy(texts.definition.notObject);
    return found;
}

export function NewDatabase({ onClose }: { onClose: () => void }) {
    const [id, setId] = useState("");
    const [throughput, setThroughput] = useState<Throughput>(startOf("none"));
    const [refusal, setRefusal] = useState<Refusal | null>(null);
    async function create(): Promise<void> {
        try {
            await request("POST", "dbs", { body: { id }, headers: throughputHeaders(throughput) });
        } catch (error) {
            return setRefusal(refusalOf(error));
        }
        tell(texts.definition.created(id));
        await readDatabases();
        onClose();
    }
    const at = (field: FieldName): string => refusal?.field === field ? refusal.words : "";
    return (
        <Dialog title={texts.tree.newDatabase} submit={texts.dialog.create} problem={at("form")} onSubmit={create} onClose={onClose}>
            <TextField label={texts.definition.name} value={id} onChange={setId} isRequired problem={at("id")} />
            <ThroughputFields value={throughput} onChange={setThroughput} none={texts.throughput.notShared} problem={at("throughput")} />
        </Dialog>
    );
}

const PATHS_MAX = 3;
const FIRST_POLICY = JSON.stringify({
    indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/\"_etag\"/?" }],
}, null, 2);

// One key in each line, its paths separated by commas.
function uniqueKeysOf(text: string): JsonObject {
    const keys = text.split("\n").map((line) => line.split(",").map((path) => path.trim()).filter((path) => path !== "")).filter((paths) => paths.length > 0);
    return keys.length === 0 ? {} : { uniqueKeyPolicy: { uniqueKeys: keys.map((paths) => ({ paths })) } };
}

const partitionKeyOf = (paths: string[]): JsonObject => ({ paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 });

// What it means to have no throughput depends on the database: one with throughput of its own shares that.
function useShared(db: string): boolean {
    const [isShared, setShared] = useState(false);
    useEffect(() => {
        let isOver = false;
        setShared(false);
        const rid = databases.value?.find(({ id }) => id === db)?._rid ?? "";
        findOffer(rid).then((found) => { if (!isOver) setShared(found !== null); }, () => undefined);
        return () => { isOver = true; };
    }, [db]);
    return isShared;
}

export function NewContainer({ onClose }: { onClose: () => void }) {
    const names = (databases.value ?? []).map(({ id }) => id);
    const current = route.value;
    const [db, setDb] = useState("db" in current && names.includes(current.db) ? current.db : names[0]!);
    const [id, setId] = useState("");
    const [paths, setPaths] = useState(["/id"]);
    const [throughput, setThroughput] = useState<Throughput>(startOf("none")); // which every account accepts
    const [timeToLive, setTimeToLive] = useState(timeToLiveOf(undefined));
    const [uniqueKeys, setUniqueKeys] = useState("");
    const [policy, setPolicy] = useState(FIRST_POLICY);
    const [refusal, setRefusal] = useState<Refusal | null>(null);
    const isShared = useShared(db);
    const lint = useMemo(() => linter(jsonParseLinter()), []);

    async function create(): Promise<void> {
        try {
            const body: JsonObject = {
                id, partitionKey: partitionKeyOf(paths.map((path) => path.trim())), indexingPolicy: parsePolicy(policy),
                ...timeToLiveBody(timeToLive), ...uniqueKeysOf(uniqueKeys),
            };
            await request("POST", pathOf("dbs", db, "colls"), { body, headers: throughputHeaders(throughput) });
        } catch (error) {
            return setRefusal(error instanceof BadPolicy ? { field: "policy", words: error.message } : refusalOf(error));
        }
        tell(texts.definition.created(id));
        await readDatabases();
        onClose();
        go(containerLink(db, id));
    }

    const at = (field: FieldName): string => refusal?.field === field ? refusal.words : "";
    return (
        <Dialog title={texts.tree.newContainer} submit={texts.dialog.create} problem={at("form")} onSubmit={create} onClose={onClose}>
            <ChoiceField label={texts.overview.database} value={db} choices={names.map((name) => [name, name] as const)} onChange={setDb} />
            <TextField label={texts.definition.name} value={id} onChange={setId} isRequired problem={at("id")} />
            {paths.map((path, i) => (
                <TextField key={i} label={paths.length === 1 ? texts.key.label : texts.definition.level(i + 1)} isRequired value={path}
                    hint={i === 0 ? texts.definition.keyHint : undefined} problem={i === paths.length - 1 ? at("key") : undefined}
                    onChange={(changed) => setPaths(paths.map((other, j) => j === i ? changed : other))} />
            ))}
            <p class="buttons left">
                {paths.length < PATHS_MAX && <button type="button" onClick={() => setPaths([...paths, "/"])}>{texts.definition.addLevel}</button>}
                {paths.length > 1 && <button type="button" onClick={() => setPaths(paths.slice(0, -1))}>{texts.definition.removeLevel}</button>}
            </p>
            <ThroughputFields value={throughput} onChange={setThroughput} none={isShared ? texts.throughput.shared : texts.throughput.default} problem={at("throughput")} />
            <TimeToLiveFields value={timeToLive} onChange={setTimeToLive} problem={at("ttl")} />
            <TextField label={texts.definition.uniqueKeys} hint={texts.definition.uniqueKeysHint} lines={2} value={uniqueKeys} onChange={setUniqueKeys} problem={at("unique")} />
            <Group label={texts.definition.policy} problem={at("policy")}>
                <Editor initial={FIRST_POLICY} label={texts.definition.policy} language={json()} more={lint} isTabFree onChange={setPolicy} />
            </Group>
        </Dialog>
    );
}
