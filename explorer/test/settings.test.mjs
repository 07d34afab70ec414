// settings.test.mjs - the definition of a container and its throughput.
import assert from "node:assert/strict";
import test from "node:test";
import { answerUnsaved, call, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

const PATH = "dbs/shop/colls/orders";

async function openSettings(t, options = {}) {
    const server = await startServer(t);
    await makeOrders(server, 5, { more: { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/number"] }] }, computedProperties: [{ name: "cp", query: "SELECT VALUE LOWER(c.status) FROM c" }] } });
    const page = await openPage(t, server, { path: `/_explorer/#/${PATH}/settings`, ...options });
    return { server, page };
}

async function offerOf(server, rid) {
    const { Offers } = await call(server, "GET", "offers");
    return Offers.find((offer) => offer.offerResourceId === rid).content;
}

test("the indexing policy and the time to live are changed, the rest stays", async (t) => {
    const { server, page } = await openSettings(t, { allowErrors: [/400/] });
    const form = page.getByRole("form", { name: "Definition" });
    const policy = form.getByRole("textbox", { name: "Indexing policy" });
    await page.getByText("The index is ready.").waitFor();
    await form.getByText('"/number"').waitFor();
    await write(policy, "{ not json");
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("group", { name: "Indexing policy" }).getByRole("alert").waitFor();
    await write(policy, JSON.stringify({ includedPaths: [{ path: "/total/?" }] }));
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("group", { name: "Indexing policy" }).getByRole("alert").filter({ hasText: "mandatory" }).waitFor();
    await expectAccessible(page);
    await write(policy, JSON.stringify({ includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/status/?" }] }));
    await form.getByLabel("Time to live").selectOption("On: items that have a ttl expire");
    await picture(page, "settings");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("The definition was saved.").waitFor();
    const now = await call(server, "GET", PATH);
    assert.ok(now.indexingPolicy.excludedPaths.some(({ path }) => path === "/status/?"));
    assert.equal(now.defaultTtl, -1);
    assert.equal(now.computedProperties[0].name, "cp");
    assert.equal(now.uniqueKeyPolicy.uniqueKeys.length, 1);
    // And back, with the new version. A second click does not conflict with the first.
    await form.getByLabel("Time to live").selectOption("Off: items never expire");
    await form.getByRole("button", { name: "Save" }).dblclick();
    await page.getByText("The definition was saved.").nth(1).waitFor();
    assert.equal((await call(server, "GET", PATH)).defaultTtl, undefined);
    assert.equal(await page.getByText("Somebody has changed this container").count(), 0);
});

test("a change of somebody else is not overwritten unseen", async (t) => {
    const { server, page } = await openSettings(t, { allowErrors: [/412/] });
    const form = page.getByRole("form", { name: "Definition" });
    await page.getByText("The index is ready.").waitFor();
    await call(server, "PUT", PATH, { body: { ...await call(server, "GET", PATH), defaultTtl: 77 } });
    await form.getByLabel("Time to live").selectOption("On: items that have a ttl expire");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("Somebody has changed this container").waitFor();
    assert.equal((await call(server, "GET", PATH)).defaultTtl, 77);
    await page.getByText('"defaultTtl": 77').waitFor();
    await call(server, "PUT", PATH, { body: { ...await call(server, "GET", PATH), defaultTtl: 88 } });
    await page.getByRole("button", { name: "Save mine" }).click();
    await page.getByText('"defaultTtl": 88').waitFor(); // a third version
    assert.equal((await call(server, "GET", PATH)).defaultTtl, 88);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Save mine" }).click();
    await page.getByText("The definition was saved.").waitFor();
    assert.equal((await call(server, "GET", PATH)).defaultTtl, -1);
});

test("a definition that was edited and not saved is given up only after a question", async (t) => {
    const { page } = await openSettings(t);
    await page.getByText("The index is ready.").waitFor();
    await page.getByRole("link", { name: "Query", exact: true }).click(); // nothing was edited
    await page.getByRole("textbox", { name: "SQL" }).waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    const field = page.getByRole("form", { name: "Definition" }).getByLabel("Time to live");
    await field.selectOption("On: items that have a ttl expire");
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await answerUnsaved(page, "Cancel");
    assert.equal(await field.inputValue(), "item");
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await answerUnsaved(page, "Discard");
    await page.getByRole("textbox", { name: "SQL" }).waitFor();
});

test("throughput is changed: another number, autoscale, and manual again", async (t) => {
    const { server, page } = await openSettings(t, { allowErrors: [/400/] });
    const { _rid } = await call(server, "GET", PATH);
    const form = page.getByRole("form", { name: "Throughput" });
    const save = async (saved) => {
        await form.getByRole("button", { name: "Save throughput" }).click();
        await page.getByText("The throughput was changed.").nth(saved).waitFor();
    };
    await form.getByText("At least 400.").waitFor();
    await form.getByLabel("RU/s").fill("450");
    await form.getByRole("button", { name: "Save throughput" }).click();
    await form.getByRole("alert").filter({ hasText: /\S/ }).waitFor();
    await form.getByLabel("RU/s").fill("700");
    await save(0);
    assert.equal((await offerOf(server, _rid)).offerThroughput, 700);
    await form.getByLabel("Throughput").selectOption("Autoscale");
    await form.getByLabel("Maximum RU/s").fill("3000");
    await save(1);
    assert.equal((await offerOf(server, _rid)).offerAutopilotSettings.maxThroughput, 3000);
    await form.getByLabel("Throughput").selectOption("Manual");
    await form.getByLabel("RU/s").fill("950");
    await form.getByRole("button", { name: "Save throughput" }).click();
    await form.getByRole("alert").filter({ hasText: /\S/ }).waitFor();
    await form.getByLabel("RU/s").fill("900");
    await save(2);
    const last = await offerOf(server, _rid);
    assert.equal(last.offerThroughput, 900);
    assert.equal(last.offerAutopilotSettings, undefined);
    await expectAccessible(page);
});

test("while the index is changed its progress is shown, and asked for until it is done", async (t) => {
    const { server, page } = await openSettings(t);
    await page.getByText("The index is ready.").waitFor();
    const name = "x-ms-documentdb-collection-index-transformation-progress";
    const percents = ["37", "80"];
    await page.route(`${server.endpoint}/${PATH}`, async (route) => {
        const answer = await route.fetch();
        const headers = answer.headers();
        await route.fulfill({ response: answer, headers: headers[name] === undefined ? headers : { ...headers, [name]: percents.shift() ?? headers[name] } });
    });
    const form = page.getByRole("form", { name: "Definition" });
    await write(form.getByRole("textbox", { name: "Indexing policy" }), JSON.stringify({ includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/status/?" }] }));
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("progressbar", { name: "The index is being changed: 37 %" }).waitFor();
    await expectAccessible(page);
    await page.getByText("The index is ready.").waitFor();
    assert.deepEqual(percents, []);
});

test("throughput of a database is changed from a container that shares it", async (t) => {
    const server = await startServer(t);
    await call(server, "POST", "dbs", { body: { id: "shop" }, headers: { "x-ms-offer-throughput": "1000" } });
    await call(server, "POST", "dbs/shop/colls", { body: { id: "orders", partitionKey: { paths: ["/id"], kind: "Hash", version: 2 } } });
    const page = await openPage(t, server, { path: `/_explorer/#/${PATH}/settings` });
    await page.getByText("This container shares the throughput of its database.").waitFor();
    await page.getByRole("form", { name: "Throughput" }).getByLabel("RU/s").fill("1200");
    await page.keyboard.press("Enter");
    await page.getByText("The throughput was changed.").waitFor();
    assert.equal((await offerOf(server, (await call(server, "GET", "dbs/shop"))._rid)).offerThroughput, 1200);
});

test("throughput of a database that has no container is changed, and one without says so", async (t) => {
    const server = await startServer(t);
    await call(server, "POST", "dbs", { body: { id: "shop" }, headers: { "x-ms-offer-throughput": "1000" } });
    await call(server, "POST", "dbs", { body: { id: "plain" } });
    const { _rid } = await call(server, "GET", "dbs/shop");
    const page = await openPage(t, server, { allowErrors: [/400/] });
    const dialog = page.getByRole("dialog");
    const open = async (db) => {
        const more = page.getByRole("navigation").locator("summary", { hasText: "..." }).and(page.getByLabel(`More about ${db}`));
        if (!await page.getByRole("button", { name: "Throughput" }).isVisible())
            await more.click();
        await page.getByRole("button", { name: "Throughput" }).click();
    };
    await open("shop");
    assert.equal(await dialog.getByLabel("RU/s").inputValue(), "1000");
    await dialog.getByText("At least 400.").waitFor();
    await expectAccessible(page);
    await dialog.getByLabel("RU/s").fill("10");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").filter({ hasText: "400" }).waitFor();
    await dialog.getByLabel("RU/s").fill("1200");
    await page.keyboard.press("Enter");
    await page.getByText("The throughput was changed.").waitFor();
    assert.equal((await offerOf(server, _rid)).offerThroughput, 1200);
    await open("shop");
    await dialog.getByLabel("Throughput").selectOption("Autoscale");
    await dialog.getByLabel("Maximum RU/s").fill("4000");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.equal((await offerOf(server, _rid)).offerAutopilotSettings.maxThroughput, 4000);
    await page.getByLabel("More about shop").click();
    await open("plain");
    await dialog.getByText("The database has no throughput").waitFor();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "OK" }).click();
    await dialog.waitFor({ state: "detached" });
});
