// safety.test.mjs - the page's headers, and pages of other sites, which get nothing.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import test from "node:test";
import { makeOrders, openPage, startServer } from "./browser.mjs";

const ROUTES = [
    "", "_explorer/", "dbs", "dbs/shop", "dbs/shop/colls", "dbs/shop/colls/orders", "dbs/shop/colls/orders/docs", "dbs/shop/colls/orders/docs/1",
    "dbs/shop/colls/orders/pkranges", "dbs/shop/colls/orders/sprocs", "dbs/shop/users", "offers", "metrics", "healthz", "_orrery/containers", "_orrery/events",
    "_orrery/metrics", "_orrery/dbs/shop/colls/orders/layout", "_explorer/emulator.pem",
];

function get(port, path, headers) {
    return new Promise((resolve, reject) => {
        request({ host: "127.0.0.1", port, path, headers }, (answer) => {
            answer.resume();
            answer.once("end", () => resolve(answer));
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
    const server = await startServer(t);
    await makeOrders(server, 2);
    const foreign = createServer((_, answer) => {
        answer.setHeader("content-type", "text/html");
        answer.end(`<title>foreign</title><iframe src="${server.endpoint}/_explorer/"></iframe>`);
    });
    await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
    t.after(() => foreign.close());
    const page = await openPage(t, { endpoint: "http://127.0.0.1", closing: server.closing }, { path: `:${foreign.address().port}/`, allowErrors: [/./], allowHosts: true });
    const seen = await page.evaluate(async ({ endpoint, routes }) => {
        const found = [];
        for (const route of routes) {
            for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
                for (const mode of ["cors", "no-cors"]) {
                    try {
                        const answer = await fetch(`${endpoint}/${route}`, { method, mode });
                        const text = await answer.text();
                        if (answer.status !== 0 || text !== "")
                            found.push(`${method} ${route}: ${answer.status} ${text.slice(0, 50)}`);
                    } catch {
                        // Refused: as it should be.
                    }
                }
            }
        }
        return found;
    }, { endpoint: server.endpoint, routes: ROUTES });
    assert.deepEqual(seen, []);
    const frame = page.frames().find((inner) => inner !== page.mainFrame());
    assert.ok(frame === undefined || !(await frame.locator("#app").count().catch(() => 0)));
});

test("another name for this address, as a rebinding attacker has one, gets nothing", async (t) => {
    const server = await startServer(t);
    for (const route of ROUTES) {
        const answer = await get(server.port, `/${route}`, { host: `attacker.example:${server.port}` });
        assert.ok(answer.statusCode >= 400, `${route}: ${answer.statusCode}`);
    }
});
