// `orrery copy`: to another key, another server, from a container without a key; collisions; and a swap under
// writers that is killed and begun again. `make copy-kills` does the last for longer.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import test from "node:test";

import { CHAOS, cause } from "./lib/chaos.mjs";
import { campaign } from "./lib/copies.mjs";
import { SIZES, callItems, contentOf, fill, newContainer } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf, clientWith } from "./lib/sdk.mjs";
import { BINARY, ofOneNode, ROOT, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";
import { digestOf, start, transferred } from "./lib/transfer.mjs";
import { call } from "./lib/wire.mjs";

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "copies" });
const folder = temporaryFolder();

const someItems = (count) =>
    Array.from({ length: count }, (_, i) => ({ id: `${i}`, pk: `p${i % 13}`, user: `u${i % 7}`, n: i / 4, deep: { a: [i] } }));
const allOf = async (container) =>
    (await container.items.readAll().fetchAll()).resources.map(contentOf).sort((a, b) => (a.id < b.id ? -1 : 1));
const sorted = (items) => [...items].sort((a, b) => (a.id < b.id ? -1 : 1));

/** The two lines of digests that a copy prints. */
function digests(stdout) {
    const found = /^source ([0-9A-F]{32} \d+)\ncopy ([0-9A-F]{32} \d+)\n$/.exec(stdout);
    assert.ok(found, stdout);
    return found.slice(1);
}

for (const size of SIZES) {
    test(`a copy with another key has everything, ${size.partitions} partitions`, async () => {
        const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/n"] }] };
        const source = await newContainer(database, size, { defaultTtl: -1, uniqueKeyPolicy });
        const items = [...someItems(1500), { id: "none", pk: "x", text: "é中😀" }, { id: "null", pk: null, user: null }];
        await fill(source, items);
        await source.scripts.storedProcedures.create({ id: "p", body: "function p() {}" });
        await source.scripts.triggers.create({ id: "t", body: "function t() {}", triggerType: "Pre", triggerOperation: "All" });
        await source.scripts.userDefinedFunctions.create({ id: "f", body: "function f() {}" });
        const policy = join(folder, "policy.json");
        writeFileSync(policy, JSON.stringify({ indexingMode: "consistent", includedPaths: [{ path: "/user/?" }], excludedPaths: [{ path: "/*" }] }));
        const to = `${source.id}-b`;
        const { stdout } = await transferred("copy", server, source, ["--quiet", "--to", to, "--partition-key", "/user,/pk", "--indexing", policy]);
        const [one, other] = digests(stdout);
        assert.equal(one, other);
        assert.equal(one, await digestOf(server, source));
        const copy = database.container(to);
        assert.deepEqual(await allOf(copy), sorted(items));
        const { resource } = await copy.read();
        assert.deepEqual(resource.partitionKey.paths, ["/user", "/pk"]);
        assert.deepEqual(resource.uniqueKeyPolicy, uniqueKeyPolicy);
        assert.equal(resource.defaultTtl, -1);
        assert.equal(resource.indexingPolicy.includedPaths[0].path, "/user/?");
        assert.ok((resource.changeFeedPolicy?.retentionDuration ?? 0) === 0);
        assert.equal((await source.read()).resource.changeFeedPolicy?.retentionDuration ?? 0, 0, "as it was before");
        assert.equal((await copy.scripts.storedProcedures.readAll().fetchAll()).resources[0].id, "p");
        assert.equal((await copy.scripts.triggers.readAll().fetchAll()).resources[0].triggerOperation, "All");
        assert.equal((await copy.scripts.userDefinedFunctions.readAll().fetchAll()).resources[0].id, "f");
        assert.equal((await copy.readOffer()).resource.content.offerThroughput, size.throughput);
    });
}

test("a copy goes to another server, each item in a request of its own", async (t) => {
    const other = await sharedServer({ args: ["--durability", "relaxed"] });
    const source = await newContainer(database);
    await fill(source, someItems(300));
    const args = ["--quiet", "--to", "here", "--to-database", "far", "--to-endpoint", other.endpoint, "--no-bulk", "--throughput", "1000"];
    const { stdout } = await transferred("copy", server, source, args);
    const copy = clientOf(other).database("far").container("here");
    assert.equal(digests(stdout)[0], await digestOf(other, copy));
    assert.equal((await copy.readOffer()).resource.content.offerThroughput, 1000);
});

test("a container of more ranges than one page of a list has is copied", async () => {
    const source = await newContainer(database, { throughput: 700_000 });
    await fill(source, someItems(20));
    const { stdout } = await transferred("copy", server, source, ["--quiet", "--to", "many", "--throughput", "400"]);
    assert.match(digests(stdout)[0], / 20$/);
    assert.equal(digests(stdout)[0], digests(stdout)[1]);
});

test("a container without a partition key gets one", async () => {
    const headers = { "x-ms-version": "2016-07-11" };
    const made = await call(server, { method: "POST", path: "/dbs/copies/colls", body: { id: "legacy" }, headers });
    assert.equal(made.status, 201, made.text);
    const legacy = database.container("legacy");
    for (const { id, user } of someItems(40)) {
        const created = await call(server, { method: "POST", path: "/dbs/copies/colls/legacy/docs", body: { id, user }, headers });
        assert.equal(created.status, 201);
    }
    const { stdout } = await transferred("copy", server, legacy, ["--quiet", "--to", "modern", "--partition-key", "/user"]);
    assert.match(digests(stdout)[1], / 40$/);
    const { resource } = await database.container("modern").item("8", "u1").read();
    assert.equal(resource.user, "u1");
});

test("two items that would be one are rejected, until the source has one of them only", async () => {
    const source = await newContainer(database);
    await fill(source, [...someItems(50), { id: "same", pk: "a", user: "u" }, { id: "same", pk: "b", user: "u" }, { id: "same", pk: "c", user: "v" }]);
    const rejects = join(folder, "rejects.jsonl");
    const args = ["--quiet", "--to", `${source.id}-b`, "--partition-key", "/user", "--resume", join(folder, "collision.state"), "--rejects", rejects];
    await transferred("copy", server, source, args, { code: 1 });
    const rejected = readFileSync(rejects, "utf8").trim().split("\n").map((line) => JSON.parse(line));
    assert.equal(rejected.length, 1);
    assert.equal(rejected[0].id, "same");
    assert.match(rejected[0].reason, /^collision/);
    assert.ok(["a", "b"].includes(rejected[0].partitionKey[0]));
    // The one that is in the copy goes: the other one comes.
    const kept = rejected[0].partitionKey[0] === "a" ? "b" : "a";
    await source.item("same", kept).delete();
    const { stdout } = await transferred("copy", server, source, args);
    assert.equal(digests(stdout)[0], digests(stdout)[1]);
    const { resource } = await database.container(`${source.id}-b`).item("same", "u").read();
    assert.equal(resource.pk, rejected[0].partitionKey[0]);
});

test("without the feed of all versions, what was deleted meanwhile is found by comparing", async () => {
    const source = await newContainer(database);
    await fill(source, someItems(100));
    const args = ["--quiet", "--to", `${source.id}-b`, "--partition-key", "/user", "--resume", join(folder, "compare.state"), "--no-retention"];
    await transferred("copy", server, source, args);
    for (let i = 0; i < 10; i++) await source.item(`${i}`, `p${i}`).delete();
    const { resource: moved } = await source.item("20", "p7").read();
    await source.items.upsert({ ...moved, user: "elsewhere" });
    const { stdout } = await transferred("copy", server, source, args);
    assert.equal(digests(stdout)[0], digests(stdout)[1]);
    assert.match(digests(stdout)[0], / 90$/);
});

test("wrong calls are told what is wrong", async () => {
    const source = await newContainer(database);
    const wrong = async (args, message, code = 2) => {
        const { stderr } = await transferred("copy", server, source, args, { code });
        assert.match(stderr, message);
    };
    await wrong(["--partition-key", "user"], /is not a path/);
    await wrong(["--to", source.id], /to itself/);
    await wrong(["--swap", "--to-database", "x"], /same database/);
    await wrong(["--drop-old"], /for --swap/);
    await wrong(["--indexing", "/nowhere"], /cannot open/);
    await wrong(["orders"], /what is 'orders'/);
    await newContainer(database, undefined, { id: "taken" });
    await wrong(["--to", "taken"], /exists already/, 1);
    const state = join(folder, "other.state");
    writeFileSync(state, '{"orrery":"copy","job":"x"}');
    await wrong(["--resume", state], /other options/, 1);
    // A file that is damaged is refused, and stays as it is.
    const good = join(folder, "good.state");
    await transferred("copy", server, source, ["--quiet", "--to", `${source.id}-b`, "--resume", good]);
    const damaged = readFileSync(good, "utf8").replace('"max":"FF"', '"max":"xx"');
    writeFileSync(good, damaged);
    await wrong(["--to", `${source.id}-b`, "--resume", good], /no good 'lanes'/, 1);
    assert.equal(readFileSync(good, "utf8"), damaged);
    const { stderr } = await transferred("copy", server, { database, id: "nothing" }, [], { code: 1 });
    assert.match(stderr, /there is no container/);
});

test("a swap is held for its time only, and needs a master key", { skip: ofOneNode("nodes give no copy its name") }, async () => {
    const source = await newContainer(database);
    const copy = await newContainer(database);
    const path = `/_orrery/swap?database=copies&container=${source.id}&copy=${copy.id}&milliseconds=300`;
    const held = await call(server, { method: "POST", path, link: "", type: "" });
    assert.equal(held.status, 201, held.text);
    assert.equal((await call(server, { method: "POST", path, link: "", type: "" })).status, 409);
    const begun = performance.now();
    await source.items.create({ id: "1", pk: "a" });
    assert.ok(performance.now() - begun > 100, "it has waited");
    const { token } = held.json;
    const late = await call(server, { method: "POST", path: `/_orrery/swap/${token}?name=old`, link: "", type: "" });
    assert.equal(late.status, 410, late.text);
    assert.equal((await source.items.readAll().fetchAll()).resources.length, 1);
    // One after the other, as fast as possible.
    for (let i = 0; i < 50; i++) {
        const one = await call(server, { method: "POST", path, link: "", type: "" });
        assert.equal(one.status, 201, one.text);
        const ended = await call(server, { method: "DELETE", path: `/_orrery/swap/${one.json.token}`, link: "", type: "" });
        assert.equal(ended.status, 204, ended.text);
    }
    // The ranges of this copy could be taken for those of the source.
    const again = await call(server, { method: "POST", path, link: "", type: "" });
    const refused = await call(server, { method: "POST", path: `/_orrery/swap/${again.json.token}?name=old`, link: "", type: "" });
    assert.equal(refused.status, 409, refused.text);
    await source.items.create({ id: "2", pk: "a" });
    // A container may be deleted meanwhile; a write that waits came before that.
    assert.equal((await call(server, { method: "POST", path, link: "", type: "" })).status, 201);
    const waiting = source.items.create({ id: "3", pk: "a" });
    await delay(20);
    await source.delete();
    await waiting;
    await delay(350);
    assert.equal((await call(server, { path: "/dbs/copies" })).status, 200);
});

test("a swap under writers, killed and begun again: nothing is lost, nothing is there twice", { skip: ofOneNode("nodes give no copy its name") }, async () => {
    const random = new Random(chooseSeed());
    const result = await campaign({ server, random, kills: 3, kill_ms_max: 150, items: 300 });
    assert.ok(result.operations > 20);
    assert.ok(result.killed > 0);
    assert.ok(existsSync(result.state));
});

test("a client of the old container goes on with the new one", { skip: ofOneNode("nodes give no copy its name") }, async () => {
    const { container: source } = await database.containers.create({ id: "swapped", partitionKey: { paths: ["/pk"] }, throughput: 30_000 });
    await fill(source, someItems(100));
    const { user } = await database.users.create({ id: "u" });
    const link = `dbs/copies/colls/swapped`;
    const { resource: whole } = await user.permissions.create({ id: "whole", permissionMode: "All", resource: link });
    const { resource: one } = await user.permissions.create({ id: "one", permissionMode: "All", resource: link, resourcePartitionKey: ["u1"] });
    const client = clientOf(server, { consistencyLevel: "Session" });
    const container = client.database("copies").container("swapped");
    const read = await container.item("8", "p8").read();
    await container.items.upsert({ ...read.resource, n: 1 });
    assert.equal((await container.items.query("SELECT * FROM c").fetchAll()).resources.length, 100);
    const { headers } = await callItems(server, container, { headers: { "a-im": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0" } });
    await transferred("copy", server, source, ["--quiet", "--partition-key", "/user", "--swap", "--drop-old"]);

    // Writes with a body find their place by it, with the header of the old key.
    await container.items.create({ id: "new", pk: "p1", user: "u1", n: 5000 });
    await container.items.upsert({ id: "new", pk: "p1", user: "u1", n: 5001 });
    await container.item("new", "p1").replace({ id: "new", pk: "p1", user: "u1", n: 5002 });
    assert.equal((await container.items.query("SELECT * FROM c").fetchAll()).resources.length, 101);
    assert.equal((await container.item("8", "p8").read()).statusCode, 404);
    assert.equal((await container.item("8", "u1").read()).resource.n, 1);
    // A header that is of no key at all is refused as before.
    const wrong = await callItems(server, container, { method: "POST", key: "nobody", body: { id: "w", pk: "p1", user: "u1" } });
    assert.equal(wrong.status, 400);
    assert.equal(wrong.headers["x-ms-substatus"], "1001");
    const feed = { "a-im": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0", "if-none-match": headers.etag };
    assert.equal((await callItems(server, container, { headers: feed })).status, 410);

    // A permission for a value of the old key is for nothing now, and a new one for that key only.
    const tokens = async (permission) => clientWith(server, { resourceTokens: { [link]: permission._token } }).database("copies").container("swapped");
    assert.equal((await (await tokens(whole)).item("8", "u1").read()).resource.n, 1);
    await assert.rejects((await tokens(one)).item("8", "u1").read(), { code: 403 });
    await user.permission("one").delete();
    const { resource: again } = await user.permissions.create({ id: "one", permissionMode: "All", resource: link, resourcePartitionKey: ["u1"] });
    const limited = await tokens(again);
    assert.equal((await limited.item("8", "u1").read()).resource.n, 1);
    const headersOf = { authorization: encodeURIComponent(again._token) };
    const outside = await callItems(server, container, { method: "POST", key: "u1", body: { id: "x", pk: "u1", user: "u2" }, headers: headersOf });
    assert.ok([400, 403].includes(outside.status), `a token for u1 wrote for u2: ${outside.status}`);

    assert.ok(!(await database.containers.readAll().fetchAll()).resources.some(({ id }) => id.startsWith("swapped-")));
});

test("a partition that is split meanwhile loses nothing", async (t) => {
    const chaotic = await startServer(t, { args: CHAOS });
    const { database: own } = await clientOf(chaotic).databases.create({ id: "own" });
    const source = await newContainer(own);
    await fill(source, someItems(2000));
    const state = join(folder, "split.state");
    const args = ["--quiet", "--to", "b", "--partition-key", "/user", "--resume", state, "--max-ru", "20000"];
    const child = start("copy", chaotic.endpoint, source, args);
    await cause(chaotic, source, "split");
    const result = await child.done;
    assert.equal(result.code, 0, result.stderr);
    assert.equal(digests(result.stdout)[0], digests(result.stdout)[1]);
    await source.items.upsert({ id: "0", pk: "p0", user: "elsewhere" });
    await chaotic.restart();
    const after = clientOf(chaotic).database("own").container(source.id);
    const { stdout } = await transferred("copy", chaotic, after, args);
    assert.equal(digests(stdout)[0], digests(stdout)[1]);
    assert.match(digests(stdout)[0], / 2000$/);
});

const page = readFileSync(join(ROOT, "docs/copy.md"), "utf8");

test("the examples of docs/copy.md run as they stand", async (t) => {
    const own = await startServer(t);
    const place = temporaryFolder();
    symlinkSync(BINARY, join(place, "orrery"));
    const { database: shop } = await clientOf(own).databases.create({ id: "shop" });
    for (const id of ["orders", "carts"]) {
        const { container } = await shop.containers.create({ id, partitionKey: { paths: ["/id"] } });
        for (const n of [1, 2, 3]) await container.items.create({ id: `${n}`, tenant: "t", user: `u${n}` });
    }
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code]) => code);
    assert.equal(blocks.length, 2, "every example is known here");
    for (const code of blocks) {
        const script = code.replaceAll(/^orrery copy/gm, `orrery copy --endpoint ${own.endpoint}`);
        const env = { ...process.env, PATH: `${place}${delimiter}${process.env.PATH}` };
        const { status, stdout, stderr } = spawnSync("sh", ["-e", "-c", script], { cwd: place, env, encoding: "utf8" });
        assert.equal(status, 0, `${code}${stderr}`);
        assert.match(stdout, /^source [0-9A-F]{32} 3\ncopy [0-9A-F]{32} 3\n/);
    }
    const { resources } = await shop.containers.readAll().fetchAll();
    const paths = Object.fromEntries(resources.map(({ id, partitionKey }) => [id.replace(/\d{8}T\d{6}Z$/, "TIME"), partitionKey.paths.join()]));
    assert.deepEqual(paths, { orders: "/tenant,/user", "orders-before-TIME": "/id", "orders-by-user": "/user", carts: "/user" });
});

test("the table of docs/copy.md has the options of orrery copy", () => {
    const options = (path) => {
        const text = readFileSync(join(ROOT, "src", path), "utf8");
        const row = /^(?:#include "(cli\/[^"]+)"|ARGUMENT_ROW\(\w+, "([^"]*)", (\w+), "([^"]*)", "([^"]*)", "([^"]*)"\))$/gm;
        return [...text.matchAll(row)].flatMap(([, included, name, , placeholder, fallback, help]) =>
            included ? options(included) : [{ name, placeholder, fallback, help }],
        );
    };
    const [, section] = page.split("## Options of `orrery copy`\n");
    const rows = [...section.matchAll(/^\| `--([a-z-]+)(?: ([^`]+))?` \| (?:`([^`]*)`)? \| (.*) \|$/gm)];
    const found = rows.map(([, name, placeholder = "", fallback = "", help]) => ({ name, placeholder, fallback, help }));
    assert.ok(found.length > 10);
    assert.deepEqual(found, options("cli/copy_options.def"));
});
