// Backups of a server that is being written to, restored and compared with what was acknowledged.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { backup, check, generationsOf, manifestOf, restore, start, succeed } from "./lib/backups.mjs";
import { contentOf, fill, newContainer, SIZES } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer, temporaryFolder } from "./lib/server.mjs";

const CLIENTS = 16;

/** Writes batches to its own key: a new item and, in the same transaction, how many there are. */
class Client {
    sent = 0;
    acknowledged = []; // { range, lsn } of each

    constructor(container, number) {
        this.container = container;
        this.key = `client-${number}`;
    }

    content(i) {
        return { id: `i${i}`, pk: this.key, n: i, text: `${this.key} ${i}`.repeat(1 + (i % 40)) };
    }

    async work(isOver) {
        while (!isOver()) {
            const i = this.sent++;
            const { code, result, headers } = await this.container.items.batch(
                [
                    { operationType: "Create", resourceBody: this.content(i) },
                    { operationType: "Upsert", resourceBody: { id: "count", pk: this.key, count: i + 1 } },
                ],
                this.key,
            );
            assert.equal(code, 200, JSON.stringify(result));
            const [, range, lsn] = /^(\d+):-?\d+#(\d+)/.exec(headers["x-ms-session-token"]);
            this.acknowledged.push({ range, lsn: Number(lsn) });
        }
    }

    /** A restored container has exactly the writes up to the LSNs of the backup. */
    async compare(container, lsns, before) {
        const { resources } = await container.items.readAll({ partitionKey: this.key }).fetchAll();
        const found = new Map(resources.map((item) => [item.id, contentOf(item)]));
        const count = found.get("count")?.count ?? 0;
        found.delete("count");
        assert.equal(found.size, count, `${this.key}: no half of a batch`);
        for (let i = 0; i < count; i++) assert.deepEqual(found.get(`i${i}`), this.content(i));
        assert.ok(count >= before, `${this.key}: ${before} were acknowledged before the backup, ${count} are there`);
        assert.ok(count <= this.sent, `${this.key}: ${count} are there, and only ${this.sent} were sent`);
        const within = this.acknowledged.filter(({ range, lsn }) => lsn <= lsns.get(range));
        assert.ok(count >= within.length, `${this.key}: all up to the LSN of the backup are there`);
        // One more may be there: that whose answer came after the client was told to stop.
        assert.ok(count <= within.length + (this.sent - this.acknowledged.length), `${this.key}: nothing later is`);
    }
}

const lsnsOf = (manifest, container) =>
    new Map(manifest.partitions.filter((p) => p.container === container.id).map(({ range, lsn }) => [range, lsn]));

async function serveCopy(t, from, generation) {
    const data = join(temporaryFolder(), "restored");
    await restore(from, data, "--generation", String(generation));
    check(data);
    return startServer(t, { data });
}

test(`backups while ${CLIENTS} clients write have what was acknowledged, and no more`, { timeout: 240_000 }, async (t) => {
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const containers = [];
    for (const size of SIZES) containers.push(await newContainer(database, size));
    const clients = Array.from({ length: CLIENTS }, (_, i) => new Client(containers[i % 2], i));
    const to = join(temporaryFolder(), "backups");
    let isOver = false;
    const working = Promise.all(clients.map((client) => client.work(() => isOver)));
    const taken = [];
    for (let round = 0; round < 3; round++) {
        const least = clients.map(({ acknowledged }) => acknowledged.length + 5);
        while (clients.some(({ acknowledged }, i) => acknowledged.length < least[i]))
            await Promise.race([working, new Promise((resolve) => setTimeout(resolve, 5))]);
        const before = clients.map(({ acknowledged }) => acknowledged.length);
        taken.push({ before, ...(await backup(server.endpoint, to)) });
    }
    isOver = true;
    await working;
    assert.deepEqual(taken.map(({ generation }) => generation), [1, 2, 3]);
    assert.deepEqual(readdirSync(join(server.data, "store/checkpoints")), [], "no checkpoint is left");
    for (const { generation, before } of taken) {
        const manifest = manifestOf(to, generation);
        const copy = await serveCopy(t, to, generation);
        for (const [i, client] of clients.entries()) {
            const container = clientOf(copy).database("db").container(client.container.id);
            await client.compare(container, lsnsOf(manifest, client.container), before[i]);
        }
        await copy.stop();
    }
});

async function serverWithData(t, megabytes = 8, options = {}) {
    const server = await startServer(t, options);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    await addData(container, megabytes, 0);
    return { server, container };
}

/** Items that do not become smaller by compression. */
async function addData(container, megabytes, from) {
    const item = (i) => ({ id: `d${from}-${i}`, pk: `p${i % 7}`, noise: randomBytes(48 << 10).toString("base64") });
    await fill(container, Array.from({ length: megabytes * 16 }, (_, i) => item(i)));
}

test("a second backup copies only what is new, and --keep removes what is old", { timeout: 120_000 }, async (t) => {
    const { server, container } = await serverWithData(t);
    const to = join(temporaryFolder(), "backups");
    const first = await backup(server.endpoint, to);
    assert.ok(first.bytes > 8 << 20);
    assert.equal(first.copiedBytes, first.bytes);
    const again = await backup(server.endpoint, to);
    assert.ok(again.copiedBytes < 64 << 10, `nothing was written, and ${again.copiedBytes} bytes were copied`);
    await addData(container, 1, 1);
    const more = await backup(server.endpoint, to);
    assert.ok(more.copiedBytes > 1 << 20);
    assert.ok(more.copiedBytes < 3 << 20, `1 MB was written, and ${more.copiedBytes} bytes were copied`);
    const secure = await backup(server.tlsEndpoint, to, "--cert", join(server.data, "tls-cert.pem"));
    assert.ok(secure.copiedBytes < 64 << 10);
    for (const file of readdirSync(join(to, "files"))) assert.equal(statSync(join(to, "files", file)).mode & 0o777, 0o600);

    // From the folder, in the same way.
    const { status, stderr } = run(["backup", "--from", server.data, "--to", to]);
    assert.equal(status, 1);
    assert.match(stderr, /in use by another process; .* give its endpoint instead/);
    await server.stop();
    const offline = await backup(server.data, to, "--keep", "2");
    assert.ok(offline.copiedBytes < 3 << 20, `nothing was written, and ${offline.copiedBytes} bytes were copied`);
    assert.deepEqual(generationsOf(to), ["000004.json", "000005.json"]);
    const named = new Set([4, 5].flatMap((g) => manifestOf(to, g).files.map(({ sha256 }) => sha256)));
    assert.deepEqual(new Set(readdirSync(join(to, "files"))), named, "files that no manifest names are gone");
    assert.ok(manifestOf(to, 5).files.some(({ name }) => name === "tls-key.pem"), "a folder's backup has all files");
    assert.ok(manifestOf(to, 4).files.every(({ name }) => !name.startsWith("tls-")), "a private key is not sent");
    const data = join(temporaryFolder(), "restored");
    await restore(to, data);
    check(data);
    await server.start();
});

test("whatever is killed, the next attempt succeeds", { timeout: 240_000 }, async (t) => {
    const { server } = await serverWithData(t, 16);
    const root = temporaryFolder();
    const to = join(root, "backups");
    const soon = (round) => new Promise((resolve) => setTimeout(resolve, 3 + round * 12));
    const isWhole = (folder) => existsSync(join(folder, "generations")) && generationsOf(folder).every((n) => n.endsWith(".json"));

    // The client.
    for (let round = 0; round < 8; round++) {
        const fresh = join(root, `killed-${round}`);
        const { child, ended } = start(["backup", "--from", server.endpoint, "--to", fresh]);
        await soon(round);
        child.kill("SIGKILL");
        await ended;
        const { generation } = await backup(server.endpoint, fresh);
        assert.ok(generation <= 2);
        assert.ok(isWhole(fresh));
        const named = new Set(manifestOf(fresh, generation).files.map(({ sha256 }) => sha256));
        for (const file of named) assert.ok(existsSync(join(fresh, "files", file)));
        assert.ok(!existsSync(join(fresh, "files", "new.part")) && !existsSync(join(fresh, "opening")));
    }
    const left = () => readdirSync(join(server.data, "store/checkpoints"));
    for (let i = 0; left().length > 0 && i < 500; i++) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(left(), [], "the server keeps nothing of clients that are gone");

    // The server.
    for (let round = 0; round < 6; round++) {
        const { ended } = start(["backup", "--from", server.endpoint, "--to", to]);
        await soon(round);
        await server.kill();
        const { status, stderr } = await ended;
        assert.ok(status === 0 || (status === 1 && /^orrery: \S/.test(stderr)), `${status} ${stderr}`);
        await server.start();
        assert.deepEqual(existsSync(join(server.data, "store/checkpoints")) ? left() : [], []);
    }
    await backup(server.endpoint, to);
    assert.ok(isWhole(to));

    // The restore.
    for (let round = 0; round < 8; round++) {
        const data = join(root, `data-${round}`);
        const { child, ended } = start(["restore", "--from", to, "--data", data]);
        await soon(round);
        child.kill("SIGKILL");
        const { status } = await ended;
        if (status !== 0 && existsSync(join(data, "store/CURRENT"))) {
            const { status: checked, stderr } = run(["check", "--data", data]);
            assert.equal(checked, 1);
            assert.match(stderr, /is not complete: a restore into it was interrupted/);
            const served = run(["serve", "--data", data, "--port", "0"]);
            assert.equal(served.status, 1);
            assert.match(served.stderr, /is not complete/);
        }
        if (status !== 0) await restore(to, data);
        check(data);
    }
});

test("one backup at a time, and another one waits for it", { timeout: 120_000 }, async (t) => {
    const { server } = await serverWithData(t, 4);
    const root = temporaryFolder();
    const all = await Promise.all([0, 1, 2].map((i) => backup(server.endpoint, join(root, `b${i}`))));
    assert.deepEqual(all.map(({ generation }) => generation), [1, 1, 1]);
    const begun = server.lines.filter((line) => / backup\.(begun|ended) /.test(line)).map((l) => / backup\.(\w+)/.exec(l)[1]);
    assert.deepEqual(begun.slice(0, 5), ["begun", "ended", "begun", "ended", "begun"]);
    // In one folder there can be only one at all.
    const to = join(root, "b0");
    const both = await Promise.all([1, 2].map(() => start(["backup", "--from", server.endpoint, "--to", to]).ended));
    const failed = both.filter(({ status }) => status !== 0);
    assert.ok(failed.length <= 1);
    for (const { stderr } of failed) assert.match(stderr, /is in use by another backup or restore/);
});

test("wrong keys, wrong places and wrong options are refused", { timeout: 60_000 }, async (t) => {
    const other = randomBytes(64).toString("base64");
    const master = randomBytes(64).toString("base64");
    const { server } = await serverWithData(t, 0, { key: master, args: ["--read-only-key", other] });
    const root = temporaryFolder();
    const from = server.endpoint;
    const rows = [
        [["backup", "--from", from, "--to", join(root, "a")], 1, /answered 401/],
        [["backup", "--from", from, "--to", join(root, "a"), "--key", other], 1, /answered 401: .*read-only key/],
        [["backup", "--from", from], 2, /--to DIR/],
        [["backup", "--from", from, "--to", root, "--keep", "0"], 2, /--keep must be a whole number from 1 on/],
        [["backup", "--form", from], 2, /did you mean '--from'/],
        [["backup", "--from", join(root, "none"), "--to", join(root, "a")], 1, /is not a data folder/],
        [["backup", "--from", "http://127.0.0.1:1", "--to", join(root, "a")], 1, /cannot reach the server/],
        [["restore", "--from", join(root, "a"), "--data", join(root, "x")], 1, /there is no complete backup/],
        [["restore", "--from", join(root, "none"), "--data", join(root, "x")], 1, /No such file/],
        [["restore", "--from", root], 2, /--data DATA/],
    ];
    for (const [args, expected, message] of rows) {
        const { status, stderr } = run(args);
        assert.equal(status, expected, `${args.join(" ")}: ${stderr}`);
        assert.match(stderr, message);
    }
    assert.deepEqual(generationsOf(join(root, "a")), []);
    const mixed = join(root, "mixed");
    mkdirSync(mixed);
    writeFileSync(join(mixed, "letters.txt"), "dear");
    const { status, stderr } = run(["backup", "--from", from, "--to", mixed, "--key", master]);
    assert.equal(status, 1);
    assert.match(stderr, /has other things in it/);
    assert.deepEqual(readdirSync(mixed), ["letters.txt"]);
    await succeed(["backup", "--from", from, "--to", join(root, "b")], { env: { ORRERY_KEY: master } });
    const full = run(["restore", "--from", join(root, "b"), "--data", mixed]);
    assert.equal(full.status, 1);
    assert.match(full.stderr, /is not empty; a restore does not overwrite anything/);
    assert.deepEqual(readdirSync(mixed), ["letters.txt"]);
    for (const command of ["backup", "restore"]) {
        const help = run([command, "--help"]);
        assert.equal(help.status, 0);
        assert.match(help.stdout, /^Usage: orrery /);
        assert.match(run(["help"]).stdout, new RegExp(`^  ${command} `, "m"));
    }
});
