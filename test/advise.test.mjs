// `orrery advise`: advice from files, standard input and live containers; exit codes; its reports as text, JSON and
// HTML; and that docs/choosing-a-partition-key.md and README.md tell the truth.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, run, sharedServer, temporaryFolder } from "./lib/server.mjs";

const DOCUMENT = readFileSync(join(ROOT, "docs/choosing-a-partition-key.md"), "utf8");
const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** Choices that are the same in every run. */
function choices(seed) {
    let state = seed;
    return (count) => (state = (state * 48271) % 2147483647) % count;
}

const lines = (items) => items.map((item) => JSON.stringify(item)).join("\n");

/** Orders of users who are alike, in a few countries. */
function orders(count = 5000) {
    const random = choices(7);
    return Array.from({ length: count }, (_, i) => ({
        id: `o${i}`,
        userId: `u${random(900)}`,
        country: ["de", "fr", "in", "jp", "us"][random(5)],
        lines: [{ sku: `p${random(50)}` }],
        note: "x".repeat(random(50)),
    }));
}

const QUERIES = [
    { query: "SELECT * FROM c WHERE c.userId = @user", perSecond: 40 },
    { query: "SELECT * FROM c WHERE c.country = 'de' ORDER BY c.userId, c.note DESC", perSecond: 1 },
];

function fileOf(name, text) {
    const path = join(temporaryFolder(), name);
    writeFileSync(path, text);
    return path;
}

const advise = (...args) => run(["advise", ...args]);

function adviseJson(...args) {
    const { status, stdout, stderr } = advise(...args, "--json");
    assert.equal(stderr, "");
    return { status, ...JSON.parse(stdout) };
}

const keyOf = (report, name) => report.keys.find(({ key }) => key === name);
const codesOf = (key) => key.findings.map(({ code }) => code);

// ---- input ----

test("lines, an array and standard input give the same advice", () => {
    const items = orders();
    const expected = advise(fileOf("a.jsonl", lines(items)), "--json");
    assert.equal(expected.status, 0, expected.stderr);
    assert.equal(JSON.parse(expected.stdout).best, "/userId");
    const array = advise(fileOf("a.json", JSON.stringify(items, null, 2)), "--json");
    assert.equal(array.stdout, expected.stdout);
    const stdin = spawnSync(BINARY, ["advise", "-", "--json"], { input: lines(items), encoding: "utf8" });
    assert.equal(stdin.stdout, expected.stdout);
});

test("queries decide, and come as JSON or as lines", () => {
    const file = fileOf("a.jsonl", lines(orders()));
    const json = adviseJson(file, "--queries", fileOf("q.json", JSON.stringify(QUERIES)));
    assert.equal(json.best, "/userId");
    assert.equal(json.queries.length, 2);
    const user = keyOf(json, "/userId");
    assert.ok(Math.abs(user.queries.onePartitionShare - 40 / 41) < 1e-3);
    assert.deepEqual(user.queries.visits, [1, 10]);
    assert.ok(codesOf(keyOf(json, "/country")).includes("queries-fan-out"));
    const byId = adviseJson(file, "--queries", fileOf("q.sql", "-- by id\nSELECT * FROM c WHERE c.id = @id;\n"));
    assert.equal(byId.best, "/id");
});

test("a sample is bounded, and says so", () => {
    const report = adviseJson(fileOf("a.jsonl", lines(orders(3000))), "--sample", "1000");
    assert.ok(report.sample.items <= 1000 && report.sample.items > 400, `${report.sample.items}`);
    assert.equal(report.sample.read, 3000);
    assert.equal(report.best, "/userId");
});

test("items of two megabytes, many paths and deep ones are taken", () => {
    const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`p${i}`, i]));
    let deep = 1;
    for (let i = 0; i < 100; i++) deep = { d: deep };
    const items = orders(20).map((item, i) => ({ ...item, ...(i === 0 && wide), ...(i === 1 && { deep }) }));
    items[2].note = "n".repeat(2_000_000);
    const report = adviseJson(fileOf("a.jsonl", lines(items)));
    assert.equal(report.status, 0);
    assert.equal(report.sample.allPaths, false);
    assert.ok(report.sample.paths <= 512);
});

test("what cannot be read is refused with its place, and nothing is printed", () => {
    const good = fileOf("a.jsonl", lines(orders(50)));
    for (const [args, pattern] of [
        [[], /nothing to learn from/],
        [["/no/such/file"], /cannot open '\/no\/such\/file'/],
        [[fileOf("x", "")], /there are no items/],
        [[fileOf("x", '{"a":1}\n{"a":')], /line 2: the text ends/],
        [[fileOf("x", '{"a":1}\nnull')], /line 2: expected an object/],
        [[fileOf("x", '[{"a":1}')], /the array has no end/],
        [[fileOf("x", '{"a":"\\ud800"}')], /line 1/],
        [[good, "--queries", fileOf("q", "SELECT * FROM c WHERE")], /query 1: /],
        [[good, "--queries", fileOf("q", "[]")], /no query/],
        [[good, "--queries", "/no/such"], /cannot open/],
        [[good, "--time-path", "/note"], /of 50 items have a time/],
        [[good, "--check", "userId"], /not a partition key/],
        [[good, "--cheque", "/a"], /did you mean '--check'/],
        [[good, "--html", "/no/such/folder/x.html"], /cannot write/],
    ]) {
        const { status, stdout, stderr } = advise(...args);
        assert.equal(status, 2, args.join(" "));
        assert.equal(stdout, "");
        assert.match(stderr, pattern);
    }
});

// ---- exit codes ----

test("--check ends with 0 for an acceptable key and 1 for another, with reasons", () => {
    const file = fileOf("a.jsonl", lines(orders()));
    const good = advise(file, "--check", "/userId");
    assert.equal(good.status, 0, good.stderr);
    assert.match(good.stdout, /^\/userId: acceptable$/m);
    const bad = advise(file, "--check", "/country");
    assert.equal(bad.status, 1);
    assert.match(bad.stdout, /^\/country: not acceptable$/m);
    assert.match(bad.stdout, /only 5 values for 10 physical partitions/);
    assert.match(bad.stdout, /\/userId scores/);
    assert.equal(advise(file, "--check", "/userId,/id").status, 0);
    const missing = adviseJson(file, "--check", "/nothing");
    assert.equal(missing.status, 1);
    assert.deepEqual(missing.checked, { key: "/nothing", acceptable: false });
    assert.equal(adviseJson(file, "--check", "/country", "--growth", "10").status, 0, "it stays small");
    assert.equal(advise(file, "--check", "/userId", "--growth", "1e12").status, 1, "it is full within a year");
});

test("a key that follows the time is refused, and items written together are kept so", () => {
    const items = Array.from({ length: 6000 }, (_, i) => ({
        id: `${i}`,
        hour: `h${Math.floor(i / 100)}`,
        orderId: `r${Math.floor(i / 3)}`,
        userId: `u${(i * 31) % 500}`,
    }));
    const file = fileOf("a.jsonl", lines(items));
    const report = adviseJson(file, "--together", "/orderId");
    assert.ok(codesOf(keyOf(report, "/hour")).includes("moving-hot-spot"));
    assert.equal(keyOf(report, "/hour").movingHotSpot, true);
    assert.equal(keyOf(report, "/orderId").togetherShare, 1);
    assert.ok(codesOf(keyOf(report, "/userId")).includes("split-transactions"));
    assert.equal(report.best, "/orderId");
});

// ---- reports ----

test("JSON has the members that the document names, and no others", () => {
    const report = adviseJson(
        fileOf("a.jsonl", lines(orders())),
        "--queries",
        fileOf("q.json", JSON.stringify(QUERIES)),
        "--check",
        "/country",
    );
    assert.equal(report.status, 1);
    delete report.status;
    const [, about] = DOCUMENT.split("## As JSON");
    const [tops, ofKeys] = about.split("| member of a key |");
    const named = (text) => [...text.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell]) => cell.match(/\w+/g)).sort();
    assert.deepEqual(Object.keys(report).sort(), named(tops));
    for (const key of report.keys) assert.deepEqual(Object.keys(key).sort(), named(ofKeys));
    assert.equal(report.version, 1);
    for (const [name, type] of Object.entries({ key: "string", score: "number", acceptable: "boolean", values: "number" }))
        assert.equal(typeof report.keys[0][name], type, name);
    assert.equal(report.keys[0].storage.length, report.partitions);
    assert.ok(Math.abs(report.keys[0].storage.reduce((a, b) => a + b) - 1) < 0.01);
    const scores = report.keys.filter(({ acceptable }) => acceptable).map(({ score }) => Math.round(score));
    assert.deepEqual(scores, [...scores].sort((a, b) => b - a), "the best first");
    assert.deepEqual(
        report.indexing.composite[0].index,
        [
            { path: "/userId", order: "ascending" },
            { path: "/note", order: "descending" },
        ],
    );
    assert.deepEqual(report.indexing.unused.map(({ path }) => path), ["/lines/*"]);
});

/** Checks that every tag is closed in its place; the page is written so that it is XML, too. */
function assertWellFormed(html) {
    const open = [];
    const [, body] = /^<!DOCTYPE html>\n(.*)$/s.exec(html);
    const rest = body.replace(/<(\/?)([a-z0-9]+)((?: [a-z0-9-:]+="[^"<>]*")*)( \/)?>/gi, (tag, end, name, attributes, alone) => {
        if (end) assert.equal(open.pop(), name, `${tag} closes another tag`);
        else if (!alone) open.push(name);
        return "";
    });
    assert.deepEqual(open, []);
    assert.doesNotMatch(rest, /[<>]/, "all markup is tags");
    for (const [entity] of rest.matchAll(/&[^;]*;?/g)) assert.match(entity, /^&#\d+;$/);
}

test("the page is well-formed and loads nothing", () => {
    const items = orders().map((item) => ({ ...item, "<script>alert(1)</script>": `"><img src=x>${item.userId}` }));
    const page = join(temporaryFolder(), "advice.html");
    const queries = fileOf("q.json", JSON.stringify([...QUERIES, { query: "SELECT * FROM c WHERE c.a = '<b>&amp;'" }]));
    const { status, stdout, stderr } = advise(fileOf("a.jsonl", lines(items)), "--queries", queries, "--html", page);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Use \/userId\.$/m, "the text is printed besides");
    const html = readFileSync(page, "utf8");
    assertWellFormed(html);
    assert.match(html, /default-src 'none'/);
    assert.match(html, /<svg [^>]*role="img"/);
    assert.ok((html.match(/<rect /g) ?? []).length > 100, "there are charts");
    for (const pattern of [/<script/i, /<link/i, /<img/i, /\bsrc=/i, /\bhref=/i, /@import/i, /url\(/i])
        assert.doesNotMatch(html, pattern);
    const addresses = html.match(/https?:\/\/[^"' ]+/g) ?? [];
    assert.ok(addresses.every((address) => address === "http://www.w3.org/2000/svg"), "the only URL is a namespace");
});

test("text is plain, bounded in width, and without anything that a terminal would obey", () => {
    const items = orders(2000).map((item) => ({ ...item, "\u001b[2J\u0007": "\u001b]0;title\u0007", "\u202e": 5, ü: "grün" }));
    const { status, stdout } = advise(fileOf("a.jsonl", lines(items)));
    assert.equal(status, 0);
    // eslint-disable-next-line no-control-regex
    assert.doesNotMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    assert.match(stdout, /\\u001b\[2J/);
    for (const line of stdout.split("\n")) assert.ok(line.length <= 100, line);
});

// ---- a live container ----

async function liveContainer(id, items, definition = {}) {
    const server = await sharedServer();
    const { database } = await clientOf(server).databases.createIfNotExists({ id: "advised" });
    const { container } = await database.containers.create(
        { id, partitionKey: { paths: ["/country"] }, ...definition },
        { offerThroughput: 30000 },
    );
    for (let i = 0; i < items.length; i += 100)
        await container.items.bulk(
            items.slice(i, i + 100).map((resourceBody) => ({ operationType: "Create", resourceBody })),
        );
    return Object.assign(["--endpoint", server.endpoint, "--database", "advised", "--container", id], { container });
}

test("a live container is sampled, and its own key judged", async () => {
    const items = orders(2000);
    const source = await liveContainer("whole", items, {
        indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/lines/*" }] },
    });
    const report = adviseJson(...source, "--queries", fileOf("q.json", JSON.stringify(QUERIES)));
    assert.equal(report.sample.items, 2000);
    assert.equal(report.sample.population, 2000);
    assert.equal(report.best, "/userId");
    assert.equal(report.itemsPerDay, null, "what was loaded at once has no rate");
    assert.equal(keyOf(report, "/country").current, true);
    assert.equal(keyOf(report, "/country").acceptable, false);
    assert.ok(!report.keys.some(({ key }) => /\/_/.test(key)), "nothing that the server adds is a key");
    assert.deepEqual(report.indexing.unused, [], "what the policy excludes already is not named again");
    assert.equal(adviseJson(...source, "--check", "/country").status, 1);

    // The file with the same items says the same about them.
    const file = adviseJson(fileOf("a.jsonl", lines(items)));
    assert.equal(keyOf(file, "/userId").values, keyOf(report, "/userId").values);
    assert.equal(keyOf(file, "/userId").largestShare, keyOf(report, "/userId").largestShare);
});

test("the queries of a live container are those that it served, without their values", async () => {
    const source = await liveContainer("recorded", orders(1500));
    const { container } = source;
    const parameters = [{ name: "@user", value: "u17-secret" }];
    for (let i = 0; i < 6; i++)
        await container.items.query({ query: "SELECT * FROM c WHERE c.userId = @user", parameters }).fetchAll();
    await container.items.query("SELECT * FROM c WHERE c.note = 'my secret'", { partitionKey: "de" }).fetchAll();
    await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
    const report = adviseJson(...source);
    assert.equal(report.best, "/userId");
    assert.equal(report.recorded.executions, 8, "what a client merges is one execution");
    assert.equal(report.recorded.leftOut, 0);
    const [users] = report.queries;
    assert.equal(users.query, "SELECT * FROM c WHERE c.userId = @s1");
    assert.ok(users.measuredRu > 2, `${users.measuredRu}`);
    assert.ok(Math.abs(users.perSecond - 6 / report.recorded.seconds) < 1e-6);
    const keyed = report.queries.findIndex(({ query }) => query.includes("c.note"));
    assert.match(report.queries[keyed].query, /c\.country = @key1/);
    assert.equal(keyOf(report, "/country").queries.visits[keyed], 1, "it came with its key");
    assert.equal(keyOf(report, "/userId").queries.visits[keyed], 10);
    assert.doesNotMatch(JSON.stringify(report.queries), /secret/);
    assert.match(advise(...source).stdout, /3 queries that the server recorded, 8 executions/);
    const given = adviseJson(...source, "--queries", fileOf("q.json", JSON.stringify(QUERIES)));
    assert.equal(given.recorded, null);
    assert.equal(given.queries.length, 2);
});

test("what excluding paths saves is what the server charges less", async () => {
    const item = { ...orders(1)[0], userId: "u1" };
    const source = await liveContainer("charged", orders(300), { partitionKey: { paths: ["/userId"] } });
    const { container } = source;
    await container.items.query({ query: "SELECT * FROM c WHERE c.country = 'de'" }, { partitionKey: "u1" }).fetchAll();
    const before = await container.items.create({ ...item, id: "before" });
    const { indexing } = adviseJson(...source);
    assert.deepEqual(indexing.unused.map(({ path }) => path).sort(), ["/lines/*", "/note/?"]);
    const indexingPolicy = {
        includedPaths: [{ path: "/*" }],
        excludedPaths: indexing.unused.map(({ path }) => ({ path })),
    };
    const other = await liveContainer("cheaper", orders(300), { partitionKey: { paths: ["/userId"] }, indexingPolicy });
    const after = await other.container.items.create({ ...item, id: "before" });
    const saved = before.requestCharge - after.requestCharge;
    assert.ok(Math.abs(saved - indexing.unusedRu) < 0.02, `${saved} of ${indexing.unusedRu}`);
});

test("a part of a container is spread over its ranges", async () => {
    const source = await liveContainer("part", orders(3000), { partitionKey: { paths: ["/id"] } });
    const report = adviseJson(...source, "--sample", "600");
    assert.ok(report.sample.items <= 600 && report.sample.items >= 500, `${report.sample.items}`);
    assert.equal(report.sample.population, 3000);
    assert.equal(report.best, "/userId");
    // With the container's own key the sample lies in all of its partitions alike.
    assert.ok(keyOf(report, "/id").storageSkew < 1.5, `${keyOf(report, "/id").storageSkew}`);
});

test("a hierarchical key and names of every kind work in a live container", async () => {
    const source = await liveContainer("tänants & more", orders(600), {
        partitionKey: { paths: ["/country", "/userId"], kind: "MultiHash", version: 2 },
    });
    const report = adviseJson(...source);
    assert.equal(keyOf(report, "/country, /userId").current, true);
    assert.equal(report.sample.items, 600);
});

test("a server that refuses or is not there ends with 2 and the reason", async () => {
    const server = await sharedServer();
    const names = ["--database", "advised", "--container", "none"];
    for (const [args, pattern] of [
        [["--endpoint", server.endpoint, ...names], /answered 404/],
        [["--endpoint", server.endpoint, ...names, "--key", "bm9uZQ=="], /answered 401/],
        [["--endpoint", "http://127.0.0.1:1", ...names], /cannot reach the server/],
        [["--endpoint", "nowhere", ...names], /is not an endpoint/],
    ]) {
        const { status, stdout, stderr } = advise(...args);
        assert.equal(status, 2, args.join(" "));
        assert.equal(stdout, "");
        assert.match(stderr, pattern);
    }
    const source = await liveContainer("empty", []);
    const empty = advise(...source);
    assert.equal(empty.status, 2);
    assert.match(empty.stderr, /there are no items/);
});

// ---- documents ----

/** Runs a program that an example has in a folder of its own. */
function runExample(folder, code) {
    const path = join(folder, "example.mjs");
    writeFileSync(path, code);
    const { status, stderr } = spawnSync(process.execPath, [path], { cwd: folder, encoding: "utf8" });
    assert.equal(status, 0, stderr);
}

const EXAMPLES = [...DOCUMENT.matchAll(/```js\n(.*?)```\n\n```sh\norrery (.*?)\n```\n\n```text\n(.*?)```/gs)];

for (const [, code, command, expected] of EXAMPLES)
    test(`the document's example runs as it stands: ${command}`, () => {
        const folder = temporaryFolder();
        runExample(folder, code);
        const { status, stdout, stderr } = run(command.split(" "), { cwd: folder, env: { LC_ALL: "C" } });
        assert.equal(status, command.includes("--check") ? 1 : 0, stderr);
        let at = 0;
        for (const part of expected.split("...\n\n")) {
            const found = stdout.indexOf(part, at);
            assert.ok(found >= 0, `the output has not\n${part}\nbut\n${stdout}`);
            at = found + part.length;
        }
    });

test("the document has its four examples and a check, and devices are full soon", () => {
    assert.deepEqual(
        EXAMPLES.map(([, , command]) => command.split(" ")[1]),
        ["series.jsonl", "tenants.jsonl", "users.json", "devices.jsonl", "orders.jsonl"],
    );
    const [, code, command] = EXAMPLES[3];
    const folder = temporaryFolder();
    runExample(folder, code);
    const { stdout } = run([...command.split(" "), "--json"], { cwd: folder });
    const device = keyOf(JSON.parse(stdout), "/deviceId");
    assert.ok(codesOf(device).includes("full-soon"));
    assert.match(device.fullOn, /^\d{4}-\d\d-\d\d$/);
});

test("the document names every finding", () => {
    const definitions = readFileSync(join(ROOT, "src/advise/findings.def"), "utf8");
    const codes = [...definitions.matchAll(/^FINDING_ROW\(\w+, "([a-z-]+)"\)$/gm)].map(([, code]) => code);
    const rows = [...DOCUMENT.matchAll(/^\| `([a-z-]+)` \| .* \|$/gm)].map(([, code]) => code);
    assert.ok(codes.length > 10);
    assert.deepEqual(codes.filter((code) => !rows.includes(code)), []);
    assert.match(run(["help"]).stdout, /advise .*partition key/);
});

test("the picture of README.md shows what the command prints", () => {
    assert.ok(README.includes("](docs/pictures/advise.svg)"));
    const picture = readFileSync(join(ROOT, "docs/pictures/advise.svg"), "utf8");
    const texts = [...picture.matchAll(/<text x="16" .*?>(.*?)<\/text>/g)].map(([, text]) => text);
    const shown = texts.filter((text) => text !== "$" && text !== "...");
    assert.ok(shown.length > 15, `${shown.length} lines`);
    const folder = temporaryFolder();
    runExample(folder, EXAMPLES[0][1]);
    assert.ok(picture.includes(`>orrery ${EXAMPLES[0][2]}<`));
    const { stdout } = run(EXAMPLES[0][2].split(" "), { cwd: folder, env: { LC_ALL: "C" } });
    for (const line of shown) assert.ok(stdout.split("\n").includes(line), `${line}: run make pictures`);
});
