// query.tsx - SQL: an editor that knows the language, results in pages, and how they were found.
import { autocompletion, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { json } from "@codemirror/lang-json";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Prec, type Extension } from "@codemirror/state";
import { keymap, type EditorView } from "@codemirror/view";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { functions, keywords } from "virtual:language";
import { list, listAll, pathOf, type Json, type JsonObject } from "../api/client";
import { readPaths } from "../api/orrery";
import { faultsOf, isCallable, queryPage, type Filter, type QueryPage } from "../api/query";
import { Editor } from "../parts/editor";
import { saveFile } from "../parts/files";
import { keep, readKept } from "../parts/kept";
import { tellFailure } from "../parts/notices";
import { addPath, addSample, aliasesOf, asStep, NAME_BEGINNING, namesAt, newNames, startedName, WORD, type NameNode, type Started } from "../parts/property_names";
import type { ContainerDefinition } from "../state";
import { texts } from "../texts";

const HISTORY_MAX = 30;
const COLUMNS_MAX = 30;
const SAMPLE = 50;
const NAMES_OLD_MS = 30_000; // then they are read again

const dialect = SQLDialect.define({
    keywords: keywords.join(" ").toLowerCase(),
    builtin: functions.join(" ").toLowerCase(),
    doubleQuotedStrings: true,
});

/* ---- history, kept in this browser ---- */

export const QUERIES_KEPT = "orrery.queries."; // until somebody signs out

const storedUnder = (db: string, coll: string): string => `${QUERIES_KEPT}${db}/${coll}`;

function readHistory(db: string, coll: string): string[] {
    try {
        const found: unknown = JSON.parse(readKept(storedUnder(db, coll)) ?? "[]");
        return Array.isArray(found) ? found.filter((text) => typeof text === "string") : [];
    } catch {
        return [];
    }
}

function addToHistory(db: string, coll: string, query: string, history: string[]): string[] {
    const all = [query, ...history.filter((text) => text !== query)].slice(0, HISTORY_MAX);
    keep(storedUnder(db, coll), JSON.stringify(all));
    return all;
}

/* ---- completion ---- */

const reserved: ReadonlySet<string> = new Set(keywords);

// What the index has, and the rest from a sample of the items. A token for a part of the container may read neither.
// Without all paths of the index it is not known what the index lacks.
async function readNames(db: string, coll: string): Promise<NameNode> {
    const names = newNames();
    const [indexed, sample] = await Promise.allSettled([readPaths(db, coll), list(pathOf("dbs", db, "colls", coll, "docs"), null, { size: SAMPLE })]);
    const isIndexKnown = indexed.status === "fulfilled" && indexed.value.isComplete;
    if (indexed.status === "fulfilled")
        for (const path of indexed.value.paths)
            addPath(names, path);
    if (sample.status === "fulfilled")
        for (const row of sample.value.rows)
            addSample(names, row, isIndexKnown);
    return names;
}

function propertyOption(name: string, node: NameNode, started: Started): Completion {
    const details = [
        node.element !== null ? texts.query.array : node.names.size > 0 ? texts.query.object : "",
        node.isIndexed ? "" : texts.query.notIndexed,
    ];
    return {
        label: name,
        type: "property",
        detail: details.filter((text) => text !== "").join(", "),
        boost: node.isIndexed ? 1 : 0,
        // Replaces the dot or the bracket as well, since the name may need the other one.
        apply: (view, _, from, to) => {
            const rest = started.opening === "." ? "" : /^["']?\s*\]?/.exec(view.state.sliceDoc(to, to + 10))![0];
            const insert = asStep(name, reserved);
            const begin = from - started.opening.length;
            view.dispatch({ changes: { from: begin, to: to + rest.length, insert }, selection: { anchor: begin + insert.length }, userEvent: "input.complete" });
        },
    };
}

// User-defined functions, which only a query calls. A token for a part of the container may not list them.
async function functionOptions(root: string): Promise<Completion[]> {
    const found = await listAll<{ id: string }>(`${root}/udfs`).catch(() => []);
    return found.filter(({ id }) => isCallable(id)).map(({ id }) => ({ label: id, type: "function", apply: `${id}(` }));
}

// 'root' is the path of the container.
function completer(root: string, names: () => Promise<NameNode>) {
    return async (context: CompletionContext): Promise<CompletionResult | null> => {
        const query = context.state.doc.toString();
        const started = startedName(query.slice(0, context.pos));
        if (started?.path === "udf") // in small letters, for the server as well
            return { from: context.pos - started.typed.length, options: await functionOptions(root), validFor: NAME_BEGINNING };
        if (started !== null) {
            const found = namesAt(await names(), query, started.path);
            return {
                from: context.pos - started.typed.length,
                options: [...found].map(([name, node]) => propertyOption(name, node, started)),
                validFor: started.opening === "." ? NAME_BEGINNING : /^[^"'\\]*$/,
            };
        }
        const word = context.matchBefore(WORD);
        if (word === null && !context.explicit)
            return null;
        return {
            from: word?.from ?? context.pos,
            options: [
                ...[...aliasesOf(query).keys()].map((label) => ({ label, type: "variable" })),
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
    const isNumeric = (name: string): boolean => typeof rows.map((row) => isObject(row) ? row[name] : row).find((value) => value !== undefined && value !== null) === "number";
    return (
        <div class="scroll results" tabIndex={0} role="region" aria-label={texts.query.results}>
            <table>
                <thead><tr>{columns.map((name) => <th key={name} class={isNumeric(name) ? "number" : ""}>{name}</th>)}</tr></thead>
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
            {page.visited !== null && <p>{texts.query.partitions(page.visited, page.plan.length)}</p>}
            <ul class="plan">
                {page.plan.map((part, i) => (
                    <li key={i}>
                        {texts.query.by(part.partition, part.by, part.items)}
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

interface Pages {
    query: string; // of which they are
    pages: QueryPage[];
}

export function Query({ db, container }: { db: string; container: ContainerDefinition }) {
    const docs = pathOf("dbs", db, "colls", container.id, "docs");
    const [history, setHistory] = useState(() => readHistory(db, container.id));
    const [chosen, setChosen] = useState({ text: history[0] ?? texts.query.plain, times: 0 });
    const [answer, setAnswer] = useState<Pages>({ query: "", pages: [] });
    const [shape, setShape] = useState<"table" | "json">("table");
    const [isRunning, setRunning] = useState(false);
    const view = useRef<EditorView | null>(null);
    const names = useRef({ readAt: -Infinity, found: Promise.resolve(newNames()) });
    const isBusy = useRef(false); // what the state is only when it is shown
    const current = useRef({ text: chosen.text, run: (_isMore: boolean): void => undefined });

    function currentNames(): Promise<NameNode> {
        if (performance.now() - names.current.readAt > NAMES_OLD_MS)
            names.current = { readAt: performance.now(), found: readNames(db, container.id) };
        return names.current.found;
    }
    useEffect(() => void currentNames(), [docs]); // so that the first completion need not wait

    function choose(text: string): void {
        current.current.text = text;
        setChosen(({ times }) => ({ text, times: times + 1 }));
    }

    // A page of what the editor has, or the next one of what is shown, whatever the editor has by now.
    async function run(isMore: boolean): Promise<void> {
        if (isBusy.current)
            return;
        isBusy.current = true;
        const before: Pages = isMore ? answer : { query: current.current.text, pages: [] };
        const { query } = before;
        setRunning(true);
        try {
            const page = await queryPage(docs, query, before.pages[before.pages.length - 1]?.next ?? null);
            setAnswer({ query, pages: [...before.pages, page] });
            setHistory((known) => addToHistory(db, container.id, query, known));
            view.current?.dispatch(setDiagnostics(view.current.state, []));
        } catch (error) {
            const faults = faultsOf(error);
            const length = view.current?.state.doc.length ?? 0;
            if (view.current !== null && faults.length > 0)
                view.current.dispatch(setDiagnostics(view.current.state, faults.map(({ from, to, message }) =>
                    ({ from: Math.min(from, length), to: Math.min(to, length), severity: "error", message }))));
            tellFailure(faults.length > 0 ? new Error(faults[0]!.message) : error);
        } finally {
            isBusy.current = false;
            setRunning(false);
        }
    }
    current.current.run = (isMore) => void run(isMore);

    const more: Extension = useMemo(() => [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => { current.current.run(false); return true; } }])),
        keymap.of(completionKeymap),
        autocompletion({ override: [completer(pathOf("dbs", db, "colls", container.id), currentNames)] }),
        lintGutter(),
    ], []);

    const { pages } = answer;
    const rows = pages.flatMap((page) => page.rows);
    const last = pages[pages.length - 1];
    const sum = (of: (page: QueryPage) => number): number => pages.reduce((total, page) => total + of(page), 0);
    return (
        <div class="query">
            <div class="buttons">
                <button class="primary" disabled={isRunning} onClick={() => void run(false)}>{texts.query.run}</button>
                <select aria-label={texts.query.history} value="" onChange={(event) => {
                    choose(event.currentTarget.value);
                    event.currentTarget.value = ""; // so that the same one can be chosen again
                }}>
                    <option value="">{texts.query.chooseHistory}</option>
                    {history.map((query) => <option key={query} value={query}>{query}</option>)}
                </select>
                <span class="hint">{texts.query.runHint}</span>
            </div>
            <Editor key={chosen.times} class="sql" initial={chosen.text} label={texts.query.editor} language={sql({ dialect })} more={more} onChange={(text) => { current.current.text = text; }} onView={(made) => { view.current = made; }} />
            {last !== undefined && (
                <>
                    <div class="buttons">
                        <span role="status">{texts.query.summary(rows.length, sum((page) => page.charge), sum((page) => page.ms), pages.length)}</span>
                        <select aria-label={texts.query.shape} value={shape} onChange={(event) => setShape(event.currentTarget.value as "table" | "json")}>
                            <option value="table">{texts.query.table}</option>
                            <option value="json">{texts.query.json}</option>
                        </select>
                        <button onClick={() => saveFile("results.json", JSON.stringify(rows, null, 2))}>{texts.items.download}</button>
                        {last.next !== null && <button disabled={isRunning} onClick={() => void run(true)}>{texts.query.more}</button>}
                    </div>
                    {rows.length === 0 ? <p>{texts.query.none}</p>
                        : shape === "table" ? <ResultTable rows={rows} />
                            : <Editor key={last.number} initial={JSON.stringify(rows, null, 2)} label={texts.query.results} language={json()} isReadOnly />}
                    <HowAnswered page={last} />
                </>
            )}
        </div>
    );
}
