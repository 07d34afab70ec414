// Identity tokens: of a configured issuer, and those that tests of the official SDKs make for emulators.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { ask, credentialOf, emulatorToken, encoded, Issuer, plain } from "./lib/identity.mjs";
import { until } from "./lib/items.mjs";
import { askKeys, newKey, rotate } from "./lib/keys.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer, temporaryFolder } from "./lib/server.mjs";

const KEY = { "x-ms-documentdb-partitionkey": '["k"]' };
const ITEMS = "/dbs/db/colls/c/docs";

/** A database and a container, made with a master key; the SDK with an identity over TLS. */
async function prepare(server, token, key = server.key) {
    const { database } = await clientOf(server, { key }).databases.create({ id: "db" });
    await database.containers.create({ id: "c", partitionKey: "/pk", throughput: 400 });
    return clientOf(server, {
        endpoint: `https://localhost:${server.port}`,
        ca: readFileSync(join(server.data, "tls-cert.pem")),
        key: undefined,
        aadCredentials: credentialOf(token),
    });
}

/** What a contributor may do, with the SDK. */
async function useItems(client) {
    const database = client.database("db");
    const container = database.container("c");
    assert.equal((await database.read()).resource.id, "db");
    assert.equal((await client.databases.readAll().fetchAll()).resources.length, 1);
    assert.equal((await container.read()).resource.id, "c");
    const created = await container.items.create({ id: "1", pk: "k", n: 1 });
    assert.equal(created.statusCode, 201);
    const item = container.item("1", "k");
    assert.equal((await item.read()).resource.n, 1);
    assert.equal((await item.replace({ id: "1", pk: "k", n: 2 })).resource.n, 2);
    assert.equal((await item.patch([{ op: "incr", path: "/n", value: 1 }])).resource.n, 3);
    await container.items.upsert({ id: "2", pk: "other", n: 9 });
    const batch = await container.items.batch([{ operationType: "Read", id: "1" }], "k");
    assert.equal(batch.result[0].resourceBody.n, 3);
    const byKey = container.items.query("SELECT VALUE c.n FROM c", { partitionKey: "k" });
    assert.deepEqual((await byKey.fetchAll()).resources, [3]);
    const across = container.items.query("SELECT VALUE c.n FROM c ORDER BY c.n");
    assert.deepEqual((await across.fetchAll()).resources, [3, 9]);
    await item.delete();
    await refused(database.containers.create({ id: "no", partitionKey: "/pk" }), 403, { substatus: 5300 });
    await refused(container.delete(), 403, { substatus: 5300 });
    await refused(client.offers.readAll().fetchAll(), 403, { substatus: 5300 });
}

// --- Tokens for emulators

test("the SDK works with an identity, with the token that emulators take", async (t) => {
    const server = await startServer(t);
    await useItems(await prepare(server, emulatorToken));
});

test("all forms in which SDKs send such a token are understood", async (t) => {
    const server = await startServer(t);
    await prepare(server, emulatorToken);
    const rows = [
        { style: "py" },
        { style: "net" },
        { claims: { tid: undefined, iat: undefined, groups: undefined, scp: undefined }, header: { kid: undefined, x5t: undefined } },
        { claims: { nbf: undefined } },
        { claims: { nbf: Math.floor(Date.now() / 1000) - 300 } },
    ];
    for (const row of rows) {
        for (const form of [plain, encoded]) {
            const token = emulatorToken(row);
            assert.equal((await ask(server, token, { path: "/dbs/db", form })).status, 200, JSON.stringify(row));
            assert.equal((await ask(server, token, { path: "/dbs", form })).status, 200);
            assert.equal((await ask(server, token, { path: "/dbs/db/colls/c", form })).status, 200);
        }
    }
    // As Go creates an item: no content in the answer.
    const created = await ask(server, emulatorToken(), {
        method: "POST",
        path: ITEMS,
        headers: { ...KEY, prefer: "return=minimal", "content-type": "application/json" },
        body: { id: "go", pk: "k" },
    });
    assert.equal(created.status, 201, created.text);
    assert.equal(created.text, "");
    assert.ok(created.headers["x-ms-session-token"]);
});

test("what is wrong with such a token is answered with 401, its sub-status and a challenge", async (t) => {
    const server = await startServer(t);
    const now = Math.floor(Date.now() / 1000);
    const rows = [
        [emulatorToken({ claims: { nbf: now + 400 } }), 5005],
        [emulatorToken({ claims: { exp: now - 400 } }), 5006],
        [emulatorToken({ claims: { exp: `${now + 100}` } }), 5003],
        [emulatorToken({ claims: { exp: undefined } }), 5003],
        [emulatorToken({ claims: { iss: "https://sts.windows.net/x" } }), 5007],
        [emulatorToken({ claims: { aud: "https://127.0.0.1" } }), 5008],
        [emulatorToken({ claims: { oid: undefined, appid: undefined } }), 5011],
        [emulatorToken({ claims: { scp: "openid" } }), 5009],
        [emulatorToken({ key: newKey() }), 5004],
        ["a.b.c", 5003],
        ["null", 5003],
        [`${emulatorToken()}.x`, 5003],
    ];
    for (const [token, substatus] of rows) {
        for (const form of [plain, encoded]) {
            const answer = await ask(server, token, { form });
            errorAnswer(answer, 401, "Unauthorized", { substatus });
            assert.match(answer.headers["www-authenticate"], /^Bearer /);
        }
    }
    errorAnswer(await ask(server, "x".repeat(17000)), 401, "Unauthorized", { substatus: 5001 });
    errorAnswer(await ask(server, ""), 401, "Unauthorized", { substatus: 5001 });
});

test("such tokens are worth nothing without the development key, also right after it was replaced", async (t) => {
    const server = await startServer(t);
    const token = emulatorToken();
    assert.equal((await ask(server, token)).status, 200);
    assert.equal((await ask(server, token)).status, 200);
    const key = await rotate(server, "primary");
    const off = { substatus: 5002, message: /--identity-issuer/ };
    errorAnswer(await ask(server, token), 401, "Unauthorized", off);
    errorAnswer(await ask(server, emulatorToken({ key })), 401, "Unauthorized", off);

    const own = newKey();
    const other = await startServer(t, { key: own });
    errorAnswer(await ask(other, emulatorToken({ key: own })), 401, "Unauthorized", off);
    errorAnswer(await ask(other, token), 401, "Unauthorized", off);
});

test("an identity sees neither keys nor statistics", async (t) => {
    const server = await startServer(t);
    const headers = plain(emulatorToken());
    assert.equal((await askKeys(server, { headers })).status, 403);
    assert.equal((await askKeys(server, { method: "POST", body: { name: "primary" }, headers })).status, 403);
    assert.equal((await ask(server, emulatorToken(), { path: "/_orrery/containers" })).status, 403);
});

// --- Tokens of an issuer

const optionsOf = (issuer, keys, ...more) => [
    ["--identity-issuer", issuer.url],
    ["--identity-audience", `https://cosmos.azure.com, ${issuer.audience}`],
    ["--identity-keys", keys],
    ...more,
].flat();

async function withIssuer(t, issuer, ...more) {
    const file = join(temporaryFolder(), "keys.json");
    writeFileSync(file, issuer.keys());
    const server = await startServer(t, { key: newKey(), args: optionsOf(issuer, file, ...more) });
    return { server, file };
}

test("the SDK works with tokens of a configured issuer, whatever their signature is", async (t) => {
    const issuer = new Issuer().add("r", "RS256").add("p", "PS256").add("e", "ES256").add("e5", "ES512");
    const { server } = await withIssuer(t, issuer);
    const client = await prepare(server, () => issuer.token("r", { roles: ["contributor"] }));
    await useItems(client);
    for (const kid of ["r", "p", "e", "e5"]) {
        const token = issuer.token(kid, { roles: ["reader"] });
        for (let i = 0; i < 3; i++) assert.equal((await ask(server, token)).status, 200, kid);
    }
});

test("a role comes from the token or from a list; without one nothing is allowed", async (t) => {
    const issuer = new Issuer().add("k", "ES256");
    const { server } = await withIssuer(
        t,
        issuer,
        ["--identity-readers", "group-r,oid-r"],
        ["--identity-contributors", "app-c"],
    );
    await prepare(server, () => "");
    const status = async (claims, options) => {
        const { status, headers } = await ask(server, issuer.token("k", claims), options);
        return `${status}/${headers["x-ms-substatus"] ?? 0}`;
    };
    const create = { method: "POST", path: ITEMS, headers: KEY };
    const rows = [
        [{}, "403/5301", "403/5302"],
        [{ roles: ["other"] }, "403/5301", "403/5302"],
        [{ roles: ["reader"] }, "200/0", "403/5302"],
        [{ roles: "00000000-0000-0000-0000-000000000001" }, "200/0", "403/5302"],
        [{ oid: "oid-r" }, "200/0", "403/5302"],
        [{ groups: ["x", "group-r"] }, "200/0", "403/5302"],
        [{ roles: ["contributor"] }, "200/0", "201/0"],
        [{ roles: ["00000000-0000-0000-0000-000000000002"] }, "200/0", "201/0"],
        [{ appid: "app-c" }, "200/0", "201/0"],
        [{ azp: "app-c", oid: undefined }, "200/0", "201/0"],
    ];
    for (const [index, [claims, read, write]] of rows.entries()) {
        assert.equal(await status(claims), read, JSON.stringify(claims));
        const body = { id: `${index}`, pk: "k" };
        assert.equal(await status(claims, { ...create, body }), write, JSON.stringify(claims));
    }
    const none = await ask(server, issuer.token("k"));
    assert.match(none.json.message, /principal \[11111111-2222-3333-4444-555555555555\]/);
});

test("forged tokens are refused: other keys, no signature, the public key as a secret", async (t) => {
    const issuer = new Issuer().add("k", "RS256");
    const { server } = await withIssuer(t, issuer);
    const stranger = new Issuer().add("k", "RS256").add("z", "ES256");
    const claims = { roles: ["contributor"] };
    const good = issuer.token("k", claims);
    const [head, body, signature] = good.split(".");
    const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const none = encode({ alg: "none", kid: "k" });
    const symmetric = encode({ alg: "HS256", kid: "k" });
    const mac = createHmac("sha256", issuer.keys()).update(`${symmetric}.${body}`).digest("base64url");
    const now = Math.floor(Date.now() / 1000);
    const rows = [
        [stranger.token("k", claims), 5004],
        [stranger.token("z", claims), 5200],
        [stranger.token("k", claims, { kid: undefined }), 5004],
        [stranger.token("k", claims, { kid: "../../etc/passwd" }), 5200],
        [stranger.token("k", claims, { jwk: JSON.parse(stranger.keys()).keys[0] }), 5004],
        [stranger.token("k", claims, { jku: "http://127.0.0.1:1/keys" }), 5004],
        [`${none}.${body}.AAAA`, 5004],
        [`${none}.${body}.`, 5003],
        [`${symmetric}.${body}.${mac}`, 5004],
        [`${head}.${encode({ ...JSON.parse(Buffer.from(body, "base64url")), oid: "x" })}.${signature}`, 5004],
        [`${head}.${body}.${signature.slice(0, -6)}`, 5004],
        [issuer.token("k", claims, { crit: ["exp"] }), 5003],
        [issuer.token("k", { ...claims, iss: "https://issuer.example/other" }), 5007],
        [issuer.token("k", { ...claims, aud: ["https://graph.example"] }), 5008],
        [issuer.token("k", { ...claims, exp: now - 301 }), 5006],
        [issuer.token("k", { ...claims, nbf: now + 600 }), 5005],
        [issuer.token("k", { ...claims, exp: 1e300 }), 5003],
        [issuer.token("k", { ...claims, exp: -5 }), 5006],
        [issuer.token("k", { ...claims, exp: `${now + 60}` }), 5003],
        [issuer.token("k", { ...claims, oid: "ö", appid: undefined }), 5011],
        [issuer.token("k", { ...claims, oid: "a\r\nx: y" }), 5011],
        [emulatorToken({ claims }), 5200],
    ];
    assert.equal((await ask(server, good)).status, 200);
    for (const [token, substatus] of rows) {
        for (const form of [plain, encoded]) {
            const answer = await ask(server, token, { form });
            errorAnswer(answer, 401, "Unauthorized", { substatus });
            assert.match(answer.headers["www-authenticate"], /^Bearer /);
        }
    }
});

test("at SIGHUP the key set is read again, and a bad one changes nothing", async (t) => {
    const issuer = new Issuer().add("old", "ES256");
    const { server, file } = await withIssuer(t, issuer);
    const roles = ["reader"];
    const old = issuer.token("old", { roles });
    assert.equal((await ask(server, old)).status, 200);
    issuer.add("new", "ES256").remove("old");
    writeFileSync(file, issuer.keys());
    process.kill(server.pid, "SIGHUP");
    await server.logged(/server\.reloaded part=identity-keys/);
    assert.equal((await ask(server, issuer.token("new", { roles }))).status, 200);
    errorAnswer(await ask(server, old), 401, "Unauthorized", { substatus: 5200 });
    writeFileSync(file, "{}");
    process.kill(server.pid, "SIGHUP");
    await server.logged(/server\.reload_refused part=identity-keys/);
    assert.equal((await ask(server, issuer.token("new", { roles }))).status, 200);
});

test("an unknown key makes the server ask the issuer again, but not for every token", async (t) => {
    const issuer = new Issuer().add("old", "ES256");
    const url = await issuer.publish(t);
    const server = await startServer(t, { key: newKey(), args: optionsOf(issuer, url) });
    const roles = ["reader"];
    assert.equal((await ask(server, issuer.token("old", { roles }))).status, 200);
    assert.equal(issuer.asked, 1);
    assert.equal(issuer.lastHeaders.authorization, undefined); // it gets nothing of ours
    issuer.add("new", "ES256");
    const token = issuer.token("new", { roles });
    await until(async () => (await ask(server, token)).status === 200);
    assert.equal(issuer.asked, 2);
});

test("a server starts without its issuer, and asks it when a token comes", async (t) => {
    const issuer = new Issuer().add("k", "ES256");
    const server = await startServer(t, { key: newKey(), args: optionsOf(issuer, "http://127.0.0.1:1/keys") });
    await server.logged(/identity\.no_keys reason=/);
    errorAnswer(await ask(server, issuer.token("k")), 401, "Unauthorized", { substatus: 5200 });
});

test("wrong settings are refused before the server starts", () => {
    const folder = temporaryFolder();
    const serve = (...args) => run(["serve", "--data", join(folder, "data"), "--port", "0", ...args]);
    const bad = join(folder, "bad.json");
    writeFileSync(bad, '{"keys":[{"kty":"oct","k":"AAAA"}]}');
    const issuer = new Issuer();
    const rows = [
        [["--identity-issuer", "https://i"], 2, /go together/],
        [["--identity-readers", "x"], 2, /go together/],
        [optionsOf(issuer, "https://login.example/keys"), 2, /a URL on this machine/],
        [optionsOf(issuer, "http://127.0.0.1.evil.example/keys"), 2, /a URL on this machine/],
        [optionsOf(issuer, "http://localhost@evil.example/keys"), 2, /a URL on this machine/],
        [optionsOf(issuer, "file:///etc/passwd"), 2, /a URL on this machine/],
        [optionsOf(issuer, join(folder, "nothing")), 1, /cannot read --identity-keys/],
        [optionsOf(issuer, bad), 1, /no public key for signatures/],
    ];
    for (const [args, status, message] of rows) {
        const result = serve(...args);
        assert.equal(result.status, status, result.stderr);
        assert.match(result.stderr, message);
    }
});
