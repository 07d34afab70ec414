// items.tsx - the items of a container: a list in pages, and an editor for one of them.
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { linter, type Diagnostic } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, list, pathOf, request, type JsonObject } from "../api/client";
import { patiently } from "../api/patience";
import { credential, mayChange } from "../api/session";
import { Dialog } from "../parts/dialog";
import { Difference } from "../parts/difference";
import { Editor } from "../parts/editor";
import { attempt, tell, useAttempt, wordsOf } from "../parts/notices";
import { TextField } from "../parts/fields";
import { DownloadButton, RefusedRows, UploadButton, type RefusedRow } from "../parts/files";
import { useReturnedFocus } from "../parts/returned_focus";
import { NO_TRIGGERS, readTriggers, TriggerChoice, triggerHeaders, type Trigger } from "../parts/triggers";
import { mayDiscard, useUnsaved } from "../parts/unsaved";
import { keyHeader, keyValuesHeader, keyWords, parseKey, type ContainerDefinition } from "../state";
import { texts } from "../texts";

interface Item extends JsonObject {
    id: string;
    _etag: string;
}

const SYSTEM = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
const PAGE = 100;
const DOWNLOAD_PAGE = 1000;

// What a user edits: the item without what the server adds.
export function editable(item: JsonObject): string {
    return JSON.stringify(Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM.includes(name))), null, 2);
}

function parseItem(text: string): JsonObject {
    const parsed: unknown = JSON.parse(text);
    if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed))
        throw new Error(texts.items.notObject);
    return parsed as JsonObject;
}

const jsonFaults = jsonParseLinter();

// JSON that is no object is marked as a whole.
function itemFaults(view: EditorView): Diagnostic[] {
    const found = jsonFaults(view);
    if (found.length > 0)
        return found;
    try {
        parseItem(view.state.doc.toString());
        return [];
    } catch (error) {
        return [{ from: 0, to: view.state.doc.length, severity: "error", message: wordsOf(error) }];
    }
}

// 'onDone' is called with what is stored now, null after a delete, 'onStored' if there is more to save than that, and
// 'onClose' if nothing has changed.
function ItemEditor({ container, docs, item, triggers, onDone, onStored, onClose }: {
    container: ContainerDefinition; docs: string; item: Item | null; triggers: Trigger[];
    onDone: (changed: Item | null) => void; onStored: (changed: Item) => void; onClose: () => void;
}) {
    const [first] = useState(item === null ? `{\n  "id": "${crypto.randomUUID()}"\n}` : editable(item));
    const [text, setText] = useState(first);
    const newest = useRef(text); // while an answer is waited for, more may be typed
    newest.current = text;
    const [stored, setStored] = useState<Item | null>(null); // another version, found by a conflict
    const [isDeleting, setDeleting] = useState(false);
    const [chosen, setChosen] = useState(NO_TRIGGERS);
    const lint = useMemo(() => linter(itemFaults), []);
    const submit = useAttempt();
    useUnsaved(text === first ? null : texts.unsaved.item(item?.id ?? texts.items.new));
    const path = `${docs}/${encodeURIComponent(item?.id ?? "")}`;
    const seen = stored ?? item; // the version that the user knows

    // Does it only if nobody has stored another version than that; otherwise shows the other one.
    async function unlessChanged<T>(work: (headers: Record<string, string>) => Promise<T>): Promise<T | null> {
        try {
            return await work(seen === null ? {} : { "if-match": seen._etag });
        } catch (error) {
            if (!(error instanceof ApiError) || error.status !== 412 || item === null)
                throw error;
            setStored((await request<Item>("GET", path, { headers: keyHeader(container, item) })).body);
            return null;
        }
    }

    async function save(): Promise<void> {
        const body = parseItem(text);
        const headers = { ...keyHeader(container, item ?? body), ...triggerHeaders(chosen) };
        const answer = await unlessChanged((match) => item === null
            ? request<Item>("POST", docs, { body, headers })
            : request<Item>("PUT", path, { body, headers: { ...headers, ...match } }));
        if (answer === null)
            return;
        tell(texts.items.saved(answer.charge));
        if (newest.current === text)
            return onDone(answer.body);
        setStored(null);
        onStored(answer.body);
    }

    async function remove(): Promise<void> {
        setDeleting(false);
        const headers = { ...keyHeader(container, item!), ...triggerHeaders(chosen) };
        const answer = await unlessChanged((match) => request("DELETE", path, { headers: { ...headers, ...match } }));
        if (answer === null)
            return;
        tell(texts.items.deleted(answer.charge));
        onDone(null);
    }

    return (
        <div class="item">
            <div class="buttons">
                {mayChange.value && stored === null && <button class="primary" onClick={() => submit(save)}>{texts.items.save}</button>}
                {mayChange.value && item !== null && <button class="danger" onClick={() => setDeleting(true)}>{texts.items.delete}</button>}
                <button onClick={onClose}>{texts.items.close}</button>
            </div>
            {mayChange.value && <TriggerChoice triggers={triggers} chosen={chosen} onChange={setChosen} />}
            {stored === null ? <Editor initial={text} label={item?.id ?? texts.items.new} language={json()} more={lint} isReadOnly={!mayChange.value} onChange={setText} /> : (
                <>
                    <p role="alert" class="problem">{texts.items.conflict}</p>
                    <div class="buttons">
                        <button onClick={() => submit(save)}>{texts.items.overwrite}</button>
                        <button onClick={() => onDone(stored)}>{texts.items.takeTheirs}</button>
                    </div>
                    <Difference key={stored._etag} before={editable(stored)} after={text} onChange={setText} />
                </>
            )}
            {seen !== null && <p class="hint">_ts {String(seen["_ts"])}, _etag {seen._etag}</p>}
            {isDeleting && (
                <Dialog title={texts.items.sureDelete(item!.id)} submit={texts.dialog.delete} isDangerous
                    onSubmit={remove} onClose={() => setDeleting(false)} />
            )}
        </div>
    );
}

// Reads one item, which a token for a single item may, and which is cheaper than looking for it in the list.
function OpenItem({ container, isOpen, onRead }: { container: ContainerDefinition; isOpen: boolean; onRead: (id: string, key: string) => Promise<void> }) {
    const [id, setId] = useState("");
    const [key, setKey] = useState("");
    return (
        <details open={isOpen}>
            <summary>{texts.items.openOne}</summary>
            <form class="form" aria-label={texts.items.openOne} onSubmit={(event) => { event.preventDefault(); attempt(() => onRead(id, key)); }}>
                <TextField label={texts.items.id} value={id} onChange={setId} isRequired />
                <TextField label={texts.key.label} hint={texts.items.keyHint(container.partitionKey.paths.join(", "))} value={key} onChange={setKey} />
                <button type="submit">{texts.items.openIt}</button>
            </form>
        </details>
    );
}

// What is open; another one has another number, so that an answer to the last one does not close it.
interface Open {
    number: number;
    item: Item | null; // null: a new one
}

// The rows of a page after those that are there. What was made or opened by its id is there already.
function withPage(before: Item[], rows: Item[]): Item[] {
    const newer = new Map(rows.map((row) => [row["_rid"], row]));
    const known = new Set(before.map((row) => row["_rid"]));
    return [...before.map((row) => newer.get(row["_rid"]) ?? row), ...rows.filter((row) => !known.has(row["_rid"]))];
}

// The same after one has changed: where it was, or at the beginning.
function withItem(before: Item[], changed: Item): Item[] {
    const isKnown = before.some((row) => row["_rid"] === changed["_rid"]);
    return isKnown ? before.map((row) => row["_rid"] === changed["_rid"] ? changed : row) : [changed, ...before];
}

export function Items({ db, container }: { db: string; container: ContainerDefinition }) {
    const docs = pathOf("dbs", db, "colls", container.id, "docs");
    const [items, setItems] = useState<Item[] | null>(null);
    const [next, setNext] = useState<string | null>(null);
    const [isRefused, setRefused] = useState(false); // the list was; the notice says why
    const [open, setOpen] = useState<Open | null>(null);
    const [refusedRows, setRefusedRows] = useState<RefusedRow[]>([]); // of the last file
    const [triggers, setTriggers] = useState<Trigger[] | null>(null); // null: not read yet
    const who = credential.value!;
    const readings = useRef(0);
    const opened = useRef(0);
    const element = useRef<HTMLDivElement>(null);
    const returnFocus = useReturnedFocus(element, open !== null);

    // Only who opens an item needs them.
    useEffect(() => {
        if (open !== null && triggers === null)
            void readTriggers(pathOf("dbs", db, "colls", container.id)).then(setTriggers);
    }, [open]);

    // What was asked for before the last reading is ignored.
    async function read(from: string | null): Promise<void> {
        const number = ++readings.current;
        try {
            const page = await list<Item>(docs, from, { size: PAGE });
            if (number !== readings.current)
                return;
            setRefused(false);
            setItems((before) => from === null ? page.rows : withPage(before ?? [], page.rows));
            setNext(page.next);
        } catch (error) {
            if (number === readings.current) {
                setItems((before) => before ?? []);
                setRefused(true);
            }
            throw error;
        }
    }
    useEffect(() => attempt(() => read(null)), []);

    async function show(item: Item | null): Promise<void> {
        const isOpen = open !== null && open.item?.["_rid"] === item?.["_rid"];
        if (!isOpen && await mayDiscard("text"))
            setOpen({ number: ++opened.current, item });
    }

    function close(closed: Open, rid = closed.item?.["_rid"]): void {
        setOpen((now) => now?.number === closed.number ? null : now);
        returnFocus(String(rid ?? ""));
    }

    function saved(edited: Open, changed: Item): void {
        setOpen((now) => now?.number === edited.number ? { ...edited, item: changed } : now);
        setItems((before) => withItem(before ?? [], changed));
    }

    function done(closed: Open, changed: Item | null): void {
        close(closed, changed?.["_rid"]);
        setItems((before) => changed !== null ? withItem(before ?? [], changed) : (before ?? []).filter((row) => row["_rid"] !== closed.item!["_rid"]));
    }

    async function readOne(id: string, key: string): Promise<void> {
        const headers = key.trim() === "" ? {} : keyValuesHeader(parseKey(key));
        const { body } = await request<Item>("GET", `${docs}/${encodeURIComponent(id)}`, { headers });
        setItems((before) => [body, ...(before ?? []).filter((item) => item["_rid"] !== body["_rid"])]);
        await show(body);
    }

    // By whoever is signed in when it begins, also for its last row.
    async function upload(row: JsonObject, signal: AbortSignal): Promise<void> {
        const body: JsonObject = row["id"] === undefined ? { id: crypto.randomUUID(), ...row } : row;
        const headers = { ...keyHeader(container, body), "x-ms-documentdb-is-upsert": "true" };
        await patiently(() => request("POST", docs, { body, headers, signal, as: who }), signal);
    }

    async function uploaded(rows: RefusedRow[]): Promise<void> {
        setRefusedRows(rows);
        await read(null);
    }

    if (items === null)
        return <p>{texts.loading}</p>;
    return (
        <div class="items" ref={element}>
            <div class="items-list">
                <div class="buttons">
                    {mayChange.value && <button onClick={() => attempt(() => show(null))}>{texts.items.new}</button>}
                    <button onClick={() => attempt(() => read(null))}>{texts.tree.refresh}</button>
                    {mayChange.value && <UploadButton upload={upload} onRefused={uploaded} />}
                    <DownloadButton name={`${container.id}.json`} read={(from, signal) => patiently(() => list(docs, from, { size: DOWNLOAD_PAGE, signal }), signal)} />
                </div>
                <RefusedRows refused={refusedRows} />
                <OpenItem container={container} isOpen={isRefused} onRead={readOne} />
                <p class="hint" role="status">{isRefused ? texts.items.refused : items.length === 0 ? texts.items.empty : texts.items.shown(items.length, next === null)}</p>
                <ul class="scroll">
                    {items.map((item) => (
                        <li key={item["_rid"] as string}>
                            <button class={open?.item?.["_rid"] === item["_rid"] ? "row chosen" : "row"} data-rid={item["_rid"] as string} onClick={() => attempt(() => show(item))}>
                                <span>{item.id}</span>
                                <span class="hint">{keyWords(container, item)}</span>
                            </button>
                        </li>
                    ))}
                </ul>
                {next !== null && <button onClick={() => attempt(() => read(next))}>{texts.items.more}</button>}
            </div>
            {open === null ? <p class="hint item">{texts.items.choose}</p>
                : <ItemEditor key={open.number} container={container} docs={docs} item={open.item} triggers={triggers ?? []}
                    onDone={(changed) => done(open, changed)} onStored={(changed) => saved(open, changed)} onClose={() => attempt(async () => { if (await mayDiscard("text")) close(open); })} />}
        </div>
    );
}
