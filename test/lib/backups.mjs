// backups.mjs - `orrery backup` and `orrery restore` beside other work, and what a folder of backups holds.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { BINARY, run } from "./server.mjs";

/** Starts a command; `ended` has its status, signal and output. */
export function start(args, { within = [], env = {} } = {}) {
    const [file, ...rest] = [...within, BINARY, ...args];
    const child = spawn(file, rest, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => (output.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (output.stderr += text));
    const ended = new Promise((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (status, signal) => resolve({ status, signal, ...output }));
    });
    return { child, ended };
}

/** Runs a command to its end, which must be a good one. */
export async function succeed(args, options) {
    const { status, signal, stdout, stderr } = await start(args, options).ended;
    assert.equal(status, 0, `${args.join(" ")}: ${signal ?? ""}${stdout}${stderr}`);
    return stdout;
}

/** What `orrery backup` says that it has copied. */
export async function backup(from, to, ...more) {
    const text = await succeed(["backup", "--from", from, "--to", to, ...more]);
    const match = /generation (\d+) of (\S+): (\d+) files, (\d+) bytes; copied (\d+) files, (\d+) bytes/.exec(text);
    assert.ok(match, text);
    const [generation, files, bytes, copiedFiles, copiedBytes] = [1, 3, 4, 5, 6].map((i) => Number(match[i]));
    return { generation, time: match[2], files, bytes, copiedFiles, copiedBytes };
}

export const restore = (from, data, ...more) => succeed(["restore", "--from", from, "--data", data, ...more]);

/** Everything in the data folder is consistent. */
export function check(data) {
    const { status, stdout, stderr } = run(["check", "--data", data]);
    assert.equal(status, 0, `${stdout}${stderr}`);
}

export const manifestPath = (folder, generation) =>
    join(folder, "generations", `${String(generation).padStart(6, "0")}.json`);

export const manifestOf = (folder, generation) => JSON.parse(readFileSync(manifestPath(folder, generation), "utf8"));

export const generationsOf = (folder) => readdirSync(join(folder, "generations")).sort();
