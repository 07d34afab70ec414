// `orrery seed` and `orrery serve --seed`: the example of docs/seed.md, that a second run changes nothing, what is replaced,
// what cannot be, mistakes and their places, servers that throttle, and servers that nobody waits for.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";

import { contentOf, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, environment, isRunning, run, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";
import { proxyOf } from "./lib/transfer.mjs";
import { call, send } from "./lib/wire.mjs";

const page = readFileSync(join(ROOT, "docs/seed.md"), "utf8");
const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);

/** A new folder with these files; values that are not text become JSON. */
function folderOf(files) {
    const folder = mkdtempSync(join(temporaryFolder(), "f-"));
    for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
    }
    return folder;
}

/** Runs the command to its end. */
function seedRun(args, { input, endpoint = server.endpoint, cwd } = {}) {
    const child = spawn(BINARY, ["seed", "--endpoint", endpoint, ...args], { env: environment(), cwd });
    const out = { stdout: "", stderr: "" };
    for (const name of Object.keys(out)) child[name].setEncoding("utf8").on("data", (text) => (out[name] += text));
    child.stdin.on("error", () => {}); // it may end before it has read everything
    child.stdin.end(input);
    const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
    return new Promise((resolve) =>
        child.once("close", (code) => {
            clearTimeout(timer);
            resolve({ code, ...out });
        }),
    );
}

/** Seeds with an object, which must work; what was printed. */
async function seeded(content, options) {
    const result = await seedRun(["-"], { input: JSON.stringify(content), ...options });
    assert.equal(result.code, 0, result.stderr);
    return result.stdout;
}
const shop = (container, database = {}) => ({ databases: [{ id: "s", containers: [container], ...database }] });
const NOTHING = /^Nothing was changed: \d+ resources and \d+ items are as the file says\.$/m;

/** Everything that a change would change: the resources of a database with their _etag and _ts. */
async function stateOf(own, database) {
    const list = async (path) => (await call(own, { path })).json;
    const containers = await list(`/dbs/${database}/colls`);
    const users = await list(`/dbs/${database}/users`);
    const inside = await Promise.all(
        containers.DocumentCollections.flatMap(({ id }) =>
            ["docs", "sprocs", "triggers", "udfs"].map((kind) => list(`/dbs/${database}/colls/${id}/${kind}`)),
        ),
    );
    const permissions = await Promise.all(users.Users.map(({ id }) => list(`/dbs/${database}/users/${id}/permissions`)));
    for (const { Permissions } of permissions) for (const permission of Permissions) delete permission._token;
    const keys = await list(`/dbs/${database}/clientencryptionkeys`);
    const offers = await list("/offers");
    return { containers, users, inside, permissions, keys, offers };
}

function examples() {
    const files = {};
    for (const [, name, text] of page.matchAll(/^`([\w./]+)`:\n\n```[a-z ]+\n(.*?)^```$/gms)) files[name] = text;
    assert.deepEqual(Object.keys(files), ["shop.json", "scripts/stamp.js", "items/events.jsonl", "items/clicks.csv"]);
    return files;
}

test("the example of docs/seed.md does what the page says, and a second run changes nothing", async (t) => {
    const folder = folderOf(examples());
    const own = await startServer(t, { args: ["--seed", join(folder, "shop.json"), "--durability", "relaxed"] });
    const { database } = { database: clientOf(own).database("shop") };
    const items = async (id) => (await database.container(id).items.readAll().fetchAll()).resources.map(contentOf);
    const sorted = (list) => list.sort((a, b) => (a.id < b.id ? -1 : 1));
    assert.deepEqual(sorted(await items("events")), [
        { id: "7", nr: 7, who: 1, page: "/start", tenant: "acme", user: "u-1" },
        { id: "8", nr: 8, who: 2, page: "/cart", tenant: "acme", user: "u-2" },
        { id: "a", tenant: "acme", user: "u-1", kind: "Login" },
        { id: "b", tenant: "acme", user: "u-2", kind: "Logout" },
    ]);
    const orders = database.container("orders");
    const { resource } = await orders.scripts.storedProcedure("hello").execute("ada", []);
    assert.equal(resource, "hello");
    const made = await orders.items.create({ id: "3", customer: "ada", number: 3 }, { preTriggerInclude: ["stamp"] });
    assert.equal(made.resource.stamped, true);
    await orders.item("3", "ada").delete();
    const definition = (await orders.read()).resource;
    assert.equal(definition.defaultTtl, -1);
    assert.deepEqual(definition.uniqueKeyPolicy, { uniqueKeys: [{ paths: ["/number"] }] });
    assert.equal(definition.indexingPolicy.compositeIndexes[0][1].order, "descending");
    const patients = (await database.container("patients").read()).resource;
    assert.equal(patients.clientEncryptionPolicy.includedPaths[0].clientEncryptionKeyId, "pii");
    assert.equal((await database.readOffer()).resource.content.offerThroughput, 1000);
    const offer = (await database.container("events").readOffer()).resource;
    assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 4000);
    const permission = (await database.user("reporting").permission("acme").read()).resource;
    assert.deepEqual(permission.resourcePartitionKey, ["acme", "u-1"]);

    const before = await stateOf(own, "shop");
    const again = await seedRun(["shop.json"], { endpoint: own.endpoint, cwd: folder });
    assert.equal(again.code, 0, again.stderr);
    assert.equal(again.stdout, /^```text\n(.*?)^```$/ms.exec(page)[1]);
    assert.deepEqual(await stateOf(own, "shop"), before);
    await own.restart(); // with the same file
    assert.ok(own.lines.some((line) => /seed\.done .* created=0 replaced=0 deleted=0 unchanged=12 items_written=0 /.test(line)));
    assert.deepEqual(await stateOf(own, "shop"), before);
});

test("the table of docs/seed.md has the options of orrery seed", () => {
    const [, section] = page.split("## Options of `orrery seed`\n");
    const rows = [...section.matchAll(/^\| `--([a-z-]+)(?: ([^`]+))?` \| (?:`([^`]*)`)? ?\| (.*) \|$/gm)];
    const found = rows.map(([, name, placeholder = "", fallback = "", help]) => ({ name, placeholder, fallback, help }));
    const text = readFileSync(join(ROOT, "src/cli/seed_options.def"), "utf8");
    const row = /^ARGUMENT_ROW\(\w+, "([^"]*)", \w+, "([^"]*)", "([^"]*)", "([^"]*)"\)$/gm;
    const expected = [...text.matchAll(row)].map(([, name, placeholder, fallback, help]) => ({ name, placeholder, fallback, help }));
    assert.ok(expected.length > 5);
    assert.deepEqual(found, expected);
});

test("what differs is replaced, and nothing else", async () => {
    const container = {
        id: "c",
        partitionKey: "/pk",
        throughput: 500,
        storedProcedures: [{ id: "p", body: "function () {}" }],
        triggers: [{ id: "t", body: "function () {}", triggerType: "Pre", triggerOperation: "All" }],
        userDefinedFunctions: [{ id: "f", body: "function () {}" }],
        items: [1, 2, 3].map((n) => ({ id: `${n}`, pk: n, n })),
    };
    const user = { id: "u", permissions: [{ id: "p", permissionMode: "Read", resource: "dbs/s/colls/c" }] };
    const first = await seeded(shop(container, { users: [user] }));
    assert.match(first, /^created {3}container s\/c$/m);
    assert.match(first, /Resources: 7 created, 0 replaced, 0 deleted, 0 unchanged\. Items: 3 written, 0 unchanged\.$/m);
    assert.match(await seeded(shop(container, { users: [user] })), NOTHING);
    // Each step changes one thing; what is printed names it and nothing else.
    const steps = [
        [() => (container.defaultTtl = 100), "replaced  container s/c"],
        [() => (container.indexingPolicy = { excludedPaths: [{ path: "/n/*" }], includedPaths: [{ path: "/*" }] }), "replaced  container s/c"],
        [() => (container.throughput = 700), "replaced  container s/c"],
        [() => (delete container.throughput, (container.maxThroughput = 5000)), "replaced  container s/c"],
        [() => (delete container.maxThroughput, (container.throughput = 900)), "replaced  container s/c"],
        [() => (container.storedProcedures[0].body = "function () { return 1; }"), "replaced  stored procedure s/c/p"],
        [() => (container.triggers[0].triggerType = "Post"), "replaced  trigger s/c/t"],
        [() => (container.userDefinedFunctions[0].body = "function () { return 1; }"), "replaced  user-defined function s/c/f"],
        [() => (user.permissions[0].permissionMode = "All"), "replaced  permission s/u/p"],
        [() => (container.items[1].n = "other"), "written   1 items of s/c (2 unchanged)"],
        [() => container.items.push({ id: "4", pk: 4 }), "written   1 items of s/c (3 unchanged)"],
        [() => (container.storedProcedures = [{ id: "p", absent: true }]), "deleted   stored procedure s/c/p"],
        [() => (user.permissions = [{ id: "p", absent: true }]), "deleted   permission s/u/p"],
    ];
    for (const [change, line] of steps) {
        change();
        const lines = (await seeded(shop(container, { users: [user] }))).trim().split("\n");
        assert.deepEqual(lines.slice(0, -1), [line], `${change}`);
        assert.match(await seeded(shop(container, { users: [user] })), NOTHING, `${change}`);
    }
    const c = client.database("s").container("c");
    assert.equal((await c.read()).resource.defaultTtl, 100);
    assert.equal((await c.readOffer()).resource.content.offerThroughput, 900);
    assert.equal((await c.item("2", 2).read()).resource.n, "other");
    // What the file no longer names stays.
    delete container.items;
    delete container.triggers;
    delete container.throughput;
    assert.match(await seeded(shop(container)), NOTHING);
    assert.equal((await c.items.readAll().fetchAll()).resources.length, 4);
    assert.equal((await c.scripts.triggers.readAll().fetchAll()).resources.length, 1);
    // What was read can be pasted.
    const pasted = (await c.read()).resource;
    assert.ok(pasted._rid);
    assert.match(await seeded(shop(pasted)), NOTHING);
    assert.match(await seeded({ databases: [{ id: "s", absent: true }, { id: "never", absent: true }] }), /1 deleted, 1 unchanged/);
});

test("what cannot be changed is an error that names it and its place", async () => {
    const policy = { uniqueKeys: [{ paths: ["/a"] }] };
    await seeded(shop({ id: "fixed", partitionKey: "/pk", uniqueKeyPolicy: policy }, { id: "fix", throughput: 600 }));
    const rows = [
        [{ id: "fixed", partitionKey: "/other", uniqueKeyPolicy: policy }, /\$\.databases\[0\]\.containers\[0\]: .*'partitionKey' is fixed/],
        [{ id: "fixed", partitionKey: ["/pk", "/b"], uniqueKeyPolicy: policy }, /'partitionKey' is fixed/],
        [{ id: "fixed", partitionKey: "/pk", uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/b"] }] } }, /'uniqueKeyPolicy' is fixed/],
        [{ id: "fixed", partitionKey: "/pk", throughput: 500 }, /without throughput of its own/],
        [{ id: "fixed", partitionKey: "/pk", items: [{ id: "1", pk: 1, a: 1 }, { id: "2", pk: 1, a: 1 }] }, /items\[1\]: the server answered 409/],
    ];
    for (const [container, message] of rows) {
        const { code, stderr } = await seedRun(["-"], { input: JSON.stringify(shop(container, { id: "fix" })) });
        assert.equal(code, 1, stderr);
        assert.match(stderr, message);
    }
});

test("mistakes are found before anything is sent", async () => {
    const container = (more) => shop({ id: "c", partitionKey: "/pk", ...more });
    const rows = [
        ["", /expected a value|expected/],
        ['{"databases": [\n{"id": "a",}]}', /-: line 2, column 12: /],
        ["[]", /\$: expected an object, found a list/],
        [{}, /\$: 'databases' is missing/],
        [{ databases: [{}] }, /\$\.databases\[0\]: 'id' is missing/],
        [{ databases: [{ id: "a" }, { id: "b" }, { id: "a" }] }, /\$\.databases\[2\]: the id 'a' was used before, in element 0/],
        [container({ partitionkey: "/x" }), /containers\[0\]: there is no member 'partitionkey' here; did you mean 'partitionKey'\?/],
        [container({ offerThroughput: 1 }), /did you mean 'throughput'\?/],
        [container({ sprocs: [] }), /did you mean 'storedProcedures'\?/],
        [container({ whatever: 1 }), /there is no member 'whatever' here; expected one of: id, partitionKey, /],
        [container({ indexingPolicy: { compositeIndexes: [[{ path: "/a" }, { pth: "/b" }]] } }), /compositeIndexes\[0\]\[1\]: .*'pth'.*'path'/],
        [container({ defaultTtl: 0 }), /containers\[0\]: .*defaultTtl/],
        [container({ throughput: 400, maxThroughput: 4000 }), /exclude each other/],
        [container({ throughput: 1.5 }), /\.throughput: expected a whole number/],
        [container({ storedProcedures: [{ id: "p" }] }), /storedProcedures\[0\]: expected either 'body'/],
        [container({ storedProcedures: [{ id: "p", file: "nowhere.js" }] }), /nowhere\.js.*No such file/],
        [container({ triggers: [{ id: "t", body: "" }] }), /triggers\[0\]: /],
        [container({ items: [{ pk: 1 }] }), /items\[0\]: an item needs an 'id'/],
        [container({ items: [{ id: "a/b" }] }), /items\[0\]: /],
        [container({ itemsFrom: ["/etc/hostname"] }), /itemsFrom\[0\]: '\/etc\/hostname' is not the name of a file in the folder/],
        [container({ itemsFrom: ["a/../../b"] }), /is not the name of a file in the folder/],
        [container({ itemsFrom: ["."] }), /is not a file/],
        [container({ itemsFrom: [{ file: "x", set: { pk: 1 } }] }), /itemsFrom\[0\]: /],
        [container({ absent: true }), /'absent' is true, so 'partitionKey' has no meaning/],
        [{ databases: [{ id: "a/b" }] }, /\$\.databases\[0\]: /],
        [{ databases: [{ id: "a", users: [{ id: "u", permissions: [{ id: "p", permissionMode: "Write", resource: "x" }] }] }] }, /permissions\[0\]: .*Write/],
        [`{"databases":${"[".repeat(200)}${"]".repeat(200)}}`, /./],
        [`{"databases":[],"x":"${"y".repeat(5 << 20)}"}`, /more than 4194304 bytes; put items into files of their own/],
    ];
    const cwd = folderOf({ x: "" });
    const refusing = "http://127.0.0.1:9"; // a server would not be reached
    const check = async ([content, message]) => {
        const input = typeof content === "string" ? content : JSON.stringify(content);
        const { code, stderr } = await seedRun(["-"], { input, cwd, endpoint: refusing });
        assert.equal(code, 1, stderr);
        assert.match(stderr, message);
        assert.doesNotMatch(stderr, /cannot reach/);
    };
    await Promise.all(rows.map(check));
    assert.match((await seedRun([cwd], { endpoint: refusing })).stderr, /is not a file/);
    assert.match((await seedRun([join(cwd, "none.json")])).stderr, /cannot be opened: No such file/);
    assert.equal((await seedRun(["--check", "-"], { input: '{"databases":[]}', endpoint: refusing })).code, 0);
    assert.equal((await seedRun(["--make-coffee", "x"])).code, 2);
    assert.equal((await seedRun([])).code, 2);
    assert.match((await seedRun(["-"], { input: '{"databases":[{"id":"a"}]}', endpoint: refusing })).stderr, /cannot reach the server/);
});

test("files of items: every format, a link, bad rows, and the seed file itself", async () => {
    const definition = { id: "c", partitionKey: "/pk" };
    const folder = folderOf({
        "good.json": { databases: [{ id: "files", containers: [{ ...definition, itemsFrom: ["link.jsonl", "b.json", { file: "c.txt", format: "csv", delimiter: ";", csvStrings: true }] }] }] },
        "a/real.jsonl": '{"id":"1","pk":"a"}\n',
        "b.json": [{ id: "2", pk: "b" }],
        "c.txt": "id;pk\n3;7\n",
        "noid.json": { databases: [{ id: "files", containers: [{ ...definition, itemsFrom: ["noid.jsonl"] }] }] },
        "noid.jsonl": '{"pk":"a"}\n{"id":"4","pk":"a"}\nnot JSON\n',
        "self.json": { databases: [{ id: "files", containers: [{ ...definition, itemsFrom: ["self.json"] }] }] },
    });
    symlinkSync(join(folder, "a/real.jsonl"), join(folder, "link.jsonl"));
    const good = await seedRun([join(folder, "good.json")]);
    assert.equal(good.code, 0, good.stderr);
    const container = client.database("files").container("c");
    const { resources } = await container.items.query("SELECT c.id, c.pk FROM c ORDER BY c.id").fetchAll();
    assert.deepEqual(resources, [{ id: "1", pk: "a" }, { id: "2", pk: "b" }, { id: "3", pk: "7" }]);
    assert.match((await seedRun([join(folder, "good.json")])).stdout, NOTHING);
    const bad = await seedRun([join(folder, "noid.json")]);
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /noid\.jsonl:1: it has no id\n/);
    assert.match(bad.stderr, /noid\.jsonl:3: /);
    assert.match(bad.stderr, /itemsFrom\[0\]: 2 of its items could not be written/);
    const self = await seedRun([join(folder, "self.json")]);
    assert.equal(self.code, 1);
    assert.match(self.stderr, /self\.json:1: it has no id\n/);
});

test("10,000 items in the file, twice, also with a server that throttles and fails", async (t) => {
    const items = Array.from({ length: 10_000 }, (_, i) => ({ id: `${i}`, pk: `p${i % 100}`, n: i }));
    const content = shop({ id: "many", partitionKey: "/pk", items }, { id: "many" });
    let turn = 0;
    const proxy = await proxyOf(t, server, async ({ url }) => {
        turn++;
        if (turn % 7 === 3) return { status: 429, headers: { "x-ms-retry-after-ms": "1" }, body: "{}" };
        if (turn % 97 === 50 && url.includes("/docs")) return { status: 503, body: "{}" };
        return undefined;
    });
    const small = shop({ id: "few", partitionKey: "/pk", items: items.slice(0, 500) }, { id: "many" });
    assert.match(await seeded(small, { endpoint: proxy.endpoint }), /Items: 500 written, 0 unchanged/);
    assert.match(await seeded(small, { endpoint: proxy.endpoint }), NOTHING);
    assert.match(await seeded(content), /Items: 10000 written, 0 unchanged/);
    assert.match(await seeded(content), /Nothing was changed: 2 resources and 10000 items/);
});

test("names and keys of any characters", async () => {
    const items = [
        { id: "a b", t: "é", u: '\u0001"x' },
        { id: "é", t: 1.5, u: null },
        { id: "x#y?z", t: true },
        { id: "50%25" },
        { id: "日本+", t: "日本", u: "" },
    ];
    const link = "dbs/d é+%41/colls/c 日本 &=";
    const content = {
        databases: [
            {
                id: "d é+%41",
                containers: [
                    { id: "c 日本 &=", partitionKey: ["/t", "/u"], items, storedProcedures: [{ id: "p é %20", body: "function () {}" }] },
                ],
                users: [{ id: "u ü", permissions: [{ id: "p ü", permissionMode: "all", resource: link }] }],
            },
        ],
    };
    assert.match(await seeded(content), /Resources: 5 created, .* Items: 5 written/);
    assert.match(await seeded(content), /Nothing was changed: 5 resources and 5 items/);
});

test("a server that answers nonsense, or refuses, ends the run with a message", async (t) => {
    const content = shop({ id: "c", partitionKey: "/pk", throughput: 500, items: [{ id: "1", pk: 1 }] }, { id: "odd" });
    await seeded(content);
    const isOffer = ({ url }) => url.startsWith("/offers");
    const isContainer = ({ url }) => url === "/dbs/odd/colls/c";
    const isItem = ({ url }) => url.includes("/docs");
    const rows = [
        [() => true, 200, "hello", /not JSON; is it a server of the protocol/],
        [() => true, 200, "[1]", /is not an object/],
        [() => true, 200, "{}", /has no _rid/],
        [() => true, 401, '{"message":"wrong key"}', /\$\.databases\[0\]: the server answered 401 for \/dbs\/odd: wrong key/],
        [() => true, 500, "", /the server answered 500/],
        [isContainer, 200, '{"id":"c","_rid":"x","partitionKey":7}', /containers\[0\]: the server's container is not understood/],
        [isContainer, 503, "{}", /containers\[0\]: the server answered 503/],
        [isOffer, 200, '{"Offers":[]}', /containers\[0\]: it exists without throughput of its own/],
        [isOffer, 200, '{"Offers":[{"_rid":"x","content":{}}]}', /offer has no throughput/],
        [isOffer, 200, '{"Offers":[{"_rid":"x","content":{"offerThroughput":1}}]}', /accepts the throughput but does not show it/],
        [isItem, 401, "{}", /items: the server answered 401/],
        [isItem, 400, '{"message":"no"}', /items\[0\]: the server answered 400: no/],
    ];
    for (const [isMeant, status, body, message] of rows) {
        const proxy = await proxyOf(t, server, async (incoming) => (isMeant(incoming) ? { status, body } : undefined));
        const { code, stderr } = await seedRun(["-"], { input: JSON.stringify(content), endpoint: proxy.endpoint });
        assert.equal(code, 1, stderr);
        assert.match(stderr, message);
    }
});

test("a serverless account takes containers without throughput, and says what is wrong with others", async (t) => {
    const own = await startServer(t, { args: ["--serverless", "--durability", "relaxed"] });
    const endpoint = own.endpoint;
    await seeded(shop({ id: "c", partitionKey: "/pk", items: [{ id: "1" }] }), { endpoint });
    assert.match(await seeded(shop({ id: "c", partitionKey: "/pk", items: [{ id: "1" }] }), { endpoint }), NOTHING);
    const input = JSON.stringify(shop({ id: "c2", partitionKey: "/pk", throughput: 400 }));
    const { code, stderr } = await seedRun(["-"], { endpoint, input });
    assert.equal(code, 1);
    assert.match(stderr, /containers\[0\]: .*serverless/i);
});

// --- The server's own seeding, and servers that must not be left behind

const SERVE = ["serve", "--host", "127.0.0.1", "--port", "0"];

/** A server as a child of this process, with a pipe as its input. */
function child(t, args, { tmp = temporaryFolder() } = {}) {
    const process = spawn(BINARY, [...SERVE, ...args], { env: { ...environment(), TMPDIR: tmp }, stdio: ["pipe", "pipe", "pipe"] });
    t.after(() => process.kill("SIGKILL"));
    process.log = "";
    process.tmp = tmp;
    process.stdout.resume();
    process.stderr.setEncoding("utf8").on("data", (text) => (process.log += text));
    process.ended = new Promise((resolve) => process.once("close", (code, signal) => resolve({ code, signal })));
    process.ready = () => until(() => /server\.ready port=(\d+)/.exec(process.log)?.[1]);
    return process;
}

test("while the server seeds itself, /healthz says that it is not ready; a failure ends it", async (t) => {
    const items = Array.from({ length: 3000 }, (_, i) => ({ id: `${i}`, pk: `p${i % 10}` }));
    const folder = folderOf({ "s.json": shop({ id: "c", partitionKey: "/pk", throughput: 400, items }) });
    const path = join(folder, "s.json");
    // Throttled by 400 RU/s, so that there is time to look; without saved bursts it takes half a minute.
    const slow = child(t, ["--temporary", "--seed", path, "--no-burst", "--log-level", "debug"]);
    const port = await until(() => /seed\.resource/.test(slow.log) && ownPort(slow.pid));
    const health = await send(`http://127.0.0.1:${port}`, { path: "/healthz" });
    assert.equal(health.status, 503);
    assert.equal(health.json.status, "starting");
    slow.kill("SIGTERM");
    assert.deepEqual(await slow.ended, { code: 0, signal: null }, slow.log);
    assert.doesNotMatch(slow.log, /server\.ready/);
    assert.deepEqual(readdirSync(slow.tmp), []);

    // A parent that ends meanwhile is noticed at once, whatever it wrote before.
    const left = child(t, ["--temporary", "--stop-at-eof", "--seed", path, "--no-burst", "--log-level", "debug"]);
    left.stdin.write("hello\n");
    await until(() => /seed\.resource .*container/.test(left.log));
    left.stdin.end();
    assert.deepEqual(await left.ended, { code: 0, signal: null }, left.log);
    assert.doesNotMatch(left.log, /server\.ready/);
    assert.deepEqual(readdirSync(left.tmp), []);

    // Killed in the middle: the next start does the rest.
    const data = join(temporaryFolder(), "data");
    const killed = child(t, ["--data", data, "--seed", path, "--no-burst", "--log-level", "debug"]);
    await until(() => /POST .*\/docs|seed\.resource .*container/.test(killed.log));
    killed.kill("SIGKILL");
    await killed.ended;
    assert.doesNotMatch(killed.log, /seed\.done/);
    const next = child(t, ["--data", data, "--seed", path, "--no-rate-limit"]);
    await next.ready();
    const [, written, same] = /items_written=(\d+) items_unchanged=(\d+) ok=true/.exec(next.log);
    assert.equal(Number(written) + Number(same), items.length);
    next.kill("SIGTERM");
    assert.equal((await next.ended).code, 0);
    assert.match(run(["check", "--data", data]).stdout, /1 containers with 3000 items: everything agrees/);

    const bad = folderOf({ "s.json": shop({ id: "c", partitionKey: "/pk", itemsFrom: ["rows.jsonl"] }), "rows.jsonl": "{}\n" });
    const failed = child(t, ["--temporary", "--seed", join(bad, "s.json")]);
    assert.equal((await failed.ended).code, 1);
    assert.match(failed.log, /seed\.rejected place=".*rows\.jsonl:1" reason="it has no id"/);
    assert.match(failed.log, /orrery: .*s\.json: \$\.databases\[0\]\.containers\[0\]\.itemsFrom\[0\]: 1 of its items/);
    assert.deepEqual(readdirSync(failed.tmp), []);
    assert.equal((await child(t, ["--temporary", "--seed", join(bad, "none.json")]).ended).code, 1);
});

/** The port on which a process listens. */
function ownPort(pid) {
    const sockets = new Set();
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        const link = readlinkSync(`/proc/${pid}/fd/${fd}`);
        const [, inode] = /^socket:\[(\d+)\]$/.exec(link) ?? [];
        if (inode) sockets.add(inode);
    }
    for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1)) {
        const cells = line.trim().split(/\s+/);
        if (cells[3] === "0A" && sockets.has(cells[9])) return parseInt(cells[1].split(":")[1], 16);
    }
    return undefined;
}

test("the server seeds itself with TLS, with a key of its own, and with a stored key", async (t) => {
    const folder = folderOf({ "s.json": shop({ id: "c", partitionKey: "/pk", items: [{ id: "1", pk: 1 }] }) });
    const seed = ["--seed", join(folder, "s.json")];
    const key = Buffer.alloc(64, 7).toString("base64");
    for (const args of [["--require-tls"], ["--key", key], ["--host", "::1"]]) {
        const own = child(t, ["--temporary", "--stop-at-eof", ...seed, ...args]);
        await own.ready();
        assert.match(own.log, /seed\.done .* created=2 .* items_written=1 .* ok=true/);
        own.stdin.end();
        assert.equal((await own.ended).code, 0);
    }
    const data = join(temporaryFolder(), "data");
    const rotated = run(["key", "rotate", "primary", "--data", data]);
    assert.equal(rotated.status, 0, rotated.stderr);
    const own = await startServer(t, { data, args: seed });
    assert.ok(own.lines.some((line) => /seed\.done .* ok=true/.test(line)));
    assert.equal((await call({ endpoint: own.endpoint, key: rotated.stdout.trim() }, { path: "/dbs/s/colls/c" })).status, 200);
    const refused = child(t, ["--temporary", ...seed, "--client-ca", "x.pem"]);
    assert.equal((await refused.ended).code, 2);
    assert.match(refused.log, /--seed and --client-ca exclude each other/);
});

test("a server ends with its parent and leaves no folder, however either ends", async (t) => {
    // By the end of its input, although something was written into it before.
    const first = child(t, ["--temporary", "--stop-at-eof"]);
    await first.ready();
    assert.equal(readdirSync(first.tmp).length, 1);
    first.stdin.write("hello\n".repeat(3000));
    await call({ endpoint: `http://127.0.0.1:${await first.ready()}`, key: server.key }, { path: "/dbs" });
    assert.equal(first.exitCode, null);
    first.stdin.end();
    assert.deepEqual(await first.ended, { code: 0, signal: null });
    assert.deepEqual(readdirSync(first.tmp), []);

    // Killed: another process removes the folder.
    const second = child(t, ["--temporary"]);
    await second.ready();
    second.kill("SIGKILL");
    await second.ended;
    assert.ok(await until(() => readdirSync(second.tmp).length === 0));

    // Its parent is killed.
    const tmp = temporaryFolder();
    const script = `const { spawn } = require("node:child_process");
        const args = ${JSON.stringify([...SERVE, "--temporary", "--stop-at-eof"])};
        const server = spawn(${JSON.stringify(BINARY)}, args, { stdio: ["pipe", "ignore", "pipe"] });
        server.stderr.on("data", (text) => /server.ready/.test(text) && console.log(server.pid));`;
    const parent = spawn(process.execPath, ["-e", script], { env: { ...environment(), TMPDIR: tmp }, stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => parent.kill("SIGKILL"));
    const pid = await new Promise((resolve) => parent.stdout.once("data", (text) => resolve(Number(text))));
    assert.ok(isRunning(pid));
    parent.kill("SIGKILL");
    assert.ok(await until(() => !isRunning(pid) && readdirSync(tmp).length === 0));

    // Without the option the end of the input means nothing.
    const third = child(t, ["--temporary"]);
    await third.ready();
    third.stdin.end();
    await call({ endpoint: `http://127.0.0.1:${await third.ready()}`, key: server.key }, { path: "/dbs" });
    assert.equal(third.exitCode, null);
    third.kill("SIGTERM");
    assert.equal((await third.ended).code, 0);
    assert.equal((await child(t, ["--temporary", "--data", join(tmp, "x")]).ended).code, 2);
});
