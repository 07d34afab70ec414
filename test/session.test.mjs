// Session tokens: they grow, clients carry them, and a partition that is behind says so.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { callItems, eachSize, ownContainer, SIZES } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "session" });
const containers = await eachSize(database);

function onEach(name, work) {
    for (const [size, container] of containers)
        test(`${name} (${size})`, (t) => work(container, unique("key"), t));
}

const parse = (token) => /^(\d+):-1#(\d+)$/.exec(token).slice(1).map(Number);

onEach("each write has a larger token than the one before it, in its range", async (container, pk) => {
    let [range, last] = parse((await container.items.create({ id: "x", pk })).headers["x-ms-session-token"]);
    for (let i = 0; i < 10; i++) {
        const { headers } = await container.item("x", pk).replace({ id: "x", pk, i });
        const [same, lsn] = parse(headers["x-ms-session-token"]);
        assert.equal(same, range);
        assert.ok(lsn > last, `${lsn} after ${last}`);
        last = lsn;
        const read = await container.item("x", pk).read();
        assert.ok(parse(read.headers["x-ms-session-token"])[1] >= lsn);
    }
    const batch = await container.items.batch([{ operationType: "Read", id: "x" }], pk);
    assert.ok(parse(batch.headers["x-ms-session-token"])[1] >= last);
});

onEach("keys of one range share its tokens", async (container, pk) => {
    const lsns = {};
    for (let i = 0; i < 40; i++) {
        const { headers } = await container.items.create({ id: "x", pk: `${pk}-${i}` });
        const [range, lsn] = parse(headers["x-ms-session-token"]);
        assert.ok(lsn > (lsns[range] ?? 0));
        lsns[range] = lsn;
    }
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
    assert.equal(Object.keys(lsns).length, ranges.length, "every range got some");
    const { headers } = await callItems(server, container);
    for (const token of headers["x-ms-session-token"].split(",")) {
        const [range, lsn] = parse(token);
        assert.ok(lsn >= lsns[range], "a list is at least as new");
    }
});

onEach("a client with session consistency reads what it has written", async (container, pk) => {
    const own = clientOf(server, { consistencyLevel: "Session" });
    const mine = own.database(database.id).container(container.id);
    for (let i = 0; i < 20; i++) {
        const key = `${pk}-${i % 5}`;
        await mine.items.upsert({ id: "x", pk: key, i });
        assert.equal((await mine.item("x", key).read()).resource.i, i);
        const { resources } = await mine.items.query("SELECT * FROM c", { partitionKey: key }).fetchAll();
        assert.deepEqual(
            resources.map((item) => item.i),
            [i],
        );
        const all = await mine.items.query(`SELECT VALUE c.i FROM c WHERE c.pk = '${key}'`).fetchAll();
        assert.deepEqual(all.resources, [i]);
    }
    await mine.item("x", `${pk}-0`).delete();
    assert.equal((await mine.item("x", `${pk}-0`).read()).statusCode, 404);
});

onEach("a token ahead of the partition is not served", async (container, pk) => {
    const { headers } = await container.items.create({ id: "x", pk });
    const [range, lsn] = parse(headers["x-ms-session-token"]);
    const ask = (token, more = {}) =>
        callItems(server, container, { key: pk, headers: { "x-ms-session-token": token }, ...more });
    const ahead = `${range}:-1#${lsn + 1_000_000}`;
    const far = lsn + 1_000_000;
    for (const token of [ahead, `${range}:1#${far}#5=3`, `99:-1#1,${ahead}`, `${range}:${far}`]) {
        for (const more of [{ id: "x" }, {}]) {
            const answer = await ask(token, more);
            errorAnswer(answer, 404, "NotFound", { substatus: 1002 });
            assert.equal(answer.headers["x-ms-session-token"], undefined, "clients must not merge it");
        }
    }
    for (const token of [
        `${range}:-1#${lsn}`,
        `${range}:-1#0`,
        `${range}:${lsn}`,
        `${range}:-1#${lsn}#1=5#2=7`,
        `${range}:6#NaN`,
        `77:-1#99999999`,
        `${range}:-1#1,${range + 7}:-1#999999`,
        ` ${range}:-1#1 , 8:-1#5 `,
    ]) {
        const answer = await ask(token, { id: "x" });
        assert.equal(answer.status, 200, `${token}: ${answer.text}`);
        assert.equal((await ask(token)).status, 200, token);
    }
    for (const token of ["nonsense", "0", ",0", "0:1,x"]) {
        const answer = await ask(token, { id: "x" });
        errorAnswer(answer, 400, "BadRequest", { message: /InvalidSessionToken/ });
    }
});

onEach("a level stronger than the account's is refused", async (container, pk) => {
    await container.items.create({ id: "x", pk });
    for (const [level, status] of [
        ["Strong", 400],
        ["BoundedStaleness", 400],
        ["Session", 200],
        ["ConsistentPrefix", 200],
        ["Eventual", 200],
        ["Whatever", 400],
    ]) {
        const answer = await callItems(server, container, {
            id: "x",
            key: pk,
            headers: { "x-ms-consistency-level": level },
        });
        assert.equal(answer.status, status, level);
    }
});

for (const size of SIZES)
    test(`tokens grow on after a restart and a crash (${size.partitions} partitions)`, async (t) => {
        const { server: own, container } = await ownContainer(t, size, {}, []);
        const pk = "p";
        let last = 0;
        const write = async () => {
            const body = { id: "x", pk };
            const headers = { "x-ms-documentdb-is-upsert": "true" };
            const answer = await callItems(own, container, { method: "POST", key: pk, headers, body });
            const [, lsn] = parse(answer.headers["x-ms-session-token"]);
            assert.ok(lsn > last, `${lsn} after ${last}`);
            last = lsn;
            const token = { "x-ms-session-token": answer.headers["x-ms-session-token"] };
            const read = await callItems(own, container, { id: "x", key: pk, headers: token });
            assert.equal(read.status, 200);
            assert.equal(read.headers.etag, answer.headers.etag);
        };
        for (let round = 0; round < 3; round++) {
            for (let i = 0; i < 5; i++) await write();
            await own.restart();
            await write();
            await own.kill();
            await own.start();
        }
    });
