// scripts.test.mjs - stored procedures, triggers and functions in the browser.
import assert from "node:assert/strict";
import test from "node:test";
import { answerUnsaved, call, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

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

test("a run that fails shows its log and its charge", async (t) => {
    const { page, form, code } = await openScripts(t, { allowErrors: [/400/] });
    await page.getByRole("button", { name: "New procedure" }).click();
    await form.getByLabel("Name").fill("fails");
    await write(code, 'function () { console.log("as far as größe"); throw new Error(4711, "not today"); }');
    await form.getByRole("button", { name: "Save" }).click();
    const run = page.getByRole("form", { name: "Execute" });
    await run.getByLabel("Partition key").fill('["c1"]');
    await run.getByRole("button", { name: "Execute procedure" }).click();
    await run.getByRole("alert").filter({ hasText: "not today" }).waitFor();
    assert.equal(await run.getByRole("group", { name: "Log" }).locator("pre").textContent(), "as far as größe");
    const [, charge] = /^([\d.]+) RU, \d+ ms$/.exec(await run.getByRole("status").textContent());
    assert.ok(Number(charge) > 0, charge);
    await expectAccessible(page);
});

test("a function is called with arguments, changed and deleted", async (t) => {
    const { server, page, form, code } = await openScripts(t, { allowErrors: [/400/] });
    await page.getByRole("button", { name: "New function" }).click();
    await form.getByLabel("Name").fill("both");
    await write(code, "function (a, b) { return { both: a + b.word }; }");
    await form.getByRole("button", { name: "Save" }).click();
    const run = page.getByRole("form", { name: "Execute" });
    await run.getByLabel("Arguments").fill('["quo\\"te ", { "word": "ß" }]');
    await run.getByRole("button", { name: "Call function" }).click();
    await run.getByText(/^[\d.]+ RU, \d+ ms$/).waitFor();
    assert.deepEqual(JSON.parse(await run.getByRole("textbox", { name: "Result" }).textContent()), { both: 'quo"te ß' });
    await expectAccessible(page);

    await write(code, 'function () { throw new Error("never"); }');
    await form.getByRole("button", { name: "Save" }).click();
    await run.getByRole("textbox", { name: "Result" }).waitFor({ state: "detached" });
    assert.match((await call(server, "GET", `${ROOT}/udfs/both`)).body, /never/);
    await run.getByRole("button", { name: "Call function" }).click();
    await run.getByRole("alert").filter({ hasText: "never" }).waitFor();

    await form.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(/^Deleted, /).waitFor();
    await page.getByRole("region", { name: "Functions" }).getByRole("button", { name: "both" }).waitFor({ state: "detached" });
    await assert.rejects(call(server, "GET", `${ROOT}/udfs/both`), /404/);
});

test("a trigger is deleted", async (t) => {
    const { server, page, form } = await openScripts(t);
    await page.getByRole("button", { name: "New trigger" }).click();
    await form.getByLabel("Name").fill("stamp");
    await form.getByRole("button", { name: "Save" }).click();
    const row = page.getByRole("region", { name: "Triggers" }).getByRole("button", { name: "stamp Pre, All" });
    await row.click();
    await form.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await call(server, "GET", `${ROOT}/triggers/stamp`);
    await form.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
    await assert.rejects(call(server, "GET", `${ROOT}/triggers/stamp`), /404/);
});

test("triggers run with the changes of items for which they are chosen", async (t) => {
    const { server, page } = await openScripts(t, { allowErrors: [/400/] });
    const trigger = (id, triggerType, triggerOperation, body) => call(server, "POST", `${ROOT}/triggers`, { body: { id, triggerType, triggerOperation, body } });
    const leave = (id) => `function () {
        const c = getContext().getCollection();
        if (!c.createDocument(c.getSelfLink(), { id: "${id}", customer: "c1" }, (error) => { if (error) throw error; })) throw new Error("no time");
    }`;
    await trigger("stamp", "Pre", "Create", "function () { const r = getContext().getRequest(); const item = r.getBody(); item.stamped = true; r.setBody(item); }");
    await trigger("trace", "Post", "All", leave("trace"));
    await trigger("farewell", "Pre", "Delete", leave("farewell"));
    const headers = { "x-ms-documentdb-partitionkey": '["c1"]' };
    const stored = (id) => call(server, "GET", `${ROOT}/docs/${id}`, { headers });
    await page.getByRole("link", { name: "Items" }).click();
    await page.getByRole("button", { name: "New item" }).click();
    await page.getByLabel("Trigger before the change").selectOption("stamp (Create)");
    await page.getByLabel("Trigger after the change").selectOption("trace (All)");
    await expectAccessible(page);
    await write(page.getByRole("textbox", { name: "New item" }), JSON.stringify({ id: "mine", customer: "c1" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).waitFor();
    assert.equal((await stored("mine")).stamped, true);
    await stored("trace");

    // Nothing is chosen anew, and what is for another operation is refused by the server.
    await page.getByRole("button", { name: 'mine "c1"', exact: true }).click();
    await write(page.getByRole("textbox", { name: "mine" }), JSON.stringify({ id: "mine", customer: "c1", changed: true }));
    assert.equal(await page.getByLabel("Trigger before the change").inputValue(), "");
    await page.getByLabel("Trigger before the change").selectOption("farewell (Delete)");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Failed: .*'farewell' is not for before this operation/).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(/^Deleted, /).waitFor();
    await stored("farewell");
    await assert.rejects(stored("mine"), /404/);
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

test("a function that no query can name is not offered to be called", async (t) => {
    const { server, page } = await openScripts(t);
    for (const id of ["my-function", "order", "fine_2"])
        await call(server, "POST", `${ROOT}/udfs`, { body: { id, body: "function () { return 1; }" } });
    await page.reload();
    for (const [id, isCallable] of [["my-function", false], ["order", false], ["fine_2", true]]) {
        await page.getByRole("button", { name: id, exact: true }).click();
        const words = page.getByText("No query can call this function");
        await (isCallable ? page.getByRole("button", { name: "Call function" }) : words).waitFor();
        assert.equal(await page.getByRole("button", { name: "Call function" }).count(), isCallable ? 1 : 0, id);
        await expectAccessible(page);
    }
    await page.getByRole("button", { name: "Call function" }).click();
    assert.equal(await page.getByRole("textbox", { name: "Result" }).textContent(), "1");
});

test("the text of a script that is not saved is given up only after a question", async (t) => {
    const { server, page, code } = await openScripts(t);
    for (const id of ["one", "two"])
        await call(server, "POST", `${ROOT}/sprocs`, { body: { id, body: `function () { /* ${id} */ }` } });
    await page.reload();
    await page.getByRole("button", { name: "one", exact: true }).click();
    await write(code, "function () { /* mine */ }");
    for (const away of [page.getByRole("button", { name: "two", exact: true }), page.getByRole("link", { name: "Items", exact: true }), page.getByRole("button", { name: "Close" })]) {
        await away.click();
        await answerUnsaved(page, "Cancel");
        assert.match(await code.textContent(), /mine/);
    }
    await page.getByRole("button", { name: "two", exact: true }).click();
    await answerUnsaved(page, "Discard");
    await code.getByText("two").waitFor();
});

test("the focus goes to the script whose editor has closed", async (t) => {
    const { page, form, code } = await openScripts(t);
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    await page.getByRole("button", { name: "New procedure" }).click();
    await form.getByLabel("Name").fill("one");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Execute procedure" }).waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await code.waitFor({ state: "detached" });
    await page.waitForTimeout(100);
    assert.equal(await focused(), "one");
});

test("what is typed while a script is saved stays, and is saved after it", async (t) => {
    const { server, page, form, code } = await openScripts(t);
    let release;
    const isReleased = new Promise((resolve) => { release = resolve; });
    await page.route(`${server.endpoint}/${ROOT}/sprocs`, async (route) => {
        if (route.request().method() === "POST")
            await isReleased;
        await route.continue();
    });
    await page.getByRole("button", { name: "New procedure" }).click();
    await form.getByLabel("Name").fill("one");
    await write(code, "function () { /* first */ }");
    await form.getByRole("button", { name: "Save" }).click();
    await write(code, "function () { /* second */ }");
    release();
    await page.getByText(/^Saved, /).waitFor();
    assert.match(await code.textContent(), /second/);
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).nth(1).waitFor();
    assert.match((await call(server, "GET", `${ROOT}/sprocs/one`)).body, /second/);
    await page.getByRole("link", { name: "Items", exact: true }).click(); // nothing is left to save
    await page.getByText("14 items", { exact: true }).waitFor();
});
