// edits.test.mjs - edits of an item are neither lost nor stored twice, and never overwrite what was not shown.
import assert from "node:assert/strict";
import test from "node:test";
import { answerUnsaved, call, expectAccessible, makeOrders, openPage, startServer, write } from "./browser.mjs";

const ORDERS = "dbs/shop/colls/orders";

async function openItems(t, count, options = {}) {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, count);
    const page = await openPage(t, server, { path: `/_explorer/#/${ORDERS}`, ...options });
    await page.getByRole("button", { name: "New item" }).waitFor();
    return { server, page };
}

const headers = (customer) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([customer]) });
const stored = (server, id) => call(server, "GET", `${ORDERS}/docs/${id}`, { headers: headers(`c${id}`) });
const store = (server, id, by) => call(server, "PUT", `${ORDERS}/docs/${id}`, { body: { id, customer: `c${id}`, by }, headers: headers(`c${id}`) });
const row = (page, id) => page.getByRole("button", { name: `${id} "c${id}"`, exact: true });
const editor = (page, id) => page.getByRole("textbox", { name: id, exact: true });
const mine = (id) => JSON.stringify({ id, customer: `c${id}`, by: "me" });
const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);

test("each version that somebody has stored is shown before it is overwritten", async (t) => {
    const { server, page } = await openItems(t, 3, { allowErrors: [/412/] });
    await row(page, "1").click();
    await write(editor(page, "1"), mine("1"));
    await store(server, "1", "second");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText('"second"').waitFor();
    await store(server, "1", "third");
    await page.getByRole("button", { name: "Save mine" }).click();
    await page.getByText('"third"').waitFor();
    assert.equal((await stored(server, "1")).by, "third");
    await page.getByText('"me"').waitFor(); // is still what will be saved
    await expectAccessible(page);
    await page.getByRole("button", { name: "Save mine" }).click();
    await page.getByText(/^Saved, /).waitFor();
    assert.equal((await stored(server, "1")).by, "me");
});

test("a version that was not shown is not deleted", async (t) => {
    const { server, page } = await openItems(t, 3, { allowErrors: [/412/] });
    await row(page, "1").click();
    await editor(page, "1").waitFor();
    await store(server, "1", "another");
    const remove = async () => {
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    };
    await remove();
    await page.getByText("Somebody has changed this item").waitFor();
    await page.getByText('"another"').waitFor();
    assert.equal((await stored(server, "1")).by, "another");
    await remove();
    await page.getByText(/^Deleted, /).waitFor();
    await assert.rejects(stored(server, "1"), /404/);
});

test("text that is not saved is given up only after a question, whatever leads away from it", async (t) => {
    const { server, page } = await openItems(t, 3);
    await call(server, "POST", "dbs/shop/colls", { body: { id: "other", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } } });
    await page.reload();
    const nav = page.getByRole("navigation");
    await nav.getByRole("link", { name: "Overview" }).click();
    await nav.getByRole("link", { name: "orders" }).click();
    await row(page, "1").click();
    await row(page, "2").click(); // nothing was typed
    await editor(page, "2").waitFor();
    const typed = editor(page, "2").getByText('"me"');
    await write(editor(page, "2"), mine("2"));
    for (const [what, away] of [
        ["another row", row(page, "1")], ["a tab", page.getByRole("link", { name: "Query", exact: true })], ["a container", nav.getByRole("link", { name: "other" })],
        ["a new item", page.getByRole("button", { name: "New item" })], ["Close", page.getByRole("button", { name: "Close" })], ["Sign out", page.getByRole("button", { name: "Sign out" })],
    ]) {
        await away.click();
        await expectAccessible(page);
        await answerUnsaved(page, "Cancel");
        assert.ok(await typed.isVisible(), what);
        assert.match(page.url(), /orders\/items$/, what);
    }
    await page.goBack();
    await answerUnsaved(page, "Cancel");
    assert.match(page.url(), /orders\/items$/);
    await row(page, "2").click(); // it is open already
    assert.ok(await typed.isVisible());

    await row(page, "1").click();
    await answerUnsaved(page, "Discard");
    await editor(page, "1").waitFor();
    await write(editor(page, "1"), mine("1"));
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await answerUnsaved(page, "Discard");
    await page.getByRole("textbox", { name: "SQL" }).waitFor();
    assert.match(page.url(), /orders\/query$/);
    await nav.getByRole("link", { name: "other" }).click();
    await page.getByText("This container has no items.").waitFor();
    assert.equal((await stored(server, "1")).by, undefined);
});

test("an item that is saved late does not close another one", async (t) => {
    const { server, page } = await openItems(t, 3);
    let release;
    const isReleased = new Promise((resolve) => { release = resolve; });
    await page.route(`${server.endpoint}/${ORDERS}/docs/1`, async (route) => {
        if (route.request().method() === "PUT")
            await isReleased;
        await route.continue();
    });
    await row(page, "1").click();
    await write(editor(page, "1"), mine("1"));
    await page.getByRole("button", { name: "Save" }).click();
    await row(page, "2").click();
    await answerUnsaved(page, "Discard");
    await write(editor(page, "2"), mine("2"));
    release();
    await page.getByText(/^Saved, /).waitFor();
    assert.equal((await stored(server, "1")).by, "me");
    assert.ok(await editor(page, "2").getByText('"me"').isVisible());
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).nth(1).waitFor();
    await row(page, "1").click(); // the list has what was stored
    await editor(page, "1").getByText('"me"').waitFor();
});

test("what is typed while an item is saved stays, and is saved after it", async (t) => {
    const { server, page } = await openItems(t, 3);
    let release;
    const isReleased = new Promise((resolve) => { release = resolve; });
    await page.route(`${server.endpoint}/${ORDERS}/docs`, async (route) => {
        if (route.request().method() === "POST")
            await isReleased;
        await route.continue();
    });
    const text = (by) => JSON.stringify({ id: "4", customer: "c4", by });
    await page.getByRole("button", { name: "New item" }).click();
    const typed = page.getByRole("textbox", { name: /^(New item|4)$/ });
    await write(typed, text("first"));
    await page.getByRole("button", { name: "Save" }).click();
    await write(typed, text("second"));
    release();
    await row(page, "4").waitFor();
    assert.ok(await typed.getByText('"second"').isVisible());
    assert.equal((await stored(server, "4")).by, "first");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).nth(1).waitFor();
    await typed.waitFor({ state: "detached" });
    assert.equal((await stored(server, "4")).by, "second");
    assert.equal(await page.locator("button.row").count(), 4);
});

test("an item is saved once and a page is loaded once by two clicks, and nothing is listed twice", async (t) => {
    const { server, page } = await openItems(t, 120);
    let creates = 0;
    page.on("request", (request) => { creates += request.method() === "POST" && request.url().endsWith("/docs") ? 1 : 0; });
    await page.route(`${server.endpoint}/${ORDERS}/docs`, async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        await route.continue();
    });
    await page.getByRole("button", { name: "New item" }).click();
    await write(editor(page, "New item"), JSON.stringify({ id: "made", customer: "c1" }));
    await page.getByRole("button", { name: "Save" }).dblclick();
    await page.getByRole("button", { name: 'made "c1"' }).waitFor();
    assert.equal(creates, 1);
    await page.locator("summary", { hasText: "Open an item by its id" }).click();
    const form = page.getByRole("form", { name: "Open an item by its id" });
    await form.getByLabel("Id").fill("119");
    await form.getByLabel("Partition key").fill('["c0"]');
    await form.getByRole("button", { name: "Open item" }).click();
    await editor(page, "119").waitFor();
    await page.getByRole("button", { name: "Load more" }).dblclick();
    await page.getByText("121 items", { exact: true }).waitFor();
    const rows = await page.locator("button.row").allTextContents();
    assert.equal(rows.length, 121);
    assert.equal(new Set(rows).size, 121);
});

test("the focus goes to the item whose editor has closed, and to the page that another one replaces", async (t) => {
    const { page } = await openItems(t, 3);
    await row(page, "1").click();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByText("Choose an item on the left").waitFor();
    assert.ok(await isFocused(row(page, "1")));
    await row(page, "2").click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await row(page, "2").waitFor({ state: "detached" });
    await page.waitForTimeout(100);
    assert.ok(await isFocused(page.getByRole("button", { name: "New item" })));
    await page.getByRole("button", { name: "New item" }).click();
    await write(editor(page, "New item"), JSON.stringify({ id: "4", customer: "c4" }));
    await page.getByRole("button", { name: "Save" }).click();
    await row(page, "4").waitFor();
    await page.waitForTimeout(100);
    assert.ok(await isFocused(row(page, "4")));
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await page.getByRole("textbox", { name: "SQL" }).waitFor();
    await page.waitForTimeout(100);
    assert.ok(await isFocused(page.getByRole("main")));
});

test("an item is found by a partition key whose path has a slash in quotes", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 0);
    await call(server, "POST", "dbs/shop/colls", { body: { id: "odd", partitionKey: { paths: ['/"a/b"'], kind: "Hash", version: 2 } } });
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/odd" });
    await page.getByRole("button", { name: "New item" }).click();
    await write(editor(page, "New item"), JSON.stringify({ id: "1", "a/b": "x", n: 1 }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: '1 "x"' }).click();
    await write(editor(page, "1"), JSON.stringify({ id: "1", "a/b": "x", n: 2 }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).nth(1).waitFor();
    assert.equal((await call(server, "GET", "dbs/shop/colls/odd/docs/1", { headers: headers("x") })).n, 2);
});
