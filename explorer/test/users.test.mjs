// users.test.mjs - users and permissions, and what their tokens and a read-only key show.
import assert from "node:assert/strict";
import test from "node:test";
import { answerUnsaved, call, DEVELOPMENT_KEY, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

// A request with a token, as a program that was given it sends it.
async function withToken(server, token, path, headers = {}) {
    const answer = await fetch(`${server.endpoint}/${path}`, {
        headers: { authorization: encodeURIComponent(token), "x-ms-date": new Date().toUTCString(), "x-ms-version": "2020-07-15", ...headers },
    });
    return answer.status;
}

async function tokenFor(server, permission) {
    await call(server, "POST", "dbs/shop/users", { body: { id: "ada" } });
    return (await call(server, "POST", "dbs/shop/users/ada/permissions", { body: { id: "p", ...permission } }))._token;
}

async function signIn(page, text) {
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Key, connection string or resource token").fill(text);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
}

async function openFor(page, coll, key = "") {
    const form = page.getByRole("form", { name: "Open container" });
    await form.getByLabel("Database").fill("shop");
    await form.getByLabel("Container").fill(coll);
    await form.getByLabel("Partition key").fill(key);
    await form.getByRole("button", { name: "Open container" }).click();
}

test("a user and a permission are made, the token works and is copied, and both are deleted", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 10);
    const page = await openPage(t, server, { permissions: ["clipboard-read", "clipboard-write"], allowErrors: [/400/] });
    const dialog = page.getByRole("dialog");
    await page.getByRole("link", { name: "Users of shop" }).click();
    await page.getByRole("button", { name: "New user" }).click();
    await dialog.getByLabel("Name").fill("ada");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Permissions of ada" }).waitFor();

    await page.getByRole("button", { name: "New permission" }).click();
    await dialog.getByLabel("Name").fill("hers");
    await dialog.getByLabel("Mode").selectOption("All: read and change");
    await dialog.getByLabel("Partition key").fill("c1");
    await dialog.getByLabel("Token is good for, in seconds").fill("60");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("alert").filter({ hasText: "JSON array" }).waitFor();
    await expectAccessible(page);
    await dialog.getByLabel("Partition key").fill('["c1"]');
    await dialog.getByRole("button", { name: "Create" }).click();

    const token = await page.getByRole("dialog", { name: "Token of hers" }).getByLabel("Token", { exact: true }).inputValue();
    await expectAccessible(page);
    assert.equal(await withToken(server, token, "dbs/shop/colls/orders/docs/1", { "x-ms-documentdb-partitionkey": '["c1"]' }), 200);
    assert.equal(await withToken(server, token, "dbs/shop/colls/orders/docs/2", { "x-ms-documentdb-partitionkey": '["c2"]' }), 403);
    await dialog.getByRole("button", { name: "Copy" }).click();
    await dialog.getByText("Copied.").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), token);
    await dialog.getByRole("button", { name: "New token" }).click();
    await dialog.getByText("Copied.").waitFor({ state: "detached" });
    assert.notEqual(await dialog.getByLabel("Token", { exact: true }).inputValue(), token);
    await dialog.getByRole("button", { name: "Done" }).click();
    const stored = await call(server, "GET", "dbs/shop/users/ada/permissions/hers");
    assert.equal(stored.permissionMode, "All");
    assert.deepEqual(stored.resourcePartitionKey, ["c1"]);
    await page.getByRole("cell", { name: "dbs/shop/colls/orders" }).waitFor();
    await expectAccessible(page);
    await picture(page, "users");

    // An item of the container, by its id.
    await page.getByRole("button", { name: "New permission" }).click();
    await dialog.getByLabel("Name").fill("one");
    await dialog.getByLabel("Opens").selectOption("An item");
    await dialog.getByLabel("Id of the item").fill("3");
    await dialog.getByLabel("Partition key").fill('["c3"]');
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("button", { name: "Done" }).click();
    assert.equal((await call(server, "GET", "dbs/shop/users/ada/permissions/one")).resource, "dbs/shop/colls/orders/docs/3");

    await page.getByRole("button", { name: "Delete hers" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("cell", { name: "hers", exact: true }).waitFor({ state: "detached" });
    await assert.rejects(call(server, "GET", "dbs/shop/users/ada/permissions/hers"), /404/);
    await page.getByRole("button", { name: "Delete user" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("This database has no users.").waitFor();
    await assert.rejects(call(server, "GET", "dbs/shop/users/ada"), /404/);
});

test("a user is renamed and a permission is changed: mode, resource and key", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 10);
    await call(server, "POST", "dbs/shop/colls", { body: { id: "a b", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } } });
    await call(server, "POST", "dbs/shop/users", { body: { id: "bob" } });
    const token = await tokenFor(server, { permissionMode: "Read", resource: "dbs/shop/colls/orders/docs/3", resourcePartitionKey: ["c3"] });
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/users", allowErrors: [/409|412/] });
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "ada" }).click();
    await page.getByRole("button", { name: "Rename user" }).click();
    await dialog.getByLabel("Name").fill("bob");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").filter({ hasText: "409" }).waitFor();
    await expectAccessible(page);
    await dialog.getByLabel("Name").fill("ada lovelace");
    await page.keyboard.press("Enter");
    await page.getByText('The user is "ada lovelace" now.').waitFor();
    await page.getByRole("heading", { name: "Permissions of ada lovelace" }).waitFor();
    await page.getByRole("button", { name: "ada lovelace" }).waitFor();
    await assert.rejects(call(server, "GET", "dbs/shop/users/ada"), /404/);

    // The dialog has what is stored, and what is not touched stays.
    const stored = () => call(server, "GET", "dbs/shop/users/ada%20lovelace/permissions/p");
    const before = await stored();
    await page.getByRole("button", { name: "Edit p" }).click();
    assert.equal(await dialog.getByLabel("Container").inputValue(), "orders");
    assert.equal(await dialog.getByLabel("Id of the item").inputValue(), "3");
    assert.equal(await dialog.getByLabel("Partition key").inputValue(), '["c3"]');
    await expectAccessible(page);
    await dialog.getByLabel("Mode").selectOption("All: read and change");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText('Changed "p".').waitFor();
    const changed = await stored();
    assert.deepEqual([changed.permissionMode, changed.resource, changed.resourcePartitionKey, changed._rid], ["All", before.resource, ["c3"], before._rid]);

    await page.getByRole("button", { name: "Edit p" }).click();
    await dialog.getByLabel("Container").selectOption("a b");
    await dialog.getByLabel("Opens").selectOption("The whole container");
    await dialog.getByLabel("Partition key").fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const moved = await stored();
    assert.equal(decodeURIComponent(moved.resource), "dbs/shop/colls/a b");
    assert.equal(moved.resourcePartitionKey, undefined);
    assert.equal(await withToken(server, moved._token, "dbs/shop/colls/a%20b/docs"), 200);
    assert.ok(await withToken(server, token, "dbs/shop/colls/orders/docs/3", { "x-ms-documentdb-partitionkey": '["c3"]' }) >= 401);

    // A change of somebody else in between is refused.
    await page.getByRole("button", { name: "Edit p" }).click();
    await call(server, "PUT", "dbs/shop/users/ada%20lovelace/permissions/p", { body: { id: "p", permissionMode: "Read", resource: "dbs/shop/colls/orders" } });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").filter({ hasText: "412" }).waitFor();
    assert.equal((await stored()).permissionMode, "Read");
});

test("a token for a container shows that container, also after a reload, and nothing else", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 10);
    await call(server, "POST", "dbs/shop/colls", { body: { id: "secrets", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } } });
    const token = await tokenFor(server, { permissionMode: "Read", resource: "dbs/shop/colls/orders" });
    const page = await openPage(t, server, { allowErrors: [/403/] });
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await signIn(page, encodeURIComponent(token));
    await page.getByText("A resource token does not show what else there is.").waitFor();
    await openFor(page, "secrets");
    await page.getByText(/\(403/).first().waitFor();
    await openFor(page, "orders");
    await page.getByText("10 items", { exact: true }).waitFor();
    await expectAccessible(page);
    await page.reload();
    await page.getByText("10 items", { exact: true }).waitFor();
    assert.equal(await page.getByRole("link", { name: "secrets" }).count(), 0);
    await page.getByText("Open another container").click();
    await openFor(page, "secrets");
    await page.getByText(/^Failed: .*\(403/).getByRole("button", { name: "Dismiss" }).click();
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).waitFor();

    // What it may not do is refused by the server, and said.
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    await write(page.getByRole("textbox", { name: "1" }), JSON.stringify({ id: "1", customer: "c1", note: "changed" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Failed: .*\(403/).first().waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    await answerUnsaved(page, "Discard");
    await page.getByText("A resource token cannot read the throughput.").waitFor();
    await page.getByRole("link", { name: "Scripts" }).click();
    await page.getByRole("heading", { name: "Triggers" }).waitFor();
});

test("a token for one partition key shows the items of that key", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 14);
    const token = await tokenFor(server, { permissionMode: "All", resource: "dbs/shop/colls/orders", resourcePartitionKey: ["c1"] });
    const page = await openPage(t, server, { allowErrors: [/403/] });
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await signIn(page, token);
    await openFor(page, "orders", '["c1"]');
    await page.getByText("2 items", { exact: true }).waitFor();
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    await write(page.getByRole("textbox", { name: "1" }), JSON.stringify({ id: "1", customer: "c1", note: "hers" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).waitFor();
    const headers = { "x-ms-documentdb-partitionkey": '["c1"]' };
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/1", { headers })).note, "hers");
});

test("a token for an item opens that item, and no other", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 4);
    const token = await tokenFor(server, { permissionMode: "All", resource: "dbs/shop/colls/orders/docs/1", resourcePartitionKey: ["c1"] });
    const page = await openPage(t, server, { allowErrors: [/403/] });
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await signIn(page, token);
    await openFor(page, "orders");
    const form = page.getByRole("form", { name: "Open an item by its id" }); // opened by itself, since there is no list
    const open = async (id, key) => {
        await form.getByLabel("Id").fill(id);
        await form.getByLabel("Partition key").fill(key);
        await form.getByRole("button", { name: "Open item" }).press("Enter");
    };
    const failed = page.getByText(/^Failed: .*\(403/);
    await failed.getByRole("button", { name: "Dismiss" }).click(); // the list
    await failed.waitFor({ state: "detached" });
    await open("2", '["c2"]');
    await failed.waitFor();
    await open("1", '["c1"]');
    const editor = page.getByRole("textbox", { name: "1", exact: true });
    await editor.getByText('"customer": "c1"').waitFor();
    await expectAccessible(page);
    await write(editor, JSON.stringify({ id: "1", customer: "c1", note: "by token" }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved, /).waitFor();
    const headers = { "x-ms-documentdb-partitionkey": '["c1"]' };
    assert.equal((await call(server, "GET", "dbs/shop/colls/orders/docs/1", { headers })).note, "by token");
});

test("a token for an item cannot list, on a telephone in the dark", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 4);
    const token = await tokenFor(server, { permissionMode: "Read", resource: "dbs/shop/colls/orders/docs/1", resourcePartitionKey: ["c1"] });
    const page = await openPage(t, server, { allowErrors: [/403/], colorScheme: "dark", viewport: { width: 360, height: 640 } });
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    await page.getByRole("link", { name: "Users of shop" }).click();
    await page.getByRole("button", { name: "ada" }).click();
    await page.getByRole("button", { name: "Token of p" }).click();
    assert.ok(await fits());
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expectAccessible(page);
    await page.getByRole("link", { name: "Overview" }).click();
    await signIn(page, token);
    await openFor(page, "orders");
    await page.getByText("The list could not be read.").waitFor();
    await page.getByText(/^Failed: .*\(403/).getByRole("button", { name: "Dismiss" }).click();
    await page.getByText(/^Failed: /).waitFor({ state: "detached" });
    assert.ok(await fits());
    await expectAccessible(page);
});

test("a read-only key sees no control that it may not use", async (t) => {
    const server = await startServer(t, ["--read-only-key", READ_ONLY]);
    await makeOrders(server, 3);
    await tokenFor(server, { permissionMode: "Read", resource: "dbs/shop/colls/orders" });
    for (const [kind, body] of [["sprocs", { id: "proc", body: "function () {}" }], ["triggers", { id: "trig", body: "function () {}", triggerType: "Pre", triggerOperation: "All" }], ["udfs", { id: "twice", body: "function (n) { return 2 * n; }" }]])
        await call(server, "POST", `dbs/shop/colls/orders/${kind}`, { body });
    const page = await openPage(t, server);
    await page.getByRole("button", { name: "New database" }).waitFor();
    await signIn(page, READ_ONLY);
    await page.getByText("This key is read-only").waitFor();
    const offered = async (where) => {
        await expectAccessible(page);
        const names = await page.getByRole("button").or(page.locator("summary")).allTextContents();
        assert.deepEqual(names.filter((name) => /^(New|Save|Delete|Upload|Execute procedure|Rename|Edit)/.test(name)), [], where);
        assert.equal(await page.locator("input[type=file]").count(), 0, where);
    };
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).click();
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    const editor = page.getByRole("textbox", { name: "1", exact: true });
    await editor.getByText('"total"').waitFor();
    assert.equal(await editor.getAttribute("aria-readonly"), "true");
    await offered("Items");
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByText("At least 400.").waitFor();
    await page.getByText("A read-only key cannot change the definition.").waitFor();
    for (const field of [page.getByLabel("Time to live"), page.getByLabel("RU/s", { exact: true })])
        assert.ok(await field.isDisabled());
    for (const name of ["Indexing policy", "Other properties"])
        assert.equal(await page.getByRole("textbox", { name }).getAttribute("aria-readonly"), "true", name);
    await offered("Settings");
    await page.getByRole("link", { name: "Scripts" }).click();
    await page.getByRole("button", { name: "proc" }).click();
    await page.getByRole("textbox", { name: "JavaScript" }).waitFor();
    await offered("Scripts");
    await page.getByRole("button", { name: /^trig/ }).click();
    assert.ok(await page.getByLabel("Operation").isDisabled());
    await page.getByLabel("Name").press("Enter");
    await offered("a trigger");
    await page.getByRole("button", { name: "twice" }).click();
    await page.getByLabel("Arguments").fill("[4]");
    await page.getByRole("button", { name: "Call function" }).click(); // which only reads
    assert.equal(await page.getByRole("textbox", { name: "Result" }).textContent(), "8");
    await page.locator("summary[title='More about shop']").click();
    await page.getByRole("button", { name: "Throughput" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "OK" }).click();
    await page.getByRole("link", { name: "Users of shop" }).click();
    await page.getByRole("button", { name: "ada" }).click();
    await page.getByText("A read-only key does not show permissions").waitFor();
    await offered("Users");
    await page.reload();
    await page.getByText("This key is read-only").waitFor();
});

const READ_ONLY = Buffer.alloc(64, 9).toString("base64");

// Query, Change feed and Partitions of "orders"; these are in the list after a query and from the beginning.
async function useQueryAndFeed(page, expected) {
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await write(page.getByRole("textbox", { name: "SQL" }), "SELECT c.id FROM c WHERE c.total >= 0");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(new RegExp(`^${expected} rows, `)).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Change feed" }).click();
    await page.getByLabel("Show changes").selectOption("from the beginning");
    await page.getByText(`${expected} changes`, { exact: true }).waitFor();
}

test("a read-only key uses Query, Change feed and Partitions; of a server that does not say what it is it learns so at the first refusal", async (t) => {
    const server = await startServer(t, ["--read-only-key", READ_ONLY]);
    await makeOrders(server, 10);
    const page = await openPage(t, server, { allowErrors: [/401/] });
    await page.route(`${server.endpoint}/`, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, headers: Object.fromEntries(Object.entries(answer.headers()).filter(([name]) => name !== "x-orrery-access")) });
    });
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await signIn(page, READ_ONLY);
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).click();
    await useQueryAndFeed(page, 10);
    await page.getByRole("link", { name: "Partitions" }).click();
    await page.getByRole("region", { name: "Physical partitions" }).getByRole("cell", { name: "all hashes" }).waitFor();
    await page.getByRole("application", { name: /Map of the partitions/ }).waitFor({ timeout: 20_000 });
    await page.getByRole("region", { name: "Largest logical partitions" }).getByText('"c1"').waitFor();

    const told = page.getByText("This key is read-only");
    assert.equal(await told.count(), 0);
    await page.getByRole("link", { name: "Items", exact: true }).click();
    await page.getByRole("button", { name: "1 \"c1\"", exact: true }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await told.waitFor();
    await page.getByRole("button", { name: "Delete" }).waitFor({ state: "detached" });
    await expectAccessible(page);
    await page.reload();
    await told.waitFor();
    await call(server, "GET", "dbs/shop/colls/orders/docs/1", { headers: { "x-ms-documentdb-partitionkey": '["c1"]' } });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Key, connection string or resource token").fill(DEVELOPMENT_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation").getByRole("link", { name: "orders" }).waitFor();
    assert.equal(await told.count(), 0, "another key is another one");
});

test("a token for a container uses Query and Change feed, and is not offered what no token may do", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 10);
    const token = await tokenFor(server, { permissionMode: "Read", resource: "dbs/shop/colls/orders" });
    const page = await openPage(t, server);
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await signIn(page, token);
    await openFor(page, "orders");
    await page.getByText("Signed in with a resource token").waitFor();
    await page.getByText("10 items", { exact: true }).waitFor();
    await useQueryAndFeed(page, 10);
    assert.equal(await page.getByRole("link", { name: "Partitions" }).count(), 0);
    for (const name of ["New database", "New container", "Users of shop", "More about shop"])
        assert.equal(await page.getByLabel(name).or(page.getByText(name, { exact: true })).count(), 0, name);
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByText("A resource token cannot change the definition.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
    await page.goto(`${server.endpoint}/_explorer/#/dbs/shop/colls/orders/map`);
    await page.getByText("A resource token does not show partitions.").waitFor();
    await expectAccessible(page);
});

test("a token for one partition key queries and follows that key", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 14);
    const token = await tokenFor(server, { permissionMode: "Read", resource: "dbs/shop/colls/orders", resourcePartitionKey: ["c1"] });
    const page = await openPage(t, server, { allowErrors: [/403/] });
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await signIn(page, token);
    await openFor(page, "orders", '["c1"]');
    await page.getByText("2 items", { exact: true }).waitFor();
    await useQueryAndFeed(page, 2);
});
