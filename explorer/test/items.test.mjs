// items.test.mjs - signing in, and the items of a container.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

test("on loopback with the development key the page signs in by itself and shows the containers", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 12);
    const page = await openPage(t, server);
    await page.getByRole("cell", { name: "orders" }).waitFor();
    await expectAccessible(page);
    await page.reload();
    await page.getByRole("cell", { name: "orders" }).waitFor();
});

test("an item is opened by its id and partition key, whatever the list shows", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 120);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders", allowErrors: [/404/] });
    await page.getByText("100 items, more on the server").waitFor();
    await page.locator("summary", { hasText: "Open an item by its id" }).press("Enter");
    const form = page.getByRole("form", { name: "Open an item by its id" });
    await form.getByLabel("Id").fill("none");
    await form.getByLabel("Partition key").fill("c1");
    await form.getByRole("button", { name: "Open item" }).click();
    await page.getByText(/partition key is a JSON array/i).first().waitFor();
    await form.getByLabel("Partition key").fill(JSON.stringify([`c${119 % 7}`]));
    await form.getByRole("button", { name: "Open item" }).click();
    await page.getByText(/^Failed: .*(404|not exist|no item)/i).first().waitFor();
    await form.getByLabel("Id").fill("119");
    await form.getByRole("button", { name: "Open item" }).click();
    await page.getByRole("textbox", { name: "119" }).getByText('"total": 178.5').waitFor();
    await expectAccessible(page);
});

test("with another key it asks, refuses a wrong one, and forgets it when signed out", async (t) => {
    const key = Buffer.alloc(64, 7).toString("base64");
    const server = await startServer(t, ["--key", key]);
    const page = await openPage(t, server, { allowErrors: [/401/] });
    const field = page.getByLabel("Key, connection string or resource token");
    await field.fill("not a key");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("neither a key").waitFor();
    await field.fill(Buffer.alloc(64, 8).toString("base64"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("refused").waitFor();
    await expectAccessible(page);
    await field.fill(`AccountEndpoint=${server.endpoint}/;AccountKey=${key};`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("There are no containers").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("items are listed in pages, edited, made and deleted", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 120);
    const page = await openPage(t, server);
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).click();
    await page.getByText("100 items, more on the server").waitFor();
    await page.getByRole("button", { name: "Load more" }).click();
    await page.getByText("120 items", { exact: true }).waitFor();
    await page.getByRole("button", { name: "5 \"c5\"", exact: true }).click();
    const editor = page.getByRole("textbox", { name: "5" });
    await write(editor, JSON.stringify({ id: "5", customer: "c5", note: "changed" }));
    await expectAccessible(page);
    await picture(page, "items");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).waitFor();
    const headers = { "x-ms-documentdb-partitionkey": '["c5"]' };
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/5", { headers })).note, "changed");

    await page.getByRole("button", { name: "5 \"c5\"", exact: true }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(/^Deleted, /).waitFor();
    await assert.rejects(call(server, "GET", "dbs/shop/colls/orders/docs/5", { headers }), /404/);
});

test("a change of somebody else is shown as a difference", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { allowErrors: [/412/] });
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).click();
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    const headers = { "x-ms-documentdb-partitionkey": '["c1"]' };
    await call(server, "PUT", "dbs/shop/colls/orders/docs/1", { body: { id: "1", customer: "c1", by: "another" }, headers });
    await write(page.getByRole("textbox", { name: "1" }), JSON.stringify({ id: "1", customer: "c1", by: "me" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Somebody has changed this item").waitFor();
    await page.getByText("another").waitFor();
    await page.getByRole("button", { name: "Save mine" }).click();
    await page.getByText(/^Saved, /).waitFor();
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/1", { headers })).by, "me");
});
