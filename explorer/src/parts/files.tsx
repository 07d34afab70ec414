// files.tsx - files of items: JSON arrays, JSON lines and CSV come in, JSON goes out.
import { useState } from "preact/hooks";
import type { Json, JsonObject } from "../api/client";
import { texts } from "../texts";
import { attempt, tell, wordsOf } from "./notices";

export function saveFile(name: string, text: string, type = "application/json"): void {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    URL.revokeObjectURL(url);
}

// Rows of cells; quotes may enclose commas, line ends and doubled quotes.
export function parseCsv(text: string): string[][] {
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
        } else if (c === ",") {
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
    if (cell !== "" || row.length > 0)
        rows.push([...row, cell]);
    return rows;
}

// Numbers, true, false and null are what they look like; everything else is text, and so is every id.
function cellValue(cell: string): Json {
    return /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null)$/.test(cell) ? JSON.parse(cell) as Json : cell;
}

const areObjects = (values: unknown): values is JsonObject[] =>
    Array.isArray(values) && values.every((value) => value !== null && typeof value === "object" && !Array.isArray(value));

export function parseFile(name: string, text: string): JsonObject[] {
    if (/\.csv$/i.test(name)) {
        const [head, ...rows] = parseCsv(text);
        if (head === undefined)
            throw new Error(texts.items.badFile);
        return rows.map((row) => Object.fromEntries(head.flatMap((column, i) => row[i] === undefined || row[i] === "" ? [] : [[column, column === "id" ? row[i]! : cellValue(row[i]!)]])));
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
    return rows;
}

export interface RefusedRow { row: number; words: string } // counted from 1, without the line of names

// 'upload' writes a row; all that it refuses are given to 'onRefused' at the end.
export function UploadButton({ upload, onRefused }: { upload: (row: JsonObject) => Promise<void>; onRefused: (refused: RefusedRow[]) => Promise<void> }) {
    const [progress, setProgress] = useState<string | null>(null);
    async function take(file: File): Promise<void> {
        try {
            const rows = parseFile(file.name, await file.text());
            const refused: RefusedRow[] = [];
            for (const [i, row] of rows.entries()) {
                await upload(row).catch((error) => { refused.push({ row: i + 1, words: wordsOf(error) }); });
                setProgress(texts.items.uploading(i + 1, rows.length));
            }
            tell(texts.items.uploaded(rows.length - refused.length, refused.length));
            await onRefused(refused);
        } finally {
            setProgress(null);
        }
    }
    return (
        <label class="button">
            {progress ?? texts.items.upload}
            <input class="visually-hidden" type="file" accept=".json,.jsonl,.csv" disabled={progress !== null}
                onChange={(event) => {
                    const file = event.currentTarget.files?.[0];
                    event.currentTarget.value = "";
                    if (file !== undefined)
                        attempt(() => take(file));
                }} />
        </label>
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
