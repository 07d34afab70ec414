// items.test.mjs - signing in, and the items of a container.
import assert from "node:assert/strict";
import test from "node:test";
import { answerUnsaved, call, expectAccessible, fitsWidth, makeOrders, openPage, picture, startServer, tabTo, write } from "./browser.mjs";

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

test("the newer version of another is taken instead of one's own", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders", allowErrors: [/412/] });
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    const headers = { "x-ms-documentdb-partitionkey": '["c1"]' };
    await call(server, "PUT", "dbs/shop/colls/orders/docs/1", { body: { id: "1", customer: "c1", by: "another" }, headers });
    await write(page.getByRole("textbox", { name: "1" }), JSON.stringify({ id: "1", customer: "c1", by: "me" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Take what is stored" }).click();
    await page.getByText("Somebody has changed this item").waitFor({ state: "detached" });
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/1", { headers })).by, "another");
    // The list has that version, so that it can be changed again.
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    await page.getByRole("textbox", { name: "1" }).getByText('"another"').waitFor();
    await write(page.getByRole("textbox", { name: "1" }), JSON.stringify({ id: "1", customer: "c1", by: "me, later" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).waitFor();
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/1", { headers })).by, "me, later");
});

test("a new item is made, and what is no JSON object is marked and not sent", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 2);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders", colorScheme: "dark" });
    await page.getByRole("button", { name: "New item" }).click();
    const editor = page.getByRole("textbox", { name: "New item" });
    assert.match(JSON.parse(await editor.textContent()).id, /^[-0-9a-f]{36}$/);
    let sent = 0;
    page.on("request", (request) => { sent += request.method() === "POST" ? 1 : 0; });
    for (const [text, words] of [['{ "id": "a", }', /^Failed: .*JSON/], ['[{ "id": "a" }]', "An item is a JSON object."], ['"a"', "An item is a JSON object."]]) {
        await write(editor, text);
        await page.locator(".cm-lintRange-error, .cm-lintPoint-error").first().waitFor({ state: "attached" });
        await page.getByRole("button", { name: "Save" }).click();
        const notice = page.getByText(words).first();
        await notice.waitFor();
        await expectAccessible(page);
        await notice.getByRole("button", { name: "Dismiss" }).click();
        await notice.waitFor({ state: "detached" });
    }
    assert.equal(sent, 0);
    await write(editor, JSON.stringify({ id: "a", customer: "c9" }));
    await page.locator(".cm-lintRange-error, .cm-lintPoint-error").first().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: 'a "c9"' }).waitFor();
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/a", { headers: { "x-ms-documentdb-partitionkey": '["c9"]' } })).customer, "c9");
});

test("Overview, Items and Query fit on a telephone", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 20);
    await call(server, "POST", "dbs/shop/colls/orders/docs", {
        body: { id: "a-long-id-without-any-place-to-break-it-".repeat(4), customer: "c1", text: "x".repeat(300) }, headers: { "x-ms-documentdb-partitionkey": '["c1"]' },
    });
    const page = await openPage(t, server, { viewport: { width: 360, height: 700 }, colorScheme: "dark" });
    const check = async (name) => {
        assert.ok(await fitsWidth(page), name);
        // Only what scrolls by itself may be wider.
        assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("main *")].filter((element) =>
            element.closest(".scroll, .editor, pre, .visually-hidden") === null && element.getBoundingClientRect().right > innerWidth + 1).map((element) => element.outerHTML.slice(0, 100))), [], name);
        await expectAccessible(page);
    };
    await page.getByRole("cell", { name: "orders" }).waitFor();
    await check("Overview");
    await page.getByRole("cell", { name: "orders" }).getByRole("link").click();
    await page.getByText("21 items", { exact: true }).waitFor();
    await check("Items");
    await page.getByRole("button", { name: /^a-long-id/ }).click();
    await page.getByRole("textbox", { name: /^a-long-id/ }).waitFor();
    await check("an item");
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/^21 rows/).waitFor();
    await page.getByText("How it was answered").click();
    await check("Query");
});

test("the main path is walked with the keyboard only", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 4);
    const page = await openPage(t, server);
    await page.getByRole("cell", { name: "orders" }).waitFor();
    const follow = async (locator, key) => {
        await tabTo(page, locator, key);
        await page.keyboard.press("Enter");
    };
    const clear = async () => { // typing over coloured text makes Chromium itself edit, see write()
        await page.keyboard.press("Control+a");
        await page.keyboard.press("Delete");
    };
    await follow(page.getByRole("link", { name: "Skip to the content" }));
    await follow(page.getByRole("cell", { name: "orders" }).getByRole("link"));
    await page.getByText("4 items", { exact: true }).waitFor();
    await follow(page.getByRole("button", { name: "New item" }));
    const editor = page.getByRole("textbox", { name: "New item" });
    await tabTo(page, editor);
    await clear();
    await page.keyboard.type('{ "id": "typed", "customer": "c1" }');
    await page.keyboard.press("Escape");
    await follow(page.getByRole("button", { name: "Save" }), "Shift+Tab");
    await page.getByText(/^Saved, /).waitFor();
    await follow(page.getByRole("button", { name: 'typed "c1"' }));
    await follow(page.getByRole("button", { name: "Delete" }));
    await follow(page.getByRole("dialog").getByRole("button", { name: "Delete" }));
    await page.getByText(/^Deleted, /).waitFor();
    await follow(page.getByRole("link", { name: "Query", exact: true }), "Shift+Tab");
    await tabTo(page, page.getByRole("textbox", { name: "SQL" }));
    await clear();
    await page.keyboard.type("SELECT VALUE c.id FROM c ");
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^4 rows/).waitFor();
    await page.keyboard.press("Escape");
    await follow(page.locator("summary", { hasText: "How it was answered" }));
    await page.getByText(/1 physical partition visited/).waitFor();
    await follow(page.getByRole("link", { name: "Partitions" }), "Shift+Tab");
    await tabTo(page, page.getByRole("application"));
    await page.keyboard.press("End");
    await page.getByRole("region", { name: /^Partition 0 at/ }).waitFor();
    await follow(page.getByRole("button", { name: "Sign out" }), "Shift+Tab");
    await tabTo(page, page.getByRole("button", { name: "Sign in" }));
});

test("each editor that takes Tab says how to leave it, and is left so; the others are left by Tab", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 2);
    await call(server, "POST", "dbs/shop/colls/orders/sprocs", { body: { id: "hello", body: "function () {}" } });
    const page = await openPage(t, server);
    const isIn = (editor) => editor.evaluate((element) => element.getRootNode().activeElement === element);
    const open = async (tab, ...clicks) => {
        await page.goto(`${server.endpoint}/_explorer/#/dbs/shop/colls/orders/${tab}`);
        for (const name of clicks)
            await page.getByRole("button", { name }).click();
    };
    for (const [tab, name, ...clicks] of [["items", "1", '1 "c1"'], ["query", "SQL"], ["scripts", "JavaScript", "hello"]]) {
        await open(tab, ...clicks);
        const editor = page.getByRole("textbox", { name, exact: true });
        await page.getByText("Tab indents; Escape and then Tab leaves the editor.").waitFor();
        await editor.focus();
        const before = await editor.textContent();
        await page.keyboard.press("Tab");
        assert.ok(await isIn(editor), `${name}: Tab indents`);
        assert.notEqual(await editor.textContent(), before);
        await page.keyboard.press("Escape");
        await page.keyboard.press("Tab");
        assert.ok(!await isIn(editor), `${name} is left forwards`);
        await editor.focus();
        await page.keyboard.press("Escape");
        await page.keyboard.press("Shift+Tab");
        assert.ok(!await isIn(editor), `${name} is left backwards`);
        if (name === "SQL") // which is kept by running it
            continue;
        await page.getByRole("link", { name: "Settings" }).click();
        await answerUnsaved(page, "Discard");
    }
    for (const name of ["Indexing policy", "Other properties", "Fixed when the container was made"]) {
        await open("settings");
        const editor = page.getByRole("textbox", { name });
        await editor.focus();
        await page.keyboard.press("Tab");
        assert.ok(!await isIn(editor), name);
    }
    assert.equal(await page.getByText("Escape and then Tab").count(), 0);
});
