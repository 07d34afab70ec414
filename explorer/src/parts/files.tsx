// files.tsx - files of items: JSON arrays, JSON lines and CSV come in, JSON goes out.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Json, JsonObject } from "../api/client";
import { texts } from "../texts";
import { attempt, tell, wordsOf } from "./notices";
import { useUnsaved } from "./unsaved";

export function saveFile(name: string, content: string | Blob): void {
    const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type: "application/json" }) : content);
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    URL.revokeObjectURL(url);
}

/* ---- CSV ---- */

const SEPARATORS = [",", ";", "\t"]; // spreadsheets write a semicolon where the comma is for decimals

// The one that the line of names has most of, outside quotes.
function separatorOf(text: string): string {
    const line = text.replace(/"[^"]*"/g, "").split(/[\r\n]/, 1)[0]!;
    const counts = SEPARATORS.map((separator) => line.split(separator).length);
    return SEPARATORS[counts.indexOf(Math.max(...counts))]!;
}

// Rows of cells; quotes may enclose separators, line ends and doubled quotes.
export function parseCsv(text: string): string[][] {
    const separator = separatorOf(text);
    const rows: string[][] = [];
    let row: string[] = [];
    let cell = "";
    let isQuoted = false;
    for (let i = 0; i < text.length; i++) {
        const c = text[i]!;
        if (isQuoted) {
            if (c !== '"')
                cell += c;
            else if (text[i + 1] === '"')
                cell += text[++i];
            else
                isQuoted = false;
        } else if (c === '"' && cell === "") {
            isQuoted = true;
        } else if (c === separator) {
            row.push(cell);
            cell = "";
        } else if (c === "\n" || c === "\r") {
            if (c === "\r" && text[i + 1] === "\n")
                i++;
            row.push(cell);
            if (row.length > 1 || row[0] !== "")
                rows.push(row);
            row = [];
            cell = "";
        } else {
            cell += c;
        }
    }
    if (isQuoted) // where it should have ended cannot be told, so no row after it is what it looks like
        throw new Error(texts.items.openQuote(rows.length));
    if (cell !== "" || row.length > 0)
        rows.push([...row, cell]);
    return rows;
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

// The digits of a number and where its point is: the same for "12.50" and "1.25e+1".
function digitsOf(number: string): string {
    const [, whole, fraction = "", power = "0"] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number)!;
    const digits = `${whole}${fraction}`.replace(/^0+/, "");
    const shortest = digits.replace(/0+$/, "");
    return shortest === "" ? "0" : `${shortest}e${Number(power) - fraction.length + digits.length - shortest.length}`;
}

// Whether a number is still the same when it has been stored: a double has about 16 digits.
function isKept(number: string): boolean {
    const value = Number(number);
    return Number.isFinite(value) && digitsOf(String(value)) === digitsOf(number);
}

// Numbers, true, false and null are what they look like; everything else is text, and so is every id.
function cellValue(cell: string): Json {
    return /^(true|false|null)$/.test(cell) || (NUMBER.test(cell) && isKept(cell)) ? JSON.parse(cell) as Json : cell;
}

function csvItem(head: string[], row: string[]): JsonObject {
    const surplus = row.slice(head.length).filter((cell) => cell !== "").length;
    if (surplus > 0)
        throw new Error(texts.items.surplus(row.length, head.length));
    return Object.fromEntries(head.flatMap((column, i) =>
        row[i] === undefined || row[i] === "" ? [] : [[column, column === "id" ? row[i]! : cellValue(row[i]!)]]));
}

/* ---- files that come in ---- */

type ParsedRow = { item: JsonObject } | { problem: string };

interface ParsedFile {
    rows: ParsedRow[];
    longNumbers: number; // that were left as text
}

const areObjects = (values: unknown): values is JsonObject[] =>
    Array.isArray(values) && values.every((value) => value !== null && typeof value === "object" && !Array.isArray(value));

function parseRow(make: () => JsonObject): ParsedRow {
    try {
        return { item: make() };
    } catch (error) {
        return { problem: wordsOf(error) };
    }
}

export function parseFile(name: string, text: string): ParsedFile {
    if (/\.(csv|tsv)$/i.test(name)) {
        const [head, ...rows] = parseCsv(text);
        if (head === undefined)
            throw new Error(texts.items.badFile);
        const twice = head.find((column, i) => head.indexOf(column) !== i);
        if (twice !== undefined)
            throw new Error(texts.items.sameColumn(twice));
        return {
            rows: rows.map((row) => parseRow(() => csvItem(head, row))),
            longNumbers: rows.flat().filter((cell) => NUMBER.test(cell) && !isKept(cell)).length,
        };
    }
    let parsed: unknown;
    try {
        parsed = JSON.parse(text);
    } catch {
        parsed = text.split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line) as Json);
    }
    const rows = Array.isArray(parsed) ? parsed : [parsed];
    if (!areObjects(rows))
        throw new Error(texts.items.badFile);
    return { rows: rows.map((item) => ({ item })), longNumbers: 0 };
}

/* ---- buttons ---- */

const CANCELLED = "cancelled"; // by the user, who is still here

// Work that takes long: how far it is, until it ends, is cancelled, or the page is left.
function useLongWork(wordsIfLeft: string): { progress: string | null; begin: (work: (signal: AbortSignal, show: (progress: string) => void) => Promise<void>) => void; cancel: () => void } {
    const [progress, setProgress] = useState<string | null>(null);
    const abort = useRef<AbortController | null>(null);
    const cancel = (): void => abort.current?.abort(CANCELLED);
    useUnsaved(progress === null ? null : wordsIfLeft, "work");
    useEffect(() => () => abort.current?.abort(), []);
    function begin(work: (signal: AbortSignal, show: (progress: string) => void) => Promise<void>): void {
        if (abort.current !== null)
            return;
        const controller = abort.current = new AbortController();
        attempt(() => work(controller.signal, setProgress).finally(() => { abort.current = null; setProgress(null); }));
    }
    return { progress, begin, cancel };
}

export interface RefusedRow { row: number; words: string } // counted from 1, without the line of names

// 'upload' writes a row; all that it refuses are given to 'onRefused' at the end.
export function UploadButton({ upload, onRefused }: {
    upload: (row: JsonObject, signal: AbortSignal) => Promise<void>; onRefused: (refused: RefusedRow[]) => Promise<void>;
}) {
    const { progress, begin, cancel } = useLongWork(texts.unsaved.upload);

    async function take(file: File, signal: AbortSignal, show: (progress: string) => void): Promise<void> {
        const { rows, longNumbers } = parseFile(file.name, await file.text());
        const refused: RefusedRow[] = [];
        for (const [i, row] of rows.entries()) {
            show(texts.items.uploading(i, rows.length));
            const words = "problem" in row ? row.problem : await upload(row.item, signal).then(() => null, wordsOf);
            if (signal.aborted) {
                tell(texts.items.uploadStopped(i - refused.length, rows.length));
                return signal.reason === CANCELLED ? onRefused(refused) : undefined;
            }
            if (words !== null)
                refused.push({ row: i + 1, words });
        }
        tell(texts.items.uploaded(rows.length - refused.length, refused.length));
        if (longNumbers > 0)
            tell(texts.items.longNumbers(longNumbers));
        await onRefused(refused);
    }

    return (
        <>
            <label class="button">
                {progress ?? texts.items.upload}
                <input class="visually-hidden" type="file" accept=".json,.jsonl,.csv,.tsv" disabled={progress !== null}
                    onChange={(event) => {
                        const file = event.currentTarget.files?.[0];
                        event.currentTarget.value = "";
                        if (file !== undefined)
                            begin((signal, show) => take(file, signal, show));
                    }} />
            </label>
            {progress !== null && <button onClick={cancel}>{texts.items.cancelUpload}</button>}
        </>
    );
}

// All rows that 'read' gives, page after page, as one JSON array. Each page becomes a Blob, which the browser need not
// keep in memory.
export function DownloadButton({ name, read }: {
    name: string; read: (next: string | null, signal: AbortSignal) => Promise<{ rows: JsonObject[]; next: string | null }>;
}) {
    const { progress, begin, cancel } = useLongWork(texts.unsaved.download);

    async function collect(signal: AbortSignal, show: (progress: string) => void): Promise<void> {
        const parts: Blob[] = [];
        let count = 0;
        let next: string | null = null;
        show(texts.items.downloading(count));
        try {
            do {
                const page: { rows: JsonObject[]; next: string | null } = await read(next, signal);
                parts.push(new Blob(page.rows.flatMap((row) => [count++ === 0 ? "[\n" : ",\n", JSON.stringify(row, null, 2)])));
                next = page.next;
                show(texts.items.downloading(count));
            } while (next !== null && !signal.aborted);
        } catch (error) {
            if (!signal.aborted)
                throw error;
        }
        if (signal.aborted)
            return tell(texts.items.downloadStopped);
        saveFile(name, new Blob([...parts, count === 0 ? "[]\n" : "\n]\n"], { type: "application/json" }));
    }

    return (
        <>
            <button disabled={progress !== null} onClick={() => begin(collect)}>{progress ?? texts.items.download}</button>
            {progress !== null && <button onClick={cancel}>{texts.items.cancelDownload}</button>}
        </>
    );
}

const REFUSED_SHOWN = 20;

export function RefusedRows({ refused }: { refused: RefusedRow[] }) {
    if (refused.length === 0)
        return null;
    return (
        <div class="problem refused" role="alert" aria-label={texts.items.refusedRows}>
            <ul>
                {refused.slice(0, REFUSED_SHOWN).map(({ row, words }) => <li key={row}>{texts.items.refusedRow(row, words)}</li>)}
                {refused.length > REFUSED_SHOWN && <li>{texts.items.moreRefused(refused.length - REFUSED_SHOWN)}</li>}
            </ul>
        </div>
    );
}
