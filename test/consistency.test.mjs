// Sessions and consistency through the SDK: which answers have a session token and what it says, which reads
// respect one, levels and strategies, the account's level.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { KEY } from "./lib/definition.mjs";
import { callItems, newContainer, pathOf, SIZES } from "./lib/items.mjs";
import { askPage } from "./lib/queries.mjs";
import { procedure } from "./lib/scripts.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

const ARGS = ["--durability", "relaxed"];
const LEVELS = ["Eventual", "ConsistentPrefix", "Session", "BoundedStaleness", "Strong"]; // the weakest first

const server = await sharedServer({ args: ARGS });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "consistency" });

const tokenOf = ({ headers }) => headers["x-ms-session-token"];
const chargeOf = ({ headers }) => Number(headers["x-ms-request-charge"]);

/** The range and the LSN of a token of one range. */
function parse(token) {
    assert.match(token ?? "none", /^\d+:-1#\d+$/);
    return token.split(":-1#").map(Number);
}

const lsnOf = (answer) => parse(tokenOf(answer))[1];

// --- Which answers have a token, and what it says

for (const [name, size] of [
    ["plain", SIZES[0]],
    ["with a space", SIZES[1]],
])
    test(`reads have the token of the last write, as text (${name}, ${size.partitions} partitions)`, async () => {
        const body = { id: name, partitionKey: KEY, throughput: size.throughput };
        const { container } = await database.containers.create(body);
        const key = { partitionKey: "p" };
        const written = tokenOf(await container.items.create({ id: "x", pk: "p" }));
        const reads = {
            read: () => container.item("x", "p").read(),
            "another read": () => container.item("x", "p").read(),
            miss: () => container.item("nobody", "p").read(),
            query: () => container.items.query("SELECT * FROM c", key).fetchNext(),
            "query of nothing": () => container.items.query("SELECT * FROM c WHERE c.no", key).fetchNext(),
            count: () => container.items.query("SELECT VALUE COUNT(1) FROM c", key).fetchNext(),
            list: () => container.items.readAll(key).fetchNext(),
            batch: () => container.items.batch([{ operationType: "Read", id: "x" }], "p"),
        };
        for (const [what, read] of Object.entries(reads)) assert.equal(tokenOf(await read()), written, what);
    });

test("every transaction raises the token by one; reads and refusals leave it", async () => {
    const container = await newContainer(database);
    const item = container.item("x", "p");
    const other = { accessCondition: { type: "IfMatch", condition: '"other"' } };
    const create = (id) => ({ operationType: "Create", resourceBody: { id, pk: "p" } });
    const minimal = (body) => {
        const headers = { prefer: "return=minimal", "x-ms-documentdb-is-upsert": "true" };
        return callItems(server, container, { method: "POST", key: body.pk, headers, body });
    };
    const writer = await procedure(container, function (count) {
        for (let i = 0; i < count; i++)
            __.createDocument(__.getSelfLink(), { id: `s${i}`, pk: "p" }, (error) => {
                if (error) throw error;
            });
        __.response.setBody(count);
    });
    const rows = [
        ["create", 1, () => container.items.create({ id: "x", pk: "p" })],
        ["read", 0, () => item.read()],
        ["read what is not there", 0, () => container.item("nobody", "p").read()],
        ["create again", 0, () => refused(container.items.create({ id: "x", pk: "p" }), 409)],
        ["upsert", 1, () => container.items.upsert({ id: "x", pk: "p", n: 1 })],
        ["replace", 1, () => item.replace({ id: "x", pk: "p", n: 2 })],
        ["replace another version", 0, () => refused(item.replace({ id: "x", pk: "p" }, other), 412)],
        ["delete another version", 0, () => refused(item.delete(other), 412)],
        ["delete nobody", 0, () => refused(container.item("nobody", "p").delete(), 404)],
        ["patch", 1, () => item.patch([{ op: "incr", path: "/n", value: 1 }])],
        ["upsert that is answered without the item", 1, () => minimal({ id: "x", pk: "p" })],
        ["batch", 1, () => container.items.batch(["a", "b", "c"].map(create), "p")],
        ["batch that fails", 0, () => container.items.batch(["d", "a"].map(create), "p")],
        ["batch that reads", 0, () => container.items.batch([{ operationType: "Read", id: "a" }], "p")],
        ["procedure", 1, () => writer.execute("p", [3])],
        ["procedure without writes", 0, () => writer.execute("p", [0])],
        ["procedure that fails", 0, () => refused(writer.execute("p", [1]), 400, { substatus: 409 })],
        ["query", 0, () => container.items.query("SELECT * FROM c", { partitionKey: "p" }).fetchNext()],
        ["delete", 1, () => item.delete()],
        ["read what was deleted", 0, () => item.read()],
    ];
    let lsn = 1; // of a partition in which nothing was ever written
    for (const [what, step, request] of rows) {
        lsn += step;
        assert.equal(lsnOf(await request()), lsn, what);
    }
});

test("an item that has not changed is answered 304 with a token", async () => {
    const container = await newContainer(database);
    const { headers } = await container.items.create({ id: "x", pk: "p" });
    const known = { "if-none-match": headers.etag };
    const answer = await callItems(server, container, { id: "x", key: "p", headers: known });
    assert.equal(answer.status, 304);
    assert.equal(tokenOf(answer), tokenOf({ headers }));
});

test("databases, containers, offers and ranges have no token", async () => {
    const container = await newContainer(database);
    for (const path of ["/", "/dbs", `/dbs/${database.id}`, pathOf(container), `${pathOf(container)}/pkranges`, "/offers"]) {
        const answer = await call(server, { path, headers: { "x-ms-session-token": "0:-1#4711" } });
        assert.equal(answer.status, 200, answer.text);
        assert.equal(tokenOf(answer), undefined, path);
    }
});

test("a request that is turned away has no token", async (t) => {
    const own = await startServer(t, { args: [...ARGS, "--enable-chaos"] });
    const { database: db } = await clientOf(own).databases.create({ id: "d" });
    const container = await newContainer(db);
    const path = `/_orrery/chaos${pathOf(container)}/throttle`;
    const body = { range: "0", seconds: 60 };
    const armed = await call(own, { method: "POST", path, type: "colls", link: pathOf(container).slice(1), body });
    assert.equal(armed.status, 201, armed.text);
    for (const request of [{ id: "x", key: "p" }, {}, { method: "POST", body: { id: "x", pk: "p" } }]) {
        const answer = await callItems(own, container, request);
        assert.equal(answer.status, 429, answer.text);
        assert.equal(tokenOf(answer), undefined);
    }
});

// --- What clients do with them

/** A client of level Session, and the tokens that it has sent since it was last asked. */
function careful() {
    const sent = [];
    const plugin = async (context, diagnostics, next) => {
        sent.push(context.headers["x-ms-session-token"]);
        return next(context);
    };
    const own = clientOf(server, { consistencyLevel: "Session", plugins: [{ on: "request", plugin }] });
    return {
        of: (container) => own.database(database.id).container(container.id),
        last: () => sent.splice(0).at(-1),
    };
}

test("a client of level Session sends what it was told, also by refusals", async () => {
    const shared = await newContainer(database);
    const { of, last } = careful();
    const container = of(shared);
    const created = tokenOf(await container.items.create({ id: "x", pk: "p" }));
    await container.item("x", "p").read();
    await container.item("x", "p").read();
    assert.equal(last(), created);
    const other = { accessCondition: { type: "IfMatch", condition: '"other"' } };
    for (const [status, request] of [
        [404, () => container.item("nobody", "p").delete()],
        [409, () => container.items.create({ id: "x", pk: "p" })],
        [412, () => container.item("x", "p").delete(other)],
    ]) {
        const elsewhere = tokenOf(await shared.items.upsert({ id: "y", pk: "p" }));
        await refused(request(), status);
        await container.item("x", "p").read();
        assert.equal(last(), elsewhere, `${status}`);
    }
});

test("a client that knows several ranges reads each of them, whatever it knows of the others", async () => {
    const shared = await newContainer(database, SIZES[1]);
    const { of, last } = careful();
    const container = of(shared);
    const keys = Array.from({ length: 40 }, (_, i) => `p${i}`);
    const ranges = new Map(); // a key of each
    for (const pk of keys) ranges.set(parse(tokenOf(await container.items.create({ id: "x", pk })))[0], pk);
    assert.equal(ranges.size, SIZES[1].partitions);
    await container.item("x", "p0").read();
    assert.equal(last().split(",").length, ranges.size, "one entry for each range");
    for (const [range, pk] of ranges) {
        const known = [...ranges.keys()].map((id) => `${id}:-1#${id === range ? 1 : 99_999}`).join(",");
        const read = await shared.item("x", pk).read({ sessionToken: known });
        assert.equal(read.statusCode, 200);
        assert.equal(parse(tokenOf(read))[0], range);
        const query = shared.items.query("SELECT * FROM c", { partitionKey: pk, sessionToken: known });
        assert.equal((await query.fetchNext()).resources.length, 1);
        // By hand, because the SDK reads again without the token.
        const headers = { "x-ms-session-token": known.replace(`${range}:-1#1`, `${range}:-1#99999`) };
        const behind = await callItems(server, shared, { id: "x", key: pk, headers });
        errorAnswer(behind, 404, "NotFound", { substatus: 1002 });
    }
});

// --- Which reads respect a token

/** Reads of an item, by hand: each takes headers. */
function readsOf(own, container) {
    const batch = {
        "x-ms-cosmos-is-batch-request": "true",
        "x-ms-cosmos-batch-atomic": "true",
    };
    const body = JSON.stringify([{ operationType: "Read", id: "x" }]);
    return {
        read: (headers) => callItems(own, container, { id: "x", key: "p", headers }),
        list: (headers) => callItems(own, container, { key: "p", headers }),
        query: (headers) => askPage(own, container, "SELECT * FROM c", { headers }),
        count: (headers) => askPage(own, container, "SELECT VALUE COUNT(1) FROM c", { key: "p", headers }),
        batch: (headers) =>
            callItems(own, container, { method: "POST", key: "p", headers: { ...batch, ...headers }, body }),
    };
}

test("a token that asks for too much is answered 404/1002 with a charge; one that is malformed 400", async () => {
    const container = await newContainer(database);
    const lsn = lsnOf(await container.items.create({ id: "x", pk: "p" }));
    const far = [`0:-1#${lsn + 1}`, `0:-1#${lsn + 2000}`, "0:-1#100000000", `0:${lsn + 1}`, "0:1#1", "7:-1#1,0:-1#99"];
    const bad = ["nonsense", "0", "0:-1#1,broken-token", "broken-token,0:-1#1", "0:", "0:x", ":-1#1", "x:-1#1", "0:-1#1#2"];
    const good = ["", `0:-1#${lsn}`, `0:${lsn}`, "0:6#NaN", "7:-1#99999", "7:1#1", `0:-1#${lsn}#1=5`, `0:-1#${lsn},`];
    for (const [what, read] of Object.entries(readsOf(server, container))) {
        for (const token of far) {
            const answer = await read({ "x-ms-session-token": token });
            errorAnswer(answer, 404, "NotFound", {
                substatus: 1002,
                message: /^The read session is not available for the input session token\./,
            });
            assert.equal(tokenOf(answer), undefined, `${what} with ${token}`);
            assert.ok(chargeOf(answer) > 0, `${what} with ${token}`);
        }
        for (const token of bad)
            errorAnswer(await read({ "x-ms-session-token": token }), 400, "BadRequest", { message: /InvalidSessionToken/ });
        for (const token of good) {
            const answer = await read({ "x-ms-session-token": token });
            assert.equal(answer.status, 200, `${what} with ${token}: ${answer.text}`);
        }
    }
});

test("writes and procedures ignore tokens", async () => {
    const container = await newContainer(database);
    const echo = await procedure(container, function () {
        __.response.setBody("done");
    });
    const batch = ["y", "z"].map((id) => ({ operationType: "Upsert", resourceBody: { id, pk: "p" } }));
    for (const sessionToken of ["0:-1#4711", "nonsense"]) {
        const options = { sessionToken };
        await container.items.upsert({ id: "x", pk: "p" }, options);
        await container.item("x", "p").replace({ id: "x", pk: "p" }, options);
        await container.item("x", "p").patch([{ op: "set", path: "/n", value: 1 }], options);
        const { result } = await container.items.batch(batch, "p", options);
        assert.ok(result.every(({ statusCode }) => statusCode < 300));
        assert.equal((await echo.execute("p", [], options)).resource, "done");
        await container.item("x", "p").delete(options);
    }
});

const strategy = (name) => ({ "x-ms-cosmos-read-consistency-strategy": name });
const level = (name) => ({ "x-ms-consistency-level": name });

test("a strategy overrides the level: whether the token counts, and what the read costs", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "x", pk: "p" });
    const rows = [
        [{}, { isChecked: true }],
        [level("Session"), { isChecked: true }],
        [level("ConsistentPrefix"), {}],
        [level("Eventual"), {}],
        [strategy("Session"), { isChecked: true }],
        [strategy("Eventual"), {}],
        [strategy("LatestCommitted"), { factor: 2 }],
        [{ ...level("Eventual"), ...strategy("Session") }, { isChecked: true }],
        [{ ...level("Session"), ...strategy("Eventual") }, {}],
        [{ ...level("Session"), ...strategy("latestcommitted") }, { factor: 2 }],
    ];
    for (const [what, read] of Object.entries(readsOf(server, container))) {
        const single = chargeOf(await read({}));
        for (const [headers, { isChecked = false, factor = 1 }] of rows) {
            const message = `${what} with ${JSON.stringify(headers)}`;
            const plain = await read(headers);
            assert.equal(plain.status, 200, plain.text);
            assert.equal(chargeOf(plain), factor * single, message);
            const ahead = await read({ ...headers, "x-ms-session-token": "0:-1#4711" });
            assert.equal(ahead.status, isChecked ? 404 : 200, message);
        }
    }
});

test("levels and strategies that are unknown or too strong are refused, whatever is asked", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "x", pk: "p" });
    const refusals = [
        [level("Whatever"), /'Whatever' is not a consistency level/],
        [strategy("Whatever"), /'Whatever' is not a strategy/],
        [strategy("Strong"), /'Strong' is not a strategy/],
        [strategy("GlobalStrong"), /GlobalStrong is possible only in an account with consistency level Strong/],
        [{ ...level("Strong"), ...strategy("Session") }, /ConsistencyLevel Strong/],
    ];
    for (const [headers, message] of refusals) {
        for (const read of Object.values(readsOf(server, container)))
            errorAnswer(await read(headers), 400, "BadRequest", { message });
        errorAnswer(await call(server, { path: "/", headers }), 400, "BadRequest", { message });
    }
    const text =
        "ConsistencyLevel Strong specified in the request is invalid when service is configured with consistency level " +
        "Session. Ensure the request consistency level is not stronger than the service consistency level.";
    const strong = clientOf(server, { consistencyLevel: "Strong" });
    await refused(strong.databases.create({ id: "never" }), 400, { message: new RegExp(text) });
    const eventual = clientOf(server, { consistencyLevel: "Eventual" });
    const { statusCode } = await eventual.database(database.id).container(container.id).item("x", "p").read();
    assert.equal(statusCode, 200);
});

// --- The account's level

test("the account's level is shown, is the bound of requests, and the level of those that ask for none", async (t) => {
    for (const [i, account] of LEVELS.entries()) {
        const own = await startServer(t, { args: [...ARGS, "--consistency", account] });
        const { json } = await call(own, { path: "/" });
        assert.equal(json.userConsistencyPolicy.defaultConsistencyLevel, account);
        const { database: db } = await clientOf(own).databases.create({ id: "d" });
        const container = await newContainer(db);
        await container.items.create({ id: "x", pk: "p" });
        const { read } = readsOf(own, container);
        const ahead = { "x-ms-session-token": "0:-1#4711" };
        assert.equal((await read(ahead)).status, account === "Session" ? 404 : 200, account);
        assert.equal(chargeOf(await read({})), i > LEVELS.indexOf("Session") ? 2 : 1, account);
        for (const [j, asked] of LEVELS.entries()) {
            const answer = await read(level(asked));
            assert.equal(answer.status, j > i ? 400 : 200, `${asked} at ${account}`);
        }
        assert.equal((await read({ ...strategy("Session"), ...ahead })).status, 404, account);
        assert.equal(chargeOf(await read(strategy("LatestCommitted"))), 2, account);
        assert.equal(chargeOf(await read(strategy("Eventual"))), 1, account);
        const global = await read({ ...strategy("GlobalStrong"), ...ahead });
        assert.equal(global.status, account === "Strong" ? 200 : 400, account);
        if (account === "Strong") assert.equal(chargeOf(global), 2);
    }
});
