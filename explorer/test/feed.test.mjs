// feed.test.mjs - the change feed, through splits and merges.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, picture, startServer } from "./browser.mjs";

const FEED = "/_explorer/#/dbs/shop/colls/orders/feed";
const COLL = "dbs/shop/colls/orders";
const SLOW = { timeout: 20_000 };
const GONE = [/410/]; // the browser notes it; the page goes on with the new partitions

const put = (server, id, customer, more = {}) => call(server, "POST", `${COLL}/docs`, {
    body: { id, customer, ...more }, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([customer]), "x-ms-documentdb-is-upsert": "true" },
});

async function move(server, what, body) {
    const { event } = await call(server, "POST", `_orrery/chaos/${COLL}/${what}`, { body });
    for (let i = 0; i < 100; i++) {
        const { moves } = await call(server, "GET", "_orrery/events");
        if (moves.find((one) => one.event === event)?.stage === "done")
            return;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail(`the ${what} does not end`);
}

const ids = (page) => page.getByRole("list", { name: "Changes" }).locator("button span:first-child").allTextContents();
const change = (page, id) => page.getByRole("list", { name: "Changes" }).getByRole("button", { name: new RegExp(`^${id}\\b`) });

test("changes appear as they are made, also after a split and a merge, each once", async (t) => {
    const server = await startServer(t, ["--enable-chaos"]);
    await makeOrders(server, 20);
    const page = await openPage(t, server, { path: FEED, allowErrors: GONE });
    await page.getByText("1 physical partition followed").waitFor(SLOW);
    await page.getByText("Nothing has changed yet").waitFor();
    await put(server, "new", "c1", { note: "here I am" });
    await change(page, "new").waitFor({ timeout: 5000 });
    await change(page, "new").click();
    await page.getByText('"here I am"').waitFor();
    await page.getByText(/partition 0, LSN \d+/).waitFor();

    await move(server, "split", { range: "0" });
    for (let i = 0; i < 8; i++)
        await put(server, `split-${i}`, `c${i % 7}`);
    await page.getByText("2 physical partitions followed").waitFor(SLOW);
    await page.getByText("9 changes").waitFor(SLOW);
    await move(server, "merge", { ranges: ["1", "2"] });
    for (let i = 0; i < 8; i++)
        await put(server, `merged-${i}`, `c${i % 7}`);
    await page.getByText("1 physical partition followed").waitFor(SLOW);
    await page.getByText("17 changes").waitFor(SLOW);
    const all = await ids(page);
    assert.equal(new Set(all).size, 17, `each once: ${all}`);
    assert.equal(all.at(-1), "new", "the newest are first");
    await expectAccessible(page);
    await picture(page, "feed");
});

test("from the beginning, and paused", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 130);
    const page = await openPage(t, server, { path: FEED, viewport: { width: 390, height: 844 }, colorScheme: "dark" });
    await page.getByLabel("Show changes").selectOption("from the beginning");
    await page.getByText("130 changes", { exact: true }).waitFor(SLOW);
    await page.getByRole("button", { name: "Pause" }).click();
    await put(server, "while-paused", "c1");
    await page.waitForTimeout(2500);
    assert.equal(await change(page, "while-paused").count(), 0);
    await page.getByRole("button", { name: "Go on" }).click();
    await change(page, "while-paused").waitFor(SLOW);
    await page.getByText("131 changes", { exact: true }).waitFor();
    await expectAccessible(page);
    await picture(page, "feed-phone-dark");
    await page.getByRole("button", { name: "Clear" }).click();
    assert.deepEqual(await ids(page), []);
});

test("the feed goes on by itself when the server has been in trouble", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { path: FEED, allowErrors: [/503/] });
    await page.getByText("1 physical partition followed").waitFor(SLOW);
    let left = 2;
    await page.route((url) => url.pathname.endsWith("/docs"), (route) => left-- > 0
        ? route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"ServiceUnavailable","message":"in the middle of a failover"}' })
        : route.continue());
    await put(server, "meanwhile", "c1");
    await page.getByText("is asked again after pauses: in the middle of a failover (503)").waitFor(SLOW);
    await change(page, "meanwhile").waitFor(SLOW);
    assert.equal(await page.getByText("is asked again after pauses").count(), 0);
});

test("without its container the feed stops, and begins anew with the next one of that name", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 20);
    const page = await openPage(t, server, { path: FEED, allowErrors: [/404|410/] });
    await page.getByLabel("Show changes").selectOption("from the beginning");
    await page.getByText("20 changes", { exact: true }).waitFor(SLOW);
    await call(server, "DELETE", COLL);
    await page.getByText(/^Stopped: .*\(404/).waitFor(SLOW);
    await call(server, "POST", "dbs/shop/colls", { body: { id: "orders", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 } } });
    await put(server, "anew", "c1");
    await page.getByRole("button", { name: "Go on" }).click();
    await change(page, "anew").waitFor(SLOW);
    assert.deepEqual(await ids(page), ["anew"]);
});

test("only so many changes are kept", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 0);
    await Promise.all(Array.from({ length: 10 }, async (_, k) => {
        for (let i = 0; i < 52; i++)
            await put(server, `${k}-${i}`, `c${i}`);
    }));
    const page = await openPage(t, server, { path: FEED });
    await page.getByLabel("Show changes").selectOption("from the beginning");
    await page.getByText("520 changes, the last 500 are shown").waitFor(SLOW);
    assert.equal((await ids(page)).length, 500);
});
