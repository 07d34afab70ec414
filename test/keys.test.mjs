// The account's keys: stored, listed and changed while the server runs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { Agent, createServer } from "node:http";
import { join } from "node:path";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { limitFiles, needsDisk, smallDisk } from "./lib/disk.mjs";
import { newContainer } from "./lib/items.mjs";
import { askKeys, isGood, newKey, rotate, rotateAnswer, storedKeys } from "./lib/keys.mjs";
import { chooseSeed, Random } from "./lib/random.mjs";
import { execute, workersOf } from "./lib/scripts.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, DEVELOPMENT_KEY, environment, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { Line, requestText, send, signed } from "./lib/wire.mjs";

const NAMES = ["primary", "secondary", "primary-read-only", "secondary-read-only"];
const serve = (data, ...args) => run(["serve", "--data", data, "--host", "127.0.0.1", "--port", "0", ...args]);
const listed = async (server, key) => {
    const { json } = await askKeys(server, { key });
    return Object.fromEntries(json.keys.map((row) => [row.name, row]));
};

// --- Rotation

test("a key that is made by the server replaces the development key, also after a restart", async (t) => {
    const server = await startServer(t);
    assert.equal((await listed(server)).primary.source, "development");
    const answer = await rotateAnswer(server, "primary");
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.headers["cache-control"], /no-store/);
    const { key, ...shown } = answer.json;
    assert.equal(Buffer.from(key, "base64").length, 64);
    assert.equal(await isGood(server, DEVELOPMENT_KEY), false);
    assert.equal(await isGood(server, key), true);
    const before = await listed(server, key);
    assert.deepEqual(before.primary, shown);
    assert.equal(before.primary.source, "stored");
    assert.ok(Math.abs(before.primary.madeAt - Date.now() / 1000) < 60);
    assert.ok(!JSON.stringify(before).includes(key));

    await server.restart();
    assert.equal(await isGood(server, DEVELOPMENT_KEY), false);
    assert.equal(await isGood(server, key), true);
    assert.deepEqual(await listed(server, key), before);
    assert.match(server.stdout, /Key +the stored one/);
});

test("each of the four keys is rotated alone", async (t) => {
    const server = await startServer(t);
    const keys = {};
    for (const round of [1, 2]) {
        for (const name of NAMES) {
            const old = keys[name];
            keys[name] = await rotate(server, name, { key: keys.primary ?? DEVELOPMENT_KEY });
            if (old) assert.equal(await isGood(server, old), false, name);
            for (const other of Object.values(keys)) assert.equal(await isGood(server, other), true);
            assert.equal((await listed(server, keys.primary))[name].rotations, round);
        }
    }
    const reader = clientOf(server, { key: keys["secondary-read-only"] });
    await reader.databases.readAll().fetchAll();
    await refused(reader.databases.create({ id: "no" }), 401, { message: /read-only key/ });
});

test("under load no good key fails, and no old one works after the answer", async (t) => {
    const server = await startServer(t, { args: ["--threads", "4"] });
    let primary = await rotate(server, "primary");
    const secondary = await rotate(server, "secondary", { key: primary });
    const { database } = await clientOf(server, { key: primary }).databases.createIfNotExists({ id: "load" });
    await database.containers.createIfNotExists({ id: "c", partitionKey: "/id" });
    let isOver = false;
    let answeredAt = Infinity; // when the newest rotation was answered
    let sentAt = Infinity; // when it was asked for
    const counts = { good: 0, old: 0 };
    const once = async (client, id) => {
        const begun = performance.now();
        try {
            await client.database("load").container("c").items.upsert({ id });
            return { begun, ended: performance.now() };
        } catch (error) {
            return { begun, ended: performance.now(), error };
        }
    };
    const steady = async (index) => {
        const client = clientOf(server, { key: secondary });
        for (let i = 0; !isOver; i++) {
            const { error } = await once(client, `s${index}-${i % 10}`);
            if (error) throw error;
            counts.good++;
        }
    };
    const following = async (index) => {
        while (!isOver) {
            const mine = primary;
            const client = clientOf(server, { key: mine });
            for (let i = 0; !isOver; i++) {
                const { begun, ended, error } = await once(client, `f${index}-${i % 10}`);
                const isReplaced = mine !== primary;
                if (!isReplaced && ended < sentAt && error) throw error;
                if (isReplaced && begun > answeredAt) {
                    assert.equal(error?.code, 401, "an old key was good after the answer");
                    counts.old++;
                    break;
                }
                if (error && error.code !== 401) throw error;
            }
        }
    };
    const load = Promise.all([0, 1, 2, 3].flatMap((i) => [steady(i), following(i)]));
    load.catch(() => (isOver = true));
    for (let i = 0; i < 10 && !isOver; i++) {
        const seen = counts.old;
        sentAt = performance.now();
        const next = await rotate(server, "primary", { key: secondary });
        answeredAt = performance.now();
        primary = next;
        sentAt = Infinity;
        while (!isOver && counts.old < seen + 4) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    isOver = true;
    await load;
    assert.ok(counts.good > 0);
    assert.ok(counts.old >= 40);
});

test("a connection that is open is no way around a rotation, nor is a body that comes late", async (t) => {
    const server = await startServer(t);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const read = (key) => send(server.endpoint, { path: "/dbs", headers: signed({ key, path: "/dbs" }), agent });
    assert.equal((await read(DEVELOPMENT_KEY)).status, 200);

    const body = JSON.stringify({ id: "late", filler: "x".repeat(200_000) });
    const headers = { ...signed({ key: DEVELOPMENT_KEY, method: "POST", path: "/dbs" }), "content-length": body.length };
    const line = await Line.open(server.port);
    t.after(() => line.close());
    line.socket.write(requestText("/dbs", { method: "POST", headers }) + body.slice(0, 100_000));

    const key = await rotate(server, "primary");
    assert.equal((await read(DEVELOPMENT_KEY)).status, 401);
    assert.equal((await read(key)).status, 200);
    line.socket.write(body.slice(100_000));
    await line.until(/^HTTP\/1\.1 401 /);
    const { json } = await send(server.endpoint, { path: "/dbs", headers: signed({ key, path: "/dbs" }) });
    assert.equal(json._count, 0);
});

test("of rotations at the same time one wins at a time, and its key is good", async (t) => {
    const server = await startServer(t, { args: ["--threads", "4"] });
    const secondary = await rotate(server, "secondary");
    const answers = await Promise.all(
        Array.from({ length: 12 }, () => rotateAnswer(server, "primary", { key: secondary })),
    );
    const good = answers.filter(({ status }) => status === 200);
    for (const answer of answers) {
        if (answer.status !== 200) errorAnswer(answer, 412, "PreconditionFailed", { message: /rotated meanwhile/ });
    }
    const works = await Promise.all(good.map(({ json }) => isGood(server, json.key)));
    assert.equal(works.filter(Boolean).length, 1);
});

test("a rotation that was recorded and is sent again changes nothing", async (t) => {
    const server = await startServer(t);
    const secondary = await rotate(server, "secondary");
    const { fingerprint } = (await listed(server)).primary;
    const request = { key: secondary, body: { name: "primary", fingerprint } };
    const { key } = (await askKeys(server, { ...request, method: "POST" })).json;
    for (let i = 0; i < 3; i++)
        errorAnswer(await askKeys(server, { ...request, method: "POST" }), 412, "PreconditionFailed", {
            message: /changed meanwhile/,
        });
    assert.equal(await isGood(server, key), true);
    // Of a key that there is not yet.
    const none = { name: "primary-read-only", fingerprint: "none" };
    assert.equal((await askKeys(server, { key, method: "POST", body: none })).status, 200);
    assert.equal((await askKeys(server, { key, method: "POST", body: none })).status, 412);
});

test("a key that an option gives is not rotated, and the option is named", async (t) => {
    const file = join(temporaryFolder(), "key");
    const key = newKey();
    writeFileSync(file, `${key}\n`);
    const server = await startServer(t, {
        args: ["--key-file", file, "--read-only-key", newKey()],
        env: { ORRERY_SECONDARY_KEY: newKey() },
    });
    const options = { primary: "--key-file", secondary: "--secondary-key", "primary-read-only": "--read-only-key" };
    for (const [name, option] of Object.entries(options))
        errorAnswer(await rotateAnswer(server, name, { key }), 409, "Conflict", { message: new RegExp(option) });
    assert.deepEqual(
        Object.values(await listed(server, key)).map((row) => row.option),
        ["--key-file", "--secondary-key", "--read-only-key", undefined],
    );
    assert.equal(existsSync(join(server.data, "keys")), false);
    await rotate(server, "secondary-read-only", { key });
});

test("an option wins over a stored key, which is back without it", async (t) => {
    const server = await startServer(t);
    const stored = await rotate(server, "primary");
    await server.stopWell();
    const given = newKey();
    const other = await startServer(t, { data: server.data, key: given });
    assert.equal(await isGood(other, given), true);
    assert.equal(await isGood(other, stored), false);
    await other.stopWell();
    await server.start();
    assert.equal(await isGood(server, stored), true);
    assert.equal(await isGood(server, given), false);
});

// --- Who may

test("only a master key may see or change keys, and no page of another origin", async (t) => {
    const readOnly = newKey();
    const server = await startServer(t, { args: ["--read-only-key", readOnly, "--cors", "https://app.example"] });
    for (const method of ["GET", "POST"]) {
        const body = method === "POST" ? { name: "primary" } : undefined;
        const rows = [
            [{ key: readOnly }, 401],
            [{ key: newKey() }, 401],
            [{ headers: { authorization: `Bearer ${DEVELOPMENT_KEY}` } }, 401],
            [{ headers: { authorization: "" } }, 401],
            [{ headers: { origin: "https://app.example" } }, 403],
            [{ headers: { origin: "https://evil.example" } }, 403],
        ];
        for (const [options, status] of rows) {
            const answer = await askKeys(server, { method, body, ...options });
            assert.equal(answer.status, status, `${method} ${JSON.stringify(options)}: ${answer.text}`);
        }
    }
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const { user } = await database.users.create({ id: "u" });
    const permission = { id: "p", permissionMode: "All", resource: "dbs/db/colls/c" };
    const { _token: token } = (await user.permissions.create(permission)).resource;
    const headers = { authorization: encodeURIComponent(token) };
    assert.equal((await askKeys(server, { headers })).status, 403);
    assert.equal((await askKeys(server, { headers, method: "POST", body: { name: "primary" } })).status, 403);
    for (const method of ["PUT", "DELETE", "PATCH"]) assert.equal((await askKeys(server, { method })).status, 405);
    const bodies = [undefined, {}, { name: "Primary" }, { name: 5 }, { name: "primary", more: 1 }, ["primary"]];
    for (const body of bodies) assert.equal((await askKeys(server, { method: "POST", body })).status, 400);
    assert.equal((await listed(server)).primary.source, "development");
});

test("a new key is not sent over a network in the clear", async (t) => {
    const key = newKey();
    const server = await startServer(t, { key, host: "0.0.0.0" });
    errorAnswer(await rotateAnswer(server, "secondary"), 403, "Forbidden", { message: /https/ });
    assert.equal((await askKeys(server)).status, 200);
    const secondary = await rotate(server, "secondary", { endpoint: server.tlsEndpoint });
    assert.equal(await isGood(server, secondary), true);
});

test("a server that others reach needs a key of its own, given or stored", async (t) => {
    const data = join(temporaryFolder(), "data");
    const refusedStart = run(["serve", "--data", data, "--host", "0.0.0.0", "--port", "0"]);
    assert.equal(refusedStart.status, 1);
    assert.match(refusedStart.stderr, /orrery key rotate primary --data/);
    assert.equal(existsSync(data), false);
    const { stdout } = run(["key", "rotate", "primary", "--data", data]);
    const server = await startServer(t, { data, host: "0.0.0.0" });
    assert.equal(await isGood(server, stdout.trim()), true);
    assert.equal(await isGood(server, DEVELOPMENT_KEY), false);
});

// --- Files

test("a crash in the middle of a rotation leaves the old key or the new one", async (t) => {
    const random = new Random(chooseSeed());
    const server = await startServer(t);
    let known = DEVELOPMENT_KEY;
    for (let round = 0; round < 12; round++) {
        if (round > 0) await server.start();
        if (!(await isGood(server, known))) {
            // The last answer was on its way. Who has the folder can still look.
            const stored = storedKeys(server.data).primary;
            assert.equal(await isGood(server, stored), true, `round ${round}`);
            known = stored;
        }
        if (round > 1) assert.equal(await isGood(server, DEVELOPMENT_KEY), false);
        let isKilled = false;
        const killing = new Promise((resolve) => setTimeout(resolve, random.below(40))).then(async () => {
            isKilled = true;
            await server.kill();
        });
        while (!isKilled) {
            try {
                known = await rotate(server, "primary", { key: known });
            } catch (error) {
                if (!isKilled) throw error;
            }
        }
        await killing;
    }
    await server.start();
});

test("lost and damaged files of keys stop the start; the development key does not come back", async (t) => {
    const server = await startServer(t);
    const key = await rotate(server, "primary");
    await server.stopWell();
    const file = (name) => join(server.data, name);
    const copies = temporaryFolder();
    for (const name of ["keys", "seal.key"]) copyFileSync(file(name), join(copies, name));
    const change = (name, work) => {
        const bytes = readFileSync(file(name));
        writeFileSync(file(name), work(bytes) ?? bytes);
    };
    const rows = [
        [() => rmSync(file("keys")), /keys' is missing/],
        [() => rmSync(file("seal.key")), /seal\.key' is missing/],
        [() => change("keys", (bytes) => bytes.fill(0)), /keys' cannot be used/],
        [() => change("keys", (bytes) => void (bytes[500] ^= 1)), /keys' cannot be used: it is damaged/],
        [() => change("keys", (bytes) => bytes.subarray(0, 200)), /200 bytes instead of/],
        [() => change("keys", () => Buffer.alloc(0)), /0 bytes instead of/],
        [() => change("seal.key", (bytes) => bytes.fill(0)), /seal\.key' is damaged/],
        [() => change("seal.key", () => Buffer.alloc(0)), /seal\.key' is damaged/],
        [() => change("seal.key", () => newKey().slice(0, 43) + "="), /keys' cannot be used|seal\.key' is damaged/],
    ];
    for (const [work, message] of rows) {
        work();
        const { status, stderr } = serve(server.data);
        assert.equal(status, 1, stderr);
        assert.match(stderr, message);
        assert.ok(!stderr.includes(key));
        for (const name of ["keys", "seal.key"]) copyFileSync(join(copies, name), file(name));
    }
    await server.start();
    assert.equal(await isGood(server, key), true);
});

test("the sealing key may be kept outside the data folder", async (t) => {
    const folder = temporaryFolder();
    const seal = join(folder, "seal");
    const data = join(folder, "data");
    const args = ["--seal-key-file", seal];
    assert.equal(run(["key", "generate", "--seal", "--to", seal]).status, 0);
    const server = await startServer(t, { data, args });
    const key = await rotate(server, "primary");
    await server.restart();
    assert.equal(await isGood(server, key), true);
    await server.stopWell();
    assert.equal(readFileSync(join(data, "seal.key"), "utf8"), "external");
    assert.deepEqual(storedKeys(data, args), { primary: key });
    assert.match(serve(data).stderr, /--seal-key-file/);
    assert.match(serve(data, "--seal-key-file", join(folder, "nothing")).stderr, /does not exist/);
    const other = join(folder, "other");
    run(["key", "generate", "--seal", "--to", other]);
    assert.match(serve(data, "--seal-key-file", other).stderr, /another sealing key/);
});

test("a sealing key can be moved out of the data folder", async (t) => {
    const server = await startServer(t);
    const key = await rotate(server, "primary");
    await server.stopWell();
    const seal = join(temporaryFolder(), "seal");
    renameSync(join(server.data, "seal.key"), seal);
    const moved = await startServer(t, { data: server.data, args: ["--seal-key-file", seal] });
    assert.equal(await isGood(moved, key), true);
    const next = await rotate(moved, "primary", { key });
    await moved.restart();
    assert.equal(await isGood(moved, next), true);
});

test("on a disk that is read-only nothing changes", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 48);
    const server = await startServer(t, { data: disk.data, within: disk.within, args: ["--cache", "8M"] });
    const key = await rotate(server, "primary");
    disk.makeReadOnly();
    errorAnswer(await rotateAnswer(server, "primary", { key }), 503, "ServiceUnavailable", {
        message: /The key was not changed: .*Read-only file system/,
    });
    assert.equal(await isGood(server, key), true);
    disk.makeWritable();
    const next = await rotate(server, "primary", { key });
    assert.equal(await isGood(server, next), true);
});

test("on a disk that is full nothing changes", needsDisk(), async (t) => {
    const disk = await smallDisk(t, 48);
    const server = await startServer(t, { data: disk.data, within: disk.within, args: ["--cache", "8M"] });
    for (const isStored of [false, true]) {
        const key = isStored ? await rotate(server, "primary") : DEVELOPMENT_KEY;
        await disk.quiet();
        disk.leave(0);
        errorAnswer(await rotateAnswer(server, "primary", { key }), 503, "ServiceUnavailable", {
            message: /The key was not changed: .*No space left/,
        });
        assert.equal(await isGood(server, key), true);
        disk.release();
    }
});

test("if a file of keys cannot be written nothing changes", async (t) => {
    const server = await startServer(t);
    const key = await rotate(server, "primary");
    limitFiles(server.pid, 100);
    errorAnswer(await rotateAnswer(server, "primary", { key }), 503, "ServiceUnavailable", {
        message: /The key was not changed/,
    });
    limitFiles(server.pid, null);
    assert.equal(await isGood(server, key), true);
    assert.equal(existsSync(join(server.data, "keys.new")), false);
    await server.restart();
    assert.equal(await isGood(server, key), true);
});

// --- Secrets stay secret

test("no key is in logs, metrics, answers, the process list or the environment of processes", async (t) => {
    const keys = { primary: newKey(), secondary: newKey(), readOnly: newKey(), other: newKey() };
    const server = await startServer(t, {
        args: ["--key", keys.primary, `--secondary-key=${keys.secondary}`, "--log-level", "debug"],
        env: { ORRERY_READ_ONLY_KEY: keys.readOnly, ORRERY_SECONDARY_READ_ONLY_KEY: keys.other },
    });
    server.key = keys.primary;
    for (const key of Object.values(keys)) assert.equal(await isGood(server, key), true);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    await execute(container, "k", function () {
        getContext().getResponse().setBody(1);
    });
    await isGood(server, newKey());
    await rotateAnswer(server, "primary");
    const workers = workersOf(server);
    assert.ok(workers.length > 0);
    const paths = [server, ...workers].flatMap(({ pid }) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
    const files = paths.map((path) => [path, readFileSync(path, "latin1")]);
    assert.match(files[0][1], /--key\0\*+\0--secondary-key=\*+\0/);
    const texts = [
        ...files,
        ["metrics", (await send(server.endpoint, { path: "/metrics" })).text],
        ["list", (await askKeys(server)).text],
        ["stdout", server.stdout],
        ["log", server.lines.join("\n")],
    ];
    for (const [where, text] of texts) {
        for (const [name, key] of Object.entries(keys))
            assert.ok(!text.includes(key), `${where} has the key ${name}`);
    }
});

test("no command leaves its key in the process list or its environment", { timeout: 60_000 }, async (t) => {
    const key = newKey();
    const folder = temporaryFolder();
    const file = join(folder, "items.jsonl");
    writeFileSync(file, '{"id": "1", "pk": "a"}\n');
    const names = ["--database", "d", "--container", "c"];
    const commands = [
        ["top", "--once"],
        ["key", "list"],
        ["advise", ...names],
        ["import", ...names, file],
        ["export", ...names],
    ];
    // A server that never answers, so that each command is seen while it waits.
    const requests = new EventEmitter();
    const silent = createServer(() => requests.emit("request"));
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    t.after(() => silent.close());
    const endpoint = `http://127.0.0.1:${silent.address().port}`;
    const rows = commands.map((args) => [...args, "--endpoint", endpoint]);
    rows.push(["backup", "--from", endpoint, "--to", join(folder, "backups")]);
    for (const args of rows) {
        const asked = once(requests, "request");
        const child = spawn(BINARY, [...args, "--key", key], { env: environment({ ORRERY_KEY: key }), stdio: "ignore" });
        const ended = once(child, "exit");
        try {
            const early = ended.then(() => assert.fail(`${args[0]} has ended without a request`));
            await Promise.race([asked, early]);
            early.catch(() => {}); // it is ended below
            const texts = ["cmdline", "environ"].map((name) => readFileSync(`/proc/${child.pid}/${name}`, "latin1"));
            assert.match(texts[0], /--key\0\*+\0/, args[0]);
            assert.match(texts[1], /(^|\0)ORRERY_KEY=\*+\0/, args[0]);
            for (const text of texts) assert.ok(!text.includes(key), args[0]);
        } finally {
            child.kill("SIGKILL");
            await ended;
        }
    }
});

test("a new key is nowhere but in its answer and, sealed, in the data folder", async (t) => {
    const audit = join(temporaryFolder(), "audit");
    const server = await startServer(t, { args: ["--log-level", "debug", "--audit", audit] });
    const key = await rotate(server, "primary");
    const raw = Buffer.from(key, "base64");
    for (const name of ["keys", "seal.key"]) {
        const bytes = readFileSync(join(server.data, name));
        assert.ok(!bytes.includes(raw) && !bytes.includes(key), name);
        assert.equal(statSync(join(server.data, name)).mode & 0o777, 0o600);
    }
    await server.stopWell();
    const line = JSON.parse(readFileSync(audit, "utf8").trim());
    assert.deepEqual([line.path, line.status, line.id], ["/_orrery/keys", 200, "primary"]);
    assert.ok(!JSON.stringify(line).includes(key));
    assert.ok(!server.lines.join("\n").includes(key));
    assert.match(server.lines.join("\n"), /keys\.rotated name=primary fingerprint=[0-9A-F]{16} by=primary/);
});

// --- The command

test("orrery key lists, rotates and generates", async (t) => {
    const server = await startServer(t);
    const folder = temporaryFolder();
    const file = join(folder, "key");
    const at = ["--endpoint", server.endpoint];
    const rotated = run(["key", "rotate", "primary", ...at, "--to", file]);
    assert.deepEqual(rotated, { status: 0, stdout: "", stderr: "" });
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const key = readFileSync(file, "utf8").trim();
    assert.equal(await isGood(server, key), true);
    // With the key that is replaced, into its own file.
    assert.equal(run(["key", "rotate", "primary", ...at, "--key-file", file, "--to", file]).status, 0);
    assert.equal(await isGood(server, key), false);
    const next = readFileSync(file, "utf8").trim();
    assert.equal(await isGood(server, next), true);
    const printed = run(["key", "rotate", "secondary-read-only", ...at], { env: { ORRERY_KEY: next } });
    assert.equal(await isGood(server, printed.stdout.trim()), true);
    const list = run(["key", "list", ...at, "--key-file", file]);
    assert.equal(list.stdout.split("\n").length, 6);
    assert.match(list.stdout, /^primary +read-write +stored +\w+, .* GMT +[0-9A-F]{16}$/m);
    assert.match(list.stdout, /^secondary +read-write +none +- +-$/m);
    assert.ok(!list.stdout.includes(next));
    // Over TLS.
    const cert = ["--cert", join(server.data, "tls-cert.pem")];
    const tls = run(["key", "list", "--endpoint", `https://localhost:${server.port}`, ...cert, "--key-file", file]);
    assert.equal(tls.stdout, list.stdout);

    const busy = run(["key", "rotate", "primary", "--data", server.data]);
    assert.equal(busy.status, 1);
    assert.match(busy.stderr, /a server runs on/);
    await server.stopWell();
    const stopped = run(["key", "rotate", "primary", "--data", server.data]);
    assert.equal(storedKeys(server.data).primary, stopped.stdout.trim());
    await server.start();
    assert.equal(await isGood(server, stopped.stdout.trim()), true);

    for (const [args, bytes] of [[[], 64], [["--seal"], 32]]) {
        const { stdout } = run(["key", "generate", ...args]);
        assert.equal(Buffer.from(stdout.trim(), "base64").length, bytes);
    }
});

test("orrery key refuses what it does not understand, and changes nothing", async (t) => {
    const server = await startServer(t);
    const at = ["--endpoint", server.endpoint];
    const rows = [
        [["key"], 2, /say what to do/],
        [["key", "rotate"], 2, /say which key/],
        [["key", "rotate", "third", ...at], 2, /there is no key 'third'/],
        [["key", "rotate", "primary", "secondary"], 2, /not understood/],
        [["key", "lst"], 2, /did you mean 'list'/],
        [["key", "list", "--shw"], 2, /did you mean '--show'/],
        [["key", "list", "--show", ...at], 2, /--show needs --data/],
        [["key", "list", "--data", "x", ...at], 2, /does not go with/],
        [["key", "list", "--key", "a", "--key-file", "b"], 2, /exclude each other/],
        [["key", "generate", "--data", "x"], 2, /generate asks no server/],
        [["key", "rotate", "primary", "--key", newKey(), ...at], 1, /answered 401/],
        [["key", "rotate", "primary", "--to", "/nothing/here", ...at], 1, /cannot make '\/nothing\/here\.new'/],
        [["key", "list", "--endpoint", "http://127.0.0.1:1"], 1, /cannot reach/],
    ];
    for (const [args, status, message] of rows) {
        const result = run(args);
        assert.equal(result.status, status, `${args}: ${result.stderr}`);
        assert.match(result.stderr, message);
        assert.equal(result.stdout, "");
    }
    assert.equal(await isGood(server, DEVELOPMENT_KEY), true);
    assert.match(run(["key", "--help"]).stdout, /orrery key rotate/);
});
