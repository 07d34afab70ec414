// Queries page by page: every page size, tokens on other connections and after a restart, tokens that
// are not good, writes in between, pages of 4 MB.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { indexing } from "./lib/definition.mjs";
import { contentOf, eachSize, fill, newContainer, ownContainer, SIZES } from "./lib/items.mjs";
import { askAll, askPage, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed", "--merge", "always", "--extensions"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: unique("pages") });

const COUNT = 90;
const ITEMS = Array.from({ length: COUNT }, (_, i) => ({
    id: `${i}`,
    pk: `key ${i % 11}`,
    n: i,
    few: i % 3,
    far: 1000 - i,
    text: `${"long ".repeat(60)}${String(i).padStart(3, "0")}`, // more than an index keeps of a string
    list: Array.from({ length: i % 4 }, (_, k) => k),
    mixed: [undefined, null, false, true, i, `text ${i}`, [i], { i }][i % 8],
}));
const COMPOSITE = indexing({
    compositeIndexes: [
        [{ path: "/few" }, { path: "/n", order: "descending" }],
        [{ path: "/text" }, { path: "/few" }, { path: "/far" }],
    ],
});

const containers = await eachSize(database, COMPOSITE);
for (const [, container] of containers) await fill(container, ITEMS);

function onEach(name, work) {
    for (const [size, container] of containers) test(`${name} (${size})`, (t) => work(container, t));
}

const text = (value) => JSON.stringify(value);
const isOrdered = (query) => query.includes("ORDER BY");

// Queries of each kind of plan: by number, along an index, sorted, whole. What they give at once must
// come page by page as well.
const QUERIES = [
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.few = 1",
    "SELECT VALUE c.id FROM c WHERE c.n > 20 AND c.far > 920",
    "SELECT VALUE c.id FROM c WHERE c.n + c.far = 1000 AND c.few != 1",
    "SELECT VALUE c.id FROM c WHERE CONTAINS(c.text, '7')",
    "SELECT c.id, l FROM c JOIN l IN c.list",
    "SELECT VALUE [a, b] FROM c JOIN a IN c.list JOIN b IN c.list WHERE c.few = 2",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c WHERE c.few = 0 ORDER BY c.far",
    "SELECT VALUE c.text FROM c ORDER BY c.text DESC",
    "SELECT VALUE {m: c.mixed} FROM c ORDER BY c.mixed",
    "SELECT VALUE {n: c.n, few: c.few} FROM c ORDER BY c.few, c.n DESC",
    "SELECT VALUE {n: c.n, few: c.few} FROM c ORDER BY c.few DESC, c.n",
    "SELECT VALUE c.n FROM c ORDER BY c.text, c.few, c.far",
    "SELECT VALUE [c.n, l] FROM c JOIN l IN c.list ORDER BY c.n DESC",
    "SELECT TOP 17 VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 13 LIMIT 29",
    "SELECT VALUE c.id FROM c WHERE c.n < 50 OFFSET 10 LIMIT 25",
    "SELECT DISTINCT VALUE c.pk FROM c",
    "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.pk DESC",
    "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
    "SELECT VALUE COUNT(1) FROM c",
];

onEach("pages of any size are the whole, in its order", async (container) => {
    for (const query of QUERIES) {
        const whole = (await askAll(server, container, query, { size: -1 })).map(text);
        for (const size of [1, 2, 7, 30, COUNT, 1000]) {
            const found = (await askAll(server, container, query, { size })).map(text);
            if (isOrdered(query)) assert.deepEqual(found, whole, `${query} by ${size}`);
            else assert.deepEqual(found.sort(), [...whole].sort(), `${query} by ${size}`);
        }
    }
});

onEach("the SDK's iterator pages as it was told, and goes on from a token", async (container) => {
    for (const query of QUERIES) {
        const { resources } = await container.items.query(query, { maxItemCount: -1 }).fetchAll();
        const whole = resources.map(text);
        let token;
        const found = [];
        do {
            // Each page by a client of its own, as after a restart of the program.
            const items = clientOf(server).database(database.id).container(container.id).items;
            const page = await items.query(query, { maxItemCount: 8, continuationToken: token }).fetchNext();
            assert.ok(page.resources.length <= 8);
            assert.ok(page.requestCharge > 0);
            found.push(...page.resources.map(text));
            token = page.continuationToken;
            assert.equal(page.hasMoreResults, token !== undefined);
        } while (token);
        if (isOrdered(query)) assert.deepEqual(found, whole, query);
        else assert.deepEqual(found.sort(), whole.sort(), query);
    }
});

onEach("pages of one partition key are its own", async (container) => {
    const expected = ITEMS.filter(({ pk }) => pk === "key 4").map(({ n }) => n);
    for (const size of [1, 3, -1])
        for (const end of ["", " ORDER BY c.n", " ORDER BY c.few, c.n DESC", " WHERE c.few >= 0"]) {
            const options = { size, key: "key 4" };
            const found = await askAll(server, container, `SELECT VALUE c.n FROM c${end}`, options);
            assert.deepEqual(found.sort((a, b) => a - b), expected, `${end} by ${size}`);
        }
});

// What is read again of a page is the item at which it begins, and one of each partition after it.
onEach("a page does not do again what the ones before it did", async (container) => {
    const partitions = (await container.readPartitionKeyRanges().fetchAll()).resources.length;
    for (const query of [
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.few = 1",
        "SELECT * FROM c WHERE c.n + c.far > 0",
        "SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n",
        "SELECT * FROM c ORDER BY c.far DESC",
        "SELECT * FROM c ORDER BY c.few, c.n DESC",
        "SELECT * FROM c WHERE c.few = 1 ORDER BY c.few, c.n DESC",
    ]) {
        let [read, results, pages, token] = [0, 0, 0, undefined];
        do {
            const headers = { "x-orrery-explain": "true" };
            const answer = await askPage(server, container, query, { size: 5, token, headers });
            results += resultsOf(answer).length;
            read += JSON.parse(decodeURIComponent(answer.headers["x-orrery-explain"])).itemsRead;
            pages++;
            token = answer.headers["x-ms-continuation"];
        } while (token);
        assert.ok(read <= COUNT + pages * (1 + partitions), `${query}: ${read} read for ${results} in ${pages} pages`);
    }
});

onEach("a page has a hundred results if nothing is said", async (container) => {
    const query = "SELECT VALUE a FROM c JOIN a IN c.list JOIN b IN c.list";
    const first = await askPage(server, container, query);
    assert.equal(resultsOf(first).length, 100);
    assert.ok(first.headers["x-ms-continuation"]);
    for (const size of [-2, "many", "1.5", "99999999999"])
        errorAnswer(await askPage(server, container, query, { size }), 400, "BadRequest");
});

onEach("a token is good on another connection only for what it was given for", async (container) => {
    const other = await newContainer(database, SIZES[0], COMPOSITE);
    for (const query of QUERIES.slice(0, -1)) {
        const first = await askPage(server, container, query, { size: 5 });
        const token = first.headers["x-ms-continuation"];
        assert.ok(token, query);
        const again = new Agent();
        const next = await askPage(server, container, query, { size: 5, token, agent: again });
        assert.ok(resultsOf(next).length > 0, query);
        const repeated = await askPage(server, container, query, { size: 5, token });
        assert.deepEqual(repeated.json.Documents, next.json.Documents, "a token may be used again");
        again.destroy();
        const refuse = async (what, where, asked, options) => {
            const answer = await askPage(server, where, asked, { size: 5, token, ...options });
            assert.equal(answer.status, 400, `${query}: ${what}`);
            errorAnswer(answer, 400, "BadRequest", { message: /continuation token/i });
        };
        await refuse("another container", other, query);
        await refuse("another order", container, "SELECT * FROM c ORDER BY c.another");
        await refuse("no order, or the groups of another query", container, "SELECT c.x FROM c GROUP BY c.x");
        await refuse("cut", container, query, { token: token.slice(0, -1) });
        await refuse("cut to the half", container, query, { token: token.slice(0, token.length / 2) });
        await refuse("cut at the start", container, query, { token: token.slice(4) });
        await refuse("longer", container, query, { token: `${token}AAAA` });
        await refuse("twice", container, query, { token: token + token });
        for (let i = 0; i < token.length; i += 5) {
            const changed = token.slice(0, i) + (token[i] === "A" ? "B" : "A") + token.slice(i + 1);
            if (changed !== token) await refuse(`changed at ${i}`, container, query, { token: changed });
        }
    }
});

onEach("a token is a position in an order, whatever the filter is", async (container) => {
    const of = (value) => ({
        query: "SELECT VALUE c.n FROM c WHERE c.n >= @from ORDER BY c.n",
        parameters: [{ name: "@from", value }],
    });
    const first = await askPage(server, container, of(10), { size: 3 });
    const token = first.headers["x-ms-continuation"];
    const ask = async (query) => resultsOf(await askPage(server, container, query, { size: 3, token }));
    assert.deepEqual(await ask(of(10)), [13, 14, 15]);
    assert.deepEqual(await ask(of(14)), [14, 15, 16]);
    assert.deepEqual(await ask(of(50)), [50, 51, 52]);
    assert.deepEqual(await ask("SELECT VALUE c.n FROM c WHERE c.n % 2 = 0 ORDER BY c.n ASC"), [14, 16, 18]);
    const down = { ...of(10), query: `${of(10).query} DESC` };
    errorAnswer(await askPage(server, container, down, { size: 3, token }), 400, "BadRequest");
});

onEach("a token of a range of keys is good for a key in it", async (container) => {
    const all = ITEMS.filter(({ pk }) => pk === "key 4");
    for (const order of ["", " ORDER BY c.n"]) {
        const query = `SELECT * FROM c WHERE c.n >= 0${order}`;
        const { headers } = await askPage(server, container, query, { size: 1, key: "key 4" });
        const range = { "x-ms-documentdb-partitionkeyrangeid": headers["x-ms-documentdb-partitionkeyrangeid"] };
        const seen = [];
        let token;
        for (const [size, options] of [
            [3, { headers: range }],
            [2, { key: "key 4" }],
            [3, { headers: range }],
            [1000, { key: "key 4" }],
        ]) {
            const page = await askPage(server, container, query, { size, token, ...options });
            seen.push(...resultsOf(page).filter(({ pk }) => pk === "key 4"));
            token = page.headers["x-ms-continuation"];
        }
        // The third page went on after the second one, so that nothing of this key is missing or comes twice.
        assert.deepEqual(
            seen.map(({ n }) => n),
            all.map(({ n }) => n),
        );
    }
});

onEach("what is no token at all is refused", async (container) => {
    const foreign = '[{"token":null,"range":{"min":"","max":"FF"}}]';
    for (const token of ["x", "[]", "{}", foreign, "!!", "A".repeat(20_000)]) {
        const answer = await askPage(server, container, "SELECT * FROM c", { token });
        errorAnswer(answer, 400, "BadRequest", { message: /continuation token/i });
    }
    const options = { continuationToken: "nonsense" };
    await refused(container.items.query("SELECT * FROM c", options).fetchNext(), 400, {
        message: /continuation token/i,
    });
});

for (const size of SIZES)
    test(`tokens survive a restart (${size.partitions} partitions)`, async (t) => {
        const own = await ownContainer(t, size, COMPOSITE);
        await fill(own.container, ITEMS);
        const begun = [];
        for (const query of QUERIES) {
            const whole = await askAll(own.server, own.container, query, { size: -1 });
            begun.push({ query, whole, first: await askPage(own.server, own.container, query, { size: 6 }) });
        }
        await own.server.restart();
        for (const { query, whole, first } of begun) {
            const found = [...resultsOf(first)];
            for (let token = first.headers["x-ms-continuation"]; token; ) {
                const answer = await askPage(own.server, own.container, query, { size: 6, token });
                found.push(...resultsOf(answer));
                token = answer.headers["x-ms-continuation"];
            }
            if (isOrdered(query)) assert.deepEqual(found, whole, query);
            else assert.deepEqual(found.map(text).sort(), whole.map(text).sort(), query);
        }
    });

for (const size of SIZES)
    test(`a query goes on where it was while items come and go (${size.partitions} partitions)`, async () => {
        for (const query of [
            "SELECT * FROM c",
            "SELECT * FROM c WHERE c.few >= 0",
            "SELECT * FROM c WHERE c.n + c.few >= 0",
            "SELECT * FROM c WHERE c.n >= 0 AND c.n < 1000",
            "SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n",
            "SELECT * FROM c ORDER BY c.n DESC",
            "SELECT * FROM c ORDER BY c.few, c.n DESC",
        ]) {
            const container = await newContainer(database, size, COMPOSITE);
            const items = ITEMS.slice(0, 60);
            await fill(container, items);
            let step = 0;
            const between = async (seen) => {
                // What was seen is deleted, what was not is changed elsewhere; something new comes in.
                const gone = seen.findLast(({ isNew }) => !isNew);
                if (gone && step % 2 === 0) await container.item(gone.id, gone.pk).delete();
                const ids = new Set(seen.map(({ id }) => id));
                const kept = items.findLast(({ id }) => !ids.has(id));
                if (kept) await container.item(kept.id, kept.pk).replace({ ...kept, note: step });
                const like = items[seen.length % 60];
                await container.items.create({ ...like, id: `new ${step}`, pk: `key ${step}`, isNew: true });
                step++;
            };
            const seen = await askAll(server, container, query, { size: 7, between });
            const ids = seen.map(({ id }) => id);
            assert.equal(new Set(ids).size, ids.length, `${query}: nothing comes twice`);
            const old = seen.filter(({ isNew }) => !isNew).map(({ id }) => id);
            assert.deepEqual(old.sort(), items.map(({ id }) => id).sort(), query);
        }
    });

// Clients give a token a kilobyte; `resultsOf` looks at each. Version 1 hashes keep the key itself.
test("tokens are short however long ids, keys and values are", async () => {
    const names = Array.from({ length: 8 }, (_, i) => `s${i}`);
    const definition = {
        ...indexing({
            includedPaths: [{ path: "/*" }],
            compositeIndexes: [names.map((name) => ({ path: `/${name}` }))],
        }),
        partitionKey: { paths: ["/pk"], kind: "Hash", version: 1 },
    };
    const items = Array.from({ length: 30 }, (_, i) => ({
        id: `${i % 3}${"i".repeat(1000)}${i}`,
        pk: `${"k".repeat(99)}${i % 2}`,
        n: i,
        ...Object.fromEntries(names.map((name, k) => [name, `${"v".repeat(92)}${k < 3 ? (i * 7) % (k + 2) : k}`])),
        off: 1,
    }));
    const order = (a, b) => names.map((name) => (a[name] < b[name] ? -1 : a[name] > b[name] ? 1 : 0)).find(Boolean) ?? 0;
    const limit = { "x-ms-documentdb-responsecontinuationtokenlimitinkb": "1" };
    for (const size of SIZES) {
        const container = await newContainer(database, size, definition);
        await fill(container, items);
        for (const query of [
            `SELECT * FROM c ORDER BY ${names.map((name) => `c.${name}`).join(", ")}`,
            "SELECT * FROM c WHERE c.n + c.off > 0",
            "SELECT * FROM c WHERE c.n >= 0",
            "SELECT * FROM c ORDER BY c.id DESC",
            "SELECT DISTINCT c.id, c.n FROM c",
        ])
            for (const key of [undefined, items[0].pk]) {
                const whole = key ? items.filter(({ pk }) => pk === key) : items;
                const found = await askAll(server, container, query, { size: 1, key, headers: limit });
                const numbers = found.map(({ n }) => n);
                assert.deepEqual([...numbers].sort((a, b) => a - b), whole.map(({ n }) => n), query);
                if (query.includes("c.s0")) {
                    const ranks = found.map((item) => whole.filter((other) => order(other, item) < 0).length);
                    assert.deepEqual(ranks, [...ranks].sort((a, b) => a - b), query);
                }
            }
    }
});

onEach("results of a page are as large as 4 MB, and no page is larger", async (container) => {
    const own = await newContainer(database, SIZES[containers.findIndex(([, one]) => one === container)]);
    for (let i = 0; i < 9; i++)
        await own.items.create({ id: `${i}`, pk: `k${i % 4}`, n: i, two: [1, 2], text: "x".repeat(900_000) });
    for (const [query, count] of [
        ["SELECT * FROM c", 9],
        ["SELECT * FROM c ORDER BY c.n DESC", 9],
        ["SELECT VALUE [c.text, a] FROM c JOIN a IN c.two", 18],
        ["SELECT c.text, COUNT(1) AS n FROM c GROUP BY c.text, c.n", 9],
    ]) {
        let found = 0;
        for (let token; ; ) {
            const answer = await askPage(server, own, query, { size: -1, token });
            const bytes = answer.bytes.length;
            const { length } = resultsOf(answer);
            assert.ok(bytes <= 4 << 20, `${query}: ${bytes} bytes`);
            assert.ok(length >= 1, "each page makes some way");
            found += length;
            token = answer.headers["x-ms-continuation"];
            if (!token) break;
            assert.ok(bytes > 2_500_000, `${query}: a page of ${bytes} bytes is not full`);
        }
        assert.equal(found, count, query);
    }
    // One result alone may be larger than a page, not larger than an answer.
    const list = "[c.text, c.text, c.text, c.text, c.text]";
    const large = await askPage(server, own, `SELECT VALUE ${list} FROM c WHERE c.n = 1`);
    assert.equal(resultsOf(large).length, 1);
    const sdk = await own.items.query("SELECT * FROM c", { maxItemCount: -1 }).fetchAll();
    assert.equal(sdk.resources.length, 9);
});

test("a deleted item on which a page ended does not stop the next one", async () => {
    const container = await newContainer(database);
    await fill(container, ITEMS.slice(0, 20));
    for (const query of ["SELECT * FROM c WHERE c.n >= 0", "SELECT * FROM c ORDER BY c.n"]) {
        const seen = await askAll(server, container, query, {
            size: 1,
            between: async (sofar) => {
                const { id, pk } = sofar.at(-1);
                await container.item(id, pk).delete();
            },
        });
        assert.deepEqual(seen.map(({ n }) => n).sort((a, b) => a - b), ITEMS.slice(0, 20).map(({ n }) => n));
        for (const item of seen) await container.items.upsert(contentOf(item));
    }
});
