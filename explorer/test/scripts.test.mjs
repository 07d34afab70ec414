// scripts.test.mjs - stored procedures, triggers and functions in the browser.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

const ROOT = "dbs/shop/colls/orders";

async function openScripts(t, options = {}) {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 14);
    const page = await openPage(t, server, { path: `/_explorer/#/${ROOT}/scripts`, ...options });
    return { server, page, form: page.getByRole("form", { name: "Script", exact: true }), code: page.getByRole("textbox", { name: "JavaScript" }) };
}

test("a procedure is made, run with a key and arguments, changed and deleted", async (t) => {
    const { server, page, form, code } = await openScripts(t, { allowErrors: [/400/] });
    await page.getByRole("button", { name: "New procedure" }).click();
    await form.getByLabel("Name").fill("count them");
    await write(code, `function (word) {
        const c = getContext().getCollection();
        c.queryDocuments(c.getSelfLink(), "SELECT VALUE COUNT(1) FROM c", function (error, found) {
            if (error) throw error;
            console.log("größer, 100 %");
            getContext().getResponse().setBody({ word, items: found[0] });
        });
    }`);
    await form.getByRole("button", { name: "Save" }).click();
    const run = page.getByRole("form", { name: "Execute" });
    await run.getByLabel("Partition key").fill('["c1"]');
    await run.getByLabel("Arguments").fill('["hello"]');
    await run.getByRole("button", { name: "Execute procedure" }).click();
    await run.getByText(/^[\d.]+ RU, \d+ ms$/).waitFor();
    assert.deepEqual(JSON.parse(await run.getByRole("textbox", { name: "Result" }).textContent()), { word: "hello", items: 2 });
    assert.equal(await run.getByRole("group", { name: "Log" }).locator("pre").textContent(), "größer, 100 %");
    await expectAccessible(page);
    await picture(page, "scripts");
    assert.match((await call(server, "GET", `${ROOT}/sprocs/count%20them`)).body, /größer/);

    await run.getByLabel("Arguments").fill("{}");
    await run.getByRole("button", { name: "Execute procedure" }).click();
    await page.getByText("The arguments are not a JSON array.").waitFor();

    await write(code, 'function () { throw new Error(4711, "not today"); }');
    await form.getByRole("button", { name: "Save" }).click();
    await page.locator(".log").waitFor({ state: "detached" });
    await run.getByLabel("Partition key").fill('["c1"]');
    await run.getByRole("button", { name: "Execute procedure" }).click();
    await run.getByRole("alert").filter({ hasText: "400/4711" }).waitFor();

    await form.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(/^Deleted, /).waitFor();
    await assert.rejects(call(server, "GET", `${ROOT}/sprocs/count%20them`), /404/);
});

test("a trigger has a time and an operation, a function is called by a query", async (t) => {
    const { server, page, form, code } = await openScripts(t, { colorScheme: "dark" });
    await page.getByRole("button", { name: "New trigger" }).click();
    await form.getByLabel("Name").fill("stamp");
    await form.getByLabel("When").selectOption("Pre");
    await form.getByLabel("Operation").selectOption("Create");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "stamp Pre, Create" }).waitFor();
    const headers = { "x-ms-documentdb-partitionkey": '["c1"]', "x-ms-documentdb-pre-trigger-include": "stamp" };
    const made = await call(server, "POST", `${ROOT}/docs`, { body: { id: "new", customer: "c1" }, headers });
    assert.match(made.checkedAt, /^\d{4}-/, "what a new trigger begins with runs");

    await page.getByRole("button", { name: "stamp Pre, Create" }).click();
    await form.getByLabel("When").selectOption("Post");
    await expectAccessible(page);
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "stamp Post, Create" }).waitFor();
    assert.equal((await call(server, "GET", `${ROOT}/triggers/stamp`)).triggerType, "Post");

    await page.getByRole("button", { name: "New function" }).click();
    await form.getByLabel("Name").fill("twice");
    await write(code, "function (n) { return 2 * n; }");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("region", { name: "Functions" }).getByRole("button", { name: "twice" }).waitFor();
    const { Documents } = await call(server, "POST", `${ROOT}/docs`, {
        body: { query: "SELECT VALUE udf.twice(c.total) FROM c WHERE c.id = '4'", parameters: [] },
        headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true" },
    });
    assert.deepEqual(Documents, [12]);
});

test("what a new procedure begins with runs, and a change of somebody else is refused", async (t) => {
    const { server, page, form } = await openScripts(t, { allowErrors: [/412/] });
    await page.getByRole("button", { name: "New procedure" }).click();
    await form.getByLabel("Name").fill("hello");
    await form.getByRole("button", { name: "Save" }).click();
    const run = page.getByRole("form", { name: "Execute" });
    await run.getByLabel("Partition key").fill('["c2"]');
    await run.getByLabel("Arguments").fill('["Ada"]');
    await page.keyboard.press("Enter");
    await run.getByText(/^[\d.]+ RU/).waitFor();
    assert.deepEqual(JSON.parse(await run.getByRole("textbox", { name: "Result" }).textContent()), { hello: "Ada", items: 2 });
    const body = "function () { /* theirs */ }";
    await call(server, "PUT", `${ROOT}/sprocs/hello`, { body: { id: "hello", body } });
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText(/pre-condition.*412/).waitFor();
    assert.equal((await call(server, "GET", `${ROOT}/sprocs/hello`)).body, body);
});
