// A data folder in which something is missing or damaged: no acknowledged write disappears silently.
// The server reports what is wrong and does not start, or answers completely, or reports the items
// for which it cannot; with --accept-lost-writes it goes on with the rest.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, readFileSync, rmSync, statSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { basename, join } from "node:path";
import test from "node:test";

import { endOfLog, needsDisk, smallDisk, storeFiles } from "./lib/disk.mjs";
import { LOSSES, filesOf, stateOf, zero } from "./lib/folder.mjs";
import { callItems, contentOf, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer } from "./lib/server.mjs";
import { send } from "./lib/wire.mjs";

const CACHE = ["--cache", "8M"];
const BLOCK = 32768;

const itemsOf = (prefix, count) =>
    Array.from({ length: count }, (_, i) => ({
        id: `${prefix}${i}`,
        pk: `k${i % 5}`,
        text: randomBytes(750).toString("base64"),
    }));

const check = (data, within) => run(["check", "--data", data], { within });

/** A folder with items in a table and later ones in the log, all acknowledged, of a server that was killed. */
async function leaveFolder(t, options = {}) {
    const server = await startServer(t, { args: CACHE, ...options });
    const { database } = await clientOf(server).databases.create({ id: "damage" });
    const container = await newContainer(database);
    const [tabled, logged] = [itemsOf("t", 40), itemsOf("l", 120)];
    for (const item of tabled) await container.items.create(item);
    await server.restart();
    const again = clientOf(server).database("damage").container(container.id);
    for (const item of logged) await again.items.create(item);
    await server.kill();
    return { server, container, tabled, logged };
}

/** What the server says about each item: the ones that are right, and the statuses of the others. */
async function readAll(t, server, container, items) {
    const agent = new Agent({ keepAlive: true });
    const found = { right: [], others: [] };
    for (const item of items) {
        const { status, json } = await callItems(server, container, { id: item.id, key: item.pk, agent });
        if (status === 200) assert.deepEqual(contentOf(json), item);
        if (status === 200) found.right.push(item);
        else found.others.push(status);
    }
    agent.destroy();
    return found;
}

/** It does not start, twice, and nothing in the folder has changed but RocksDB's own report. */
function expectRefused(server, message) {
    const state = () =>
        Object.entries(stateOf(server.data)).filter(([path]) => !/\/(LOG.*|LOCK|store|data)$/.test(path));
    const before = state();
    for (let i = 0; i < 2; i++) {
        const { status, stderr } = run(["serve", "--data", server.data, "--port", "0", ...CACHE]);
        assert.equal(status, 1, stderr);
        assert.match(stderr, message);
        assert.match(stderr, /^orrery: cannot open the data folder/m);
        assert.match(stderr, /restore the folder from a copy/);
    }
    assert.deepEqual(state(), before);
}

test("whichever file is lost or zeroed, nothing acknowledged disappears without a word", async (t) => {
    const { server, container, tabled, logged } = await leaveFolder(t);
    const items = [...tabled, ...logged];
    const copy = `${server.data}.copy`;
    cpSync(server.data, copy, { recursive: true });
    const [live] = storeFiles(copy, ".log");
    truncateSync(live, endOfLog(live)); // else the losses meet the room ahead of its end
    const count = { refused: 0, whole: 0, damaged: 0 };
    for (const path of filesOf(copy)) {
        for (const [how, lose] of Object.entries(LOSSES)) {
            rmSync(server.data, { recursive: true });
            cpSync(copy, server.data, { recursive: true });
            lose(join(server.data, path));
            const what = `${path} ${how}`;
            let refusal;
            await server.start().catch((error) => (refusal = error.message));
            if (refusal !== undefined) {
                assert.match(refusal, /^the server ended with 1 /, what);
                assert.match(refusal, /^orrery: /m, what);
                count.refused++;
                continue;
            }
            const { right, others } = await readAll(t, server, container, items);
            assert.deepEqual([...new Set(others)], others.length > 0 ? [500] : [], what);
            const health = await send(server.endpoint, { path: "/healthz" });
            assert.equal(health.json.status, others.length > 0 ? "damaged" : "ok", what);
            assert.equal(right.length + others.length, items.length);
            count[others.length > 0 ? "damaged" : "whole"]++;
            await server.stopWell();
        }
    }
    t.diagnostic(JSON.stringify(count));
    assert.ok(count.refused > 20 && count.whole > 20 && count.damaged > 0);
});

test("a folder without CURRENT, MANIFEST or a table is refused and left alone", async (t) => {
    const { server, container, tabled, logged } = await leaveFolder(t);
    for (const [name, message] of [
        ["CURRENT", /its file CURRENT is missing, but there is .*write the line MANIFEST-\d+ to CURRENT/],
        [/^MANIFEST-/, /its file MANIFEST-\d+ is missing/],
        [/\.sst$/, /its table \d+\.sst is missing/],
    ]) {
        const [path] = filesOf(join(server.data, "store")).filter((file) => file.match(name));
        const lost = join(server.data, "store", path);
        const kept = `${server.data}.kept`;
        cpSync(lost, kept);
        unlinkSync(lost);
        expectRefused(server, message);
        assert.equal(check(server.data).status, 1);
        assert.match(check(server.data).stderr, message);
        expectRefused(server, message); // not even the check has changed anything
        cpSync(kept, lost);
    }
    await server.start();
    const { right } = await readAll(t, server, container, [...tabled, ...logged]);
    assert.equal(right.length, tabled.length + logged.length);
});

test("a log that has lost acknowledged writes is refused, unless the loss is accepted", async (t) => {
    const { server, container, tabled, logged } = await leaveFolder(t);
    const copy = `${server.data}.copy`;
    cpSync(server.data, copy, { recursive: true });
    const [log] = storeFiles(server.data, ".log");
    const end = endOfLog(log);
    const name = basename(log).replace(".", "\\.");
    const zeroed = [0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8].map((part) => [
        () => zero(log, Math.floor((end * part) / BLOCK) * BLOCK, BLOCK),
        new RegExp(`its log ${name} is damaged at byte \\d+`),
    ]);
    for (const [lose, message] of [
        ...zeroed,
        [() => unlinkSync(log), new RegExp(`its log ${name} is missing`)],
        [() => truncateSync(log, 0), new RegExp(`its log ${name} ends at byte 0, and had ${end} bytes`)],
        [() => truncateSync(log, end >> 1), new RegExp(`its log ${name} ends at byte ${end >> 1}`)],
        [() => truncateSync(log, end - 1), new RegExp(`its log ${name} ends at byte ${end - 1}`)],
    ]) {
        rmSync(server.data, { recursive: true });
        cpSync(copy, server.data, { recursive: true });
        lose();
        expectRefused(server, message);
        const { status, stderr } = run(["serve", "--data", server.data, "--port", "0", "--durability", "relaxed"]);
        assert.equal(status, 1, stderr);
        assert.match(stderr, /--accept-lost-writes/);
        assert.match(check(server.data).stderr, message);

        // What stood before the damage is there, without a gap, and so is everything older.
        server.options.args = [...CACHE, "--accept-lost-writes"];
        await server.start();
        assert.ok(server.lines.some((line) => /store\.writes_lost .*\.log/.test(line)));
        const old = await readAll(t, server, container, tabled);
        assert.equal(old.right.length, tabled.length);
        const { right, others } = await readAll(t, server, container, logged);
        assert.ok(right.length < logged.length);
        assert.deepEqual(right, logged.slice(0, right.length));
        assert.deepEqual([...new Set(others)], [404]);
        const again = clientOf(server).database("damage").container(container.id);
        const fresh = { id: "fresh", pk: "k0", text: "x" };
        await again.items.create(fresh);

        // Once is enough.
        await server.kill();
        server.options.args = CACHE;
        await server.start();
        const all = [...tabled, ...right, fresh];
        assert.equal((await readAll(t, server, container, all)).right.length, all.length);
        await server.stopWell();
        const { status: agrees, stdout } = check(server.data);
        assert.equal(agrees, 0, stdout);
        assert.match(stdout, new RegExp(`with ${all.length} items: everything agrees`));
    }
});

test("a secret of tokens that was zeroed or cut is made anew", async (t) => {
    const server = await startServer(t);
    const file = join(server.data, "token.key");
    const { size } = statSync(file);
    for (const damage of [Buffer.alloc(size), Buffer.alloc(size - 1, "x"), Buffer.alloc(0)]) {
        await server.stopWell();
        writeFileSync(file, damage);
        await server.start();
        const secret = readFileSync(file);
        assert.equal(secret.length, size);
        assert.ok(new Set(secret).size > 8, "random bytes");
    }
});

test("a check changes nothing, whatever state the folder is in", async (t) => {
    const { server, logged, tabled } = await leaveFolder(t);
    const all = tabled.length + logged.length;
    const unchanged = (status, output) => {
        const before = stateOf(server.data);
        const result = check(server.data);
        assert.equal(result.status, status, result.stdout + result.stderr);
        assert.match(result.stdout + result.stderr, output);
        assert.deepEqual(stateOf(server.data), before);
    };
    const agrees = new RegExp(`with ${all} items: everything agrees`);
    unchanged(0, agrees); // killed
    await server.start();
    const busy = check(server.data);
    assert.equal(busy.status, 1);
    assert.match(busy.stderr, /is in use by another process/);
    await server.stopWell();
    unchanged(0, agrees); // stopped
    const [table] = storeFiles(server.data, ".sst");
    zero(table, statSync(table).size >> 1, 4096);
    unchanged(1, /damaged/);
    unlinkSync(join(server.data, "store", "CURRENT"));
    unchanged(1, /CURRENT is missing/);
});

test("a check reads a disk that cannot be written", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 128);
    const { server, logged, tabled } = await leaveFolder(t, { data: disk.data, within: disk.within });
    disk.makeReadOnly();
    const { status, stdout, stderr } = check(server.data, disk.within);
    assert.equal(stderr, "");
    assert.equal(status, 0, stdout);
    assert.match(stdout, new RegExp(`with ${tabled.length + logged.length} items: everything agrees`));
});
