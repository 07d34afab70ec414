// The audit log: who changed what, and who was refused.
import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, statSync, symlinkSync, unlinkSync } from "node:fs";
import test from "node:test";

import { auditFile, auditLine, auditLines } from "./lib/audit.mjs";
import { askChaos } from "./lib/chaos.mjs";
import { until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer, temporaryFolder } from "./lib/server.mjs";
import { authorization, call, Line, metric, query, requestText, send, signed, unique } from "./lib/wire.mjs";

const secret = (letter) => Buffer.from(letter.repeat(64)).toString("base64");
const SECONDARY = secret("s");
const READ_ONLY = secret("r");
const SECOND_READ_ONLY = secret("t");
const KEYS = [
    ...["--secondary-key", SECONDARY, "--read-only-key", READ_ONLY],
    ...["--secondary-read-only-key", SECOND_READ_ONLY],
];
const PARTITION_KEY = { paths: ["/pk"], version: 2 };
const ITEM_KEY = { "x-ms-documentdb-partitionkey": '["p"]' };

const activityIds = (list) => list.map((one) => one.activityId);

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
    // `what` is what the line must say besides what follows from the request and its answer.
    const change = async (method, path, what = {}, { body, headers, ...more } = {}) => {
        const { activityId, answer } = await noted(server, { method, path, body, headers, ...more });
        const subStatus = Number(answer.headers["x-ms-substatus"] ?? 0);
        expected.push({ activityId, method, path, status: answer.status, subStatus, ...what });
        return answer.status < 300 && answer.text.length > 0 ? answer.json : {};
    };
    const silent = async (method, path, { body, headers, ...more } = {}) => {
        const { answer } = await noted(server, { method, path, body, headers, ...more });
        assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    };
    const UPSERT = { "x-ms-documentdb-is-upsert": "True" };

    // Databases and containers.
    const id = unique("d");
    const db = `/dbs/${id}`;
    const create = { operation: "create", resourceType: "dbs", id };
    const { _rid } = await change("POST", "/dbs", { ...create, status: 201 }, { body: { id } });
    expected.at(-1).rid = _rid;
    await change("POST", "/dbs", { ...create, status: 409, rid: undefined }, { body: { id } });
    await change("POST", "/dbs", { status: 400, id: undefined }, { body: "{" });
    const body = { id: "c", partitionKey: PARTITION_KEY };
    const made = await change("POST", `${db}/colls`, { status: 201, resourceType: "colls", id: "c" }, { body });
    const coll = `${db}/colls/c`;
    const it = { id: "c", rid: made._rid };
    Object.assign(expected.at(-1), it);
    await change("PUT", coll, { ...it, status: 200, operation: "replace" }, { body: { ...body, defaultTtl: 9 } });
    await change("PUT", coll, { ...it, status: 412 }, { body, headers: { "if-match": '"x"' } });
    await change("PUT", `${db}/colls/none`, { status: 404, id: "none", rid: undefined }, { body });

    // Offers.
    const { json: offers } = await call(server, { path: "/offers" });
    const offer = offers.Offers.find((one) => one.offerResourceId === made._rid);
    const isOffer = { status: 200, operation: "replace", resourceType: "offers", id: offer.id, rid: offer._rid };
    await change("PUT", `/offers/${offer._rid}`, isOffer, {
        type: "offers",
        link: offer._rid.toLowerCase(),
        body: { ...offer, content: { ...offer.content, offerThroughput: 500 } },
    });

    // Scripts.
    for (const [resourceType, more] of [
        ["sprocs", {}],
        ["triggers", { triggerType: "Pre", triggerOperation: "All" }],
        ["udfs", {}],
    ]) {
        const script = { id: "s", body: "function () { getContext().getResponse().setBody(1); }", ...more };
        const path = `${coll}/${resourceType}`;
        const is = { resourceType, id: "s" };
        const { _rid: rid } = await change("POST", path, { ...is, operation: "create", status: 201 }, { body: script });
        await change("POST", path, { ...is, operation: "upsert", status: 200, rid }, { body: script, headers: UPSERT });
        const renamed = { resourceType, id: "s2", rid };
        await change("PUT", `${path}/s`, { ...renamed, operation: "replace" }, { body: { ...script, id: "s2" } });
        if (resourceType === "sprocs") await silent("POST", `${path}/s2`, { body: "[]", headers: ITEM_KEY });
        await change("DELETE", `${path}/s2`, { ...renamed, operation: "delete", status: 204 });
    }

    // Client encryption keys, users, permissions.
    const keys = `${db}/clientencryptionkeys`;
    const key = { id: "k", encryptionAlgorithm: "A", wrappedDataEncryptionKey: "AQID", keyWrapMetadata: {} };
    const isKey = { resourceType: "clientencryptionkeys", id: "k" };
    await change("POST", keys, { ...isKey, status: 201 }, { body: key });
    await change("PUT", `${keys}/k`, { ...isKey, status: 200 }, { body: { ...key, wrappedDataEncryptionKey: "BAUG" } });
    await change("DELETE", `${keys}/k`, { ...isKey, status: 405, operation: "delete" });
    const users = `${db}/users`;
    await change("POST", users, { resourceType: "users", operation: "create" }, { body: { id: "u" } });
    await change("POST", users, { resourceType: "users", operation: "upsert" }, { body: { id: "u" }, headers: UPSERT });
    const permission = { id: "p", permissionMode: "Read", resource: coll.slice(1) };
    await change("POST", `${users}/u/permissions`, { resourceType: "permissions" }, { body: permission });
    await change("DELETE", `${users}/u`, { resourceType: "users", operation: "delete", id: "u" });

    // Partitions, and what can be asked for under /_orrery.
    const whole = { type: "colls", link: coll.slice(1) };
    const account = { type: "", link: "" };
    const merge = `${coll}/operations/partitionmerge`;
    const merged = { ...it, status: 202, operation: "partitionmerge", resourceType: "colls" };
    await change("POST", merge, merged, { ...whole, body: {} });
    await silent("POST", merge, { ...whole, body: { isDryRun: true } });
    const throttle = { ...it, status: 201, resourceType: "_orrery", operation: "execute" };
    await change("POST", `/_orrery/chaos${coll}/throttle`, throttle, { ...whole, body: { requests: 1 } });
    await silent("GET", "/_orrery/chaos", account);
    await change("DELETE", "/_orrery/chaos", { status: 200, resourceType: "_orrery" }, account);

    // Items, and reads of everything.
    const item = { body: { id: "i", pk: "p", n: 1 }, headers: ITEM_KEY };
    const docs = `${coll}/docs`;
    await silent("POST", docs, item);
    await silent("POST", docs, { ...item, headers: { ...ITEM_KEY, ...UPSERT } });
    await silent("PUT", `${docs}/i`, item);
    const increase = { operations: [{ op: "incr", path: "/n", value: 1 }] };
    await silent("PATCH", `${docs}/i`, { body: increase, headers: ITEM_KEY });
    const batch = { ...ITEM_KEY, "x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True" };
    await silent("POST", docs, { body: JSON.stringify([{ operationType: "Read", id: "i" }]), headers: batch });
    await silent("DELETE", `${docs}/i`, { headers: ITEM_KEY });
    await silent("POST", `${coll}/operations/partitionkeydelete`, { ...whole, headers: ITEM_KEY });
    for (const path of ["/", "/dbs", db, `${db}/colls`, coll, docs, `${coll}/pkranges`, `${coll}/sprocs`, "/offers", keys])
        await silent("GET", path);
    for (const path of ["/_orrery/containers", "/_orrery/events", "/_orrery/metrics"]) await silent("GET", path, account);
    assert.equal((await query(server, "/dbs", "SELECT * FROM c")).status, 200);
    assert.equal((await query(server, docs, "SELECT * FROM c", { headers: ITEM_KEY })).status, 200);

    await change("DELETE", coll, { ...it, status: 204, operation: "delete" });
    await change("DELETE", db, { status: 204, id, rid: _rid });

    await server.stopWell();
    const lines = auditLines(file);
    assert.deepEqual(activityIds(lines), activityIds(expected));
    expected.forEach((one, i) => {
        for (const [name, value] of Object.entries(one))
            assert.deepEqual(lines[i][name], value, `${name} of ${JSON.stringify(lines[i])}`);
        assert.equal(lines[i].event, "change");
        assert.deepEqual(lines[i].principal, { kind: "key", name: "primary" });
        assert.match(lines[i].client, /^127\.0\.0\.1:\d+$/);
    });
    assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("a line says which key was used", async (t) => {
    const { file, server } = await audited(t);
    for (const [key, name] of [
        [SECONDARY, "secondary"],
        [server.key, "primary"],
    ]) {
        const as = { endpoint: server.endpoint, key };
        const { activityId } = await noted(as, { method: "POST", path: "/dbs", body: { id: name } });
        assert.deepEqual((await auditLine(file, activityId)).principal, { kind: "key", name });
    }
});

const WRONG = secret("w");

/** Requests that are not authorised: what is wrong, the status, the request, the kind and name of the credential. */
function refusals(key) {
    const sign = (by, method, path, more = {}) => signed({ key: by, method, path, ...more });
    const date = new Date().toUTCString();
    const old = new Date(Date.now() - 3 * 3600_000).toUTCString();
    const undated = authorization({ key, method: "GET", type: "dbs", link: "", date });
    const token = "type%3Dresource%26ver%3D1%26sig%3Dabcdsecret";
    const account = { type: "", link: "" };
    const docs = "/dbs/d/colls/c/docs";
    const rows = [
        ["no header", 401, "GET", "/dbs", {}, "none"],
        ["an empty header", 401, "GET", "/dbs", { authorization: "" }, "none"],
        ["the text null", 401, "GET", "/dbs", { authorization: "null" }, "unknown"],
        ["garbage", 401, "GET", "/dbs", { authorization: "%zz&&=" }, "unknown"],
        ["a token that nobody gave", 401, "GET", "/dbs", { authorization: token }, "unknown"],
        ["a wrong key", 401, "GET", "/dbs", sign(WRONG, "GET", "/dbs"), "unknown"],
        ["a wrong key for nothing", 401, "GET", `${docs}/i`, sign(WRONG, "GET", `${docs}/i`), "unknown"],
        ["a wrong key for an item", 401, "POST", docs, sign(WRONG, "POST", docs), "unknown"],
        ["no date", 401, "GET", "/dbs", { authorization: undated }, "unknown"],
        ["an expired date", 403, "GET", "/dbs", sign(key, "GET", "/dbs", { date: old }), "unknown"],
        ["two headers", 400, "GET", "/dbs", { authorization: ["a", "b"] }, "unknown"],
        ["a wrong bearer", 401, "GET", "/_orrery/metrics", { authorization: `Bearer ${WRONG}` }, "unknown"],
        ["a wrong key of the server", 401, "DELETE", "/_orrery/chaos", sign(WRONG, "DELETE", "", account), "unknown"],
    ];
    for (const [by, name] of [
        [READ_ONLY, "read-only"],
        [SECOND_READ_ONLY, "secondary read-only"],
    ])
        for (const [method, path] of [
            ["POST", "/dbs"],
            ["DELETE", "/dbs/d"],
            ["POST", docs],
        ])
            rows.push([`${method} with a ${name} key`, undefined, method, path, sign(by, method, path), "key", name]);
    return rows;
}

test("each refused authorization leaves one line, which names no secret", async (t) => {
    const { file, server } = await audited(t);
    const rows = refusals(server.key);
    const expected = [];
    for (const [what, status, method, path, headers, kind, name] of rows) {
        const activityId = unique("a");
        const answer = await send(server.endpoint, {
            method,
            path,
            headers: { ...headers, "x-ms-activity-id": activityId },
            body: method === "POST" ? '{"id":"x"}' : undefined,
        });
        if (status) assert.equal(answer.status, status, `${what}: ${answer.text}`);
        else assert.ok([401, 403].includes(answer.status), `${what}: ${answer.text}`);
        const subStatus = Number(answer.headers["x-ms-substatus"] ?? 0);
        const principal = name ? { kind, name } : { kind };
        expected.push({ what, activityId, method, path, principal, status: answer.status, subStatus, event: "refusal" });
    }
    // Reads with a read-only key are no refusals.
    assert.equal((await call({ endpoint: server.endpoint, key: READ_ONLY }, { path: "/dbs" })).status, 200);

    await server.stopWell();
    const lines = auditLines(file);
    assert.deepEqual(activityIds(lines), activityIds(expected));
    expected.forEach(({ what, ...one }, i) => {
        for (const [member, value] of Object.entries(one)) assert.deepEqual(lines[i][member], value, `${what}: ${member}`);
    });

    const text = readFileSync(file, "utf8");
    const sent = rows.flatMap(([, , , , headers]) => headers.authorization ?? []).filter((one) => one.length > 8);
    const secrets = [server.key, SECONDARY, READ_ONLY, SECOND_READ_ONLY, WRONG, "abcdsecret", ...sent];
    assert.ok(sent.length > 10);
    for (const one of secrets)
        for (const form of [one, encodeURIComponent(one), decodeURIComponent(one), one.slice(-40), one.slice(0, 40)])
            assert.ok(!text.includes(form), "a secret in the log");
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

test("a client that leaves before it is answered is named all the same", async (t) => {
    const { file, server } = await audited(t);
    const { database } = await clientOf(server).databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: PARTITION_KEY });
    const armed = await askChaos(server, container, "faults", { kind: "any", delayMs: 500, count: 1 });
    assert.equal(armed.status, 201, armed.text);
    const path = "/dbs/d/colls/c";
    const activityId = unique("a");
    const headers = { ...signed({ key: server.key, method: "DELETE", path }), "x-ms-activity-id": activityId };
    const line = await Line.open(server.port);
    const client = `127.0.0.1:${line.socket.localPort}`;
    line.send(requestText(path, { method: "DELETE", headers }));
    // The server has the request, and delays it.
    await until(async () => {
        const { rules } = (await askChaos(server, undefined, "", undefined, { method: "GET" })).json;
        return rules.every((rule) => rule.requestsLeft === 0);
    });
    line.close();
    const told = await auditLine(file, activityId);
    assert.equal(told.client, client);
    assert.equal(told.status, 204);
});

test("without an audit log SIGHUP changes nothing", async (t) => {
    const server = await startServer(t, { args: ["--durability", "relaxed"] });
    process.kill(server.pid, "SIGHUP");
    await clientOf(server).databases.create({ id: "d" });
    assert.ok(server.isRunning);
});
