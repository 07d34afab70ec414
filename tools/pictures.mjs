// pictures.mjs - makes the pictures of README.md, docs/pictures/*.svg, for `make pictures`.
//
// They are what the real programs draw: a server under load, watched by `orrery top` on a terminal of a fixed size,
// and `orrery advise` on the time series of docs/choosing-a-partition-key.md. Numbers of top differ from run to run.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { call } from "../test/lib/wire.mjs";
import { Screen, pictureOf } from "./terminal-picture.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BINARY = process.env.ORRERY ?? join(ROOT, "build/orrery");
const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const LOAD_MS = 45_000;
const SIZE = { columns: 92, rows: 25 };

const folder = mkdtempSync(join(tmpdir(), "orrery-pictures-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
symlinkSync(BINARY, join(folder, "orrery"));

function startServer() {
    const args = ["serve", "--data", join(folder, "data"), "--port", "0", "--no-burst", "--partition-ru", "400"];
    const child = spawn(BINARY, args, { stdio: ["ignore", "ignore", "pipe"] });
    process.on("exit", () => child.kill("SIGKILL"));
    const ended = new Promise((resolve) => child.once("close", resolve));
    return new Promise((resolve, reject) => {
        ended.then(() => reject(new Error("the server has ended"))); // too late if it was ready
        createInterface({ input: child.stderr }).on("line", (line) => {
            const [, port] = / server\.ready port=(\d+)/.exec(line) ?? [];
            if (port) resolve({ child, ended, endpoint: `http://127.0.0.1:${port}`, key: KEY });
        });
    });
}

const DOCS = "/dbs/shop/colls/orders/docs";

function upsert(server, customer, n) {
    return call(server, {
        method: "POST",
        path: DOCS,
        headers: { "x-ms-documentdb-partitionkey": JSON.stringify([customer]), "x-ms-documentdb-is-upsert": "True" },
        body: { id: `${n}`, customer, total: n, text: "x".repeat(400) },
    });
}

/** Many customers who buy something now and then, and one who does not stop. */
async function load(server) {
    const end = Date.now() + LOAD_MS;
    let n = 0;
    const quiet = async (i) => {
        for (; Date.now() < end; await sleep(60 + ((i * 37) % 90))) await upsert(server, `c${(i * 7 + n++) % 40}`, n % 200);
    };
    const busy = async (i) => {
        await sleep(LOAD_MS / 3);
        for (; Date.now() < end; await sleep(25)) await upsert(server, "ada", i);
    };
    await Promise.all([...Array.from({ length: 6 }, (_, i) => quiet(i)), ...Array.from({ length: 4 }, (_, i) => busy(i))]);
}

/** Runs a command on a terminal, for a time; everything that it has drawn. */
function onTerminal(command, milliseconds) {
    const inner = `stty cols ${SIZE.columns} rows ${SIZE.rows}; exec ${command}`;
    const child = spawn("script", ["-qefc", inner, "/dev/null"], { env: { ...process.env, TERM: "xterm-256color", LC_ALL: "C.UTF-8" } });
    let drawn = "";
    child.stdout.setEncoding("utf8").on("data", (piece) => (drawn += piece));
    setTimeout(() => child.stdin.write("q"), milliseconds);
    return new Promise((resolve) => child.once("close", () => resolve(drawn)));
}

async function drawTop() {
    const server = await startServer();
    await call(server, { method: "POST", path: "/dbs", body: { id: "shop" } });
    await call(server, {
        method: "POST",
        path: "/dbs/shop/colls",
        headers: { "x-ms-offer-throughput": "2000" },
        body: { id: "orders", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 } },
    });
    const working = load(server);
    await sleep(LOAD_MS - 5000);
    const command = `${BINARY} top --endpoint ${server.endpoint} --database shop --container orders`;
    const drawn = await onTerminal(command, 3000);
    await working;
    server.child.kill("SIGTERM");
    await server.ended;
    // The last whole frame, before the terminal was restored.
    const screen = new Screen(SIZE.columns, SIZE.rows);
    screen.write(drawn.slice(0, drawn.lastIndexOf("\x1b[?1049l")));
    return pictureOf(screen, {
        title: "orrery top",
        note: "orrery top in a terminal: five physical partitions of a container; one of them is hot and throttled, because of the partition key ada",
    });
}

/** The first example of the page. */
function drawAdvise() {
    const page = readFileSync(join(ROOT, "docs/choosing-a-partition-key.md"), "utf8");
    const [, data] = /^```js\n(.*?)^```$/ms.exec(page);
    const [, command] = /^```sh\n(.*?)\n```$/ms.exec(page);
    writeFileSync(join(folder, "data.mjs"), data);
    const env = { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` };
    spawnSync(process.execPath, ["data.mjs"], { cwd: folder });
    const { stdout, status } = spawnSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8" });
    if (status !== 0) throw new Error(`${command} has ended with ${status}`);
    // The whole report has more keys, and the meaning of the columns.
    const lines = stdout.split("\n");
    const from = (start, count) => lines.slice(lines.findIndex((line) => line.startsWith(start))).slice(0, count);
    const shown = [...from("Use ", 8), ...from("Keys", 5), "...", ...from("no ", 1), "", ...from("/seriesId: ", 4), ...from("/day: ", 6)];
    const screen = new Screen(SIZE.columns + 8, shown.length + 2);
    screen.write(`\x1b[92m$\x1b[0m \x1b[1m${command}\x1b[0m\r\n\r\n${shown.join("\r\n")}`);
    return pictureOf(screen, {
        title: "orrery advise",
        note: "orrery advise in a terminal: it recommends /seriesId for a time series, and says why /day is refused",
    });
}

const target = join(ROOT, "docs/pictures");
mkdirSync(target, { recursive: true });
writeFileSync(join(target, "advise.svg"), drawAdvise());
writeFileSync(join(target, "top.svg"), await drawTop());
process.exit(0);
