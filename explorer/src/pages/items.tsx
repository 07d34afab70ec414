// items.tsx - the items of a container: a list in pages, and an editor for one of them.
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { linter, type Diagnostic } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, list, pathOf, request, type JsonObject } from "../api/client";
import { Dialog } from "../parts/dialog";
import { Difference } from "../parts/difference";
import { Editor } from "../parts/editor";
import { attempt, tell, wordsOf } from "../parts/notices";
import { TextField } from "../parts/fields";
import { RefusedRows, saveFile, UploadButton, type RefusedRow } from "../parts/files";
import { NO_TRIGGERS, readTriggers, TriggerChoice, triggerHeaders, type Trigger } from "../parts/triggers";
import { keyHeader, keyValuesHeader, parseKey, type ContainerDefinition } from "../state";
import { texts } from "../texts";

interface Item extends JsonObject {
    id: string;
    _etag: string;
}

const SYSTEM = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
const PAGE = 100;
const UPLOAD_ATTEMPTS = 10; // of one row

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

function ItemEditor({ container, docs, item, triggers, onDone }: {
    container: ContainerDefinition; docs: string; item: Item | null; triggers: Trigger[]; onDone: (changed: Item | null) => void;
}) {
    const [text, setText] = useState(item === null ? `{\n  "id": "${crypto.randomUUID()}"\n}` : editable(item));
    const [stored, setStored] = useState<Item | null>(null); // another version, found by a conflict
    const [isDeleting, setDeleting] = useState(false);
    const [chosen, setChosen] = useState(NO_TRIGGERS);
    const lint = useMemo(() => linter(itemFaults), []);

    async function save(etag: string | undefined): Promise<void> {
        const body = parseItem(text);
        const headers: Record<string, string> = { ...keyHeader(container, item ?? body), ...triggerHeaders(chosen) };
        if (etag !== undefined)
            headers["if-match"] = etag;
        try {
            const answer = item === null
                ? await request<Item>("POST", docs, { body, headers })
                : await request<Item>("PUT", `${docs}/${encodeURIComponent(item.id)}`, { body, headers });
            tell(texts.items.saved(answer.charge));
            onDone(answer.body);
        } catch (error) {
            if (!(error instanceof ApiError) || error.status !== 412 || item === null)
                throw error;
            const now = await request<Item>("GET", `${docs}/${encodeURIComponent(item.id)}`, { headers: keyHeader(container, item) });
            setStored(now.body);
        }
    }

    async function remove(): Promise<void> {
        setDeleting(false);
        const headers = { ...keyHeader(container, item!), ...triggerHeaders(chosen) };
        const answer = await request("DELETE", `${docs}/${encodeURIComponent(item!.id)}`, { headers });
        tell(texts.items.deleted(answer.charge));
        onDone(null);
    }

    return (
        <div class="item">
            <div class="buttons">
                <button class="primary" onClick={() => attempt(() => save(item?._etag))}>{texts.items.save}</button>
                {item !== null && <button class="danger" onClick={() => setDeleting(true)}>{texts.items.delete}</button>}
                <button onClick={() => onDone(item)}>{texts.items.close}</button>
            </div>
            <TriggerChoice triggers={triggers} chosen={chosen} onChange={setChosen} />
            {stored === null ? <Editor initial={text} label={item?.id ?? texts.items.new} language={json()} more={lint} onChange={setText} /> : (
                <>
                    <p role="alert" class="problem">{texts.items.conflict}</p>
                    <div class="buttons">
                        <button onClick={() => attempt(() => save(stored._etag))}>{texts.items.overwrite}</button>
                        <button onClick={() => onDone(stored)}>{texts.items.takeTheirs}</button>
                    </div>
                    <Difference before={editable(stored)} after={text} onChange={setText} />
                </>
            )}
            {item !== null && <p class="hint">_ts {String(item["_ts"])}, _etag {item._etag}</p>}
            {isDeleting && (
                <Dialog title={texts.items.sureDelete(item!.id)} submit={texts.dialog.delete} isDangerous
                    onSubmit={() => attempt(remove)} onClose={() => setDeleting(false)} />
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

export function Items({ db, container }: { db: string; container: ContainerDefinition }) {
    const docs = pathOf("dbs", db, "colls", container.id, "docs");
    const [items, setItems] = useState<Item[] | null>(null);
    const [next, setNext] = useState<string | null>(null);
    const [isRefused, setRefused] = useState(false); // the list was; the notice says why
    const [open, setOpen] = useState<Item | "new" | null>(null);
    const [refusedRows, setRefusedRows] = useState<RefusedRow[]>([]); // of the last file
    const [triggers, setTriggers] = useState<Trigger[] | null>(null); // null: not read yet

    // Only who opens an item needs them.
    useEffect(() => {
        if (open !== null && triggers === null)
            void readTriggers(pathOf("dbs", db, "colls", container.id)).then(setTriggers);
    }, [open]);

    async function read(from: string | null): Promise<void> {
        const page = await list<Item>(docs, from, { size: PAGE }).catch((error) => { setItems((before) => before ?? []); setRefused(true); throw error; });
        setRefused(false);
        setItems((before) => from === null ? page.rows : [...before ?? [], ...page.rows]);
        setNext(page.next);
    }
    useEffect(() => { setItems(null); setOpen(null); attempt(() => read(null)); }, [docs]);

    function done(changed: Item | null): void {
        setOpen(null);
        setItems((before) => {
            const others = (before ?? []).filter((item) => item["_rid"] !== (changed ?? (open as Item))["_rid"]);
            const at = (before ?? []).findIndex((item) => item["_rid"] === changed?.["_rid"]);
            return changed === null ? others : at < 0 ? [changed, ...others] : (before ?? []).map((item, i) => i === at ? changed : item);
        });
    }

    async function readOne(id: string, key: string): Promise<void> {
        const headers = key.trim() === "" ? {} : keyValuesHeader(parseKey(key));
        const { body } = await request<Item>("GET", `${docs}/${encodeURIComponent(id)}`, { headers });
        setItems((before) => [body, ...(before ?? []).filter((item) => item["_rid"] !== body["_rid"])]);
        setOpen(body);
    }

    // A file may hold more than the throughput of the moment: what is answered 429 is sent again when the server says.
    async function upload(row: JsonObject): Promise<void> {
        const body: JsonObject = row["id"] === undefined ? { id: crypto.randomUUID(), ...row } : row;
        for (let attempts = 1; ; attempts++) {
            try {
                await request("POST", docs, { body, headers: { ...keyHeader(container, body), "x-ms-documentdb-is-upsert": "true" } });
                return;
            } catch (error) {
                if (!(error instanceof ApiError) || error.status !== 429 || attempts === UPLOAD_ATTEMPTS)
                    throw error;
                await new Promise((resolve) => setTimeout(resolve, Number(error.headers.get("x-ms-retry-after-ms") ?? 100)));
            }
        }
    }

    async function uploaded(rows: RefusedRow[]): Promise<void> {
        setRefusedRows(rows);
        await read(null);
    }

    if (items === null)
        return <p>{texts.loading}</p>;
    return (
        <div class="items">
            <div class="items-list">
                <div class="buttons">
                    <button onClick={() => setOpen("new")}>{texts.items.new}</button>
                    <button onClick={() => attempt(() => read(null))}>{texts.tree.refresh}</button>
                    <UploadButton upload={upload} onRefused={uploaded} />
                    <button onClick={() => saveFile(`${container.id}.json`, JSON.stringify(items, null, 2))}>{texts.items.download}</button>
                </div>
                <RefusedRows refused={refusedRows} />
                <OpenItem container={container} isOpen={isRefused} onRead={readOne} />
                <p class="hint" role="status">{isRefused ? texts.items.refused : items.length === 0 ? texts.items.empty : texts.items.shown(items.length, next === null)}</p>
                <ul class="scroll">
                    {items.map((item) => (
                        <li key={item["_rid"] as string}>
                            <button class={open !== "new" && open?.["_rid"] === item["_rid"] ? "row chosen" : "row"} onClick={() => setOpen(item)}>
                                <span>{item.id}</span>
                                <span class="hint">{(JSON.parse(keyHeader(container, item)["x-ms-documentdb-partitionkey"]!) as unknown[]).map((value) => JSON.stringify(value)).join(", ")}</span>
                            </button>
                        </li>
                    ))}
                </ul>
                {next !== null && <button onClick={() => attempt(() => read(next))}>{texts.items.more}</button>}
            </div>
            {open === null ? <p class="hint item">{texts.items.choose}</p>
                : <ItemEditor key={open === "new" ? "new" : open["_rid"] as string} container={container} docs={docs} item={open === "new" ? null : open} triggers={triggers ?? []} onDone={done} />}
        </div>
    );
}
