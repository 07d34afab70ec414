// session.test.mjs - where the key is kept, who is signed in without asking, and what it takes to show the page.
import assert from "node:assert/strict";
import test from "node:test";
import { DEVELOPMENT_KEY, makeOrders, openPage, startServer } from "./browser.mjs";

const FIELD = "Key, connection string or resource token";
const PAGE_BYTES_MAX = 500_000; // compressed, with all its files
const REQUESTS_MAX = 12;

test("the key is kept for the tab only: not in the browser, and another tab is asked for it", async (t) => {
    const key = Buffer.alloc(64, 7).toString("base64");
    const server = await startServer(t, ["--key", key]);
    const page = await openPage(t, server, { allowErrors: [/401/] });
    await page.getByLabel(FIELD).fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("There are no containers").waitFor();
    await page.getByLabel("Theme").selectOption("dark"); // which is kept in the browser
    const kept = await page.evaluate(() => ({ local: { ...localStorage }, session: { ...sessionStorage }, cookies: document.cookie }));
    assert.ok(JSON.stringify(kept.session).includes(key));
    assert.equal(kept.local["orrery.theme"], "dark");
    assert.ok(!JSON.stringify(kept.local).includes(key.slice(0, 20)));
    assert.equal(kept.cookies, "");
    assert.deepEqual(await page.context().cookies(), []);
    assert.deepEqual(await page.evaluate(async () => (await indexedDB.databases()).length + (await caches.keys()).length), 0);

    const other = await page.context().newPage();
    await other.goto(`${server.endpoint}/_explorer/`);
    await other.getByLabel(FIELD).waitFor();
    await page.reload();
    await page.getByText("There are no containers").waitFor(); // this tab is not asked
});

test("under a name that is not loopback nobody is signed in without asking", async (t) => {
    const server = await startServer(t, ["--allow-host", "explorer.test"]);
    const endpoint = `http://explorer.test:${server.port}`;
    const asked = [];
    const page = await openPage(t, { endpoint, closing: server.closing }, {
        // As over HTTPS: the browser signs, so that nothing but the page's own decision keeps it from doing so.
        args: ["--host-resolver-rules=MAP explorer.test 127.0.0.1", `--unsafely-treat-insecure-origin-as-secure=${endpoint}`],
    });
    await page.getByLabel(FIELD).waitFor();
    page.on("request", (request) => asked.push(request.headers()["authorization"]));
    await page.reload();
    await page.getByLabel(FIELD).waitFor();
    assert.ok(asked.length >= 3, "the files of the page");
    assert.deepEqual(asked.filter((header) => header !== undefined), [], "the development key is not even tried");
    await page.getByLabel(FIELD).fill(DEVELOPMENT_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("There are no containers").waitFor();
});

test("the first page takes few requests and bytes, and nothing of it is loaded twice", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 5);
    const page = await openPage(t, server);
    const loaded = async () => {
        await page.getByRole("cell", { name: "orders" }).waitFor();
        return page.evaluate(() => ({
            ms: performance.now(),
            files: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
                .map(({ name, encodedBodySize, transferSize }) => ({ path: new URL(name).pathname, size: encodedBodySize, transferred: transferSize })),
        }));
    };
    const first = await loaded();
    const files = first.files.filter(({ path }) => path.startsWith("/_explorer/"));
    const total = files.reduce((sum, { size }) => sum + size, 0);
    t.diagnostic(`the containers were shown after ${Math.round(first.ms)} ms, ${first.files.length} requests and ${total} bytes of the page`);
    assert.ok(files.length >= 3, "the page, its script and its styles");
    assert.ok(total > 50_000 && total < PAGE_BYTES_MAX, `${total} bytes`);
    assert.ok(first.files.length <= REQUESTS_MAX, first.files.map(({ path }) => path).join(" "));
    assert.equal(new Set(files.map(({ path }) => path)).size, files.length, "each file once");
    await page.goto("about:blank");
    await page.goto(`${server.endpoint}/_explorer/`);
    const again = await loaded();
    t.diagnostic(`again after ${Math.round(again.ms)} ms`);
    for (const { path, transferred } of again.files.filter(({ path: one }) => one.startsWith("/_explorer/assets/")))
        assert.equal(transferred, 0, `${path} comes from the browser's cache`);
});

test("queries are forgotten when somebody signs out, the theme is not", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 2);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/query" });
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/^2 rows/).waitFor();
    await page.getByLabel("Theme").selectOption("dark");
    const kept = () => page.evaluate(() => Object.keys(localStorage).sort());
    assert.deepEqual(await kept(), ["orrery.queries.shop/orders", "orrery.theme"]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel(FIELD).waitFor();
    assert.deepEqual(await kept(), ["orrery.theme"]);
});

test("a browser that keeps nothing shows everything", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 2);
    const page = await openPage(t, server);
    await page.getByRole("cell", { name: "orders" }).waitFor();
    await page.addInitScript(() => {
        for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(globalThis, name, { get: () => { throw new DOMException("denied", "SecurityError"); } });
    });
    await page.reload();
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).click();
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await page.getByLabel("Theme").selectOption("dark");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/^2 rows/).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel(FIELD).waitFor();
    assert.equal(await page.getByText("Failed").count(), 0);
});

test("whoever had a key that is refused now is asked, and does not become the one with the development key", async (t) => {
    const key = Buffer.alloc(64, 7).toString("base64");
    const server = await startServer(t);
    const page = await openPage(t, server, { allowErrors: [/401/] });
    await page.getByText("There are no containers").waitFor();
    await page.evaluate((text) => sessionStorage.setItem("orrery.credential", JSON.stringify({ kind: "key", key: text })), key);
    await page.reload();
    await page.getByText("The server refuses the credential that this tab has kept. Sign in again.").waitFor();
    await page.getByLabel(FIELD).fill(DEVELOPMENT_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("There are no containers").waitFor();
});
