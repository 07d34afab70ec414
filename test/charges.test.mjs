// What work costs: sizes x operations x policies beside the published figures, refusals, pages, consistency,
// calibration; that nothing but the work decides; and that docs/request-units.md tells the truth.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { CONSTANTS, OPERATIONS, POLICIES, READ, WRITE, itemOf, measure, tableOf } from "./lib/charges.mjs";
import { refused } from "./lib/check.mjs";
import { HUNDRED, SIZES, callItems, fill, listPages, newContainer } from "./lib/items.mjs";
import { askPage } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { DEVELOPMENT_KEY, ofOneNode, ROOT, run, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";

const DOCUMENT = readFileSync(join(ROOT, "docs/request-units.md"), "utf8");
const ARGS = ["--durability", "relaxed", "--no-rate-limit"];

const server = await sharedServer({ args: ARGS });
const { database } = await clientOf(server).databases.create({ id: "charges" });

const chargeOf = (answer) => Number(answer.headers["x-ms-request-charge"]);
const sum = (numbers) => Number(numbers.reduce((total, n) => total + n, 0).toFixed(2));

// ---- the document ----

test("the tables of the document are the rows of charge.def", () => {
    const sizes = [...READ].map(
        ([kilobytes, units]) =>
            `| ${kilobytes} KB | ${units.toFixed(2)} | ${WRITE.get(kilobytes).toFixed(2)} |`,
    );
    const constants = CONSTANTS.map(
        ({ name, units, per, why }) => `| \`${name}\` | ${units} | ${per} | ${why} |`,
    );
    for (const rows of [sizes, constants])
        assert.ok(DOCUMENT.includes(`\n${rows.join("\n")}\n`), `expected in the document:\n${rows.join("\n")}`);
});

test("the example of the document runs as it stands, and costs what it says", () => {
    const [, code] = /^```js\n(.*?)^```$/ms.exec(DOCUMENT);
    const path = join(ROOT, `test/.charges-${process.pid}.mjs`); // beside this file, where the SDK is found
    try {
        writeFileSync(path, code.replaceAll("http://localhost:8081", server.endpoint));
        const env = { ...process.env, COSMOS_KEY: DEVELOPMENT_KEY };
        const { status, stdout, stderr } = spawnSync(process.execPath, [path], { env, encoding: "utf8" });
        assert.equal(status, 0, stderr);
        const [written, read, missed, found] = stdout.trim().split("\n").map(Number);
        assert.deepEqual([written, read, missed], [sum([4.95, 3 * 0.2]), 1, 1]);
        assert.ok(found > 2.28 && found < 2.7, `${found}`);
    } finally {
        rmSync(path, { force: true });
    }
});

// ---- items ----

for (const [name, { values, indexingPolicy }] of Object.entries(POLICIES))
    test(`sizes and operations cost what is published, ${name}`, async () => {
        const container = await newContainer(database, SIZES[0], { indexingPolicy });
        const measured = new Map();
        for (const kilobytes of READ.keys()) {
            const charges = await measure(container, kilobytes);
            for (const [operation, published] of Object.entries(OPERATIONS)) {
                const off = charges[operation] / published(kilobytes, values) - 1;
                assert.ok(Math.abs(off) < 0.01, `${operation} of ${kilobytes} KB: ${charges[operation]}`);
            }
            measured.set(kilobytes, charges);
        }
        const title = `### ${name[0].toUpperCase()}${name.slice(1)}`;
        const table = tableOf(measured, values);
        assert.ok(DOCUMENT.includes(`${title}\n\n${table}\n`), `expected in the document:\n${title}\n\n${table}`);
    });

test("what a partition refuses costs a look-up, and what is unchanged a read", async () => {
    const container = await newContainer(database);
    const item = itemOf("there", 8);
    await container.items.create(item);
    const there = container.item("there", "p");
    const nobody = container.item("nobody", "p");
    const other = { accessCondition: { type: "IfMatch", condition: '"other"' } };
    const rows = [
        ["create", () => container.items.create(item), 409],
        ["delete", () => nobody.delete(), 404],
        ["replace", () => nobody.replace({ id: "nobody", pk: "p" }), 404],
        ["patch", () => nobody.patch([{ op: "set", path: "/a", value: 1 }]), 404],
        ["replace of another version", () => there.replace(item, other), 412],
        ["delete of another version", () => there.delete(other), 412],
        ["patch of what is not there", () => there.patch([{ op: "remove", path: "/none" }]), 400],
        ["patch of what is no number", () => there.patch([{ op: "incr", path: "/text", value: 1 }]), 400],
    ];
    for (const [what, request, status] of rows) {
        const { headers } = await refused(request(), status);
        assert.equal(Number(headers["x-ms-request-charge"]), 1, what);
    }
    assert.equal((await nobody.read()).requestCharge, 1);
    const read = await there.read();
    assert.equal(read.requestCharge, 1.33);
    const headers = { "if-none-match": read.etag };
    const unchanged = await callItems(server, container, { id: "there", key: "p", headers });
    assert.equal(unchanged.status, 304);
    assert.equal(chargeOf(unchanged), 1.33);
});

test("a batch costs the sum of its operations, and each what it costs alone", async () => {
    const container = await newContainer(database);
    const item = (id) => itemOf(id, 2);
    const alone = [];
    for (const id of ["a", "b"]) {
        const there = container.item(id, "p");
        const answers = [
            await container.items.create(item(id)),
            await there.read(),
            await there.replace({ ...item(id), n0: 9 }),
            await there.patch([{ op: "set", path: "/n1", value: 9 }]),
            await there.delete(),
        ];
        alone.push(...answers.map(({ requestCharge }) => requestCharge));
    }
    const operations = ["a", "b"].flatMap((id) => [
        { operationType: "Create", resourceBody: item(id) },
        { operationType: "Read", id },
        { operationType: "Replace", id, resourceBody: { ...item(id), n0: 9 } },
        { operationType: "Patch", id, resourceBody: { operations: [{ op: "set", path: "/n1", value: 9 }] } },
        { operationType: "Delete", id },
    ]);
    const batch = await container.items.batch(operations, "p");
    assert.deepEqual(batch.result.map(({ requestCharge }) => requestCharge), alone);
    assert.equal(chargeOf(batch), sum(alone));
    const bulk = await container.items.bulk(operations.map((operation) => ({ ...operation, partitionKey: "p" })));
    assert.deepEqual(bulk.map(({ requestCharge }) => requestCharge), alone);
    // Of a transaction that fails nothing is done, and each of its operations is refused.
    const failed = await container.items.batch([...operations, { operationType: "Delete", id: "none" }], "p");
    assert.equal(chargeOf(failed), operations.length + 1);
});

// ---- pages ----

test("a page of a list costs the point reads of its items", { skip: ofOneNode("a page ends with the ranges of a node") }, async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        const empty = await listPages(server, container);
        assert.deepEqual(empty.map(chargeOf), [size.partitions], "each partition was looked at");
        const items = Array.from({ length: 60 }, (_, i) => itemOf(`i${i}`, 1 + (i % 20), `p${i}`));
        await fill(container, items);
        const prices = new Map();
        for (const { id, pk } of items) prices.set(id, (await container.item(id, pk).read()).requestCharge);
        for (const { items: found, ...page } of await listPages(server, container, { size: 7 })) {
            const reads = sum(found.map(({ id }) => prices.get(id)));
            assert.ok(chargeOf(page) >= reads && chargeOf(page) <= reads + size.partitions, `${chargeOf(page)}`);
        }
        const [all] = await listPages(server, container);
        assert.equal(chargeOf(all), sum([...prices.values()]));
    }
});

test("a query costs a base for each partition that it visits, and what each has done", async () => {
    const container = await newContainer(database, HUNDRED);
    const charge = async (query) => chargeOf(await askPage(server, container, query, { size: -1 }));
    assert.equal(await charge("SELECT * FROM c WHERE c.pk = 'p'"), 2.28);
    assert.equal(await charge("SELECT * FROM c"), 228);
    assert.equal(await charge("SELECT * FROM c WHERE c.n0 = 1"), 228);
    await fill(container, Array.from({ length: 100 }, (_, i) => itemOf(`i${i}`, 1, `p${i}`)));
    const one = await charge("SELECT * FROM c WHERE c.pk = 'p7'");
    assert.ok(one > 2.55 && one < 2.8, `${one}`);
    const all = await charge("SELECT * FROM c");
    assert.ok(all > 228 + 27 && all < 228 + 36, `${all}`);
});

// ---- nothing but the work ----

const QUERIES = [
    "SELECT * FROM c",
    "SELECT * FROM c WHERE c.n > 100",
    "SELECT * FROM c WHERE c.n > 100 AND c.text > 'text 2'",
    "SELECT * FROM c WHERE c.n > 100 AND c.m = 3",
    "SELECT * FROM c WHERE c.text > 'text 2' OR c.n < 50",
    "SELECT * FROM c WHERE c.off = 7",
    "SELECT TOP 30 * FROM c WHERE c.n > 1000 AND c.off > 3",
    "SELECT * FROM c WHERE CONTAINS(c.text, '77')",
    "SELECT * FROM c WHERE c.n > 2500 ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT * FROM c WHERE c.m = 2 ORDER BY c.text",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 100",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT c.m, COUNT(1) AS count FROM c GROUP BY c.m",
    "SELECT DISTINCT VALUE c.off FROM c",
    "SELECT * FROM c WHERE c.pk = 'p3' AND c.n > 100",
];

/** What every page of every query and of the list costs. */
async function costs(own, container, headers = {}) {
    const list = (await listPages(own, container, { size: 500 })).map(chargeOf);
    const all = { list };
    for (const query of QUERIES) {
        all[query] = [];
        let token;
        do {
            const answer = await askPage(own, container, query, { size: 90, token, headers });
            assert.equal(answer.status, 200, answer.text);
            all[query].push(chargeOf(answer));
            token = answer.headers["x-ms-continuation"];
        } while (token && all[query].length < 6);
    }
    return all;
}

for (const size of SIZES)
    test(`threads, caches, flushes and restarts change no charge (${size.partitions} partitions)`, async (t) => {
        const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/off/?" }] };
        const args = (...more) => [...ARGS, ...more];
        const own = await startServer(t, { args: args("--threads", "2") });
        const { database: db } = await clientOf(own).databases.create({ id: "d" });
        const container = await newContainer(db, size, { indexingPolicy });
        const item = (i) => ({ id: `${i}`, pk: `p${i % 50}`, n: i, m: i % 7, off: i % 10, text: `text ${i}` });
        await fill(container, Array.from({ length: 3000 }, (_, i) => item(i)));
        // Nothing of a deleted item costs anything later.
        await fill(container, Array.from({ length: 500 }, (_, i) => ({ ...item(i), id: `gone ${i}`, n: -i })));
        const gone = Array.from({ length: 500 }, (_, i) => ({
            operationType: "Delete",
            id: `gone ${i}`,
            partitionKey: `p${i % 50}`,
        }));
        for (let i = 0; i < gone.length; i += 100) await container.items.bulk(gone.slice(i, i + 100));

        const first = await costs(own, container); // from what is in memory only
        assert.deepEqual(await costs(own, container), first, "again");
        assert.deepEqual(await costs(own, container, { "x-orrery-explain": "true" }), first, "and told how");
        const many = Array.from({ length: 4 }, () => costs(own, container));
        for (const one of await Promise.all(many)) assert.deepEqual(one, first, "beside others");
        for (const more of [
            ["--threads", "2"],
            ["--threads", "1"],
            ["--threads", "8", "--cache", "1M"],
        ]) {
            own.options.args = args(...more);
            await own.restart(); // which writes out what was in memory
            assert.deepEqual(await costs(own, container), first, `after a restart with ${more.join(" ")}`);
        }
        await own.kill();
        await own.start();
        assert.deepEqual(await costs(own, container), first, "after a crash");
    });

// ---- consistency ----

test("reads at Strong and BoundedStaleness cost double, by the account's level or the request's", async (t) => {
    for (const level of ["Strong", "BoundedStaleness"]) {
        const own = await startServer(t, { args: [...ARGS, "--consistency", level] });
        const client = clientOf(own);
        const { resource: account } = await client.getDatabaseAccount();
        assert.equal(account.consistencyPolicy, level);
        const { database: db } = await client.databases.create({ id: "d" });
        const container = await newContainer(db, SIZES[1]);
        await fill(container, Array.from({ length: 30 }, (_, i) => itemOf(`i${i}`, 4, `p${i}`)));
        const at = (asked) => (asked === undefined ? {} : { "x-ms-consistency-level": asked });
        const requests = {
            read: (headers) => callItems(own, container, { id: "i1", key: "p1", headers }),
            miss: (headers) => callItems(own, container, { id: "i1", key: "p2", headers }),
            list: (headers) => callItems(own, container, { headers }),
            query: (headers) => askPage(own, container, "SELECT * FROM c WHERE c.n0 = 0", { headers }),
            count: (headers) => askPage(own, container, "SELECT VALUE COUNT(1) FROM c", { headers }),
        };
        for (const [name, request] of Object.entries(requests)) {
            const single = chargeOf(await request(at("Session")));
            assert.ok(single > 0);
            for (const asked of [undefined, "BoundedStaleness", level])
                assert.equal(chargeOf(await request(at(asked))), 2 * single, `${name} at ${asked ?? level}`);
            for (const asked of ["ConsistentPrefix", "Eventual"])
                assert.equal(chargeOf(await request(at(asked))), single, `${name} at ${asked}`);
        }
        const { requestCharge } = await container.items.upsert({ id: "w", pk: "w" });
        assert.equal(requestCharge, 4.95, "a write costs what it always does");
        const [read] = await container.items.bulk([{ operationType: "Read", id: "i1", partitionKey: "p1" }]);
        assert.equal(read.requestCharge, 2.28);
    }
});

test("a level stronger than the account's is refused, and is no level of an option", async (t) => {
    const own = await startServer(t, { args: [...ARGS, "--consistency", "ConsistentPrefix"] });
    const { database: db } = await clientOf(own).databases.create({ id: "d" });
    const container = await newContainer(db);
    const levels = { Strong: 400, BoundedStaleness: 400, Session: 400, ConsistentPrefix: 404, Eventual: 404 };
    for (const [level, status] of Object.entries(levels)) {
        const headers = { "x-ms-consistency-level": level };
        const answer = await callItems(own, container, { id: "x", key: "p", headers });
        assert.equal(answer.status, status, level);
    }
    const { status, stderr } = run(["serve", "--consistency", "Linear"]);
    assert.equal(status, 2);
    assert.match(stderr, /--consistency must be Strong, .* not 'Linear'/);
});

// ---- calibration ----

function fileOf(text) {
    const path = join(temporaryFolder(), "charges.txt");
    writeFileSync(path, text);
    return path;
}

test("the calibration file of the document replaces what it names", async (t) => {
    const [text] = /^# A cheaper index.*?(?=^```$)/ms.exec(DOCUMENT);
    const own = await startServer(t, { args: [...ARGS, "--charges", fileOf(text)] });
    const { database: db } = await clientOf(own).databases.create({ id: "d" });
    const container = await newContainer(db);
    const near = (found, expected) => assert.ok(Math.abs(found - expected) < 0.05, `${found}, not ${expected}`);
    const small = await measure(container, 1);
    near(small.create, 4.95 + 10 * 0.1);
    assert.equal(small.read, 1);
    const large = await container.items.create(itemOf("large", 100));
    near(large.requestCharge, 45 + 10 * 0.1);
    near((await container.item("large", "p").read()).requestCharge, 9.95);
});

test("a calibration file that cannot be meant is refused with its line", () => {
    const rows = [
        ["index-term = 1\nindex-tern = 2\n", /line 2: there is no charge 'index-tern'/],
        ["failed = -1\n", /line 1: '-1' is not a number/],
        ["\n\nread 2KB = 0.5\n", /line 3: to read 2048 bytes would cost less than 1024 bytes/],
    ];
    for (const [text, message] of rows) {
        const { status, stderr } = run(["serve", "--charges", fileOf(text)]);
        assert.equal(status, 2);
        assert.match(stderr, message);
    }
    assert.match(run(["serve", "--charges", "/nothing/here"]).stderr, /cannot read '\/nothing\/here'/);
});
