// safety.test.mjs - the page's headers, and pages of other sites, which get nothing.
import assert from "node:assert/strict";
import { request } from "node:http";
import test from "node:test";
import { call, makeOrders, signed, startServer } from "./browser.mjs";
import { METHODS, routesOfServer, tryFromAnotherSite } from "./routes.mjs";

const COLL = "dbs/shop/colls/orders";
const ROUTES = routesOfServer();

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
    assert.equal(page.headers["x-frame-options"], "DENY");
    assert.equal(page.headers["referrer-policy"], "no-referrer");
    assert.equal(page.headers["cross-origin-opener-policy"], "same-origin");
    assert.equal(page.headers["cross-origin-resource-policy"], "same-origin");
    const [, script] = /src="([^"]+)"/.exec(await (await fetch(`${server.endpoint}/_explorer/`)).text());
    for (const name of ["content-security-policy", "x-content-type-options", "cross-origin-opener-policy", "cross-origin-resource-policy"])
        assert.equal((await get(server.port, script)).headers[name], page.headers[name], `${name} of a file`);
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
    await tryFromAnotherSite(t, server, ROUTES);
    await expectShop(server);
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
                if (method !== "HEAD") // which has no body
                    assert.match(answer.text, /attacker\.example/, `${method} ${route} is refused because of its name: ${answer.text}`);
            }
        }
    }
    await expectShop(server);
    const good = { ...signed("GET", "dbs"), host: `localhost:${server.port}` };
    assert.equal((await get(server.port, "/dbs", good)).statusCode, 200, "the same with the server's own name");
});
