// overview.test.mjs - the list of all containers, and the numbers in the tree.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, startServer } from "./browser.mjs";

const SIZES = "/_orrery/containers";

test("numbers that cannot be read are asked for again, and what was known stays", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { allowErrors: [/503|ERR_FAILED/] });
    await page.getByRole("cell", { name: "orders" }).waitFor();
    for (const [refuse, words] of [
        [(route) => route.fulfill({ status: 503, json: { code: "ServiceUnavailable", message: "not now" } }), /asked for again: not now \(503\)/], [(route) => route.abort(), /asked for again: /],
    ]) {
        await page.route(server.endpoint + SIZES, refuse);
        await page.getByRole("alert").filter({ hasText: words }).waitFor();
        assert.ok(await page.getByRole("cell", { name: "orders" }).isVisible());
        assert.equal(await page.getByText("There are no containers").count(), 0);
        await expectAccessible(page);
        await page.unrouteAll();
        await page.getByRole("alert").waitFor({ state: "detached" });
    }
});

test("the numbers are asked for one after the other, and not while another tab is shown", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server);
    await page.getByRole("cell", { name: "orders" }).waitFor();
    await page.getByRole("navigation").getByText("3 items, ").waitFor(); // the tree has asked, too
    let asked = 0;
    let open = 0;
    let most = 0;
    await page.route(server.endpoint + SIZES, async (route) => {
        asked++;
        most = Math.max(most, ++open);
        await new Promise((resolve) => setTimeout(resolve, 5000));
        open--;
        await route.continue();
    });
    await page.waitForTimeout(6500);
    assert.equal(most, 1, "at a time");
    await page.unrouteAll({ behavior: "wait" });
    page.on("request", (request) => { asked += request.url().endsWith(SIZES) ? 1 : 0; });
    await page.evaluate(() => {
        Object.defineProperty(document, "hidden", { get: () => globalThis.isHidden, configurable: true });
        globalThis.isHidden = true;
        document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.waitForTimeout(300);
    asked = 0;
    await page.waitForTimeout(4500);
    assert.equal(asked, 0);
    await page.evaluate(() => { globalThis.isHidden = false; document.dispatchEvent(new Event("visibilitychange")); });
    await page.waitForTimeout(500);
    assert.ok(asked > 0);
});

test("the tree has the number of containers of a database and their size together", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    await call(server, "POST", "dbs/shop/colls", { body: { id: "other", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } } });
    await call(server, "POST", "dbs", { body: { id: "empty" } });
    const { containers } = await call(server, "GET", "_orrery/containers");
    const sum = containers.reduce((all, { bytes }) => all + bytes, 0);
    const page = await openPage(t, server);
    const tree = page.getByRole("navigation");
    await tree.getByText(`2 containers, ${sum} bytes`, { exact: true }).waitFor();
    await tree.getByText("0 containers", { exact: true }).waitFor();
    await expectAccessible(page);
});
