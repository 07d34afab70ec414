// `orrery bench`: every workload, what it leaves behind, servers that misbehave, and docs/bench.md.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { describe, it as test } from "node:test";

import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ofOneNode, ROOT, sharedServer, temporaryFolder } from "./lib/server.mjs";
import { proxyOf } from "./lib/transfer.mjs";

const LIMIT_MS = 60_000;
const server = await sharedServer({ args: ["--durability", "relaxed"] });
const account = clientOf(server);
const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ORRERY"));

const running = new Set();
process.on("exit", () => {
    for (const child of running) child.kill("SIGKILL");
});

/** Starts a program; `done` is its end: code, signal, stdout, stderr. */
function start(file, args, { env = {}, cwd } = {}) {
    const child = spawn(file, args, { cwd, env: { ...Object.fromEntries(kept), ...env }, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    timer.unref();
    const out = { stdout: "", stderr: "" };
    for (const name of Object.keys(out)) child[name].setEncoding("utf8").on("data", (text) => (out[name] += text));
    child.done = new Promise((resolve) => {
        child.once("close", (code, signal) => {
            clearTimeout(timer);
            running.delete(child);
            resolve({ code, signal, ...out });
        });
    });
    return child;
}

const bench = (args, { endpoint = server.endpoint } = {}) => start(BINARY, ["bench", "--endpoint", endpoint, ...args]).done;

/** The result of a run that must end with that code. */
async function measured(args, { code = 0, ...options } = {}) {
    const result = await bench(["--json", "--warmup-ms", "0", ...args], options);
    assert.equal(result.code, code, result.stderr + result.stdout);
    return JSON.parse(result.stdout);
}

const namesOf = async (resources) => (await resources.readAll().fetchAll()).resources.map(({ id }) => id);
const sum = (object) => Object.values(object).reduce((a, b) => a + b, 0);

const WORKLOADS = {
    read: ["read"],
    create: ["create"],
    upsert: ["upsert"],
    patch: ["patch"],
    batch: ["batch"],
    mixed: ["read", "upsert"],
    "ycsb-a": ["read", "update"],
    "ycsb-b": ["read", "update"],
    "ycsb-c": ["read"],
    "ycsb-d": ["read", "create"],
    "ycsb-e": ["create", "scan"],
    "ycsb-f": ["read", "read-modify-write"],
    query: [],
};

const page = readFileSync(join(ROOT, "docs/bench.md"), "utf8");

function optionRows(path) {
    const text = readFileSync(join(ROOT, "src", path), "utf8");
    const row = /^(?:#include "(cli\/[^"]+)"|ARGUMENT_ROW\(\w+, "([^"]*)", (\w+), "([^"]*)", "([^"]*)", "([^"]*)"\))$/gm;
    return [...text.matchAll(row)].flatMap(([, included, name, , placeholder, fallback, help]) =>
        included ? optionRows(included) : [{ name, placeholder, fallback, help }],
    );
}

// Most of them wait most of the time.
describe("orrery bench", { concurrency: true }, () => {
    test("every workload makes its items, succeeds throughout, and drops what it has made", async () => {
        const runs = Object.entries(WORKLOADS).map(async ([workload, operations], i) => {
            const where = ["--database", `w${i}`, "--items", "250", "--item-size", "300", "--items-per-key", "40"];
            const count = workload === "batch" ? 5 : 200;
            const result = await measured([...where, "--create", "--connections", "4", "--count", `${count}`, workload]);
            assert.equal(result.workload, workload);
            assert.equal(result.end, "done");
            assert.equal(result.requests, count);
            assert.deepEqual([result.errors, result.failures, result.throttled, result.unanswered], [0, 0, 0, 0]);
            assert.deepEqual(Object.keys(result.operations).sort(), [...operations].sort(), workload);
            const requests = Object.values(result.operations).map((operation) => operation.requests);
            if (operations.length > 0) assert.equal(requests.reduce((a, b) => a + b), count);
            const { mean, max, ...percentiles } = result.latency_us;
            const values = [...Object.values(percentiles), max];
            assert.deepEqual(values, [...values].sort((a, b) => a - b));
            assert.ok(mean > 0 && result.ru > 0 && result.fill_ru > 250);
        });
        await Promise.all(runs);
        assert.deepEqual((await namesOf(account.databases)).filter((id) => id.startsWith("w")), []);
    });

    test("what was kept can be measured again, and what existed is neither filled nor dropped", async () => {
        const where = ["--database", "kept", "--container", "c é", "--items", "100", "--connections", "2", "--count", "100"];
        await measured([...where, "--create", "--keep", "ycsb-e"]);
        const container = account.database("kept").container("c é");
        const countOf = async () => (await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources[0];
        const before = await countOf();
        assert.ok(before >= 100 && before < 130);
        const { statuses } = await measured([...where, "ycsb-d"]);
        assert.deepEqual(Object.keys(statuses), ["200", "201"]);
        assert.equal(await countOf(), before + statuses[201]);
        const again = await bench([...where, "--create", "read"]);
        assert.equal(again.code, 1);
        assert.match(again.stderr, /'c é' exists already: leave out --create/);
        assert.equal(await countOf(), before + statuses[201]);

        // Keys that were never made are errors, with a hint, and have no latency.
        const missing = await bench([...where, "--items", "1000000", "--json", "read"]);
        assert.equal(missing.code, 1);
        assert.match(missing.stderr, /404 means that items are missing/);
        assert.ok(JSON.parse(missing.stdout).errors > 90);
        const own = await measured([...where, "--query", 'SELECT c["id"] FROM c WHERE c.id > "f"', "query"]);
        assert.deepEqual(own.statuses, { 200: 100 });
        await account.database("kept").delete();
    });

    test("over TLS the certificate is verified", { skip: ofOneNode("the proxy has no TLS") }, async () => {
        const where = ["--create", "--database", "tls", "--items", "50", "--connections", "4", "--count", "200"];
        const endpoint = server.tlsEndpoint;
        const cert = join(server.data, "tls-cert.pem");
        const { requests } = await measured([...where, "--cert", cert, "mixed"], { endpoint });
        assert.equal(requests, 200);
        assert.equal((await measured([...where, "--insecure", "query"], { endpoint })).requests, 200);
        const refused = await bench([...where, "read"], { endpoint });
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /cannot connect with TLS: self.signed certificate/);
    });

    test("a throttled request is sent again, or is an error with --no-retry", async (t) => {
        const where = ["--database", "throttled", "--items", "50", "--connections", "2"];
        await measured([...where, "--create", "--keep", "--count", "1", "read"]);
        let asked = 0;
        const answer = { status: 429, headers: { "x-ms-retry-after-ms": "20", "x-ms-request-charge": "0.38", "content-length": "2" }, body: "{}" };
        const proxy = await proxyOf(t, server, () => (asked++ % 4 === 0 ? answer : undefined));
        const retried = await measured([...where, "--count", "30", "read"], { endpoint: proxy.endpoint });
        assert.deepEqual([retried.requests, retried.errors], [30, 0]);
        assert.equal(retried.throttled, 10);
        assert.ok(retried.latency_us.p999 >= 20_000 && retried.latency_us.p50 < retried.latency_us.p999);
        asked = 0;
        const errors = await measured([...where, "--count", "40", "--no-retry", "read"], { endpoint: proxy.endpoint, code: 1 });
        assert.deepEqual([errors.requests, errors.errors, errors.statuses[429]], [30, 10, 10]);
        assert.equal(errors.first_error, "{}");
        await account.database("throttled").delete();
    });

    test("a stall is seen by all requests that were due, and an interrupt ends and cleans up", { skip: ofOneNode("it counts on how fast items are made") }, async (t) => {
        const where = ["--database", "stall", "--items", "50", "--connections", "2"];
        await measured([...where, "--create", "--keep", "--count", "1", "read"]);
        let asked = 0;
        const proxy = await proxyOf(t, server, () => (asked++ === 10 ? new Promise((resolve) => setTimeout(resolve, 400)) : undefined));
        const rate = ["--rate", "100", "--seconds", "1", "--connections", "1", "read"];
        const { requests, latency_us, unanswered } = await measured([...where, ...rate], { endpoint: proxy.endpoint });
        assert.deepEqual([requests, unanswered], [100, 0]);
        // 40 requests were due in the stall, which one connection alone would have called one slow request.
        assert.ok(latency_us.max >= 400_000 && latency_us.p90 >= 200_000, JSON.stringify(latency_us));
        await account.database("stall").delete();

        const child = start(BINARY, ["bench", "--endpoint", server.endpoint, "--database", "stop", "--create", "--items", "100", "--seconds", "50", "read"]);
        while (!(await namesOf(account.databases)).includes("stop")) await new Promise((resolve) => setTimeout(resolve, 10));
        await new Promise((resolve) => setTimeout(resolve, 700));
        child.kill("SIGINT");
        const { code, stdout, stderr } = await child.done;
        assert.equal(code, 1);
        assert.match(stderr, /interrupted/);
        assert.match(stdout, /^read: \d+ requests\/s/);
        assert.ok(!(await namesOf(account.databases)).includes("stop"));
    });

    test("request units are limited, and other machines need a word", async () => {
        const where = ["--create", "--database", "limit", "--items", "100", "--connections", "2"];
        const result = await measured([...where, "--max-ru", "1500", "upsert"]);
        assert.equal(result.end, "max-ru");
        assert.ok(result.ru + result.fill_ru >= 1500 && result.ru + result.fill_ru < 1600);
        const early = await bench([...where, "--max-ru", "10", "read"]);
        assert.equal(early.code, 1);
        assert.match(early.stderr, /--max-ru was reached while the items were made/);
        assert.ok(!(await namesOf(account.databases)).includes("limit"));
        const refused = await bench(["--create", "--items", "1000", "--rate", "10", "--seconds", "10", "read"], { endpoint: "http://192.0.2.1:8081" });
        assert.equal(refused.code, 2);
        assert.match(refused.stderr, /another machine.*about 100 request units, about 7000 to make the items.*--max-ru.*--yes/);
        const wrong = await bench(["--create", "--key", Buffer.from("wrong").toString("base64"), "read"]);
        assert.equal(wrong.code, 1);
        assert.match(wrong.stderr, /answered with 401/);
        assert.equal((await bench(["--secnds", "1", "read"])).code, 2);
    });

    test("a server that misbehaves ends the run with the reason", async (t) => {
        const cases = [
            ["closes", (socket) => socket.destroy(), /closed the connection|cannot receive|cannot send/],
            ["says nothing", () => {}, /no answer within 100 ms/],
            ["says nonsense", (socket) => socket.end("SSH-2.0-OpenSSH\r\n\r\n"), /expected 'HTTP\/1.1'/],
            ["has no length", (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\n"), /Content-Length or chunks, found neither/],
            ["says too much", (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"), /more bytes after it/],
            ["has endless headers", (socket) => socket.write(`HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`), /headers of at most/],
            ["is huge", (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), /Content-Length of at most/],
        ];
        const runs = cases.map(async ([name, act, reason]) => {
            const listener = createServer((socket) => {
                socket.on("error", () => {}).once("data", () => act(socket));
            });
            await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
            t.after(() => listener.close());
            const endpoint = `http://127.0.0.1:${listener.address().port}`;
            const args = ["--connections", "2", "--count", "6", "--timeout-ms", name === "says nothing" ? "100" : "20000", "--json", "read"];
            const { code, stdout, stderr } = await bench(args, { endpoint });
            assert.equal(code, 1, name);
            const result = JSON.parse(stdout);
            assert.deepEqual([result.requests, result.failures], [0, 6], name + stderr);
            assert.match(result.first_failure, reason, name);
        });
        await Promise.all(runs);
        const endless = createServer((socket) => {
            const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-ms-continuation: x\r\n\r\n{}";
            socket.on("error", () => {}).on("data", () => socket.write(answer));
        });
        await new Promise((resolve) => endless.listen(0, "127.0.0.1", resolve));
        t.after(() => endless.close());
        const pages = await bench(["--seconds", "1", "query"], { endpoint: `http://127.0.0.1:${endless.address().port}` });
        assert.equal(pages.code, 1);
        assert.match(pages.stderr, /no request has succeeded/);
        const nobody = await bench(["read"], { endpoint: "http://127.0.0.1:1" });
        assert.equal(nobody.code, 1);
        assert.match(nobody.stderr, /cannot connect/);
    });

    test("the examples of docs/bench.md run as they stand", async () => {
        const folder = temporaryFolder();
        symlinkSync(BINARY, join(folder, "orrery"));
        const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code]) => code);
        assert.equal(blocks.length, 6, "every example is known here");
        for (const code of blocks) {
            // The examples are for a server at the usual place, and take longer.
            const script = code.replaceAll(/^orrery bench/gm, `orrery bench --endpoint ${server.endpoint} --count 100`).replace("--create read", "--create --items 500 read");
            const env = { PATH: `${folder}${delimiter}${process.env.PATH}` };
            const { code: status, stdout, stderr } = await start("sh", ["-e", "-c", script], { cwd: folder, env }).done;
            assert.equal(status, 0, code + stderr);
            assert.ok(stdout.includes(" requests/s (100 in ") || JSON.parse(stdout).requests === 100, stdout);
        }
    });

    test("the tables of docs/bench.md have all options, workloads and fields", async () => {
        const [, options] = page.split("## Options\n");
        const rows = [...options.matchAll(/^\| `--([a-z-]+)(?: ([^`]+))?` \| (?:`([^`]*)`)? \| (.*) \|$/gm)];
        const found = rows.map(([, name, placeholder = "", fallback = "", help]) => ({ name, placeholder, fallback, help }));
        assert.deepEqual(found, optionRows("cli/bench_options.def"));

        const table = readFileSync(join(ROOT, "src/load/workload.def"), "utf8");
        const workloads = [...table.matchAll(/^WORKLOAD_ROW\(\w+, "([^"]+)", \w+, \w+, \w+, "([^"]+)"/gm)].map(([, name, what]) => [name, what]);
        const [, section] = page.split("## Workloads\n");
        const listed = [...section.split("\n## ")[0].matchAll(/^\| `([a-z-]+)` \| (.*) \|$/gm)].map(([, name, what]) => [name, what]);
        assert.ok(workloads.length > 10);
        assert.deepEqual(listed, workloads);

        const [, json] = page.split("## JSON\n");
        const fields = [...json.split("\n## ")[0].matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, names]) => names.match(/\w+/g));
        const result = await measured(["--database", "fields", "--create", "--items", "10", "--histogram", "--count", "10", "read"]);
        assert.deepEqual(Object.keys(result).sort(), [...fields].sort());
        assert.equal(sum(Object.fromEntries(result.histogram_us)), 10);
    });
});
