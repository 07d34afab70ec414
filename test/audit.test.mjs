// The audit log: who changed what, and who was refused.
import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, statSync, symlinkSync, unlinkSync } from "node:fs";
import test from "node:test";

import { auditFile, auditLine, auditLines } from "./lib/audit.mjs";
import { askChaos } from "./lib/chaos.mjs";
import { until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { DEVELOPMENT_KEY, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { authorization, call, metric, query, send, signature, signed, unique } from "./lib/wire.mjs";

const secret = (letter) => Buffer.from(letter.repeat(64)).toString("base64");
const SECONDARY = secret("s");
const READ_ONLY = secret("r");
const SECOND_READ_ONLY = secret("t");
const KEYS = [
    ...["--secondary-key", SECONDARY, "--read-only-key", READ_ONLY],
    ...["--secondary-read-only-key", SECOND_READ_ONLY],
];
const PARTITION_KEY = { paths: ["/pk"], version: 2 };

async function audited(t, { args = [], ...options } = {}) {
    const file = auditFile();
    const server = await startServer(t, {
        args: ["--durability", "relaxed", "--audit", file, "--enable-chaos", ...KEYS, ...args],
        ...options,
    });
    return { file, server };
}

/** Sends a request with an activity id of its own. */
async function noted(server, options) {
    const activityId = unique("a");
    const headers = { "x-ms-activity-id": activityId, ...options.headers };
    const answer = await call(server, { ...options, headers });
    return { activityId, answer };
}

test("each change leaves one line, reads and item writes none", async (t) => {
    const { file, server } = await audited(t);
    const expected = [];
    // `what` is what the line must say besides what follows from the request.
    const change = async (options, what = {}) => {
        const { activityId, answer } = await noted(server, options);
        const method = options.method;
        const path = options.path.split("?")[0];
        const subStatus = Number(answer.headers["x-ms-substatus"] ?? 0);
        expected.push({ activityId, method, path, status: answer.status, subStatus, ...what });
        return answer.status < 300 && answer.text.length > 0 ? answer.json : undefined;
    };
    const silent = async (options) => {
        const { answer } = await noted(server, options);
        assert.ok(answer.status < 300, `${options.method} ${options.path}: ${answer.text}`);
        return answer.text.length > 0 ? answer.json : undefined;
    };
    const made = (body, status, what) => ({ status, id: body.id, ...what });

    // Databases and containers.
    const database = { id: unique("d") };
    const { _rid: rid } = await change({ method: "POST", path: "/dbs", body: database }, made(database, 201, { operation: "create", resourceType: "dbs" }));
    expected.at(-1).rid = rid;
    await change({ method: "POST", path: "/dbs", body: database }, made(database, 409));
    await change({ method: "POST", path: "/dbs", body: "{" }, { status: 400, id: undefined });
    const db = `/dbs/${database.id}`;
    const container = { id: "c", partitionKey: PARTITION_KEY };
    const shown = await change({ method: "POST", path: `${db}/colls`, body: container }, made(container, 201, { resourceType: "colls" }));
    expected.at(-1).rid = shown._rid;
    const coll = `${db}/colls/c`;
    const replaced = { operation: "replace", status: 200, id: "c", rid: shown._rid };
    await change({ method: "PUT", path: coll, body: { ...container, defaultTtl: 9 } }, replaced);
    await change({ method: "PUT", path: coll, body: container, headers: { "if-match": '"x"' } }, { status: 412, id: "c", rid: shown._rid });
    await change({ method: "PUT", path: `${db}/colls/none`, body: container }, { status: 404, id: "none", rid: undefined });

    // Offers.
    const { json: offers } = await call(server, { path: "/offers" });
    const offer = offers.Offers.find((one) => one.offerResourceId === shown._rid);
    const content = { ...offer.content, offerThroughput: 500 };
    await change(
        { method: "PUT", path: `/offers/${offer._rid}`, link: offer._rid.toLowerCase(), type: "offers", body: { ...offer, content } },
        { status: 200, operation: "replace", resourceType: "offers", id: offer.id, rid: offer._rid },
    );

    // Scripts.
    const code = "function () { getContext().getResponse().setBody(1); }";
    for (const [type, more] of [
        ["sprocs", {}],
        ["triggers", { triggerType: "Pre", triggerOperation: "All" }],
        ["udfs", {}],
    ]) {
        const body = { id: "s", body: code, ...more };
        const path = `${coll}/${type}`;
        const upsert = { "x-ms-documentdb-is-upsert": "True" };
        const { _rid } = await change({ method: "POST", path, body }, made(body, 201, { operation: "create", resourceType: type }));
        await change({ method: "POST", path, body, headers: upsert }, made(body, 200, { operation: "upsert", rid: _rid }));
        await change({ method: "PUT", path: `${path}/s`, body: { ...body, id: "s2" } }, { operation: "replace", id: "s2", rid: _rid });
        if (type === "sprocs")
            await silent({ method: "POST", path: `${path}/s2`, body: "[]", headers: { "x-ms-documentdb-partitionkey": '["p"]' } });
        await change({ method: "DELETE", path: `${path}/s2` }, { operation: "delete", status: 204, id: "s2", rid: _rid });
    }

    // Client encryption keys, users, permissions.
    const key = { id: "k", encryptionAlgorithm: "A", wrappedDataEncryptionKey: "AQID", keyWrapMetadata: { type: "t" } };
    const keys = `${db}/clientencryptionkeys`;
    await change({ method: "POST", path: keys, body: key }, made(key, 201, { resourceType: "clientencryptionkeys" }));
    await change({ method: "PUT", path: `${keys}/k`, body: { ...key, wrappedDataEncryptionKey: "BAUG" } }, { status: 200, id: "k" });
    await change({ method: "DELETE", path: `${keys}/k` }, { status: 405, operation: "delete", id: "k" });
    await change({ method: "POST", path: `${db}/users`, body: { id: "u" } }, { resourceType: "users", operation: "create" });
    await change({ method: "POST", path: `${db}/users`, body: { id: "u" }, headers: { "x-ms-documentdb-is-upsert": "True" } }, { resourceType: "users", operation: "upsert" });
    const permission = { id: "p", permissionMode: "Read", resource: coll.slice(1) };
    await change({ method: "POST", path: `${db}/users/u/permissions`, body: permission }, { resourceType: "permissions" });
    await change({ method: "DELETE", path: `${db}/users/u` }, { resourceType: "users", operation: "delete", id: "u" });

    // Partitions, and what can be asked for under /_orrery.
    const whole = { type: "colls", link: coll.slice(1) };
    const merge = { method: "POST", path: `${coll}/operations/partitionmerge`, ...whole };
    await change({ ...merge, body: {} }, { status: 202, operation: "partitionmerge", resourceType: "colls", id: "c", rid: shown._rid });
    await silent({ ...merge, body: { isDryRun: true } });
    const chaos = { method: "POST", path: `/_orrery/chaos${coll}/throttle`, ...whole, body: { requests: 1 } };
    await change(chaos, { status: 201, resourceType: "_orrery", operation: "execute", id: "c", rid: shown._rid });
    await silent({ method: "GET", path: "/_orrery/chaos", type: "", link: "" });
    await change({ method: "DELETE", path: "/_orrery/chaos", type: "", link: "" }, { status: 200, resourceType: "_orrery" });

    // Items, and reads of everything.
    const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
    const item = { id: "i", pk: "p", n: 1 };
    await silent({ method: "POST", path: `${coll}/docs`, body: item, headers });
    await silent({ method: "POST", path: `${coll}/docs`, body: item, headers: { ...headers, "x-ms-documentdb-is-upsert": "True" } });
    await silent({ method: "PUT", path: `${coll}/docs/i`, body: item, headers });
    await silent({ method: "PATCH", path: `${coll}/docs/i`, body: { operations: [{ op: "incr", path: "/n", value: 1 }] }, headers });
    const batch = { ...headers, "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    await silent({ method: "POST", path: `${coll}/docs`, body: JSON.stringify([{ operationType: "Read", id: "i" }]), headers: batch });
    await silent({ method: "DELETE", path: `${coll}/docs/i`, headers });
    await silent({ method: "POST", path: `${coll}/operations/partitionkeydelete`, ...whole, headers });
    for (const path of ["/", "/dbs", db, `${db}/colls`, coll, `${coll}/docs`, `${coll}/pkranges`, `${coll}/sprocs`, "/offers", keys, `${keys}/k`])
        await silent({ method: "GET", path });
    for (const path of ["/_orrery/containers", "/_orrery/events", "/_orrery/metrics"])
        assert.equal((await call(server, { path, type: "", link: "" })).status, 200);
    assert.equal((await query(server, "/dbs", "SELECT * FROM c")).status, 200);
    assert.equal((await query(server, `${coll}/docs`, "SELECT * FROM c", { headers })).status, 200);

    await change({ method: "DELETE", path: coll }, { status: 204, operation: "delete", id: "c", rid: shown._rid });
    await change({ method: "DELETE", path: db }, { status: 204, id: database.id, rid });

    await server.stopWell();
    const lines = auditLines(file);
    assert.deepEqual(lines.map((line) => line.activityId), expected.map((one) => one.activityId));
    expected.forEach((one, i) => {
        for (const [name, value] of Object.entries(one))
            assert.deepEqual(lines[i][name], value, `${name} of ${JSON.stringify(lines[i])}`);
        assert.equal(lines[i].event, "change");
        assert.deepEqual(lines[i].principal, { kind: "key", name: "primary" });
        assert.match(lines[i].client, /^127\.0\.0\.1:\d+$/);
    });
    assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("each refused authorization leaves one line, which names no secret", async (t) => {
    const { file, server } = await audited(t);
    const database = { id: unique("d") };
    for (const [key, name] of [
        [SECONDARY, "secondary"],
        [server.key, "primary"],
    ]) {
        const { activityId } = await noted({ ...server, endpoint: server.endpoint, key }, { method: "POST", path: "/dbs", body: database });
        assert.deepEqual((await auditLine(file, activityId)).principal, { kind: "key", name });
    }
    const wrong = secret("w");
    const old = new Date(Date.now() - 3 * 3600_000).toUTCString();
    const date = new Date().toUTCString();
    const sign = (key, method, path, more = {}) => signed({ key, method, path, ...more });
    const body = JSON.stringify({ id: "x" });
    const rows = [
        ["no header", 401, { path: "/dbs" }, "none"],
        ["an empty header", 401, { path: "/dbs", headers: { authorization: "" } }, "none"],
        ["the text null", 401, { path: "/dbs", headers: { authorization: "null" } }, "unknown"],
        ["garbage", 401, { path: "/dbs", headers: { authorization: "%zz&&=" } }, "unknown"],
        ["a token of another kind", 401, { path: "/dbs", headers: { authorization: "type%3Dresource%26ver%3D1%26sig%3Dabcdsecret" } }, "unknown"],
        ["a wrong key", 401, { path: "/dbs", headers: sign(wrong, "GET", "/dbs") }, "unknown"],
        ["a wrong key for what does not exist", 401, { path: "/dbs/none/colls/none/docs/none", headers: sign(wrong, "GET", "/dbs/none/colls/none/docs/none") }, "unknown"],
        ["no date", 401, { path: "/dbs", headers: { authorization: authorization({ key: server.key, method: "GET", type: "dbs", link: "", date }) } }, "unknown"],
        ["an expired date", 403, { path: "/dbs", headers: sign(server.key, "GET", "/dbs", { date: old }) }, "unknown"],
        ["two headers", 400, { path: "/dbs", headers: { authorization: ["a", "b"] } }, "unknown"],
        ["a wrong key in a write of an item", 401, { method: "POST", path: `/dbs/${database.id}/colls/c/docs`, headers: sign(wrong, "POST", `/dbs/${database.id}/colls/c/docs`), body }, "unknown"],
        ["a wrong bearer", 401, { path: "/_orrery/metrics", headers: { authorization: `Bearer ${wrong}` } }, "unknown"],
        ["a wrong key under /_orrery", 401, { method: "DELETE", path: "/_orrery/chaos", headers: sign(wrong, "DELETE", "/_orrery/chaos", { type: "", link: "" }) }, "unknown"],
    ];
    for (const [key, name] of [
        [READ_ONLY, "read-only"],
        [SECOND_READ_ONLY, "secondary read-only"],
    ])
        for (const [method, path] of [
            ["POST", "/dbs"],
            ["DELETE", `/dbs/${database.id}`],
            ["POST", `/dbs/${database.id}/colls/c/docs`],
        ])
            rows.push([`${method} with a ${name} key`, undefined, { method, path, headers: sign(key, method, path), body: method === "POST" ? body : undefined }, "key", name]);
    const expected = [];
    for (const [what, status, { method = "GET", headers = {}, ...request }, kind, name] of rows) {
        const activityId = unique("a");
        const answer = await send(server.endpoint, { method, ...request, headers: { ...headers, "x-ms-activity-id": activityId } });
        if (status) assert.equal(answer.status, status, `${what}: ${answer.text}`);
        else assert.ok([401, 403].includes(answer.status), `${what}: ${answer.text}`);
        expected.push({ what, activityId, method, path: request.path, kind, name, status: answer.status, sub: Number(answer.headers["x-ms-substatus"] ?? 0) });
    }
    // Reads with a read-only key are no refusals.
    assert.equal((await call({ endpoint: server.endpoint, key: READ_ONLY }, { path: "/dbs" })).status, 200);

    await server.stopWell();
    const lines = auditLines(file).filter((line) => line.event === "refusal");
    assert.deepEqual(lines.map((line) => line.activityId), expected.map((one) => one.activityId));
    expected.forEach((one, i) => {
        const { method, path, status, subStatus, principal } = lines[i];
        assert.deepEqual({ method, path, status, subStatus }, { method: one.method, path: one.path, status: one.status, subStatus: one.sub }, one.what);
        assert.deepEqual(principal, one.name ? { kind: one.kind, name: one.name } : { kind: one.kind }, one.what);
    });

    const text = readFileSync(file, "utf8");
    const secrets = [server.key, DEVELOPMENT_KEY, SECONDARY, READ_ONLY, SECOND_READ_ONLY, wrong, "abcdsecret"];
    for (const one of secrets) assert.ok(!text.includes(one) && !text.includes(encodeURIComponent(one)), "a key in the log");
    for (const [, , { method = "GET", path, headers = {} }] of rows) {
        const sent = String(headers.authorization ?? "");
        if (sent.length > 8) assert.ok(!text.includes(sent) && !text.includes(decodeURIComponent(sent)), `the authorization of ${method} ${path}`);
        const sig = headers["x-ms-date"] && signature({ key: wrong, method, type: "dbs", link: "", date: headers["x-ms-date"] });
        if (sig) assert.ok(!text.includes(sig));
    }
    assert.doesNotMatch(text, /sig=|sig%3D|Bearer|type=master/i);
});

test("hostile ids, paths and headers forge no line", async (t) => {
    const { file, server } = await audited(t);
    const forged = '{"time":"2020-01-01T00:00:00.000000Z","event":"change","id":"forged"}';
    const nasty = ["\n", "\r\n", "\u2028", "\u0085", "\u0000", "\u001b[2J", "\u202e", '"}\n', "\ud83d\ude00".repeat(60)];
    let count = 0;
    for (const piece of nasty) {
        await call(server, { method: "POST", path: "/dbs", body: { id: `a${piece}${forged}` } });
        await call(server, { method: "DELETE", path: `/dbs/${encodeURIComponent(`a${piece}${forged}`)}` });
        count += 2;
    }
    for (const path of [
        `/dbs/%0A${encodeURIComponent(forged)}`,
        `/dbs/${"%0d%0a".repeat(900)}`,
        `/dbs/x?${encodeURIComponent("\n" + forged)}`,
        `/dbs/${encodeURIComponent("é\u2028")}`,
        `/dbs/"}`,
    ]) {
        await send(server.endpoint, { path });
        count += 1;
    }
    const headers = { "x-ms-activity-id": `x"}{${"y".repeat(200)}`, "user-agent": forged, authorization: forged };
    await send(server.endpoint, { path: "/dbs", headers });
    count += 1;
    await server.stopWell();
    const lines = auditLines(file);
    assert.equal(lines.length, count);
    assert.ok(lines.every((line) => line.id !== "forged" && line.client.startsWith("127.0.0.1:")));
    assert.ok(lines.every((line) => line.time > "2021"));
    // What was sent can be told from the line.
    assert.ok(lines.some((line) => line.id === `a\n${forged}`));
});

test("rotation under load loses no line", async (t) => {
    const { file, server } = await audited(t);
    const client = clientOf(server);
    const files = [];
    const names = [];
    let isDone = false;
    const writer = async (w) => {
        for (let i = 0; i < 60; i++) {
            const id = `w${w}-${i}`;
            names.push(id);
            await client.databases.create({ id });
            await client.database(id).delete();
        }
    };
    const rotate = async () => {
        while (!isDone || files.length < 3) {
            const moved = `${file}.${files.length}`;
            renameSync(file, moved);
            files.push(moved);
            process.kill(server.pid, "SIGHUP");
            await until(() => existsSync(file));
        }
    };
    const rotating = rotate();
    await Promise.all([0, 1, 2, 3].map(writer));
    isDone = true;
    await rotating;
    await server.stopWell();
    const lines = [...files, file].flatMap((one) => auditLines(one));
    const told = lines.map((line) => `${line.operation} ${line.id} ${line.status}`).sort();
    const expected = names.flatMap((id) => [`create ${id} 201`, `delete ${id} 204`]).sort();
    assert.deepEqual(told, expected);
    assert.ok(lines.every((line) => line.dropped === undefined));
    assert.ok(files.length >= 3);
});

test("a disk that takes no line is reported, and the next file says how many are missing", async (t) => {
    const folder = temporaryFolder();
    const file = `${folder}/audit.log`;
    symlinkSync("/dev/full", file);
    const server = await startServer(t, { args: ["--durability", "relaxed", "--audit", file] });
    const client = clientOf(server);
    for (let i = 0; i < 5; i++) await client.databases.create({ id: `d${i}` });
    await server.logged(/error audit\.write_failed .*No space left/);
    await until(async () => (await metric(server, "orrery_audit_dropped_total")) === 5);
    assert.equal(server.lines.filter((line) => /audit\.write_failed/.test(line)).length, 1);
    unlinkSync(file);
    process.kill(server.pid, "SIGHUP");
    await until(() => existsSync(file));
    await client.databases.create({ id: "after" });
    const lines = await until(() => (auditLines(file).length > 0 ? auditLines(file) : undefined));
    assert.equal(lines[0].id, "after");
    assert.equal(lines[0].dropped, 5);
    await client.databases.create({ id: "later" });
    await until(() => auditLines(file).length === 2);
    assert.equal(auditLines(file)[1].dropped, undefined);
    assert.equal(await metric(server, "orrery_audit_lines_total"), 2);
    assert.ok(server.lines.some((line) => /audit\.lines_lost .*count=5/.test(line)));
});

test("a file that cannot be opened keeps the server from starting", () => {
    const data = temporaryFolder();
    const { status, stderr } = run(["serve", "--data", data, "--port", "0", "--audit", `${data}/none/audit.log`]);
    assert.equal(status, 1);
    assert.match(stderr, /cannot open the audit log '.*none\/audit\.log'/);
});

test("a change that comes with a fault on request is told with its answer", async (t) => {
    const { file, server } = await audited(t);
    const { database } = await clientOf(server).databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: PARTITION_KEY });
    const armed = await askChaos(server, container, "faults", { kind: "any", delayMs: 50, count: 1 });
    assert.equal(armed.status, 201, armed.text);
    const { activityId, answer } = await noted(server, { method: "DELETE", path: "/dbs/d/colls/c" });
    assert.equal(answer.status, 204, answer.text);
    await server.stopWell();
    const lines = auditLines(file).filter((line) => line.activityId === activityId);
    assert.equal(lines.length, 1);
    assert.equal(lines[0].status, 204);
});
