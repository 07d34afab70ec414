// pages.mjs - the pages of docs/, their blocks of code, and running these.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "./server.mjs";

export const pageText = (path) => readFileSync(join(ROOT, path), "utf8");

/** The blocks of a page between ```language and ```, in order. */
export function blocksOf(page, language) {
    return [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map(([, code]) => code);
}

/** The only block of that language. */
export function blockOf(page, language) {
    const blocks = blocksOf(page, language);
    if (blocks.length !== 1) throw new Error(`expected one block of ${language}, found ${blocks.length}`);
    return blocks[0];
}

/** Runs a program while this process goes on; how it ended and what it printed. */
export function runProgram(file, args, options = {}) {
    return new Promise((resolve, reject) => {
        const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
        let [stdout, stderr] = ["", ""];
        child.stdout.on("data", (piece) => (stdout += piece));
        child.stderr.on("data", (piece) => (stderr += piece));
        child.on("error", reject);
        child.on("close", (code) => resolve({ code, stdout, stderr }));
    });
}

/** Whether the shell finds all of these programs. */
export function hasPrograms(...names) {
    return names.every((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status === 0);
}
