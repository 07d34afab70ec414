// Three nodes over a PostgreSQL server with a synchronous standby: any node answers anything, nothing that was
// acknowledged is lost when one dies, and nobody notices when one is stopped on purpose.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, before, describe } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Writers } from "./lib/cluster-writers.mjs";
import { Cluster, Engine, freePort, startCluster } from "./lib/cluster.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, runBeside, startServer, temporaryFolder } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const PARTITIONS = 4;
const SERVED_AGAIN_MS = 10_000;
const STOPPED_MS = 8000; // less than a node waits for others to take its partitions
let engine;

before(() => (engine = new Engine()));
after(() => engine.end());

/** A client without the SDK's own retries, so that a test sees what a node answers. */
function plainClient(node) {
    return clientOf(node, {
        connectionPolicy: {
            enableBackgroundEndpointRefreshing: false,
            retryOptions: { maxRetryAttemptCount: 0, maxWaitTimeInSeconds: 0 },
        },
    });
}

async function makeContainer(cluster, id = "items", node = cluster.nodes[0]) {
    const { database } = await clientOf(node).databases.createIfNotExists({ id: "shop" });
    await database.containers.create(
        { id, partitionKey: { paths: ["/pk"], version: 2 } },
        { offerThroughput: PARTITIONS * 6000 },
    );
    return cluster.nodes.map((one) => clientOf(one).database("shop").container(id));
}

/** Every partition takes a write at every living node soon. */
async function servedAgain(t, cluster, since, what) {
    const write = async ({ items }, id) => {
        for (;;) {
            try {
                return await items.upsert({ id, pk: id });
            } catch (error) {
                assert.ok([408, 429].includes(error.code), `${error.code}: ${error.message}`);
                await wait(20);
            }
        }
    };
    const ask = async (node) => {
        const container = plainClient(node).database("shop").container("items");
        for (let i = 0; i < 40; i++) await write(container, `after${i}`);
    };
    await Promise.all(cluster.living.map(ask));
    const took_ms = Date.now() - since;
    t.diagnostic(`every partition was served at every node ${took_ms} ms after ${what}`);
    assert.ok(took_ms < SERVED_AGAIN_MS, `${took_ms} ms after ${what}`);
}

/** How many partitions each node owns, the catalogue left out. */
function owned(status) {
    const counts = {};
    for (const space of status.spaces) if (space.id !== 1) counts[space.owner] = (counts[space.owner] ?? 0) + 1;
    return counts;
}

/** What /_orrery tells of a container. */
async function view(node, container, what) {
    const link = `dbs/shop/colls/${container}`;
    const { status, json, text } = await call(node, { path: `/_orrery/${link}/${what}`, type: "colls", link });
    assert.equal(status, 200, text);
    return json;
}

describe("three nodes", () => {
    let cluster;
    let containers;

    after(() => Promise.all(cluster.living.map((node) => node.stopWell())));
    before(async () => {
        cluster = await startCluster({ after: () => undefined }, { engine });
        await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 3, "three nodes");
        containers = await makeContainer(cluster);
    });

    test("the partitions of a container are spread over all nodes", async () => {
        const counts = owned(await cluster.status());
        assert.equal(Object.values(counts).reduce((a, b) => a + b), PARTITIONS);
        assert.ok(Object.keys(counts).length >= 2, JSON.stringify(counts));
    });

    const shopAt = (node, client = plainClient) => client(node).database("shop");

    /** Makes a container called `id`, with the partition key /k{i} and an item in it; `drops` the one that is there. */
    async function makeAgain(node, id, i, { drops = true } = {}) {
        if (drops) await clientOf(node).database("shop").container(id).delete();
        const definition = { id, partitionKey: { paths: [`/k${i}`], version: 2 } };
        const { container, resource } = await clientOf(node).database("shop").containers.create(definition);
        await container.items.create({ id: `${i}`, [`k${i}`]: "a" });
        return resource;
    }

    /** The node knows that container, and has nothing of those that had its name. */
    async function usesAgain(node, made, i, gone, client) {
        const container = shopAt(node, client).container(made.id);
        const { resource: seen } = await container.read();
        assert.deepEqual([seen._rid, seen.partitionKey.paths], [made._rid, [`/k${i}`]]);
        const item = { id: "here", [`k${i}`]: "a" };
        await container.items.create(item);
        const { resources } = await container.items.readAll().fetchAll();
        assert.deepEqual(resources.map(({ id }) => id).sort(), [`${i}`, "here"]);
        assert.equal((await container.item(`${i - 1}`, "a").read()).statusCode, 404);
        for (const old of gone) {
            const { status } = await call(node, { path: `/${old._self.replace(/\/$/, "")}`, link: old._rid.toLowerCase() });
            assert.equal(status, 404, old._self);
        }
    }

    test("an id that is dropped and created again at one node is the new one at another at once", async () => {
        const gone = [];
        let made = await makeAgain(cluster.nodes[0], "again", 0, { drops: false });
        for (let i = 1; i <= 9; i++) {
            const [maker, user] = [cluster.nodes[i % 3], cluster.nodes[(i + 1) % 3]];
            gone.push(made);
            made = await makeAgain(maker, "again", i);
            await usesAgain(user, made, i, gone);
        }
        await shopAt(cluster.nodes[0]).container("again").delete();
        for (const node of cluster.nodes) {
            await assert.rejects(shopAt(node).container("again").read(), { code: 404 });
            assert.equal((await shopAt(node).container("again").item("9", "a").read()).statusCode, 404);
        }
    });

    test("items are written and read at every node", async () => {
        for (let i = 0; i < 60; i++) {
            const [a, b, c] = [0, 1, 2].map((n) => containers[(i + n) % 3]);
            const id = `crud${i}`;
            const pk = `k${i}`;
            const { resource: made } = await a.items.create({ id, pk, n: i });
            const { resource: read, etag } = await b.item(id, pk).read();
            assert.deepEqual(read, made);
            await c.item(id, pk).replace({ id, pk, n: -i }, { accessCondition: { type: "IfMatch", condition: etag } });
            await assert.rejects(
                a.item(id, pk).replace({ id, pk }, { accessCondition: { type: "IfMatch", condition: etag } }),
                { code: 412 },
            );
            await b.item(id, pk).patch([{ op: "incr", path: "/n", value: 1 }]);
            assert.equal((await c.item(id, pk).read()).resource.n, 1 - i);
            await assert.rejects(b.items.create({ id, pk }), { code: 409 });
            const batch = await a.items.batch([{ operationType: "Create", resourceBody: { id: `${id}b`, pk } }], pk);
            assert.equal(batch.result[0].statusCode, 201);
            await c.item(`${id}b`, pk).delete();
            assert.equal((await a.item(`${id}b`, pk).read()).statusCode, 404);
        }
    });

    test("queries, lists and feeds give the same at every node", async () => {
        const made = await makeContainer(cluster, "queried");
        const all = [];
        for (let i = 0; i < 200; i++) {
            const { resource } = await made[i % 3].items.create({ id: `i${i}`, pk: `k${i % 40}`, n: i % 7 });
            all.push(resource);
        }
        const ids = (list) => list.map((item) => item.id).sort();
        for (const container of made) {
            const list = await container.items.readAll({ maxItemCount: 17 }).fetchAll();
            assert.deepEqual(ids(list.resources), ids(all));
            const some = await container.items.query("SELECT * FROM c WHERE c.n = 3", { maxItemCount: 5 }).fetchAll();
            assert.deepEqual(ids(some.resources), ids(all.filter((item) => item.n === 3)));
            const sorted = await container.items.query("SELECT VALUE c.n FROM c ORDER BY c.n").fetchAll();
            assert.deepEqual(sorted.resources, all.map((item) => item.n).sort((a, b) => a - b));
            const counted = await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
            assert.deepEqual(counted.resources, [all.length]);
            const one = await container.items
                .query("SELECT * FROM c WHERE c.n >= 0", { partitionKey: "k7" })
                .fetchAll();
            assert.deepEqual(ids(one.resources), ids(all.filter((item) => item.pk === "k7")));
            const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom: undefined, maxItemCount: 50 });
            const seen = [];
            for (let quiet = 0; quiet < 2; ) {
                const page = await feed.readNext();
                quiet = page.statusCode === 304 ? quiet + 1 : 0;
                if (page.statusCode !== 304) seen.push(...page.result);
                if (seen.length >= all.length) break;
            }
        }
    });

    test("a query that the server merges runs at every node", async () => {
        const made = await makeContainer(cluster, "merged");
        for (let i = 0; i < 60; i++) await made[i % 3].items.create({ id: `i${i}`, pk: `k${i}`, n: i });
        for (const node of cluster.nodes) {
            const ask = (query) =>
                call(node, {
                    method: "POST",
                    path: "/dbs/shop/colls/merged/docs",
                    headers: {
                        "content-type": "application/query+json",
                        "x-ms-documentdb-isquery": "true",
                        "x-ms-documentdb-query-enablecrosspartition": "true",
                        "x-ms-max-item-count": "-1",
                    },
                    body: { query },
                });
            const sum = await ask("SELECT VALUE SUM(c.n) FROM c");
            assert.deepEqual(sum.json?.Documents, [1770], sum.text);
            const top = await ask("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC");
            assert.deepEqual(top.json?.Documents, [59, 58, 57, 56, 55], top.text);
        }
    });

    test("pages of a merged query begin at one node and go on at the others", async () => {
        const made = await makeContainer(cluster, "paged");
        for (let i = 0; i < 90; i++)
            await made[i % 3].items.create({ id: `i${i}`, pk: `k${i}`, n: (i * 37) % 90, m: i % 4 });
        const all = Array.from({ length: 90 }, (_, i) => i);
        const rows = {
            "SELECT VALUE c.n FROM c ORDER BY c.n": all,
            "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 4 LIMIT 50": [...all].reverse().slice(4, 54),
            "SELECT VALUE c.n FROM c WHERE c.n >= 30 AND LENGTH(c.id) = 3 ORDER BY c.n": all.filter(
                (n) => n >= 30 && [...all].some((i) => i >= 10 && (i * 37) % 90 === n),
            ),
            "SELECT DISTINCT VALUE c.m FROM c ORDER BY c.m": [0, 1, 2, 3],
            "SELECT VALUE AVG(c.n) FROM c": [44.5],
        };
        for (const [query, expected] of Object.entries(rows)) {
            const found = [];
            for (let i = 0, token; i === 0 || token !== undefined; i++) {
                const answer = await call(cluster.nodes[i % 3], {
                    method: "POST",
                    path: "/dbs/shop/colls/paged/docs",
                    headers: {
                        "content-type": "application/query+json",
                        "x-ms-documentdb-isquery": "true",
                        "x-ms-documentdb-query-enablecrosspartition": "true",
                        "x-ms-max-item-count": "7",
                        ...(token ? { "x-ms-continuation": token } : {}),
                    },
                    body: { query },
                });
                assert.equal(answer.status, 200, answer.text);
                found.push(...answer.json.Documents);
                token = answer.headers["x-ms-continuation"];
            }
            assert.deepEqual(found, expected, query);
        }
    });

    test("items are deleted by a prefix of their key at every node", async () => {
        const { container } = await clientOf(cluster.nodes[0]).database("shop").containers.create(
            { id: "prefixes", partitionKey: { paths: ["/t", "/u"], kind: "MultiHash", version: 2 } },
            { offerThroughput: PARTITIONS * 6000 },
        );
        for (let i = 0; i < 30; i++) await container.items.create({ id: `${i}`, t: `t${i % 3}`, u: `u${i}` });
        for (let i = 0; i < 3; i++) {
            const here = clientOf(cluster.nodes[i]).database("shop").container("prefixes");
            await here.deleteAllItemsForPartitionKey([`t${i}`]);
            const left = await container.items.readAll().fetchAll();
            assert.equal(left.resources.length, 20 - 10 * i);
        }
    });

    test("what a container holds is told by every node", async () => {
        const made = await makeContainer(cluster, "counted");
        for (let i = 0; i < 60; i++) await made[i % 3].items.create({ id: `i${i}`, pk: `k${i}`, text: "x".repeat(999) });
        const shown = [];
        const statistics = [];
        for (const node of cluster.nodes) {
            const answer = await call(node, {
                path: "/dbs/shop/colls/counted",
                headers: {
                    "x-ms-documentdb-populatequotainfo": "true",
                    "x-ms-documentdb-populatepartitionstatistics": "true",
                },
            });
            assert.equal(answer.status, 200, answer.text);
            assert.equal(answer.headers["x-ms-documentdb-collection-index-transformation-progress"], "100");
            shown.push(answer.headers["x-ms-resource-usage"]);
            statistics.push(answer.json.statistics);
            const path = "/_orrery/dbs/shop/colls/counted/layout";
            const layout = await call(node, { path, type: "colls", link: "dbs/shop/colls/counted" });
            assert.equal(layout.status, 200, layout.text);
            assert.equal(layout.json.ranges.length, PARTITIONS);
        }
        assert.match(shown[0], /;documentsCount=60;/);
        assert.deepEqual(shown, Array(3).fill(shown[0]));
        assert.equal(statistics[0].length, PARTITIONS);
        assert.equal(statistics[0].reduce((sum, { documentCount }) => sum + documentCount, 0), 60);
        assert.deepEqual(statistics, Array(3).fill(statistics[0]));
    });

    test("numbers, paths and advice about a container are the same of every node", async () => {
        const made = await makeContainer(cluster, "viewed");
        const items = Array.from({ length: 240 }, (_, i) => ({ id: `i${i}`, pk: `k${i % 60}`, user: `u${i % 7}`, [`p${i % 3}`]: i }));
        await Promise.all(items.map((item, i) => made[i % 3].items.create(item)));
        await made[0].items.create({ id: "rare", pk: "rare", seldom: { seen: 1 } });
        const count = items.length + 1;
        for (let i = 0; i < 9; i++) await made[i % 3].items.query("SELECT * FROM c WHERE c.user = 'u1'").fetchAll();
        const { spaces } = await cluster.status();
        for (const node of cluster.nodes) {
            const { json } = await call(node, { path: "/_orrery/containers", type: "", link: "" });
            const row = json.containers.find(({ container }) => container === "viewed");
            assert.equal(row.items, count);
            assert.ok(row.bytes > 0);
            assert.deepEqual(row.missingRanges, []);
            assert.ok(row.requests.total >= count);
            const layout = await view(node, "viewed", "layout");
            assert.equal(layout.totals.items, count);
            assert.equal(layout.totals.logicalPartitions, 61);
            assert.ok(layout.ranges.every((range) => range.items > 0 && range.ru.total > 0));
            assert.deepEqual(layout.missingRanges, []);
            const history = await view(node, "viewed", `history?from=${layout.time - 60}&to=${layout.time + 2}`); // with the second that runs
            assert.deepEqual(history.ranges.map(({ id }) => id), layout.ranges.map(({ id }) => id));
            assert.ok(history.ranges.every(({ requests }) => requests.some((n) => n > 0)));
            const { paths, isComplete } = await view(node, "viewed", "paths");
            assert.deepEqual(paths, ["/_ts", "/id", "/p0", "/p1", "/p2", "/pk", "/seldom", "/seldom/seen", "/user"]);
            assert.ok(isComplete);
            const advice = await view(node, "viewed", "advice");
            assert.equal(advice.sample.items, count);
            assert.equal(advice.sample.population, count);
            assert.equal(advice.recorded.executions, 9);
            const { rows } = await view(node, "viewed", "queries?by=executions");
            assert.equal(rows[0].executions, 9);
            const top = await view(node, "viewed", "top?by=size");
            assert.equal(top.node, node.name);
            const elsewhere = layout.ranges.filter(({ space }) => spaces.find(({ id }) => id === space).owner !== node.name);
            assert.deepEqual(top.missingRanges, elsewhere.map(({ id }) => id));
        }
    });

    test("orrery top shows the nodes, and the owner of each partition", async () => {
        for (const node of cluster.nodes) {
            const { spaces } = await cluster.status();
            const { ranges } = await view(node, "items", "layout");
            const shown = run(["top", "--endpoint", node.endpoint, "--database", "shop", "--container", "items", "--once"]);
            assert.equal(shown.status, 0, shown.stderr);
            for (const name of ["a", "b", "c"])
                assert.match(shown.stdout, new RegExp(`^${name === node.name ? ">" : " "} ${name} +live +\\d+ +\\d+ +[\\d,]+ +\\d+\\.\\d s ago$`, "m"));
            for (const { id, space } of ranges) {
                const { owner } = spaces.find((one) => one.id === space);
                assert.match(shown.stdout, new RegExp(`^ +${id}  .* ${owner}$`, "m"));
            }
        }
    });

    test("stored procedures run at the owner, wherever they are called", async () => {
        const body = `function add(id, by) {
            var own = getContext().getCollection();
            own.queryDocuments(own.getSelfLink(), "SELECT * FROM c WHERE c.id = '" + id + "'", function (e, list) {
                if (e) throw e;
                var item = list[0] || { id: id, pk: "p", n: 0 };
                item.n += by;
                own.upsertDocument(own.getSelfLink(), item);
                getContext().getResponse().setBody(item.n);
            });
        }`;
        await containers[0].scripts.storedProcedures.create({ id: "add", body });
        let sum = 0;
        for (let i = 1; i <= 12; i++) {
            sum += i;
            const { resource } = await containers[i % 3].scripts.storedProcedure("add").execute("p", ["total", i]);
            assert.equal(resource, sum);
        }
    });

    test("a stored procedure whose partition moves meanwhile runs at the new owner", async () => {
        const body = `function count(id, run_ms) {
            var own = getContext().getCollection();
            var link = own.getAltLink() + "/docs/" + id;
            own.readDocument(link, function (error) {
                if (error) throw error;
                for (var end = Date.now() + run_ms; Date.now() < end; );
                own.readDocument(link, function (error, item) {
                    if (error) throw error;
                    item.n += 1;
                    own.replaceDocument(item._self, item, function (e) { if (e) throw e; });
                    getContext().getResponse().setBody(item.n);
                });
            });
        }`;
        const known = new Set((await cluster.status()).spaces.map(({ id }) => id));
        const { containers: all } = clientOf(cluster.nodes[0]).database("shop");
        const { container } = await all.create({ id: "moving", partitionKey: "/pk" });
        const spaceNow = async () => (await cluster.status()).spaces.find(({ id }) => !known.has(id));
        await container.scripts.storedProcedures.create({ id: "count", body });
        await container.items.create({ id: "moving", pk: "p", n: 0 });
        const path = "/dbs/shop/colls/moving/sprocs/count";
        const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
        for (let i = 1; i <= 3; i++) {
            const { id, owner } = await spaceNow();
            const target = ["a", "b", "c"].find((name) => name !== owner);
            const called = call(cluster.nodes[i % 3], { method: "POST", path, headers, body: ["moving", 500] });
            await wait(100);
            const at = ["--endpoint", cluster.nodes[0].endpoint];
            const moved = await runBeside(["cluster", "move", String(id), target, ...at]);
            assert.equal(moved.status, 0, moved.stderr);
            const { status, text } = await called;
            assert.equal(`${status} ${text}`, `200 ${i}`);
        }
    });

    test("a session token of one node is good at the others", async () => {
        for (let i = 0; i < 30; i++) {
            const [writer, reader] = [containers[i % 3], containers[(i + 1) % 3]];
            const { headers } = await writer.items.create({ id: `s${i}`, pk: `s${i}` });
            const sessionToken = headers["x-ms-session-token"];
            assert.equal((await reader.item(`s${i}`, `s${i}`).read({ sessionToken })).statusCode, 200);
        }
    });

    test("a page of a query goes on at another node", async () => {
        const pages = [];
        let token;
        for (let i = 0; ; i++) {
            const answer = await call(cluster.nodes[i % 3], {
                method: "POST",
                path: "/dbs/shop/colls/queried/docs",
                headers: {
                    "content-type": "application/query+json",
                    "x-ms-documentdb-isquery": "true",
                    "x-ms-documentdb-query-enablecrosspartition": "true",
                    "x-ms-max-item-count": "7",
                    ...(token ? { "x-ms-continuation": token } : {}),
                },
                body: { query: "SELECT VALUE c.id FROM c" },
            });
            assert.equal(answer.status, 200, answer.text);
            pages.push(...answer.json.Documents);
            token = answer.headers["x-ms-continuation"];
            if (!token) break;
            assert.ok(i < 500);
        }
        assert.equal(new Set(pages).size, 200);
        assert.equal(pages.length, 200);
    });

    test("the account document names the node that was asked", async () => {
        for (const node of cluster.nodes) {
            const { json } = await call(node, { path: "/", type: "", link: "" });
            assert.equal(json.writableLocations[0].databaseAccountEndpoint, `${node.endpoint}/`);
        }
    });

    test("a client cannot speak as a node does", async () => {
        for (const name of ["x-orrery-node-client", "x-orrery-node-host", "x-orrery-node-time"]) {
            const answer = await call(cluster.nodes[0], { path: "/dbs", headers: { [name]: "http 127.0.0.1:1" } });
            assert.equal(answer.status, 400, name);
        }
    });

    test("orrery cluster shows and moves", async () => {
        const at = ["--endpoint", cluster.nodes[1].endpoint];
        const shown = run(["cluster", "status", ...at]);
        assert.equal(shown.status, 0, shown.stderr);
        for (const name of ["a", "b", "c"]) assert.match(shown.stdout, new RegExp(`^${name}\\b`, "m"));
        const { spaces } = await cluster.status();
        const { id: space, owner } = spaces.find((one) => one.id !== 1);
        const target = ["a", "b", "c"].find((name) => name !== owner);
        const moved = run(["cluster", "move", String(space), target, ...at]);
        assert.equal(moved.status, 0, moved.stderr);
        await cluster.until((s) => s.spaces.find((one) => one.id === space).owner === target, "moved");
        assert.equal(run(["cluster", "move", String(space), "nobody", ...at]).status, 1);
        const { ranges } = await view(cluster.nodes[0], "items", "layout");
        const range = ranges.find((one) => one.space === space) ?? ranges[0];
        const now = (await cluster.status()).spaces.find((one) => one.id === range.space).owner;
        const other = ["a", "b", "c"].find((name) => name !== now);
        const named = run(["cluster", "move", `shop/items/${range.id}`, other, ...at]);
        assert.equal(named.status, 0, named.stderr);
        await cluster.until((s) => s.spaces.find((one) => one.id === range.space).owner === other, "moved by its name");
        for (const wrong of ["shop/items/999", "shop/none/0", "none/items/0", "shop/items"])
            assert.equal(run(["cluster", "move", wrong, other, ...at]).status, 1, wrong);
        assert.equal(run(["cluster", "drain"]).status, 2);
    });

    test("containers that share throughput are served by one node, which a move and a drain keep", async () => {
        const at = ["--endpoint", cluster.nodes[1].endpoint];
        const before = new Set((await cluster.status()).spaces.map((space) => space.id));
        const { database } = await clientOf(cluster.nodes[0]).databases.create({ id: "sharing", throughput: 400 });
        for (const id of ["x", "y", "z"])
            await database.containers.create({ id, partitionKey: { paths: ["/pk"], version: 2 } });
        const owners = (status) => {
            const made = status.spaces.filter((space) => !before.has(space.id));
            assert.equal(made.length, 3);
            return new Set(made.map((space) => space.owner));
        };
        const status = await cluster.status();
        const [owner, ...others] = owners(status);
        assert.deepEqual(others, []);

        const target = ["a", "b", "c"].find((name) => name !== owner);
        const space = status.spaces.find((one) => !before.has(one.id)).id;
        const moved = run(["cluster", "move", String(space), target, ...at]);
        assert.equal(moved.status, 0, moved.stderr);
        assert.match(moved.stdout, new RegExp(`^Spaces \\d+, \\d+ and \\d+ belong to node '${target}'\\.`));
        assert.deepEqual([...owners(await cluster.status())], [target]);

        const drained = run(["cluster", "drain", target, ...at]);
        assert.equal(drained.status, 0, drained.stderr);
        assert.match(drained.stdout, new RegExp(`^Node '${target}' owns no partitions any more\\.$`, "m"));
        assert.ok(!(target in owned(await cluster.status())));
        assert.equal(owners(await cluster.status()).size, 1);
        assert.equal(run(["cluster", "undrain", target, ...at]).status, 0);
        for (const id of ["x", "y", "z"])
            await clientOf(cluster.nodes[2]).database("sharing").container(id).items.create({ id: "1", pk: "1" });
    });

    for (const [what, isDead] of [["pauses", false], ["pauses for longer than its lease", true]]) {
        test(`an id that is made again while a node ${what} is the new one there at once`, async () => {
            const { spaces } = await cluster.status();
            const { owner } = spaces.find(({ id }) => id === 1);
            const paused = cluster.nodes.find(({ name }) => name !== owner);
            const maker = cluster.nodes.find((node) => node !== paused);
            const id = isDead ? "dead" : "paused";
            const old = await makeAgain(maker, id, 0, { drops: false });
            await usesAgain(paused, old, 0, []);
            await paused.pause();
            let made;
            const making = makeAgain(maker, id, 1).then((resource) => (made = resource));
            making.catch(() => undefined); // is awaited
            try {
                if (isDead) await making;
                else await wait(1000);
                assert.equal(made !== undefined, isDead, "it is answered when every living node has it");
                // Asked before it goes on, so answered with what it knows in its first moment.
                const asked = !isDead ? [] : [
                    call(paused, { path: `/dbs/shop/colls/${id}` }),
                    call(paused, { path: `/dbs/shop/colls/${id}/docs/0`, headers: { "x-ms-documentdb-partitionkey": '["a"]' } }),
                ];
                await wait(100);
                paused.resume();
                const [container, item] = await Promise.all(asked);
                if (container?.status === 200) assert.equal(container.json._rid, made._rid);
                assert.notEqual(item?.status, 200, item?.text);
            } finally {
                paused.resume();
            }
            await making;
            await usesAgain(paused, made, 1, [old], isDead ? clientOf : plainClient); // a dead one joins again first
        });
    }

    test("nodes that are stopped together do not wait for each other", async () => {
        const begun = Date.now();
        await Promise.all(cluster.nodes.map((node) => node.stopWell()));
        assert.ok(Date.now() - begun < STOPPED_MS, `${Date.now() - begun} ms`);
    });
});

test("copies at the same place of the log are equal, and a node without a copy says so", async (t) => {
    const cluster = await startCluster(t, { engine, count: 2 });
    await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 2, "two nodes");
    const [container] = await makeContainer(cluster);
    for (let i = 0; i < 40; i++) await container.items.create({ id: `i${i}`, pk: `k${i}`, text: "x".repeat(i) });
    const ask = async (node, space) => {
        const answer = await call(node, { path: `/_orrery/cluster/digest?space=${space}`, type: "", link: "" });
        return { status: answer.status, ...answer.json };
    };
    const { spaces } = await cluster.status();
    const digests = new Set();
    for (const { id } of spaces) {
        for (let tries = 0; ; tries++) {
            const [a, b] = await Promise.all(cluster.nodes.map((node) => ask(node, id)));
            if (a.status === 200 && b.status === 200 && a.place === b.place) {
                assert.equal(a.digest, b.digest, `space ${id} at ${a.place}`);
                digests.add(a.digest);
                break;
            }
            assert.ok(tries < 1000, `space ${id}: ${JSON.stringify([a, b])}`);
            await wait(20);
        }
    }
    assert.equal(digests.size, spaces.length, "a digest says what a space holds");
    assert.equal((await ask(cluster.nodes[0], 999_999)).status, 404);
    assert.equal((await ask(cluster.nodes[0], "x")).status, 400);
});

test("views name the ranges of a node that does not answer, and have them again when it does", { timeout: 180_000 }, async (t) => {
    const cluster = await startCluster(t, { engine, count: 2, replicas: 2 });
    await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 2, "two nodes");
    const made = await makeContainer(cluster);
    for (let i = 0; i < 100; i++) await made[i % 2].items.create({ id: `i${i}`, pk: `k${i}` });
    await cluster.until((status) => status.spaces.every((space) => space.replicas.every(({ state }) => state === "following")), "copied");
    const { spaces } = await cluster.status();
    const { ranges } = await view(cluster.nodes[0], "items", "layout");
    const lost = ranges.filter(({ space }) => spaces.find(({ id }) => id === space).owner === "b");
    assert.ok(lost.length > 0);
    const left = 100 - lost.reduce((sum, { items }) => sum + items, 0);
    await cluster.nodes[1].pause();
    const begun = Date.now();
    const { json } = await call(cluster.nodes[0], { path: "/_orrery/containers", type: "", link: "" });
    assert.ok(Date.now() - begun < 5000, `${Date.now() - begun} ms`);
    assert.deepEqual(json.containers[0].missingRanges, lost.map(({ id }) => id));
    assert.equal(json.containers[0].items, left);
    for (const end = Date.now() + 30_000; ; await wait(100)) {
        const { totals, missingRanges } = await view(cluster.nodes[0], "items", "layout");
        if (missingRanges.length === 0) {
            assert.equal(totals.items, 100);
            break;
        }
        assert.ok(Date.now() < end, "never complete again");
    }
    cluster.nodes[1].resume();
});

test("nothing acknowledged is lost when a node dies, and it is served again", { timeout: 180_000 }, async (t) => {
    const cluster = await startCluster(t, { engine });
    await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 3, "three nodes");
    await makeContainer(cluster);
    const writers = new Writers(cluster, "items");
    await wait(2000);
    for (const victim of [0, 1]) {
        const node = cluster.nodes[victim];
        await node.kill();
        const died = Date.now();
        await servedAgain(t, cluster, died, `the death of node ${node.name}`);
        await node.start();
        await cluster.until((s) => s.nodes.filter((n) => n.state === "live").length === 3, "three nodes again");
    }
    await writers.stop();
    t.diagnostic(`${writers.acknowledged.size} items, longest gap ${writers.longestGap_ms} ms, ${writers.errors.length} errors`);
    for (const error of writers.errors) assert.ok([408, 429, "ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(error.code), `${error.code}: ${error.message}`);
    for (const node of cluster.nodes) await writers.check(clientOf(node).database("shop").container("items"));
    for (const node of cluster.nodes) await node.stopWell();
    for (const node of cluster.nodes) {
        const checked = run(["check", "--data", node.data]);
        assert.equal(checked.status, 0, checked.stdout + checked.stderr);
    }
});

test("nobody sees an error when nodes are stopped on purpose, one after the other", { timeout: 180_000 }, async (t) => {
    const cluster = await startCluster(t, { engine });
    await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 3, "three nodes");
    await makeContainer(cluster);
    const [kept] = cluster.nodes;
    const writers = new Writers({ living: [kept] }, "items", 4);
    await wait(1000);
    for (const node of cluster.nodes.slice(1)) {
        await node.stopWell();
        await wait(500);
        await node.start();
        await cluster.until((s) => s.nodes.filter((n) => n.state === "live").length === 3, "three nodes again");
    }
    await writers.stop();
    assert.deepEqual(writers.errors.map((error) => `${error.code} ${error.message}`), []);
    await writers.check(clientOf(kept).database("shop").container("items"));
    t.diagnostic(`longest gap ${writers.longestGap_ms} ms`);
});

test("a node that was removed is forgotten, and its name begins anew", { timeout: 180_000 }, async (t) => {
    const cluster = await startCluster(t, { engine });
    await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 3, "three nodes");
    const [container] = await makeContainer(cluster);
    for (let i = 0; i < 20; i++) await container.items.create({ id: `i${i}`, pk: `k${i}` });
    const [kept, , gone] = cluster.nodes;
    const at = ["--endpoint", kept.endpoint];
    const refused = run(["cluster", "remove", "c", ...at]);
    assert.equal(refused.status, 1, "a node that lives is not removed");
    await gone.stopWell();
    const removed = run(["cluster", "remove", "c", ...at]);
    assert.equal(removed.status, 0, removed.stderr);
    assert.equal(removed.stdout, "Node 'c' is forgotten.\n");
    const { nodes, spaces } = await cluster.status(kept);
    assert.deepEqual(nodes.map((node) => node.name).sort(), ["a", "b"]);
    for (const space of spaces) assert.ok(space.replicas.every((replica) => replica.node !== "c"));
    assert.doesNotMatch(run(["cluster", "status", ...at]).stdout, /^c\b/m);
    assert.equal(run(["cluster", "remove", "c", ...at]).status, 1);

    cluster.nodes.pop();
    await cluster.add("c");
    const isCopied = (s) =>
        s.spaces.every((space) =>
            ["a", "b", "c"].every(
                (name) =>
                    space.owner === name ||
                    space.replicas.some((one) => one.node === name && one.state === "following" && one.applied === space.tail),
            ),
        );
    await cluster.until(isCopied, "copied", { node: kept });
    await cluster.compareCopies();
    for (let i = 0; i < 20; i++) {
        const { statusCode } = await plainClient(cluster.nodes[2])
            .database("shop")
            .container("items")
            .item(`i${i}`, `k${i}`)
            .read();
        assert.equal(statusCode, 200);
    }
});

test("the engine's primary dies and its standby takes over", { timeout: 180_000 }, async (t) => {
    const own = new Engine();
    t.after(() => own.end());
    const cluster = await startCluster(t, { engine: own });
    await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 3, "three nodes");
    await makeContainer(cluster);
    const writers = new Writers(cluster, "items");
    await wait(1500);
    own.kill(own.primary);
    await wait(500);
    own.promote();
    await servedAgain(t, cluster, Date.now(), "the promotion");
    await wait(1000);
    await writers.stop();
    assert.ok(writers.acknowledged.size > 0);
    for (const node of cluster.nodes) await writers.check(clientOf(node).database("shop").container("items"));
    for (const error of writers.errors) assert.ok([408, 429].includes(error.code), `${error.code}: ${error.message}`);
});

test("a folder belongs to one node of one cluster", async (t) => {
    const cluster = await startCluster(t, { engine, count: 1 });
    const [node] = cluster.nodes;
    await node.stopWell();
    const refused = async (options, why) => {
        const { args } = options;
        const result = run(["serve", "--data", node.data, "--host", "127.0.0.1", ...args]);
        assert.equal(result.status, 1, result.stderr);
        assert.match(result.stderr, why);
    };
    await refused({ args: ["--port", "0"] }, /--cluster/);
    const other = await startCluster(t, { engine, count: 1 });
    await refused(await other.options("a"), /another cluster .*--cluster .*empty folder/);
    await refused(await cluster.options("b"), /is of the node 'a', not of 'b'; .*--node a/);
    const alone = await startServer(t, {});
    await alone.stopWell();
    const result = run(["serve", "--data", alone.data, ...(await cluster.options("z")).args]);
    assert.equal(result.status, 1);
    assert.match(result.stderr, /adopt|no cluster/);
    assert.ok(existsSync(join(node.data, "CLUSTER")));
});

test("two processes cannot be one node", async (t) => {
    const cluster = await startCluster(t, { engine, count: 1 });
    const folder = join(temporaryFolder(), "data");
    const result = run(["serve", "--data", folder, "--host", "127.0.0.1", ...(await cluster.options("a")).args]);
    assert.equal(result.status, 1);
    assert.match(result.stderr, /'a'/);
});

test("nodes reach each other where --peer says", async (t) => {
    const cluster = new Cluster(t, { engine, replicas: 2 });
    const peers = [];
    for (const name of ["a", "b"]) {
        const peer = `127.0.0.2:${await freePort()}`;
        peers.push(peer);
        cluster.args = ["--peer", peer];
        await cluster.add(name);
    }
    const { nodes } = await cluster.until((status) => status.nodes.filter((n) => n.state === "live").length === 2, "two nodes");
    assert.deepEqual(nodes.map(({ address }) => address).sort(), peers.sort());
    assert.deepEqual(nodes.map(({ advertise }) => advertise).sort(), cluster.nodes.map(({ endpoint }) => endpoint).sort());
    const made = await makeContainer(cluster);
    for (let i = 0; i < 40; i++) {
        await made[i % 2].items.create({ id: `i${i}`, pk: `k${i}` });
        assert.equal((await made[(i + 1) % 2].item(`i${i}`, `k${i}`).read()).statusCode, 200);
    }
    assert.ok(Object.keys(owned(await cluster.status())).length === 2, "requests were sent on");
});

test("docs/cluster.md names every option of a node", () => {
    const text = readFileSync(new URL("../docs/cluster.md", import.meta.url), "utf8");
    for (const option of ["cluster", "cluster-secret", "node", "advertise", "peer", "replicas", "journal-keep", "journal-bytes", "allow-weak-engine"])
        assert.ok(text.includes(`--${option}`), option);
});
