// Reaching the server: both protocols, every address, and what HTTP itself allows.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createConnection, createServer } from "node:net";
import { join } from "node:path";
import test from "node:test";
import { gunzipSync } from "node:zlib";

import { errorAnswer } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { Line, answers, call, requestText, send, signed, unique } from "./lib/wire.mjs";

const PEM_PATH = "/_explorer/emulator.pem";
const server = await sharedServer({
    host: "localhost",
    args: ["--allow-host", "db.example,inner", "--cors", "https://app.example"],
});

const certificateOf = async (endpoint) => (await send(endpoint, { path: PEM_PATH })).text;

async function useDatabase(client) {
    const id = unique("connect");
    await client.databases.create({ id });
    assert.equal((await client.database(id).read()).resource.id, id);
    assert.equal((await client.database(id).delete()).statusCode, 204);
}

// --- The SDK on both protocols

test("the SDK works over HTTP", () => useDatabase(clientOf(server)));

test("the SDK works over HTTPS when it does not verify the certificate", () =>
    useDatabase(clientOf(server, { endpoint: server.tlsEndpoint })));

for (const host of ["localhost", "127.0.0.1"]) {
    test(`the SDK trusts https://${host} with the certificate that the server hands out`, async () => {
        const endpoint = `https://${host}:${server.port}`;
        await useDatabase(clientOf(server, { endpoint, ca: await certificateOf(server.endpoint) }));
    });
}

test("a connection string is enough", async () => {
    const { CosmosClient } = await import("@azure/cosmos");
    const text = `AccountEndpoint=${server.endpoint}/;AccountKey=${server.key};`;
    await useDatabase(new CosmosClient(text));
});

test("HTTP and HTTPS clients work on one port at the same time and see the same data", async () => {
    const plain = clientOf(server);
    const secure = clientOf(server, { endpoint: server.tlsEndpoint });
    const names = Array.from({ length: 8 }, () => unique("both"));
    await Promise.all(names.map((id, i) => (i % 2 ? plain : secure).databases.create({ id })));
    await Promise.all(names.map((id, i) => (i % 2 ? secure : plain).database(id).delete()));
});

// --- The certificate

test("the certificate is the same for HTTP, HTTPS and after a restart", async (t) => {
    const own = await startServer(t);
    const first = await certificateOf(own.endpoint);
    assert.match(first, /^-----BEGIN CERTIFICATE-----\n/);
    assert.equal(await certificateOf(own.tlsEndpoint), first);
    await own.restart();
    assert.equal(await certificateOf(own.tlsEndpoint), first);
});

test("the certificate is for localhost, both loopback addresses, and lasts for years", async () => {
    const certificate = new X509Certificate(await certificateOf(server.endpoint));
    for (const name of ["DNS:localhost", "IP Address:127.0.0.1", "IP Address:0:0:0:0:0:0:0:1"])
        assert.ok(certificate.subjectAltName.includes(name), certificate.subjectAltName);
    const years = (Date.parse(certificate.validTo) - Date.now()) / (365 * 86_400_000);
    assert.ok(years > 5, certificate.validTo);
});

test("a certificate that is given is used instead", async (t) => {
    const certificate = await certificateOf(server.endpoint);
    const own = await startServer(t, {
        args: ["--cert", join(server.data, "tls-cert.pem"), "--cert-key", join(server.data, "tls-key.pem")],
    });
    assert.equal(await certificateOf(own.endpoint), certificate);
    await useDatabase(clientOf(own, { endpoint: own.tlsEndpoint, ca: certificate }));
});

// --- The account document

async function advertised(target, headers, endpoint = target.endpoint) {
    const answer = await send(endpoint, {
        headers: { ...signed({ key: target.key, path: "/" }), ...headers },
    });
    assert.equal(answer.status, 200, answer.text);
    const { writableLocations, readableLocations } = answer.json;
    assert.deepEqual(readableLocations, writableLocations);
    assert.equal(writableLocations.length, 1);
    return writableLocations[0].databaseAccountEndpoint;
}

test("the account document has everything that the SDKs read", async () => {
    const answer = await call(server, { path: "/" });
    const account = answer.json;
    assert.notEqual(account.id, "localhost");
    assert.equal(account.userConsistencyPolicy.defaultConsistencyLevel, "Session");
    assert.equal(account.enableMultipleWriteLocations, false);
    assert.equal(account.enablePerPartitionFailoverBehavior, false);
    assert.equal(account.systemReplicationPolicy.maxReplicasetSize, 1);
    assert.equal(typeof account.queryEngineConfiguration, "string");
    assert.equal(JSON.parse(account.queryEngineConfiguration).maxJoinsPerSqlQuery, 10);
    assert.equal(account.thinClientReadableLocations, undefined);
    const { resource } = await clientOf(server).getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
});

for (const [host, endpoint] of [
    ["db.example:1234", "http://db.example:1234/"],
    ["db.example", "http://db.example:80/"],
    ["10.1.2.3:8081", "http://10.1.2.3:8081/"],
    ["[::1]:8081", "http://[::1]:8081/"],
    ["[::1]", "http://[::1]:80/"],
]) {
    test(`a client that asks ${host} is sent to ${endpoint}`, async () => {
        assert.equal(await advertised(server, { host }), endpoint);
    });
}

test("over HTTPS the advertised address is an HTTPS one", async () => {
    const host = "db.example";
    assert.equal(await advertised(server, { host }, server.tlsEndpoint), "https://db.example:443/");
});

test("a Host header that is no host is refused", async () => {
    const headers = { ...signed({ key: server.key, path: "/" }), host: 'a"b' };
    errorAnswer(await send(server.endpoint, { headers }), 400, "BadRequest", { message: /Host/ });
});

test("an HTTP/1.0 client without a Host header gets the server's own address", async () => {
    const headers = Object.entries(signed({ key: server.key, path: "/" }));
    const line = await Line.open(server.port);
    line.send(`GET / HTTP/1.0\r\n${headers.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n`);
    const [answer] = answers(await line.end());
    const [location] = JSON.parse(answer.body).writableLocations;
    assert.equal(new URL(location.databaseAccountEndpoint).port, String(server.port));
});

test("through a mapped port the SDK goes on using the mapped port", async (t) => {
    let connections = 0;
    const forwarder = createServer((incoming) => {
        connections++;
        const outgoing = createConnection(server.port, "127.0.0.1");
        incoming.pipe(outgoing).pipe(incoming);
        incoming.on("error", () => outgoing.destroy());
        outgoing.on("error", () => incoming.destroy());
        incoming.on("close", () => outgoing.destroy());
    });
    await new Promise((resolve) => forwarder.listen(0, "127.0.0.1", resolve));
    t.after(() => forwarder.close());
    const endpoint = `http://127.0.0.1:${forwarder.address().port}`;
    const client = clientOf(server, { endpoint });
    await useDatabase(client);
    assert.equal(await client.getWriteEndpoint(), `${endpoint}/`);
    assert.equal(await client.getReadEndpoint(), `${endpoint}/`);
    assert.ok(connections > 0);
});

test("--public-endpoint is what every client is sent to", async (t) => {
    const url = "https://db.example.com:443/";
    const own = await startServer(t, { args: ["--public-endpoint", url, "--trust-forwarded"] });
    assert.equal(await advertised(own, { host: "localhost:1" }), url);
    assert.equal(await advertised(own, { "x-forwarded-host": "other:2" }), url);
});

test("forwarded headers are believed only with --trust-forwarded", async (t) => {
    const host = "inner:8081";
    const headers = { host, "x-forwarded-proto": "https", "x-forwarded-host": "outer.example:8443" };
    assert.equal(await advertised(server, headers), "http://inner:8081/");

    const own = await startServer(t, { args: ["--trust-forwarded", "--allow-host", "inner"] });
    const rows = [
        [headers, "https://outer.example:8443/"],
        [{ host, "x-forwarded-proto": "https" }, "https://inner:8081/"],
        [{ host, "x-forwarded-host": "outer.example" }, "http://outer.example:80/"],
        [
            { host, "x-forwarded-proto": "https, http", "x-forwarded-host": "first.example, second" },
            "https://first.example:443/",
        ],
        [{ host, "x-forwarded-proto": "gopher" }, "http://inner:8081/"],
        [{ host }, "http://inner:8081/"],
    ];
    for (const [given, expected] of rows) assert.equal(await advertised(own, given), expected);
});

// --- HTTP

test("HEAD answers like GET without the body", async () => {
    const authorised = (method) => signed({ key: server.key, method, path: "/dbs" });
    for (const [path, headers] of [
        ["/healthz", () => ({})],
        ["/dbs", authorised],
    ]) {
        const get = await send(server.endpoint, { path, headers: headers("GET") });
        const head = await send(server.endpoint, { method: "HEAD", path, headers: headers("HEAD") });
        assert.equal(head.status, 200);
        assert.equal(head.bytes.length, 0);
        assert.equal(head.headers["content-length"], get.headers["content-length"]);
        assert.equal(head.headers["content-type"], get.headers["content-type"]);
    }
});

test("a browser's preflight request is answered without a key", async () => {
    const answer = await send(server.endpoint, {
        method: "OPTIONS",
        path: "/dbs/any/colls/any/docs",
        headers: {
            origin: "https://app.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, x-ms-date",
        },
    });
    assert.equal(answer.status, 204);
    assert.equal(answer.bytes.length, 0);
    assert.equal(answer.headers["access-control-allow-origin"], "https://app.example");
    assert.match(answer.headers["access-control-allow-methods"], /\bPATCH\b/);
    assert.equal(answer.headers["access-control-allow-headers"], "authorization, x-ms-date");
});

test("answers to a browser expose the protocol's headers, errors too", async () => {
    const headers = { origin: "https://app.example" };
    for (const answer of [
        await call(server, { path: "/dbs", headers }),
        await send(server.endpoint, { path: "/dbs", headers }),
    ]) {
        assert.equal(answer.headers["access-control-allow-origin"], "https://app.example");
        assert.match(answer.headers["access-control-expose-headers"], /x-ms-continuation/);
    }
    const plain = await call(server, { path: "/dbs" });
    assert.equal(plain.headers["access-control-allow-origin"], undefined);
});

test("large answers are compressed for clients that understand it", async () => {
    const id = unique("gzip");
    const { database } = await clientOf(server).databases.create({ id });
    const excludedPaths = Array.from({ length: 1000 }, (_, i) => ({ path: `/property${i}/?` }));
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths };
    await database.containers.create({ id: "c", partitionKey: "/pk", indexingPolicy });
    const read = (encoding) =>
        call(server, { path: `/dbs/${id}/colls/c`, headers: encoding && { "accept-encoding": encoding } });
    const plain = await read();
    assert.equal(plain.headers["content-encoding"], undefined);
    const packed = await read("gzip");
    assert.equal(packed.headers["content-encoding"], "gzip");
    assert.ok(packed.bytes.length < plain.bytes.length);
    assert.equal(gunzipSync(packed.bytes).toString(), plain.text);
    assert.equal((await read("gzip;q=0")).headers["content-encoding"], undefined);
});

test("a connection is kept open for the next request", async () => {
    const line = await Line.open(server.port);
    line.send(requestText("/healthz"));
    await line.until(/"status":"ok"[^}]*}$/);
    assert.equal(line.ended, false);
    line.send(requestText("/healthz", { headers: { connection: "close" } }));
    const list = answers(await line.end());
    assert.deepEqual(
        list.map(({ status }) => status),
        [200, 200],
    );
    assert.equal(list[1].headers.connection, "close");
});

test("three requests sent at once are answered in their order", async () => {
    const id = unique("pipeline");
    const body = JSON.stringify({ id });
    const create = { ...signed({ key: server.key, method: "POST", path: "/dbs" }) };
    const line = await Line.open(server.port);
    // The one in the middle waits for the disk; the third must not overtake it, and sees its work.
    line.send(
        requestText("/healthz") +
            requestText("/dbs", {
                method: "POST",
                headers: { ...create, "content-length": body.length },
            }) +
            body +
            requestText(`/dbs/${id}`, {
                headers: { ...signed({ key: server.key, path: `/dbs/${id}` }), connection: "close" },
            }),
    );
    const list = answers(await line.end());
    assert.deepEqual(
        list.map(({ status }) => status),
        [200, 201, 200],
    );
    assert.equal(JSON.parse(list[2].body).id, id);
});

test("a body may come in chunks", async () => {
    const id = unique("chunks");
    const body = JSON.stringify({ id });
    const headers = {
        ...signed({ key: server.key, method: "POST", path: "/dbs" }),
        "transfer-encoding": "chunked",
        connection: "close",
    };
    const pieces = [body.slice(0, 3), body.slice(3, 4), body.slice(4)];
    const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
    const line = await Line.open(server.port);
    line.send(requestText("/dbs", { method: "POST", headers }));
    for (const chunk of [...chunks, "0\r\n\r\n"]) line.send(chunk);
    const [answer] = answers(await line.end());
    assert.equal(answer.status, 201, answer.body);
    assert.equal(JSON.parse(answer.body).id, id);
});

test("a client that expects 100-continue is told to go on", async () => {
    const body = JSON.stringify({ id: unique("expect") });
    const headers = {
        ...signed({ key: server.key, method: "POST", path: "/dbs" }),
        "content-length": body.length,
        expect: "100-continue",
        connection: "close",
    };
    const line = await Line.open(server.port);
    line.send(requestText("/dbs", { method: "POST", headers }));
    await line.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    line.send(body);
    assert.match(await line.end(), /\r\n\r\nHTTP\/1\.1 201 /);
});

// A client without a key is refused before the body is read.
const chunked = {
    ...signed({ key: server.key, method: "POST", path: "/dbs" }),
    "transfer-encoding": "chunked",
};

const MALFORMED = [
    ["a request that is not HTTP", "nonsense\r\n\r\n", 400],
    ["a header without end", `GET / HTTP/1.1\r\nx: ${"a".repeat(70_000)}`, 400],
    ["too many headers", `GET / HTTP/1.1\r\n${"x: y\r\n".repeat(2000)}\r\n`, 400],
    [
        "a body beyond the limit",
        requestText("/dbs", { method: "POST", headers: { "content-length": 5 << 20 } }),
        413,
    ],
    ["a content-length that is no number", requestText("/dbs", { headers: { "content-length": "x" } }), 400],
    [
        "two ways to end a body",
        requestText("/dbs", { headers: { "content-length": 1, "transfer-encoding": "chunked" } }),
        400,
    ],
    [
        "chunks that are not chunks",
        `${requestText("/dbs", { method: "POST", headers: chunked })}zz\r\n`,
        400,
    ],
    [
        "a chunk's size that begins with 0x",
        `${requestText("/dbs", { method: "POST", headers: chunked })}0x14\r\n`,
        400,
    ],
    [
        "an extension of a chunk without end",
        `${requestText("/dbs", { method: "POST", headers: chunked })}1;${"a".repeat(70_000)}`,
        400,
    ],
    ["no host", "GET /healthz HTTP/1.1\r\n\r\n", 400],
    ["two hosts", requestText("/healthz", { headers: { host: "localhost" } }), 400],
    ["a target with another host", requestText("http://example.com/healthz"), 400],
    ["lines that end in LF alone", requestText("/healthz").replaceAll("\r\n", "\n"), 400],
    ["a space before a colon", requestText("/healthz", { headers: { "x ": "y" } }), 400],
];
for (const [what, text, status] of MALFORMED) {
    test(`${what} is answered with status ${status} and a JSON error`, async () => {
        const line = await Line.open(server.port);
        line.send(text);
        const [answer] = answers(await line.end());
        assert.equal(answer.status, status);
        assert.equal(answer.headers["content-type"], "application/json");
        const { code, message } = JSON.parse(answer.body);
        assert.equal(code, status === 413 ? "RequestEntityTooLarge" : "BadRequest");
        assert.ok(message.length > 10, message);
    });
}

test("a client without a key is refused before the body is sent", async () => {
    for (const framing of [{ "content-length": 2 << 20 }, { "transfer-encoding": "chunked" }]) {
        const line = await Line.open(server.port);
        line.send(requestText("/dbs", { method: "POST", headers: framing }));
        const [answer] = answers(await line.end());
        assert.equal(answer.status, 401);
        assert.equal(answer.headers.connection, "close");
        assert.equal(JSON.parse(answer.body).code, "Unauthorized");
        line.close();
    }
});

test("a body of more than 2 MB is refused by name", async () => {
    const body = JSON.stringify({ id: "x", filler: "y".repeat(2 << 20) });
    const answer = await call(server, { method: "POST", path: "/dbs", body });
    errorAnswer(answer, 413, "RequestEntityTooLarge", { message: /too large/ });
});

// --- Paths outside the resource model

test("/healthz says that the server is well", async () => {
    const answer = await send(server.endpoint, { path: "/healthz" });
    assert.equal(answer.status, 200);
    assert.equal(answer.json.status, "ok");
});

function parseMetrics(text) {
    const types = new Map();
    const values = new Map();
    for (const line of text.split("\n").slice(0, -1)) {
        const type = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary)$/.exec(line);
        const sample = /^([a-zA-Z_:][\w:]*)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? (-?[\d.e+]+|NaN|\+Inf)$/.exec(
            line,
        );
        if (type) {
            assert.ok(!types.has(type[1]), `two types of ${type[1]}`);
            types.set(type[1], type[2]);
        } else if (sample) {
            assert.ok(types.has(sample[1]), `${sample[1]} has no type`);
            assert.ok(!values.has(line.split(" ")[0]), `two values of ${sample[1]}`);
            values.set(sample[1] + (sample[2] ?? ""), Number(sample[4]));
        } else {
            assert.match(line, /^# HELP [a-zA-Z_:][\w:]* \S/);
        }
    }
    assert.ok(text.endsWith("\n"));
    return values;
}

test("/metrics is Prometheus' text format and counts what happens", async (t) => {
    const own = await startServer(t);
    const read = async () => {
        const answer = await send(own.endpoint, { path: "/metrics" });
        assert.match(answer.headers["content-type"], /^text\/plain; version=0\.0\.4/);
        return parseMetrics(answer.text);
    };
    const before = await read();
    await clientOf(own).databases.create({ id: "counted" });
    await send(own.endpoint, { path: "/dbs" });
    await send(own.tlsEndpoint, { path: "/healthz" });
    const after = await read();
    const grown = (name) => after.get(name) - before.get(name);
    assert.equal(after.get("orrery_databases"), 1);
    assert.equal(grown("orrery_catalog_changes_total"), 1);
    assert.equal(grown("orrery_requests_unauthorized_total"), 1);
    assert.equal(grown("orrery_tls_connections_total"), 1);
    assert.equal(grown('orrery_requests_total{class="4xx"}'), 1);
    assert.ok(grown('orrery_requests_total{class="2xx"}') >= 3);
    assert.ok(after.get("orrery_store_disk_bytes") > 0);
});

test("a direct-mode client is told to use gateway mode", async () => {
    const path = "/addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd";
    for (const answer of [
        await send(server.endpoint, { path }),
        await send(server.endpoint, { path: `/${path}` }),
    ])
        errorAnswer(answer, 400, "BadRequest", { message: /gateway mode/ });
});

// --- Errors

const ERRORS = [
    ["an unknown path", { path: "/nothing" }, 404, "NotFound"],
    ["a type in the wrong place", { path: "/dbs/a/docs/b" }, 404, "NotFound"],
    ["a path with too many segments", { path: `/dbs${"/a".repeat(20)}` }, 404, "NotFound"],
    ["a broken escape", { path: "/dbs/a%2", type: "dbs", link: "" }, 400, "BadRequest"],
    ["an unknown method", { method: "BREW", path: "/dbs" }, 405, "MethodNotAllowed"],
    ["DELETE of a feed", { method: "DELETE", path: "/dbs" }, 405, "MethodNotAllowed"],
    ["PUT of a database", { method: "PUT", path: "/dbs/errors", body: "{}" }, 405, "MethodNotAllowed"],
    ["an unknown API version", { path: "/dbs", headers: { "x-ms-version": "soon" } }, 400, "BadRequest"],
    ["a page size below -1", { path: "/dbs", headers: { "x-ms-max-item-count": "-2" } }, 400, "BadRequest"],
    ["a page size in words", { path: "/dbs", headers: { "x-ms-max-item-count": "ten" } }, 400, "BadRequest"],
    ["a foreign continuation", { path: "/dbs", headers: { "x-ms-continuation": "[{}]" } }, 400, "BadRequest"],
    ["a body that is not JSON", { method: "POST", path: "/dbs", body: "{id" }, 400, "BadRequest"],
    ["a body that is no object", { method: "POST", path: "/dbs", body: "[]" }, 400, "BadRequest"],
    ["no body", { method: "POST", path: "/dbs" }, 400, "BadRequest"],
    [
        "a body that is nested too deep",
        { method: "POST", path: "/dbs", body: `{"a":${"[".repeat(90_000)}` },
        400,
        "BadRequest",
    ],
    [
        "a query that is nested too deep",
        {
            method: "POST",
            path: "/dbs",
            headers: { "x-ms-documentdb-isquery": "true" },
            body: { query: `SELECT VALUE ${"[".repeat(90_000)}` },
        },
        400,
        "BadRequest",
    ],
    [
        "a change feed of an unknown kind",
        { path: "/dbs/errors/colls/c/docs", headers: { "a-im": "Some Feed" } },
        400,
        "BadRequest",
    ],
    [
        "a procedure without a body",
        { method: "POST", path: "/dbs/errors/colls/c/sprocs", body: "{}" },
        400,
        "BadRequest",
    ],
    ["a user without an id", { method: "POST", path: "/dbs/errors/users", body: "{}" }, 400, "BadRequest"],
];
test("every failure has a JSON body with code and message, and an activity id", async (t) => {
    const { database } = await clientOf(server).databases.create({ id: "errors" });
    await database.containers.create({ id: "c", partitionKey: "/pk" });
    const activityId = "0f8fad5b-d9cb-469f-a165-70867728950e";
    for (const [what, request, status, code] of ERRORS) {
        await t.test(what, async () => {
            errorAnswer(await call(server, request), status, code, { message: /ActivityId: [\w-]+/ });
            const headers = { ...request.headers, "x-ms-activity-id": activityId };
            const answer = await call(server, { ...request, headers });
            assert.equal(answer.headers["x-ms-activity-id"], activityId);
            assert.ok(answer.json.message.includes(activityId));
        });
    }
});

test("a client's activity id is echoed, and one that is none is replaced", async () => {
    const ask = async (id) =>
        (await call(server, { path: "/dbs", headers: { "x-ms-activity-id": id } })).headers[
            "x-ms-activity-id"
        ];
    assert.equal(await ask("my-own_ID-7"), "my-own_ID-7");
    const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
    for (const bad of ["with space", "a".repeat(65), "a=b&c"]) assert.match(await ask(bad), guid);
});
