// folder.mjs - a data folder as it is, byte by byte, and the ways in which one of its files is lost.
import { createHash } from "node:crypto";
import { closeSync, lstatSync, openSync, readFileSync, readdirSync, statSync, truncateSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Every file below `folder`, by its path in it. */
export function filesOf(folder, under = "") {
    return readdirSync(join(folder, under))
        .sort()
        .map((name) => join(under, name))
        .flatMap((path) => (statSync(join(folder, path)).isDirectory() ? filesOf(folder, path) : [path]));
}

/** What a folder holds: names, sizes, contents and the times of the last change, of folders too. */
export function stateOf(folder) {
    const state = {};
    const visit = (path) => {
        const { size, mtimeMs, ctimeMs, mode } = lstatSync(path);
        state[path] = { mtimeMs, ctimeMs, mode };
        if (!statSync(path).isDirectory()) {
            const hash = createHash("sha256").update(readFileSync(path)).digest("hex");
            Object.assign(state[path], { size, hash });
            return;
        }
        for (const name of readdirSync(path).sort()) visit(join(path, name));
    };
    visit(folder);
    return state;
}

/** Puts zeros over `bytes` at `position`, as far as the file goes. */
export function zero(path, position, bytes) {
    const count = Math.min(bytes, statSync(path).size - position);
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(count), 0, count, position);
    closeSync(file);
}

const SECTOR = 4096;
const middle = (path) => Math.floor(statSync(path).size / 2);

/** Ways to lose a file or a part of it. */
export const LOSSES = {
    removed: (path) => unlinkSync(path),
    emptied: (path) => truncateSync(path, 0),
    "cut in half": (path) => truncateSync(path, middle(path)),
    "zeroed at its beginning": (path) => zero(path, 0, SECTOR),
    "zeroed in its middle": (path) => zero(path, Math.max(0, middle(path) - SECTOR / 2), SECTOR),
    "zeroed at its end": (path) => zero(path, Math.max(0, statSync(path).size - SECTOR), SECTOR),
};
