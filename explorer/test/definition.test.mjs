// definition.test.mjs - databases and containers made, changed and deleted in the browser.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

async function offerOf(server, path) {
    const { _rid } = await call(server, "GET", path);
    const { Offers } = await call(server, "GET", "offers");
    return Offers.find((offer) => offer.offerResourceId === _rid)?.content;
}

test("a database with shared throughput and a container in it are made", async (t) => {
    const server = await startServer(t);
    const page = await openPage(t, server, { allowErrors: [/400|409/] });
    const dialog = page.getByRole("dialog");

    await page.getByRole("button", { name: "New database" }).click();
    await dialog.getByLabel("Name").fill("shop");
    await dialog.getByLabel("Throughput").selectOption("Autoscale");
    await dialog.getByLabel("Maximum RU/s").fill("1234");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("alert").filter({ hasText: "thousand" }).or(dialog.getByRole("alert").filter({ hasText: "1000" })).waitFor();
    await dialog.getByLabel("Maximum RU/s").fill("2000");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    assert.equal((await offerOf(server, "dbs/shop")).offerAutopilotSettings.maxThroughput, 2000);

    await page.getByRole("button", { name: "New container" }).click();
    await dialog.getByLabel("Name").fill("orders");
    await dialog.getByLabel("Partition key", { exact: true }).fill("/tenant");
    await dialog.getByRole("button", { name: "Add a level" }).click();
    await dialog.getByLabel("Partition key, level 2").fill("/user");
    await dialog.getByRole("button", { name: "Add a level" }).click();
    await dialog.getByLabel("Partition key, level 3").fill("/session");
    assert.equal(await dialog.getByRole("button", { name: "Add a level" }).count(), 0);
    await dialog.getByLabel("Time to live").selectOption("On: all items expire");
    await dialog.getByLabel("Seconds after the last change").fill("600");
    await dialog.getByLabel("Unique keys").fill("/email\n/first, /last");
    await dialog.getByRole("option", { name: "Shared with the database" }).waitFor({ state: "attached" });
    assert.equal(await dialog.getByLabel("Throughput").inputValue(), "none");
    const policy = dialog.getByRole("textbox", { name: "Indexing policy" });
    await write(policy, JSON.stringify({ includedPaths: [{ path: "/total/?" }] }));
    await expectAccessible(page);
    await picture(page, "new-container");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("group", { name: "Indexing policy" }).getByRole("alert").filter({ hasText: "/*" }).waitFor();
    await write(policy, JSON.stringify({ includedPaths: [{ path: "/total/?" }], excludedPaths: [{ path: "/*" }] }));
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "shop / orders" }).waitFor();

    const made = await call(server, "GET", "dbs/shop/colls/orders");
    assert.deepEqual(made.partitionKey, { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 });
    assert.equal(made.defaultTtl, 600);
    assert.deepEqual(made.uniqueKeyPolicy.uniqueKeys, [{ paths: ["/email"] }, { paths: ["/first", "/last"] }]);
    assert.ok(made.indexingPolicy.excludedPaths.some(({ path }) => path === "/*"));
    assert.equal(await offerOf(server, "dbs/shop/colls/orders"), undefined, "it shares the throughput of its database");

    // The same name again is refused at the name.
    await page.getByRole("button", { name: "New container" }).click();
    await dialog.getByLabel("Name").fill("orders");
    await dialog.getByLabel("Throughput").selectOption("Manual");
    await dialog.getByLabel("RU/s").fill("500");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("alert").filter({ hasText: "409" }).waitFor();
    assert.equal(await dialog.getByLabel("Name").getAttribute("aria-invalid"), "true");
    await dialog.getByLabel("Name").fill("own");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "shop / own" }).waitFor();
    assert.equal((await offerOf(server, "dbs/shop/colls/own")).offerThroughput, 500);
});

test("containers and databases show what they hold, and are deleted after their name was typed", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/items", colorScheme: "dark" });
    const tree = page.getByRole("navigation", { name: "Databases and containers" });
    const dialog = page.getByRole("dialog");
    await tree.getByText(/^3 items, /).waitFor();
    await tree.getByLabel("More about orders").focus();
    await page.keyboard.press("Enter");
    await tree.getByRole("button", { name: "Delete container" }).press("Enter");
    assert.ok(await dialog.getByRole("button", { name: "Delete" }).isDisabled());
    await dialog.getByLabel('Type "orders" to confirm').fill("order");
    assert.ok(await dialog.getByRole("button", { name: "Delete" }).isDisabled());
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await call(server, "GET", "dbs/shop/colls/orders");
    await tree.getByRole("button", { name: "Delete container" }).click();
    await dialog.getByLabel('Type "orders" to confirm').fill("orders");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await assert.rejects(call(server, "GET", "dbs/shop/colls/orders"), /404/);

    await tree.getByLabel("More about shop").click();
    await tree.getByRole("button", { name: "Delete database" }).click();
    await dialog.getByLabel('Type "shop" to confirm').fill("shop");
    await page.keyboard.press("Enter");
    await tree.getByText("No databases yet.").waitFor();
    await assert.rejects(call(server, "GET", "dbs/shop"), /404/);
});

test("names may have everything that the server allows, in requests, addresses and on the page", async (t) => {
    const db = `50% <b>é "q" & 'a' +`;
    const coll = "ü%41 <img src=x onerror=alert(1)>";
    const server = await startServer(t);
    const page = await openPage(t, server);
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "New database" }).click();
    await dialog.getByLabel("Name").fill(db);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "New database", "the focus is where it was");
    await page.getByRole("button", { name: "New container" }).click();
    await dialog.getByLabel("Name").fill(coll);
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: `${db} / ${coll}` }).waitFor();
    await call(server, "GET", `dbs/${encodeURIComponent(db)}/colls/${encodeURIComponent(coll)}`);

    await page.getByRole("link", { name: "Settings" }).click();
    const form = page.getByRole("form", { name: "Definition" });
    await form.getByLabel("Time to live").selectOption("On: items that have a ttl expire");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("The definition was saved.").waitFor();
    await page.getByRole("link", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "New procedure" }).click();
    await page.getByRole("form", { name: "Script", exact: true }).getByLabel("Name").fill("p%41 é<i>");
    await page.getByRole("button", { name: "Save" }).click();
    const run = page.getByRole("form", { name: "Execute" });
    await run.getByLabel("Partition key").fill('["é😀"]');
    await run.getByRole("button", { name: "Execute procedure" }).click();
    await run.getByText(/^[\d.]+ RU/).waitFor();

    await page.getByRole("link", { name: `Users of ${db}` }).click();
    await page.getByRole("button", { name: "New user" }).click();
    await dialog.getByLabel("Name").fill("u%41 <i>");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New permission" }).click();
    await dialog.getByLabel("Name").fill("p%41 <i>");
    await dialog.getByLabel("Partition key").fill('["é"]');
    await dialog.getByRole("button", { name: "Create" }).click();
    const token = await dialog.getByLabel("Token", { exact: true }).inputValue();
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Key, connection string or resource token").fill(token);
    await page.goto(`${server.endpoint}/_explorer/#/`);
    await page.getByRole("button", { name: "Sign in" }).click();
    const open = page.getByRole("form", { name: "Open container" });
    await open.getByLabel("Database").fill(db);
    await open.getByLabel("Container").fill(coll);
    await open.getByLabel("Partition key").fill('["é"]');
    await open.getByRole("button", { name: "Open container" }).click();
    await page.getByText("This container has no items.").waitFor();
});

test("an account without throughput says so at the field", async (t) => {
    const server = await startServer(t, ["--serverless"]);
    await call(server, "POST", "dbs", { body: { id: "shop" } });
    const page = await openPage(t, server, { allowErrors: [/400/] });
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "New container" }).click();
    await dialog.getByLabel("Name").fill("orders");
    await dialog.getByLabel("Throughput").selectOption("Manual");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("alert").filter({ hasText: "serverless" }).waitFor();
    assert.equal(await dialog.getByLabel("RU/s").getAttribute("aria-invalid"), "true");
    await dialog.getByLabel("Throughput").selectOption("The server's default");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "shop / orders" }).waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByText(/offers is not supported for serverless/).waitFor();
});

test("on a narrow screen the tree and a dialog stay within it", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 1);
    const page = await openPage(t, server, { viewport: { width: 360, height: 640 } });
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth
        ? true : [...document.querySelectorAll("*")].filter((element) => element.getBoundingClientRect().right > innerWidth).map((element) => element.outerHTML.slice(0, 80)));
    await page.getByRole("button", { name: "New container" }).click();
    await page.getByRole("dialog").getByLabel("Name").waitFor();
    assert.equal(await fits(), true);
    await page.keyboard.press("Escape");
    for (const tab of ["settings", "scripts"]) {
        await page.goto(`${server.endpoint}/_explorer/#/dbs/shop/colls/orders/${tab}`);
        await page.getByRole("heading", { name: tab === "settings" ? "Definition" : "Triggers" }).waitFor();
        assert.equal(await fits(), true, tab);
        await expectAccessible(page);
    }
});
