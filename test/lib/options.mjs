// options.mjs - the rows of src/cli/options.def.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "./server.mjs";

/** Every option: name, kind, placeholder, default, help. */
export function optionRows() {
    const text = readFileSync(join(ROOT, "src/cli/options.def"), "utf8");
    const row = /^OPTION_ROW\((\w+), "([^"]*)", (\w+), "([^"]*)", "([^"]*)", "([^"]*)"\)$/gm;
    const rows = [...text.matchAll(row)].map(([, , name, kind, placeholder, fallback, help]) => ({
        name,
        kind,
        placeholder,
        fallback,
        help,
    }));
    const expected = text.split("\n").filter((line) => line.startsWith("OPTION_ROW(")).length;
    if (rows.length !== expected || expected === 0)
        throw new Error(`understood ${rows.length} of ${expected} rows of options.def`);
    return rows;
}
