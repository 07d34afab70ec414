// Restores to an earlier time, and what a restored server means for its clients.
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { backup, check, manifestOf, restore } from "./lib/backups.mjs";
import { callItems, contentOf, newContainer, SIZES } from "./lib/items.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer, temporaryFolder } from "./lib/server.mjs";

const VERSIONS = { changeFeedPolicy: { retentionDuration: 10 } };
const textOf = (seconds) => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");

async function contentsOf(container) {
    const { resources } = await container.items.readAll().fetchAll();
    return resources.map(contentOf).sort((a, b) => (a.id + a.pk < b.id + b.pk ? -1 : 1));
}

/** Some changes of every kind, under keys that lie in several partitions. */
async function change(container, random, round) {
    for (let i = 0; i < 12; i++) {
        const pk = `k${random.below(6)}`;
        const id = `i${random.below(5)}`;
        const item = { id, pk, round, n: random.below(1000), text: "x".repeat(random.below(3000)) };
        if (random.chance(30)) await container.item(id, pk).delete().catch((error) => assert.equal(error.code, 404));
        else if (random.chance(20))
            await container
                .item(id, pk)
                .patch([{ op: "set", path: "/patched", value: round }])
                .catch((error) => assert.equal(error.code, 404));
        else await container.items.upsert(item);
    }
}

test("items are taken back to any second that the kept versions reach", { timeout: 120_000 }, async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const random = new Random(seed);
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const plain = await newContainer(database);
    const containers = [];
    for (const size of SIZES) containers.push(await newContainer(database, size, VERSIONS));
    await plain.items.create({ id: "p", pk: "p", n: 1 });
    const moments = [];
    for (let round = 0; round < 3; round++) {
        for (const container of containers) await change(container, random, round);
        const states = [];
        for (const container of containers) states.push(await contentsOf(container));
        // The second in which the last change was made is over, and the next begins in another one.
        const { headers } = await database.read();
        const second = Math.floor(Date.parse(headers.date ?? new Date().toUTCString()) / 1000);
        moments.push({ second, states });
        await wait(2100);
    }
    await plain.items.upsert({ id: "p", pk: "p", n: 2 });
    const to = join(temporaryFolder(), "backups");
    await backup(server.endpoint, to);
    await server.stop();

    for (const { second, states } of moments) {
        const data = join(temporaryFolder(), "data");
        const refused = run(["restore", "--from", to, "--data", data, "--at", textOf(second)]);
        assert.equal(refused.status, 1);
        assert.match(refused.stderr, new RegExp(`the container 'db/${plain.id}' does not keep all versions`));
        const said = await restore(to, data, "--at", textOf(second), "--at-best-effort");
        assert.match(said, new RegExp(`db/${plain.id}: left as it is in the backup`));
        for (const { id } of containers) assert.match(said, new RegExp(`db/${id}: \\d+ changes undone`));
        check(data);
        const copy = await startServer(t, { data });
        for (const [i, { id }] of containers.entries())
            assert.deepEqual(await contentsOf(clientOf(copy).database("db").container(id)), states[i]);
        const { resource } = await clientOf(copy).database("db").container(plain.id).item("p", "p").read();
        assert.equal(resource.n, 2);
        await copy.stop();
    }
    const rows = [
        [["--at", textOf(Math.floor(Date.now() / 1000) + 3600)], 1, /has nothing that was written later/],
        [["--at", "yesterday"], 2, /--at must be a time such as/],
        [["--at-best-effort"], 2, /needs --at/],
    ];
    for (const [more, status, message] of rows) {
        const answer = run(["restore", "--from", to, "--data", join(temporaryFolder(), "x"), ...more]);
        assert.equal(answer.status, status, answer.stderr);
        assert.match(answer.stderr, message);
    }
});

test("a time before the kept versions is refused with the earliest that is possible", { timeout: 60_000 }, async (t) => {
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    await container.items.create({ id: "a", pk: "p", n: 1 });
    await wait(2100);
    const { resource: definition } = await container.read();
    await container.replace({ ...definition, ...VERSIONS });
    const { resource: changed } = await container.read();
    await wait(2100);
    await container.items.upsert({ id: "a", pk: "p", n: 2 });
    await container.items.create({ id: "b", pk: "p" });
    const to = join(temporaryFolder(), "backups");
    await backup(server.endpoint, to);
    const data = join(temporaryFolder(), "data");
    const early = run(["restore", "--from", to, "--data", data, "--at", textOf(changed._ts - 2)]);
    assert.equal(early.status, 1);
    const [, earliest] = /the earliest time is (\S+)/.exec(early.stderr) ?? assert.fail(early.stderr);
    assert.equal(earliest, textOf(changed._ts));
    await restore(to, data, "--at", earliest);
    check(data);
    const copy = await startServer(t, { data });
    const found = await contentsOf(clientOf(copy).database("db").container(container.id));
    assert.deepEqual(found, [{ id: "a", pk: "p", n: 1 }], "the version from before the policy");
});

test("whoever has followed a lost server misses nothing of the restored one", { timeout: 60_000 }, async (t) => {
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    const empty = await newContainer(database);
    const feed = (from, of, etag) =>
        callItems(from, of, {
            headers: { "a-im": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0", ...(etag && { "if-none-match": etag }) },
        });
    await container.items.create({ id: "before", pk: "p" });
    const to = join(temporaryFolder(), "backups");
    await backup(server.endpoint, to);
    const rids = new Set();
    const etags = new Set();
    for (let i = 0; i < 20; i++) {
        for (const of of [container, empty]) {
            const { resource } = await of.items.create({ id: `lost${i}`, pk: "p" });
            rids.add(resource._rid);
            etags.add(resource._etag);
        }
    }
    const { resource: lostDatabase } = await clientOf(server).databases.create({ id: "lost" });
    const seen = [];
    for (const of of [container, empty]) seen.push((await feed(server, of)).headers.etag);
    await server.kill();

    const data = join(temporaryFolder(), "data");
    await restore(to, data);
    const copy = await startServer(t, { data });
    for (const [i, of] of [container, empty].entries()) {
        const again = clientOf(copy).database("db").container(of.id);
        for (let n = 0; n < 20; n++) {
            const { resource } = await again.items.create({ id: `new${n}`, pk: "p" });
            assert.ok(!rids.has(resource._rid), "no resource id is given out twice");
            assert.ok(!etags.has(resource._etag), "nor an ETag");
        }
        const { json } = await feed(copy, of, seen[i]);
        assert.deepEqual(json.Documents.map(({ id }) => id), Array.from({ length: 20 }, (_, n) => `new${n}`));
    }
    const { resource: other } = await clientOf(copy).databases.create({ id: "other" });
    assert.notEqual(other._rid, lostDatabase._rid);
    assert.ok(manifestOf(to, 1).partitions.every(({ lsn }) => lsn < 10));
    await copy.stop();
    check(data);
});
