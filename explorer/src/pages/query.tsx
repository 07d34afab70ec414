// query.tsx - SQL: an editor that knows the language, results in pages, and how they were found.
import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { json } from "@codemirror/lang-json";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Prec, type Extension } from "@codemirror/state";
import { keymap, type EditorView } from "@codemirror/view";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { functions, keywords } from "virtual:language";
import { list, pathOf, type Json, type JsonObject } from "../api/client";
import { faultsOf, queryPage, type Filter, type QueryPage } from "../api/query";
import { Editor } from "../parts/editor";
import { saveFile } from "../parts/files";
import { tellFailure } from "../parts/notices";
import type { ContainerDefinition } from "../state";
import { texts } from "../texts";

const HISTORY_MAX = 30;
const COLUMNS_MAX = 30;
const SAMPLE = 50;

const dialect = SQLDialect.define({
    keywords: keywords.join(" ").toLowerCase(),
    builtin: functions.join(" ").toLowerCase(),
    doubleQuotedStrings: true,
});

/* ---- history, kept in this browser ---- */

const storedUnder = (db: string, coll: string): string => `orrery.queries.${db}/${coll}`;

function readHistory(db: string, coll: string): string[] {
    try {
        const found: unknown = JSON.parse(localStorage.getItem(storedUnder(db, coll)) ?? "[]");
        return Array.isArray(found) ? found.filter((text) => typeof text === "string") : [];
    } catch {
        return [];
    }
}

function addToHistory(db: string, coll: string, query: string): string[] {
    const all = [query, ...readHistory(db, coll).filter((text) => text !== query)].slice(0, HISTORY_MAX);
    localStorage.setItem(storedUnder(db, coll), JSON.stringify(all));
    return all;
}

/* ---- completion ---- */

// The names of properties in a sample of the items: below "address." those of addresses.
function addNames(value: Json, path: string, out: Map<string, Set<string>>): void {
    if (Array.isArray(value)) {
        for (const element of value)
            addNames(element, path, out);
    } else if (value !== null && typeof value === "object") {
        const names = out.get(path) ?? new Set();
        out.set(path, names);
        for (const [name, inner] of Object.entries(value)) {
            names.add(name);
            addNames(inner, path === "" ? name : `${path}.${name}`, out);
        }
    }
}

function completer(names: { current: Map<string, Set<string>> }) {
    return (context: CompletionContext): CompletionResult | null => {
        const path = context.matchBefore(/[A-Za-z_]\w*(\.\w*)+/);
        if (path !== null) {
            const parts = path.text.split(".");
            const last = parts.pop()!;
            const found = names.current.get(parts.slice(1).join(".")) ?? names.current.get(parts.join(".")) ?? new Set();
            return { from: context.pos - last.length, options: [...found].sort().map((label) => ({ label, type: "property" })) };
        }
        const word = context.matchBefore(/\w+/);
        if (word === null && !context.explicit)
            return null;
        return {
            from: word?.from ?? context.pos,
            options: [
                ...keywords.map((label) => ({ label, type: "keyword" })),
                ...functions.map((label) => ({ label, type: "function", apply: `${label}(` })),
            ],
        };
    };
}

/* ---- results ---- */

const isObject = (value: Json): value is JsonObject => value !== null && typeof value === "object" && !Array.isArray(value);
const cellText = (value: Json | undefined): string => value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

function ResultTable({ rows }: { rows: Json[] }) {
    const columns = [...new Set(rows.flatMap((row) => isObject(row) ? Object.keys(row) : [texts.query.value]))]
        .filter((name) => !["_rid", "_self", "_attachments"].includes(name)).slice(0, COLUMNS_MAX);
    return (
        <div class="scroll results" tabIndex={0} role="region" aria-label={texts.query.results}>
            <table>
                <thead><tr>{columns.map((name) => <th key={name}>{name}</th>)}</tr></thead>
                <tbody>
                    {rows.map((row, i) => (
                        <tr key={i}>
                            {columns.map((name) => {
                                const value = isObject(row) ? row[name] : row;
                                return <td key={name} class={typeof value === "number" ? "number" : ""}>{cellText(value)}</td>;
                            })}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function FilterWords({ filter }: { filter: Filter }) {
    const found = filter.foundItems !== undefined ? texts.query.found(filter.foundItems)
        : filter.estimatedItems !== undefined ? texts.query.estimated(filter.estimatedItems) : "";
    return (
        <li>
            {texts.query.filter(filter.filter, filter.index ?? "", found)}
            {filter.of !== undefined && <ul>{filter.of.map((part, i) => <FilterWords key={i} filter={part} />)}</ul>}
        </li>
    );
}

function HowAnswered({ page }: { page: QueryPage }) {
    return (
        <details class="how">
            <summary>{texts.query.plan}</summary>
            {page.plan.length > 0 && <p>{texts.query.partitions(page.plan.length)}</p>}
            <ul class="plan">
                {page.plan.map((part, i) => (
                    <li key={i}>
                        {texts.query.by(i, part.by, part.items)}
                        {part.where !== undefined && <ul><FilterWords filter={part.where} /></ul>}
                    </li>
                ))}
            </ul>
            <h2>{texts.query.indexes}</h2>
            {page.indexes === null || page.indexes.used.length + page.indexes.wouldHelp.length === 0 ? <p>{texts.query.noIndexes}</p> : (
                <dl>
                    {page.indexes.used.length > 0 && <><dt>{texts.query.used}</dt><dd>{page.indexes.used.join(", ")}</dd></>}
                    {page.indexes.wouldHelp.length > 0 && <><dt>{texts.query.wouldHelp}</dt><dd>{page.indexes.wouldHelp.join(", ")}</dd></>}
                </dl>
            )}
            <h2>{texts.query.metrics}</h2>
            <table><tbody>{page.metrics.map(([name, value]) => <tr key={name}><td>{name}</td><td class="number">{value}</td></tr>)}</tbody></table>
        </details>
    );
}

/* ---- the page ---- */

export function Query({ db, container }: { db: string; container: ContainerDefinition }) {
    const docs = pathOf("dbs", db, "colls", container.id, "docs");
    const [history, setHistory] = useState(() => readHistory(db, container.id));
    const [chosen, setChosen] = useState(history[0] ?? texts.query.plain);
    const [pages, setPages] = useState<QueryPage[]>([]);
    const [shape, setShape] = useState<"table" | "json">("table");
    const [isRunning, setRunning] = useState(false);
    const view = useRef<EditorView | null>(null);
    const names = useRef(new Map<string, Set<string>>());
    const current = useRef({ text: chosen, run: (_next: QueryPage | null): void => undefined });

    useEffect(() => {
        list(docs, null, { size: SAMPLE }).then(({ rows }) => { for (const row of rows) addNames(row, "", names.current); }, () => undefined);
    }, [docs]);

    function choose(query: string): void {
        current.current.text = query;
        setChosen(query);
    }

    async function run(after: QueryPage | null): Promise<void> {
        const query = current.current.text;
        setRunning(true);
        try {
            const page = await queryPage(docs, query, after?.next ?? null);
            setPages((before) => after === null ? [page] : [...before, page]);
            setHistory(addToHistory(db, container.id, query));
            view.current?.dispatch(setDiagnostics(view.current.state, []));
        } catch (error) {
            const faults = faultsOf(error);
            const length = view.current?.state.doc.length ?? 0;
            if (view.current !== null && faults.length > 0)
                view.current.dispatch(setDiagnostics(view.current.state, faults.map(({ from, to, message }) =>
                    ({ from: Math.min(from, length), to: Math.min(to, length), severity: "error", message }))));
            tellFailure(faults.length > 0 ? new Error(faults[0]!.message) : error);
        } finally {
            setRunning(false);
        }
    }
    current.current.run = (after) => void run(after);

    const more: Extension = useMemo(() => [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => { current.current.run(null); return true; } }])),
        keymap.of(completionKeymap),
        autocompletion({ override: [completer(names)] }),
        lintGutter(),
    ], []);

    const rows = pages.flatMap((page) => page.rows);
    const last = pages[pages.length - 1];
    const sum = (of: (page: QueryPage) => number): number => pages.reduce((total, page) => total + of(page), 0);
    return (
        <div class="query">
            <div class="buttons">
                <button class="primary" disabled={isRunning} onClick={() => void run(null)}>{texts.query.run}</button>
                <select aria-label={texts.query.history} value="" onChange={(event) => choose(event.currentTarget.value)}>
                    <option value="">{texts.query.chooseHistory}</option>
                    {history.map((query) => <option key={query} value={query}>{query}</option>)}
                </select>
                <span class="hint">{texts.query.runHint}</span>
            </div>
            <Editor key={chosen} class="sql" initial={chosen} label={texts.query.editor} language={sql({ dialect })} more={more} onChange={(text) => { current.current.text = text; }} onView={(made) => { view.current = made; }} />
            {last !== undefined && (
                <>
                    <div class="buttons">
                        <span role="status">{texts.query.summary(rows.length, sum((page) => page.charge), sum((page) => page.ms), pages.length)}</span>
                        <select aria-label={texts.query.shape} value={shape} onChange={(event) => setShape(event.currentTarget.value as "table" | "json")}>
                            <option value="table">{texts.query.table}</option>
                            <option value="json">{texts.query.json}</option>
                        </select>
                        <button onClick={() => saveFile("results.json", JSON.stringify(rows, null, 2))}>{texts.items.download}</button>
                        {last.next !== null && <button disabled={isRunning} onClick={() => void run(last)}>{texts.query.more}</button>}
                    </div>
                    {rows.length === 0 ? <p>{texts.query.none}</p>
                        : shape === "table" ? <ResultTable rows={rows} />
                            : <Editor key={pages.length + pages[0]!.ms} initial={JSON.stringify(rows, null, 2)} label={texts.query.results} language={json()} isReadOnly />}
                    <HowAnswered page={last} />
                </>
            )}
        </div>
    );
}
