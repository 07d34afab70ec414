// scripts.tsx - stored procedures, triggers and user-defined functions of a container: edited, and run but for triggers.
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, listAll, pathOf, request, type Json, type JsonObject } from "../api/client";
import { isCallable, queryPage } from "../api/query";
import { mayChange } from "../api/session";
import { Dialog } from "../parts/dialog";
import { Editor } from "../parts/editor";
import { ChangeFields, ChoiceField, Group, TextField } from "../parts/fields";
import { attempt, tell, tellFailure, useAttempt, wordsOf } from "../parts/notices";
import { useReturnedFocus } from "../parts/returned_focus";
import { mayDiscard, useUnsaved } from "../parts/unsaved";
import { keyValuesHeader, parseKey, type ContainerDefinition } from "../state";
import { texts } from "../texts";

export const KINDS = ["sprocs", "triggers", "udfs"] as const;
export type Kind = (typeof KINDS)[number];
const TYPES = ["Pre", "Post"] as const;
const OPERATIONS = ["All", "Create", "Replace", "Delete", "Upsert"] as const;

interface Script extends JsonObject {
    id: string;
    body: string;
    _rid: string;
    _etag: string;
}

interface Open {
    number: number; // each editor that is opened has another one
    kind: Kind;
    script: Script | null; // null: a new one
}

interface Outcome {
    result: string;
    isFailed: boolean;
    log: string;
    charge: number;
    ms: number;
}

function parseArguments(text: string): Json[] {
    let found: unknown;
    try {
        found = JSON.parse(text);
    } catch {
        found = null;
    }
    if (!Array.isArray(found))
        throw new Error(texts.scripts.notArray);
    return found as Json[];
}

function decodeLog(header: string | null): string {
    try {
        return decodeURIComponent(header ?? "");
    } catch {
        return header ?? "";
    }
}

const logOf = (headers: Headers): string => decodeLog(headers.get("x-ms-documentdb-script-log-results"));

// What has failed has a log and a charge as well, if the server has begun it.
function failureOutcome(error: unknown): Outcome {
    const { headers, charge, ms } = error instanceof ApiError ? error : { headers: new Headers(), charge: 0, ms: 0 };
    return { result: wordsOf(error), isFailed: true, log: logOf(headers), charge, ms };
}

async function runProcedure(path: string, key: Json[], given: Json[]): Promise<Outcome> {
    const headers = { ...keyValuesHeader(key), "x-ms-documentdb-script-enable-logging": "true" };
    const answer = await request("POST", path, { body: given, headers });
    return { result: JSON.stringify(answer.body, null, 2), isFailed: false, charge: answer.charge, ms: answer.ms, log: logOf(answer.headers) };
}

// Functions are for queries: one without items calls it once.
async function callFunction(docs: string, id: string, given: Json[]): Promise<Outcome> {
    const parameters = given.map((value, i) => ({ name: `@p${i}`, value }));
    const { rows, charge, ms } = await queryPage(docs, `SELECT VALUE udf.${id}(${parameters.map(({ name }) => name).join(", ")})`, null, parameters);
    return { result: JSON.stringify(rows[0], null, 2) ?? "undefined", isFailed: false, charge, ms, log: "" };
}

function Run({ kind, id, root, container }: { kind: "sprocs" | "udfs"; id: string; root: string; container: ContainerDefinition }) {
    const paths = container.partitionKey?.paths ?? [];
    const [key, setKey] = useState(JSON.stringify(paths.map(() => "")));
    const [given, setGiven] = useState("[]");
    const [outcome, setOutcome] = useState<Outcome | null>(null);
    const [runs, setRuns] = useState(0);
    const submit = useAttempt();

    async function run(): Promise<void> {
        const values = parseArguments(given);
        const isProcedure = kind === "sprocs";
        const keyValues = isProcedure ? parseKey(key) : [];
        try {
            setOutcome(isProcedure ? await runProcedure(`${root}/sprocs/${encodeURIComponent(id)}`, keyValues, values) : await callFunction(`${root}/docs`, id, values));
        } catch (error) {
            setOutcome(failureOutcome(error));
            tellFailure(error);
        }
        setRuns(runs + 1);
    }

    return (
        <form class="form" aria-label={texts.scripts.run} onSubmit={(event) => { event.preventDefault(); submit(run); }}>
            <h2>{texts.scripts.run}</h2>
            {kind === "sprocs" ? <TextField label={texts.key.label} hint={texts.key.hint(paths.join(", "))} value={key} onChange={setKey} isRequired />
                : <p class="hint">{texts.scripts.calling}</p>}
            <TextField label={texts.scripts.arguments} hint={texts.scripts.argumentsHint} value={given} onChange={setGiven} isRequired />
            <p class="buttons"><button type="submit" class="primary">{texts.scripts.runIt[kind]}</button></p>
            {outcome !== null && (
                <>
                    {outcome.isFailed && <p class="problem" role="alert">{outcome.result}</p>}
                    <p role="status">{texts.scripts.done(outcome.charge, outcome.ms)}</p>
                    {!outcome.isFailed && <Editor key={runs} class="small" initial={outcome.result} label={texts.scripts.result} language={json()} isReadOnly isTabFree />}
                    {outcome.log !== "" && <Group label={texts.scripts.log}><pre class="log" tabIndex={0}>{outcome.log}</pre></Group>}
                </>
            )}
        </form>
    );
}

// A procedure may change items, so a read-only key may not execute any; a function only computes.
const canRun = (kind: Kind, id: string): kind is "sprocs" | "udfs" =>
    (kind === "sprocs" && mayChange.value) || (kind === "udfs" && isCallable(id));

// The functions are called as those of an item's editor are.
function ScriptEditor({ container, root, open, onDone, onStored, onClose }: {
    container: ContainerDefinition; root: string; open: Open;
    onDone: (changed: Script | null) => void; onStored: (changed: Script) => void; onClose: () => void;
}) {
    const { kind, script } = open;
    const [id, setId] = useState(script?.id ?? "");
    const [body, setBody] = useState(script?.body ?? texts.scripts.first[kind]);
    const [type, setType] = useState(String(script?.["triggerType"] ?? "Pre"));
    const [operation, setOperation] = useState(String(script?.["triggerOperation"] ?? "All"));
    const [isDeleting, setDeleting] = useState(false);
    const submit = useAttempt();
    const now = JSON.stringify([id, body, type, operation]);
    const [first] = useState(now);
    const newest = useRef(now); // while an answer is waited for, more may be typed
    newest.current = now;
    useUnsaved(now === first ? null : texts.unsaved.script(script?.id ?? texts.scripts.new[kind]));
    const list = `${root}/${kind}`;
    const path = `${list}/${encodeURIComponent(script?.id ?? "")}`;

    async function save(): Promise<void> {
        if (!mayChange.value) // Enter in a field sends a form without a button
            return;
        const wanted: JsonObject = { id, body, ...(kind === "triggers" ? { triggerType: type, triggerOperation: operation } : {}) };
        const answer = script === null
            ? await request<Script>("POST", list, { body: wanted })
            : await request<Script>("PUT", path, { body: wanted, headers: { "if-match": script._etag } });
        tell(texts.items.saved(answer.charge));
        (newest.current === now ? onDone : onStored)(answer.body);
    }

    async function remove(): Promise<void> {
        setDeleting(false);
        const answer = await request("DELETE", path, { headers: { "if-match": script!._etag } });
        tell(texts.items.deleted(answer.charge));
        onDone(null);
    }

    // What was stored by others in another spelling stays a choice.
    const choices = (known: readonly string[], now: string): [string, string][] => [...new Set([...known, now])].map((name) => [name, name]);
    return (
        <div class="item script">
            <form class="form" aria-label={texts.scripts.script} onSubmit={(event) => { event.preventDefault(); submit(save); }}>
                <div class="buttons">
                    {mayChange.value && <button type="submit" class="primary">{texts.items.save}</button>}
                    {mayChange.value && script !== null && <button type="button" class="danger" onClick={() => setDeleting(true)}>{texts.items.delete}</button>}
                    <button type="button" onClick={onClose}>{texts.items.close}</button>
                </div>
                <TextField label={texts.definition.name} value={id} onChange={setId} isRequired isReadOnly={!mayChange.value} />
                {kind === "triggers" && (
                    <ChangeFields>
                        <div class="pair">
                            <ChoiceField label={texts.scripts.type} value={type} choices={choices(TYPES, type)} onChange={setType} />
                            <ChoiceField label={texts.scripts.operation} value={operation} choices={choices(OPERATIONS, operation)} onChange={setOperation} />
                        </div>
                    </ChangeFields>
                )}
                <Editor class="code" initial={body} label={texts.scripts.code} language={javascript()} isReadOnly={!mayChange.value} onChange={setBody} />
            </form>
            {script !== null && kind === "udfs" && !isCallable(script.id) && <p class="hint">{texts.scripts.notCallable}</p>}
            {script !== null && canRun(kind, script.id) && <Run kind={kind} id={script.id} root={root} container={container} />}
            {isDeleting && (
                <Dialog title={texts.scripts.sureDelete(script!.id)} submit={texts.dialog.delete} isDangerous
                    onSubmit={remove} onClose={() => setDeleting(false)} />
            )}
        </div>
    );
}

export function Scripts({ db, container }: { db: string; container: ContainerDefinition }) {
    const root = pathOf("dbs", db, "colls", container.id);
    const [scripts, setScripts] = useState<Record<Kind, Script[]> | null>(null);
    const [open, setOpen] = useState<Open | null>(null);
    const opened = useRef(0);
    const element = useRef<HTMLDivElement>(null);
    const returnFocus = useReturnedFocus(element, open !== null);

    async function read(): Promise<void> {
        try {
            const [sprocs, triggers, udfs] = await Promise.all(KINDS.map((kind) => listAll<Script>(`${root}/${kind}`)));
            setScripts({ sprocs: sprocs!, triggers: triggers!, udfs: udfs! });
        } catch (error) {
            setScripts({ sprocs: [], triggers: [], udfs: [] });
            throw error;
        }
    }
    useEffect(() => attempt(read), []);

    const another = (kind: Kind, script: Script | null): Open => ({ number: ++opened.current, kind, script });

    async function show(kind: Kind, script: Script | null): Promise<void> {
        const isOpen = open !== null && open.kind === kind && open.script?._rid === script?._rid;
        if (!isOpen && await mayDiscard("text"))
            setOpen(another(kind, script));
    }

    async function close(): Promise<void> {
        if (!await mayDiscard("text"))
            return;
        returnFocus(open?.script?._rid ?? "");
        setOpen(null);
    }

    // What can be run stays open after it was saved: it is run next. What was opened in the meantime stays as well.
    function done(about: Open, changed: Script | null): void {
        returnFocus(changed?._rid ?? "");
        const next = changed !== null && about.kind !== "triggers" ? another(about.kind, changed) : null;
        setOpen((now) => now?.number === about.number ? next : now);
        attempt(read);
    }

    function stored(about: Open, changed: Script): void {
        setOpen((now) => now?.number === about.number ? { ...about, script: changed } : now);
        attempt(read);
    }

    if (scripts === null)
        return <p>{texts.loading}</p>;
    return (
        <div class="items" ref={element}>
            <div class="items-list">
                <div class="scroll">
                    {KINDS.map((kind) => (
                        <section key={kind} aria-label={texts.scripts.kinds[kind]}>
                            <h2>{texts.scripts.kinds[kind]}</h2>
                            <ul>
                                {scripts[kind].map((script) => (
                                    <li key={script._rid}>
                                        <button class={open?.script?._rid === script._rid ? "row chosen" : "row"} data-rid={script._rid} onClick={() => attempt(() => show(kind, script))}>
                                            <span>{script.id}</span>
                                            {kind === "triggers" && <span class="hint">{String(script["triggerType"])}, {String(script["triggerOperation"])}</span>}
                                        </button>
                                    </li>
                                ))}
                            </ul>
                            {mayChange.value && <div class="buttons"><button onClick={() => attempt(() => show(kind, null))}>{texts.scripts.new[kind]}</button></div>}
                        </section>
                    ))}
                </div>
            </div>
            {open === null ? <p class="hint item">{texts.scripts.choose}</p>
                : <ScriptEditor key={open.number} container={container} root={root} open={open}
                    onDone={(changed) => done(open, changed)} onStored={(changed) => stored(open, changed)} onClose={() => attempt(close)} />}
        </div>
    );
}
