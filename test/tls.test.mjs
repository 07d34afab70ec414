// TLS as an administrator sees it: which versions and ciphers there are, certificates that change while the
// server runs, certificates of clients, and servers that speak nothing else.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";

import { Authority, selfSigned, withPassword } from "./lib/certificates.mjs";
import { errorAnswer } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";
import { Line, answers, metric, requestText, send, signed, unique } from "./lib/wire.mjs";

const PEM_PATH = "/_explorer/emulator.pem";
const server = await sharedServer();

/** A handshake with these settings: the connection, or why there is none. */
function shake(port, options = {}) {
    return new Promise((resolve) => {
        const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
        socket.once("secureConnect", () => resolve({ socket }));
        socket.once("error", (error) => resolve({ error }));
    });
}

/** What the openssl program makes of a handshake. */
function s_client(...args) {
    const all = ["s_client", "-connect", `127.0.0.1:${server.port}`, ...args];
    const { status, stdout, stderr } = spawnSync("openssl", all, { input: "", encoding: "utf8", timeout: 20_000 });
    return { isDone: status === 0, text: stdout + stderr };
}

// --- Versions and ciphers

for (const version of ["TLSv1.2", "TLSv1.3"])
    test(`${version} is spoken`, async () => {
        const { socket, error } = await shake(server.port, { minVersion: version, maxVersion: version });
        assert.equal(error, undefined);
        assert.equal(socket.getProtocol(), version);
        assert.match(socket.getCipher().name, /GCM|CHACHA20/);
        socket.destroy();
    });

for (const version of ["TLSv1", "TLSv1.1"])
    test(`${version} is refused`, async () => {
        const ciphers = "ALL:@SECLEVEL=0";
        const { error } = await shake(server.port, { minVersion: version, maxVersion: version, ciphers });
        assert.equal(error?.code, "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", error?.message);
    });

for (const cipher of [
    "AES128-GCM-SHA256", // the key goes encrypted with RSA: no forward secrecy
    "AES256-SHA256",
    "ECDHE-ECDSA-AES128-SHA256", // CBC
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES128-SHA",
    "DHE-RSA-AES128-GCM-SHA256", // parameters of our own would be needed
    "ECDHE-ECDSA-AES128-CCM8", // a tag of 64 bits
])
    test(`the cipher ${cipher} is refused`, () => {
        const { isDone, text } = s_client("-tls1_2", "-cipher", `${cipher}:@SECLEVEL=0`);
        assert.ok(!isDone, text);
        assert.match(text, /handshake failure/);
    });

test("nothing is compressed, and no client begins a second handshake", () => {
    const { isDone, text } = s_client("-tls1_2", "-comp", "-legacy_renegotiation");
    assert.ok(isDone, text);
    assert.match(text, /Compression: NONE/);
    const again = spawnSync("openssl", ["s_client", "-connect", `127.0.0.1:${server.port}`, "-tls1_2"], {
        input: "R\n", // asks for a new handshake
        encoding: "utf8",
        timeout: 20_000,
    });
    assert.match(again.stdout + again.stderr, /no renegotiation/);
});

// --- Certificates that change

const fingerprint = (socket) => socket.getPeerCertificate().fingerprint256;

/** Which certificate new connections see. */
async function seen(target, options) {
    const { socket, error } = await shake(target.port, options);
    assert.equal(error, undefined);
    const print = fingerprint(socket);
    socket.destroy();
    return print;
}

/** How often the log has such a line. */
const count = (target, pattern) => target.lines.filter((line) => pattern.test(line)).length;

async function hangUp(target, pattern) {
    const before = count(target, pattern);
    process.kill(target.pid, "SIGHUP");
    for (let i = 0; count(target, pattern) === before; i++) {
        assert.ok(i < 1000, `the log has no new ${pattern}:\n${target.lines.slice(-5).join("\n")}`);
        await sleep(10);
    }
}

const RELOADED = / server\.reloaded part=tls/;
const REFUSED = / server\.reload_refused part=tls/;

/** A server with a pair of files that can be replaced. */
async function startWithFiles(t, args = []) {
    const folder = temporaryFolder();
    const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
    const install = (pair) => {
        copyFileSync(pair.cert, `${files.cert}.new`);
        copyFileSync(pair.key, `${files.key}.new`);
        renameSync(`${files.cert}.new`, files.cert);
        renameSync(`${files.key}.new`, files.key);
    };
    install(selfSigned("first"));
    const own = await startServer(t, { args: ["--cert", files.cert, "--cert-key", files.key, ...args] });
    return { own, files, install };
}

test("after SIGHUP new connections see the new certificate, and old ones go on", async (t) => {
    const { own, files, install } = await startWithFiles(t);
    const first = await seen(own);
    const { socket } = await shake(own.port);
    install(selfSigned("second"));
    assert.equal(await seen(own), first);
    await hangUp(own, RELOADED);
    const second = await seen(own);
    assert.notEqual(second, first);
    assert.equal((await send(own.endpoint, { path: PEM_PATH })).text, readFileSync(files.cert, "utf8"));
    // The old connection still works, with the old certificate.
    const line = new Line(socket);
    line.send(requestText("/healthz"));
    await line.until(/"ok"/);
    assert.equal(fingerprint(socket), first);
    line.close();
});

test("a pair that is not good is refused, and the old one stays", async (t) => {
    const { own, files, install } = await startWithFiles(t);
    const first = await seen(own);
    const kept = [readFileSync(files.cert), readFileSync(files.key)];
    const other = selfSigned("other");
    for (const [what, spoil] of [
        ["half a certificate", () => writeFileSync(files.cert, other.certText.slice(0, 300))],
        ["no certificate", () => truncateSync(files.cert)],
        ["half a key", () => writeFileSync(files.key, other.keyText.slice(0, 100))],
        ["the key of another one", () => copyFileSync(other.key, files.key)],
        ["not a certificate", () => writeFileSync(files.cert, "hello\n")],
        ["a key with a password", () => withPassword(other.key, files.key)],
        ["no file", () => rmSync(files.cert)],
    ]) {
        spoil();
        await hangUp(own, REFUSED);
        assert.equal(await seen(own), first, what);
        assert.equal((await send(own.endpoint, { path: PEM_PATH })).text, kept[0].toString(), what);
        writeFileSync(files.cert, kept[0]);
        writeFileSync(files.key, kept[1]);
    }
    install(other);
    await hangUp(own, RELOADED);
    assert.notEqual(await seen(own), first);
});

test("the pair that the server made is made again when its files are gone", async (t) => {
    const own = await startServer(t);
    const first = await seen(own);
    for (const name of ["tls-cert.pem", "tls-key.pem"]) rmSync(join(own.data, name));
    await hangUp(own, RELOADED);
    const second = await seen(own);
    assert.notEqual(second, first);
    assert.equal(
        (await send(own.endpoint, { path: PEM_PATH })).text,
        readFileSync(join(own.data, "tls-cert.pem"), "utf8"),
    );
});

test("the key is not handed out, even if it is in the file of the certificate", async (t) => {
    const pair = selfSigned("both");
    writeFileSync(pair.cert, pair.keyText + pair.certText);
    const own = await startServer(t, { args: ["--cert", pair.cert, "--cert-key", pair.cert] });
    const { text } = await send(own.endpoint, { path: PEM_PATH });
    assert.match(text, /^-----BEGIN CERTIFICATE-----/);
    assert.doesNotMatch(text, /PRIVATE/);
});

test("no request fails while certificates change under load", async (t) => {
    const { own, install } = await startWithFiles(t);
    const pairs = [selfSigned("a"), selfSigned("b")];
    const { database } = await clientOf(own, { endpoint: own.tlsEndpoint }).databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    let isOver = false;
    let done = 0;
    const overConnections = async () => {
        const client = clientOf(own, { endpoint: own.tlsEndpoint });
        const mine = client.database("d").container(container.id);
        for (; !isOver; done++) {
            const id = unique("i");
            assert.equal((await mine.items.create({ id, pk: id })).statusCode, 201);
        }
    };
    // Every request with a handshake of its own.
    const overHandshakes = async () => {
        for (; !isOver; done++) {
            const answer = await send(own.tlsEndpoint, { path: "/healthz", agent: new Agent() });
            assert.equal(answer.status, 200);
        }
    };
    const load = [overConnections(), overConnections(), overHandshakes(), overHandshakes()];
    try {
        for (let i = 0; i < 20; i++) {
            install(pairs[i % 2]);
            await hangUp(own, RELOADED);
        }
        // A storm: signals that come together are one.
        for (let i = 0; i < 200; i++) process.kill(own.pid, "SIGHUP");
        const before = done;
        while (done < before + 20) await Promise.race([...load, sleep(10)]);
    } finally {
        isOver = true;
    }
    await Promise.all(load);
    assert.ok(own.isRunning);
});

// --- Certificates of clients

test("with --client-ca only clients of these authorities get in", async (t) => {
    const ours = new Authority("ours");
    const also = new Authority("also");
    const other = new Authority("other");
    const bundle = join(temporaryFolder(), "bundle.pem");
    writeFileSync(bundle, ours.pair.certText + also.pair.certText);
    const own = await startServer(t, { args: ["--client-ca", bundle] });
    const ask = (pair) =>
        send(own.tlsEndpoint, {
            path: "/healthz",
            agent: new Agent({ ...pair?.shown, rejectUnauthorized: false }),
        });
    const good = ours.sign("good");
    assert.equal((await ask(good)).status, 200);
    assert.equal((await ask(also.sign("second"))).status, 200);
    for (const [what, pair] of [
        ["none", undefined],
        ["of another authority", other.sign("stranger")],
        ["signed by itself", selfSigned("alone")],
        ["for servers", ours.sign("server", { usage: "serverAuth" })],
        ["expired", ours.sign("old", { days: -1 })],
    ])
        await assert.rejects(ask(pair), /alert|reset|hang up/i, what);
    // Both versions refuse alike.
    for (const version of ["TLSv1.2", "TLSv1.3"])
        await assert.rejects(
            send(own.tlsEndpoint, {
                path: "/healthz",
                agent: new Agent({ rejectUnauthorized: false, minVersion: version, maxVersion: version }),
            }),
            /alert|reset|hang up/i,
        );
    assert.equal((await ask(good)).status, 200);

    // The SDK, with a certificate.
    const client = clientOf(own, {
        endpoint: own.tlsEndpoint,
        agent: new Agent({ keepAlive: true, ...good.shown, rejectUnauthorized: false }),
    });
    assert.equal((await client.databases.create({ id: "d" })).statusCode, 201);

    // Plain HTTP is no way around it.
    errorAnswer(await send(own.endpoint, { path: "/healthz" }), 403, "Forbidden", { message: /https:/ });

    // The bundle is read again; sessions of before are not resumed.
    const { socket } = await shake(own.port, { ...good.shown, maxVersion: "TLSv1.2" });
    const session = socket.getSession();
    socket.destroy();
    writeFileSync(bundle, also.pair.certText);
    await hangUp(own, RELOADED);
    await assert.rejects(ask(good), /alert|reset|hang up/i);
    const resumed = await shake(own.port, { session, maxVersion: "TLSv1.2" });
    assert.ok(resumed.error, "a session outlived the authority of its client");
    writeFileSync(bundle, "nothing\n");
    await hangUp(own, REFUSED);
    assert.equal((await ask(also.sign("third"))).status, 200);
});

test("a client with a certificate resumes its session", async (t) => {
    const ours = new Authority("ours");
    const own = await startServer(t, { args: ["--client-ca", ours.pair.cert] });
    const options = { ...ours.sign("good").shown, maxVersion: "TLSv1.2" };
    const first = await shake(own.port, options);
    const session = first.socket.getSession();
    first.socket.destroy();
    const second = await shake(own.port, { ...options, session });
    assert.equal(second.error, undefined);
    assert.ok(second.socket.isSessionReused());
    second.socket.destroy();
});

test("a bundle that has no authority is refused at the start", () => {
    const empty = join(temporaryFolder(), "empty.pem");
    writeFileSync(empty, "");
    const { status, stderr } = run(["serve", "--data", join(temporaryFolder(), "data"), "--client-ca", empty, "--port", "0"]);
    assert.equal(status, 1);
    assert.match(stderr, /cannot load the authorities of clients/);
});

// --- Nothing but TLS

test("with --require-tls a plain request gets 403 on every path, and nothing else", async (t) => {
    const own = await startServer(t, { args: ["--require-tls"] });
    const paths = ["/", "/healthz", "/metrics", PEM_PATH, "/dbs", "/dbs/d/colls/c/docs/i", "/_orrery/events", "/no"];
    for (const path of paths)
        for (const method of ["GET", "POST", "OPTIONS", "DELETE"]) {
            const answer = await send(own.endpoint, {
                method,
                path,
                headers: signed({ key: own.key, method, path }),
            });
            errorAnswer(answer, 403, "Forbidden", { message: /over TLS only.*https:\/\// });
            assert.equal(answer.headers.connection, "close");
        }
    // No body is asked for, and nothing after the first request is answered.
    const line = await Line.open(own.port);
    line.send(requestText("/dbs", { method: "POST", headers: { "content-length": 1000000, expect: "100-continue" } }));
    line.send(requestText("/healthz"));
    const all = answers(await line.end());
    assert.deepEqual(all.map(({ status }) => status), [403]);
    line.close();

    assert.doesNotMatch(own.stdout, /http:/); // what it tells people to use
    assert.match(own.stdout, /endpoint: "https:/);
    const client = clientOf(own, { endpoint: own.tlsEndpoint });
    assert.equal((await client.databases.create({ id: "d" })).statusCode, 201);
    const { text } = await send(own.tlsEndpoint, { path: "/metrics" });
    assert.match(text, new RegExp(`orrery_requests_plain_refused_total ${4 * paths.length + 1}\n`));
});

test("handshakes that fail are counted", async () => {
    const before = await metric(server, "orrery_tls_handshakes_failed_total");
    await shake(server.port, { maxVersion: "TLSv1.1", minVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" });
    while ((await metric(server, "orrery_tls_handshakes_failed_total")) === before) await sleep(10);
});
