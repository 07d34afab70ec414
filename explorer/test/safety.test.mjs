// safety.test.mjs - the page's headers, and pages of other sites, which get nothing.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import test from "node:test";
import { call, makeOrders, openPage, signed, startServer } from "./browser.mjs";

const COLL = "dbs/shop/colls/orders";
const ROUTES = [
    "", "_explorer/", "_explorer/emulator.pem", "metrics", "healthz", "offers",
    "dbs", "dbs/shop", "dbs/shop/colls", COLL, `${COLL}/docs`, `${COLL}/docs/1`, `${COLL}/pkranges`, `${COLL}/conflicts`, `${COLL}/conflicts/x`,
    `${COLL}/sprocs`, `${COLL}/sprocs/s`, `${COLL}/triggers`, `${COLL}/triggers/t`, `${COLL}/udfs`, `${COLL}/udfs/u`, `${COLL}/operations/partitionkeydelete`,
    "dbs/shop/users", "dbs/shop/users/ada", "dbs/shop/users/ada/permissions", "dbs/shop/users/ada/permissions/p",
    "dbs/shop/clientencryptionkeys", "dbs/shop/clientencryptionkeys/k",
    "_orrery/containers", "_orrery/events", "_orrery/metrics",
    ...["layout", "top", "history", "queries", "paths", "advice"].map((what) => `_orrery/${COLL}/${what}`),
    "_orrery/chaos", `_orrery/chaos/${COLL}/split`, `_orrery/chaos/${COLL}/merge`,
    "_orrery/cluster", "_orrery/cluster/move?space=1&node=n", "_orrery/cluster/drain?node=n", "_orrery/cluster/nodes?node=n",
    "_orrery/keys", "_orrery/backup", `_orrery/swap/${COLL}`, "_orrery/snapshots", "_orrery/snapshots/dbs/shop/snapshots/s", "_orrery/dbs/shop/snapshots/s/restore",
];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

// What must be there after every attempt.
async function makeShop(server) {
    await makeOrders(server, 2);
    await call(server, "POST", `${COLL}/sprocs`, { body: { id: "s", body: "function () {}" } });
    await call(server, "POST", `${COLL}/triggers`, { body: { id: "t", body: "function () {}", triggerType: "Pre", triggerOperation: "All" } });
    await call(server, "POST", `${COLL}/udfs`, { body: { id: "u", body: "function () {}" } });
    await call(server, "POST", "dbs/shop/users", { body: { id: "ada" } });
    await call(server, "POST", "dbs/shop/users/ada/permissions", { body: { id: "p", permissionMode: "Read", resource: COLL } });
}

async function expectShop(server) {
    const ids = async (path) => Object.values(await call(server, "GET", path)).find(Array.isArray).map(({ id }) => id).sort();
    assert.deepEqual(await ids("dbs"), ["shop"]);
    assert.deepEqual(await ids("dbs/shop/colls"), ["orders"]);
    assert.deepEqual(await ids(`${COLL}/docs`), ["0", "1"]);
    for (const [path, id] of [[`${COLL}/sprocs`, "s"], [`${COLL}/triggers`, "t"], [`${COLL}/udfs`, "u"], ["dbs/shop/users", "ada"], ["dbs/shop/users/ada/permissions", "p"]])
        assert.deepEqual(await ids(path), [id], path);
    assert.deepEqual(await ids(`${COLL}/pkranges`), ["0"], "nothing was split");
}

function get(port, path, headers, method = "GET") {
    return new Promise((resolve, reject) => {
        request({ host: "127.0.0.1", port, path, headers, method }, (answer) => {
            let text = "";
            answer.on("data", (piece) => { text += piece; });
            answer.once("end", () => resolve(Object.assign(answer, { text })));
        }).once("error", reject).end();
    });
}

test("the page has a strict policy, is compressed, and is not sent twice", async (t) => {
    const server = await startServer(t);
    const page = await get(server.port, "/_explorer/");
    assert.equal(page.statusCode, 200);
    assert.match(page.headers["content-security-policy"], /^default-src 'none'; script-src 'self'; style-src 'self'; /);
    assert.doesNotMatch(page.headers["content-security-policy"], /unsafe|\*|http/);
    assert.match(page.headers["content-security-policy"], /frame-ancestors 'none'/);
    assert.equal(page.headers["x-content-type-options"], "nosniff");
    assert.equal(page.headers["content-encoding"], "gzip");
    assert.equal(page.headers["cache-control"], "no-cache");
    const again = await get(server.port, "/_explorer/", { "if-none-match": page.headers.etag });
    assert.equal(again.statusCode, 304);
    assert.equal((await get(server.port, "/_explorer")).headers.location, "/_explorer/");
    assert.equal((await get(server.port, "/_explorer/assets/none.js")).statusCode, 404);
});

test("files of the page are kept by the browser for good, under names that change with them", async (t) => {
    const server = await startServer(t);
    const html = await (await fetch(`${server.endpoint}/_explorer/`)).text();
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path);
    assert.ok(files.length >= 3);
    for (const path of files) {
        const answer = await get(server.port, path);
        assert.equal(answer.statusCode, 200, path);
        assert.match(answer.headers["cache-control"], /immutable/);
    }
});

test("a page of another site gets nothing from any route, and cannot show the explorer inside itself", async (t) => {
    const server = await startServer(t, ["--enable-chaos"]);
    await makeShop(server);
    const foreign = createServer((_, answer) => {
        answer.setHeader("content-type", "text/html");
        answer.end(`<title>foreign</title><iframe src="${server.endpoint}/_explorer/"></iframe>`);
    });
    await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
    t.after(() => foreign.close());
    const page = await openPage(t, { endpoint: "http://127.0.0.1", closing: server.closing }, { path: `:${foreign.address().port}/`, allowErrors: [/./], allowHosts: true });
    // The development key is public: each request is tried without a signature, and with one.
    const attempts = ROUTES.flatMap((route) => METHODS.map((method) => ({ route, method, headers: signed(method, route) })));
    const seen = await page.evaluate(async ({ endpoint, attempts: all }) => {
        const found = [];
        for (const { route, method, headers } of all) {
            for (const init of [{ mode: "cors" }, { mode: "no-cors" }, { mode: "cors", headers }]) {
                try {
                    const answer = await fetch(`${endpoint}/${route}`, { method, ...init });
                    const text = await answer.text();
                    if (answer.status !== 0 || text !== "")
                        found.push(`${method} ${route}: ${answer.status} ${text.slice(0, 50)}`);
                } catch {
                    // Refused: as it should be.
                }
            }
        }
        return found;
    }, { endpoint: server.endpoint, attempts });
    assert.deepEqual(seen, []);
    await expectShop(server);
    const frame = page.frames().find((inner) => inner !== page.mainFrame());
    assert.ok(frame === undefined || !(await frame.locator("#app").count().catch(() => 0)));
});

test("another name for this address, as a rebinding attacker has one, gets nothing", async (t) => {
    const server = await startServer(t, ["--enable-chaos"]);
    await makeShop(server);
    const host = `attacker.example:${server.port}`;
    for (const route of ROUTES) {
        for (const method of METHODS) {
            for (const headers of [{}, signed(method, route)]) { // the development key is public
                const answer = await get(server.port, `/${route}`, { ...headers, host }, method);
                assert.ok(answer.statusCode >= 400, `${method} ${route}: ${answer.statusCode}`);
                assert.match(answer.text, /attacker\.example/, `${method} ${route} is refused because of its name: ${answer.text}`);
            }
        }
    }
    await expectShop(server);
    const good = { ...signed("GET", "dbs"), host: `localhost:${server.port}` };
    assert.equal((await get(server.port, "/dbs", good)).statusCode, 200, "the same with the server's own name");
});
