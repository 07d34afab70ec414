// docs/troubleshooting.md quotes what users see: each message is provoked here and compared with the page.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { damage, endOfLog, needsDisk, smallDisk, storeFiles } from "./lib/disk.mjs";
import { blocksOf, pageText, runProgram } from "./lib/pages.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";
import { Line, call, metric, send, signed } from "./lib/wire.mjs";

const PAGE = pageText("docs/troubleshooting.md");

/** The entries of the page: heading and message. */
const entries = new Map(
    PAGE.split(/^### /m)
        .slice(1)
        .map((entry) => [entry.slice(0, entry.indexOf("\n")), blocksOf(entry, "text")]),
);

const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A message of the page as a pattern: lines are broken anywhere, and ... stands for something. */
function patternOf(message) {
    const words = message.trim().split(/\s+/).join(" ");
    return new RegExp(words.split("...").map(escape).join(".+?"));
}

const said = new Set();

/** What was seen has the message of this entry. */
function expectSaid(heading, seen) {
    const messages = entries.get(heading);
    assert.equal(messages?.length, 1, `the page has no message under "${heading}"`);
    assert.match(seen.replace(/\s+/g, " "), patternOf(messages[0]));
    said.add(heading);
}

const server = await sharedServer();
const client = clientOf(server);
const { database } = await client.databases.create({ id: "d" });
await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
const DOCS = "/dbs/d/colls/c/docs";

/** The answer of the shared server to a request that a header makes wrong. */
function withHeader(name, value) {
    const path = "/dbs";
    return send(server.endpoint, { path, headers: { ...signed({ key: server.key, path }), [name]: value } });
}

/** A refusal: its status, and the message of the entry. */
function expectRefusal(heading, answer, status) {
    assert.equal(answer.status, status, answer.text);
    expectSaid(heading, answer.json.message);
}

const PROGRAM = `
    import { get } from "node:https";
    get(JSON.parse(process.argv[1]), (answer) => console.log(answer.resume().statusCode))
        .on("error", (error) => console.log(error.message));`;

/** A small program of a user, in a process of its own, asks for a page; what it prints. */
async function askIn(env, options) {
    const args = ["--input-type=module", "-e", PROGRAM, JSON.stringify({ path: "/healthz", agent: false, ...options })];
    const { stdout } = await runProgram(process.execPath, args, { env: { ...process.env, ...env } });
    return stdout;
}

test("certificates: not trusted, trusted as the page says, and for another name", async () => {
    const { port } = server;
    expectSaid("The certificate is not trusted", await askIn({}, { host: "127.0.0.1", port }));
    const { text } = await send(server.tlsEndpoint, { path: "/_explorer/emulator.pem" });
    const pem = join(temporaryFolder(), "orrery.pem");
    writeFileSync(pem, text);
    const env = { NODE_EXTRA_CA_CERTS: pem };
    assert.equal(await askIn(env, { host: "127.0.0.1", port }), "200\n");
    const named = { host: "127.0.0.1", servername: "db.example.com", port };
    expectSaid("The name is not in the certificate", await askIn(env, named));
});

test("connections: refused, direct mode, host names, web pages, plain HTTP", async (t) => {
    // A port that was free a moment ago.
    const port = await new Promise((resolve) => {
        const listener = createServer().listen(0, "127.0.0.1", () => {
            const { port: free } = listener.address();
            listener.close(() => resolve(free));
        });
    });
    expectSaid("Connection refused", await askIn({}, { host: "127.0.0.1", port }));
    const addresses = await call(server, { path: "/addresses/?$filter=protocol", type: "", link: "" });
    expectRefusal("Direct mode", addresses, 400);
    expectRefusal("The host name is refused", await withHeader("host", "db.example.com"), 400);
    expectRefusal("A web page is refused", await withHeader("origin", "http://shop.example.com"), 403);
    const strict = await startServer(t, { args: ["--require-tls"] });
    expectRefusal("Plain HTTP is refused", await send(strict.endpoint, { path: "/healthz" }), 403);
});

test("starts that are refused: port, folder, key, memory", () => {
    const data = join(temporaryFolder(), "data");
    const expectEnd = (heading, status, args) => {
        const ended = run(["serve", ...args]);
        assert.equal(ended.status, status, ended.stderr);
        expectSaid(heading, ended.stderr);
    };
    const port = String(server.port);
    expectEnd("The port is in use", 1, ["--data", data, "--host", "127.0.0.1", "--port", port]);
    expectEnd("The folder is in use", 1, ["--data", server.data, "--port", "0"]);
    expectEnd("The well-known key is refused", 1, ["--data", data, "--host", "0.0.0.0", "--port", "0"]);
    expectEnd("Too little memory", 2, ["--data", data, "--memory", "100M"]);
});

test("refused signatures: another key, none, a wrong clock", async () => {
    const path = "/dbs";
    const ask = (options) => send(server.endpoint, { path, headers: signed({ key: server.key, path, ...options }) });
    const other = Buffer.from("another key").toString("base64");
    expectRefusal("401: the signature does not match", await ask({ key: other }), 401);
    expectRefusal("401: the header is missing", await send(server.endpoint, { path }), 401);
    const yesterday = new Date(Date.now() - 86_400_000).toUTCString();
    expectRefusal("403: the clock is wrong", await ask({ date: yesterday }), 403);
});

test("refused requests for items and queries", async () => {
    const keyed = (key) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([key]) });
    const post = (body, headers) => call(server, { method: "POST", path: DOCS, headers, body });
    expectRefusal("400: the partition key does not match", await post({ id: "1", pk: 7 }, keyed("7")), 400);
    expectRefusal("404: the item is there", await call(server, { path: `${DOCS}/1`, headers: keyed("x") }), 404);
    const asked = { "content-type": "application/query+json", "x-ms-documentdb-isquery": "True" };
    expectRefusal("400: a query over all partitions", await post({ query: "SELECT * FROM c" }, asked), 400);
    const crossing = { ...asked, "x-ms-documentdb-query-enablecrosspartition": "True" };
    const search = { query: "SELECT * FROM c WHERE FullTextContains(c.text, 'a')" };
    expectRefusal("400: a function that is not available", await post(search, crossing), 400);
    const large = { id: "1", pk: "a", text: "x".repeat(2_200_000) };
    expectRefusal("413: the item is too large", await post(large, keyed("a")), 413);
    const attachments = await call(server, { path: `${DOCS}/1/attachments`, headers: keyed("a") });
    expectRefusal("501: not available", attachments, 501);
});

test("a container that is asked for more than its throughput", async (t) => {
    const throttled = await startServer(t, { isThrottled: true, args: ["--no-burst"] });
    const { database: shop } = await clientOf(throttled).databases.create({ id: "d" });
    await shop.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } }, { offerThroughput: 400 });
    const text = "x".repeat(500_000);
    const headers = { "x-ms-documentdb-partitionkey": '["a"]' };
    let answer;
    for (let i = 0; i < 50 && answer?.status !== 429; i++)
        answer = await call(throttled, { method: "POST", path: DOCS, headers, body: { id: `${i}`, pk: "a", text } });
    expectRefusal("429: too many requests", answer, 429);
});

test("a server whose memory is taken", async (t) => {
    const small = await startServer(t, { args: ["--memory", "640M", "--threads", "1"] });
    const { database: shop } = await clientOf(small).databases.create({ id: "d" });
    await shop.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    const headers = Object.entries(signed({ key: small.key, method: "POST", path: DOCS }));
    const first = [`POST ${DOCS} HTTP/1.1`, "host: localhost", "content-length: 2000000"];
    const head = [...first, ...headers.map((one) => one.join(": "))].join("\r\n");
    const lines = await Promise.all(Array.from({ length: 80 }, () => Line.open(small.port)));
    for (const line of lines) line.send(`${head}\r\n\r\n${"x".repeat(1_900_000)}`);
    while ((await metric(small, "orrery_requests_shed_total")) < 20) await sleep(20);
    const body = JSON.stringify({ id: "a", pk: "a", text: "x".repeat(1_900_000) });
    const answer = await call(small, { method: "POST", path: DOCS, body });
    for (const line of lines) line.close();
    expectRefusal("503: no memory left", answer, 503);
});

const TINY = ["--cache", "8M"];

test("a full disk", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 48);
    const full = await startServer(t, { args: TINY, data: disk.data, within: disk.within });
    disk.leave(12);
    const answer = await call(full, { method: "POST", path: "/dbs", body: { id: "d" } });
    expectRefusal("503: the disk is full", answer, 503);
});

test("damaged tables and logs", async (t) => {
    const broken = await startServer(t, { args: [...TINY, "--durability", "relaxed"] });
    const { database: shop } = await clientOf(broken).databases.create({ id: "d" });
    const { container } = await shop.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    const itemOf = (_, i) => ({ id: `${i}`, pk: "k", text: randomBytes(2000).toString("base64") });
    const items = Array.from({ length: 200 }, itemOf);
    await Promise.all(items.map((item) => container.items.create(item)));
    await broken.stopWell();
    const [table] = storeFiles(broken.data, ".sst");
    damage(table, Math.floor(statSync(table).size / 2));
    await broken.start();
    const answers = await Promise.all(
        items.map(({ id }) =>
            call(broken, { path: `${DOCS}/${id}`, headers: { "x-ms-documentdb-partitionkey": '["k"]' } }),
        ),
    );
    const damaged = answers.find(({ status }) => status !== 200);
    expectRefusal("500: the data is damaged", damaged, 500);

    const torn = await startServer(t, { args: TINY });
    const { database: other } = await clientOf(torn).databases.create({ id: "d" });
    for (let i = 0; i < 20; i++) await other.containers.create({ id: `c${i}`, partitionKey: { paths: ["/pk"] } });
    await torn.kill();
    const [log] = storeFiles(torn.data, ".log");
    damage(log, Math.floor(endOfLog(log) / 2));
    const ended = run(["serve", "--data", torn.data, "--port", "0", ...TINY]);
    assert.equal(ended.status, 1);
    expectSaid("The log is damaged", ended.stderr);
});

test("every message of the page was seen", () => {
    const without = needsDisk().skip ? ["503: the disk is full"] : [];
    const missing = [...entries.keys()].filter((heading) => !said.has(heading) && !without.includes(heading));
    assert.deepEqual(missing, []);
});
