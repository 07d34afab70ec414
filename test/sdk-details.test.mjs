// Small things that SDKs, their tests and programs built on them see in answers.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { callItems, newContainer, SIZES } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ofOneNode, sharedServer, startServer } from "./lib/server.mjs";
import { answers, call, Line, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "details" });
const DURATION = /^\d+\.\d{3}$/;

test("every answer tells how long it took, good or bad", async () => {
    const container = await newContainer(database);
    const path = `/dbs/details/colls/${container.id}`;
    await container.items.create({ id: "i", pk: "p" });
    const key = { "x-ms-documentdb-partitionkey": '["p"]' };
    const requests = {
        "the account": { path: "/" },
        databases: { path: "/dbs" },
        "a container": { path },
        ranges: { path: `${path}/pkranges` },
        items: { path: `${path}/docs` },
        "an item": { path: `${path}/docs/i`, headers: key },
        "no item": { path: `${path}/docs/none`, headers: key },
        "no database": { path: "/dbs/none" },
        "a bad body": { method: "POST", path: `${path}/docs`, body: "{", headers: key },
        "no permission": { path: "/dbs", headers: { authorization: "type%3Dmaster%26ver%3D1.0%26sig%3Dx" } },
        health: { path: "/healthz" },
    };
    for (const [name, request] of Object.entries(requests)) {
        const answer = await call(server, request);
        assert.match(answer.headers["x-ms-request-duration-ms"] ?? "", DURATION, name);
    }
    const asked = await query(server, `${path}/docs`, "SELECT * FROM c", {
        headers: { "x-ms-documentdb-query-enablecrosspartition": "true" },
    });
    assert.match(asked.headers["x-ms-request-duration-ms"] ?? "", DURATION);
});

test("what is refused before it is a request has the headers of every answer", { skip: ofOneNode("the proxy refuses it") }, async () => {
    const host = "Host: localhost\r\n";
    const requests = {
        "no HTTP": [400, "rubbish\r\n\r\n"],
        "two lengths": [400, `POST /dbs HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`],
        "a long head": [400, `GET / HTTP/1.1\r\n${host}x: ${"y".repeat(100000)}\r\n\r\n`],
        "a long body": [413, `POST /dbs HTTP/1.1\r\n${host}Content-Length: 100000000\r\n\r\n`],
    };
    for (const [name, [status, text]] of Object.entries(requests)) {
        const line = await Line.open(server.port);
        line.send(text);
        const [answer] = answers(await line.end());
        line.close();
        assert.equal(answer.status, status, name);
        assert.ok(JSON.parse(answer.body).message, name);
        assert.match(answer.headers["x-ms-request-duration-ms"] ?? "", DURATION, name);
        assert.match(answer.headers["x-ms-activity-id"] ?? "", /^[\da-f-]{36}$/, name);
        assert.equal(answer.headers["x-ms-request-charge"], "0", name);
        assert.equal(answer.headers["x-ms-gatewayversion"], (await call(server, { path: "/" })).headers["x-ms-gatewayversion"]);
    }
});

test("a read of an item tells the LSN of its last change, and where it is", async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        const read = (id) => callItems(server, container, { id, key: "p" });
        const made = await callItems(server, container, { method: "POST", key: "p", body: { id: "a", pk: "p" } });
        assert.equal(made.headers["x-ms-item-lsn"], undefined);
        await container.items.create({ id: "b", pk: "p" });
        const first = await read("a");
        assert.equal(first.headers["x-ms-item-lsn"], made.headers.lsn);
        assert.ok(Number(first.headers.lsn) > Number(made.headers.lsn));
        const location = new URL(first.headers["content-location"]);
        assert.equal(location.host, new URL(server.endpoint).host);
        assert.equal(location.pathname, `/dbs/details/colls/${container.id}/docs/a`);
        const known = await callItems(server, container, {
            id: "a",
            key: "p",
            headers: { "if-none-match": first.headers.etag },
        });
        assert.equal(known.status, 304);
        assert.equal(known.headers["x-ms-item-lsn"], made.headers.lsn);
        const changed = await container.item("a", "p").replace({ id: "a", pk: "p", n: 1 });
        assert.equal((await read("a")).headers["x-ms-item-lsn"], changed.headers.lsn);
        assert.equal((await read("none")).headers["x-ms-item-lsn"], undefined);
    }
});

test("the text about an item that is not there names its type", async () => {
    const container = await newContainer(database);
    for (const request of [
        { id: "none" },
        { method: "DELETE", id: "none" },
        { method: "PUT", id: "none", body: { id: "none", pk: "p" } },
        { method: "PATCH", id: "none", body: [{ op: "set", path: "/n", value: 1 }] },
    ]) {
        const answer = await callItems(server, container, { key: "p", ...request });
        errorAnswer(answer, 404, "NotFound", { message: /Resource Not Found.*ResourceType: Document/s });
    }
});

const BATCH = {
    "x-ms-cosmos-is-batch-request": "true",
    "x-ms-cosmos-batch-atomic": "true",
    "x-ms-documentdb-partitionkey": '["p"]',
};
const batch = (container, operations, headers = {}) =>
    callItems(server, container, {
        method: "POST",
        body: JSON.stringify(operations),
        headers: { ...BATCH, ...headers },
    });

test("a batch that reads honours its session token", async () => {
    const container = await newContainer(database);
    const made = await callItems(server, container, { method: "POST", key: "p", body: { id: "a", pk: "p" } });
    const lsn = Number(made.headers.lsn);
    const ahead = { "x-ms-session-token": `0:-1#${lsn + 100}` };
    const read = [{ operationType: "Read", id: "a" }];
    const write = (id) => [{ operationType: "Create", resourceBody: { id, pk: "p" } }];
    errorAnswer(await batch(container, read, ahead), 404, "NotFound", { substatus: 1002 });
    errorAnswer(await batch(container, [...write("x"), ...read], ahead), 404, "NotFound", { substatus: 1002 });
    assert.equal((await callItems(server, container, { id: "x", key: "p" })).status, 404);
    assert.equal((await batch(container, write("b"), ahead)).status, 200);
    assert.equal((await batch(container, read, { "x-ms-session-token": `0:-1#${lsn}` })).status, 200);
});

test("a batch read of a version that the client has is 304, by either condition", async () => {
    const container = await newContainer(database);
    const { etag } = await container.items.create({ id: "a", pk: "p" });
    for (const condition of ["ifMatch", "ifNoneMatch"]) {
        const status = async (tag) =>
            (await batch(container, [{ operationType: "Read", id: "a", [condition]: tag }])).json[0].statusCode;
        assert.equal(await status(etag), 304, condition);
        assert.equal(await status('"another"'), 200, condition);
    }
});

test("a batch whose only read found nothing does not name the container", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "a", pk: "p" });
    const read = (...ids) => batch(container, ids.map((id) => ({ operationType: "Read", id })));
    assert.equal((await read("none")).headers["x-ms-content-path"], undefined);
    assert.ok((await read("a")).headers["x-ms-content-path"]);
    assert.ok((await read("a", "none")).headers["x-ms-content-path"]);
});

test("the time of a query includes its parts, and compiling takes some", async () => {
    const container = await newContainer(database);
    for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: "p", n: i });
    const answer = await query(server, `/dbs/details/colls/${container.id}/docs`, "SELECT * FROM c WHERE c.n > 3", {
        headers: {
            "x-ms-documentdb-partitionkey": '["p"]',
            "x-ms-documentdb-populatequerymetrics": "true",
        },
    });
    const metrics = Object.fromEntries(
        answer.headers["x-ms-documentdb-query-metrics"].split(";").map((part) => part.split("=")),
    );
    const of = (name) => Number(metrics[name]);
    assert.ok(of("queryCompileTimeInMs") > 0, metrics.queryCompileTimeInMs);
    const parts = ["indexLookupTimeInMs", "documentLoadTimeInMs", "writeOutputTimeInMs"];
    assert.ok(of("documentLoadTimeInMs") > 0 && of("documentLoadTimeInMs") < 1000);
    assert.ok(of("writeOutputTimeInMs") > 0 && of("writeOutputTimeInMs") < 1000);
    const hundredths = (name) => Math.round(of(name) * 100);
    const sum = parts.reduce((total, name) => total + hundredths(name), 0);
    // Each of the four is rounded for itself.
    assert.ok(hundredths("VMExecutionTimeInMs") >= sum - 2, answer.headers["x-ms-documentdb-query-metrics"]);
});

test("offers tell whether they are pending, and keep the increment of autoscale", async () => {
    const increment = (incrementPercent) => ({ throughputPolicy: { incrementPercent } });
    const { container } = await database.containers.create({
        id: unique("c"),
        partitionKey: { paths: ["/pk"] },
        maxThroughput: 4000,
        autoUpgradePolicy: increment(10),
    });
    const { resource: offer } = await container.readOffer();
    assert.equal(offer.content.isOfferReplacePending, false);
    assert.deepEqual(offer.content.offerAutopilotSettings.autoUpgradePolicy, increment(10));
    const path = `/offers/${offer.id}`;
    const put = (settings) =>
        call(server, {
            method: "PUT",
            path,
            link: offer.id.toLowerCase(),
            type: "offers",
            body: { ...offer, content: { offerThroughput: -1, offerAutopilotSettings: settings } },
        });
    const changed = await put({ maxThroughput: 5000, autoUpgradePolicy: increment(25) });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(changed.json.content.offerAutopilotSettings.autoUpgradePolicy, increment(25));
    const without = await put({ maxThroughput: 5000 });
    assert.equal(without.json.content.offerAutopilotSettings.autoUpgradePolicy, undefined);
    for (const bad of ["10", -1, 101, 1.5])
        errorAnswer(await put({ maxThroughput: 5000, autoUpgradePolicy: increment(bad) }), 400, "BadRequest", {
            message: /incrementPercent/,
        });
});

test("an increment of autoscale outlives a restart", async (t) => {
    const own = await startServer(t);
    const { database: db } = await clientOf(own).databases.create({
        id: "d",
        maxThroughput: 4000,
        autoUpgradePolicy: { throughputPolicy: { incrementPercent: 7 } },
    });
    const percent = async (of) =>
        (await of.readOffer()).resource.content.offerAutopilotSettings.autoUpgradePolicy.throughputPolicy
            .incrementPercent;
    assert.equal(await percent(db), 7);
    await own.restart();
    assert.equal(await percent(clientOf(own).database("d")), 7);
});

test("what cannot be an offer's id is a bad request", async () => {
    const get = (id) => call(server, { path: `/offers/${id}`, type: "offers", link: id.toLowerCase() });
    for (const id of ["rubbish", "Rubbish", "AAAAAAAA", "x"]) errorAnswer(await get(id), 400, "BadRequest");
    for (const id of ["rubbish", "x"])
        errorAnswer(await call(server, { path: `/offers/${id}` }), 400, "BadRequest");
    errorAnswer(await get("AAAA"), 404, "NotFound");
});

test("a container tells what its partitions hold, if asked", async () => {
    for (const size of SIZES) {
        const container = await newContainer(database, size);
        for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: `k${i}` });
        const path = `/dbs/details/colls/${container.id}`;
        const headers = { "x-ms-documentdb-populatepartitionstatistics": "true" };
        const { json, headers: answered } = await call(server, { path, headers });
        assert.equal(json.statistics.length, size.partitions);
        assert.equal(json.statistics.reduce((sum, one) => sum + one.documentCount, 0), 20);
        for (const { id, sizeInKB, documentCount, sampledDistinctPartitionKeyCount, partitionKeys } of json.statistics) {
            assert.match(id, /^\d+$/);
            assert.equal(sizeInKB > 0, documentCount > 0);
            assert.equal(sampledDistinctPartitionKeyCount, documentCount);
            assert.equal(partitionKeys.length, Math.min(documentCount, 10));
            for (const one of partitionKeys) {
                assert.match(one.partitionKey[0], /^k\d+$/);
                assert.equal(one.sizeInKB, 1);
            }
        }
        const { statistics, ...rest } = json;
        assert.ok(statistics);
        assert.deepEqual((await call(server, { path })).json, rest);
        assert.equal(answered["x-ms-documentdb-collection-lazy-indexing-progress"], undefined);
    }
});

test("an old-style container shows a system key to newer clients", async () => {
    const id = unique("old");
    const old = { "x-ms-version": "2018-06-18" };
    const made = await call(server, { method: "POST", path: "/dbs/details/colls", headers: old, body: { id } });
    assert.equal(made.status, 201, made.text);
    assert.equal(made.json.partitionKey, undefined);
    const path = `/dbs/details/colls/${id}`;
    const key = { paths: ["/_partitionKey"], kind: "Hash", systemKey: true };
    const { json: seen } = await call(server, { path });
    assert.deepEqual(seen.partitionKey, key);
    assert.equal((await call(server, { path, headers: old })).json.partitionKey, undefined);
    const listed = async (headers) => {
        const { json } = await call(server, { path: "/dbs/details/colls", headers: { ...headers, "x-ms-max-item-count": "-1" } });
        return json.DocumentCollections.find((one) => one.id === id).partitionKey;
    };
    assert.deepEqual(await listed({}), key);
    assert.equal(await listed(old), undefined);
    const asked = await query(server, "/dbs/details/colls", "SELECT VALUE c.partitionKey FROM c WHERE c.id = @id", {
        parameters: [{ name: "@id", value: id }],
    });
    assert.deepEqual(asked.json.DocumentCollections, [key]);
    const put = await call(server, { method: "PUT", path, body: { ...seen, defaultTtl: 5 } });
    assert.equal(put.status, 200, put.text);
    assert.deepEqual(put.json.partitionKey, key);
    const { container } = { container: database.container(id) };
    await container.items.create({ id: "i" });
    assert.equal((await container.item("i", undefined).read()).resource.id, "i");
});

test("the account and its region have the names that they are given", async (t) => {
    const names = async (own) => {
        const { json } = await call(own, { path: "/" });
        for (const list of [json.writableLocations, json.readableLocations]) assert.equal(list.length, 1);
        assert.equal(json.writableLocations[0].name, json.readableLocations[0].name);
        return [json.id, json.readableLocations[0].name];
    };
    assert.deepEqual(await names(server), ["orrery", "South Central US"]);
    const own = await startServer(t, { args: ["--account", "contoso-1", "--region", "West Europe"] });
    assert.deepEqual(await names(own), ["contoso-1", "West Europe"]);
});
