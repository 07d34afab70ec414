// reference.mjs - writes the tables of docs/errors.md and docs/metrics.md from the tables in the code, for
// `make reference`. test/reference.test.mjs fails while a page differs from what this makes.
//
// A table of a page stands between <!-- table NAME --> and <!-- end -->; the lines around it are prose.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The rows of a .def file: the arguments of every line that begins with `macro(`. */
export function rowsOf(path, macro) {
    const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
    const rows = lines.filter((line) => line.startsWith(`${macro}(`)).map((line) => argumentsOf(line, path));
    if (rows.length === 0) throw new Error(`${path} has no ${macro}`);
    return rows;
}

function argumentsOf(line, path) {
    const whole = /^\w+\((.*)\)$/.exec(line);
    if (!whole) throw new Error(`${path}: a row must be one line: ${line}`);
    const parts = [...whole[1].matchAll(/"((?:[^"\\]|\\.)*)"|([^",\s][^,]*)/g)];
    return parts.map(([, text, word]) => (text === undefined ? word.trim() : text.replace(/\\(.)/g, "$1")));
}

function statuses() {
    return rowsOf("src/base/status.def", "STATUS_ROW")
        .map(([, http, code, meaning, advice]) => [http, `\`${code}\``, meaning, advice])
        .sort(([a], [b]) => a - b);
}

function reasons() {
    const http = new Map(rowsOf("src/base/status.def", "STATUS_ROW").map(([name, number]) => [name, number]));
    return rowsOf("src/base/status.def", "SUB_ROW")
        .filter(([name]) => name !== "NONE")
        .map(([, kind, number, meaning, advice]) => [http.get(kind), number, meaning, advice])
        .sort(([a, b], [c, d]) => a - c || b - d);
}

const metricRow = (kind, name, help, ...more) => [`\`${name}\``, kind.toLowerCase(), help, ...more];

function serverMetrics() {
    return [
        ...rowsOf("src/base/metrics.def", "METRIC_ROW").map(([, kind, name, help]) => metricRow(kind, name, help)),
        ...rowsOf("src/api/core/service_metrics.def", "SERVICE_METRIC_ROW").map(([kind, name, help]) =>
            metricRow(kind, name, help),
        ),
    ];
}

function partitionMetrics() {
    return rowsOf("src/api/admin/partition_metrics.def", "PARTITION_METRIC_ROW").map(([kind, name, help, , when]) =>
        metricRow(kind, name, help, when === "STATISTIC" ? "no" : "yes"),
    );
}

/** Of each page its tables: the heading and how the rows are made. */
const PAGES = {
    "docs/errors.md": {
        statuses: { head: ["status", "`code`", "meaning", "what to do"], rows: statuses },
        reasons: { head: ["status", "sub-status", "meaning", "what to do"], rows: reasons },
    },
    "docs/metrics.md": {
        server: { head: ["metric", "kind", "meaning"], rows: serverMetrics },
        partitions: { head: ["metric", "kind", "meaning", "with `--no-statistics`"], rows: partitionMetrics },
    },
};

function tableOf({ head, rows }) {
    const line = (cells) => `| ${cells.join(" | ")} |\n`;
    return line(head) + `|${"---|".repeat(head.length)}\n` + rows().map(line).join("");
}

/** The text that a page must have. */
export function pageMade(path) {
    let text = readFileSync(join(ROOT, path), "utf8");
    for (const [name, table] of Object.entries(PAGES[path])) {
        const place = new RegExp(`(<!-- table ${name} -->\n\n)(?:\\|.*\n)*\n?(<!-- end -->)`);
        if (!place.test(text)) throw new Error(`${path} has no place for the table ${name}`);
        text = text.replace(place, (_, before, after) => `${before}${tableOf(table)}\n${after}`);
    }
    return text;
}

export const pages = Object.keys(PAGES);

if (process.argv[1] === fileURLToPath(import.meta.url))
    for (const path of pages) writeFileSync(join(ROOT, path), pageMade(path));
