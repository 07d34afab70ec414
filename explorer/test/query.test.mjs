// query.test.mjs - the SQL editor, its results, and how they were found.
import assert from "node:assert/strict";
import test from "node:test";
import { expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

async function openQuery(t, count, options) {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, count);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/query", ...options });
    return { server, page, editor: page.getByRole("textbox", { name: "SQL" }) };
}

test("a query is run by keyboard, shown as a table and as JSON, page after page", async (t) => {
    const { page, editor } = await openQuery(t, 150);
    await write(editor, "SELECT c.id, c.total FROM c WHERE c.total >= 15 ORDER BY c.total");
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^100 rows, [\d.]+ RU, \d+ ms, 1 page$/).waitFor();
    await page.getByRole("button", { name: "Next page" }).click();
    await page.getByText(/^140 rows, .* 2 pages$/).waitFor();
    assert.equal(await page.getByRole("row").count(), 141);
    await page.getByText("How it was answered").click();
    await page.getByText(/1 physical partition visited/).waitFor();
    await page.getByText(/range of \/total\/\?/).waitFor();
    await expectAccessible(page);
    await picture(page, "query");
    await page.getByLabel("Show as").selectOption("JSON");
    await page.getByText('"total": 16.5').waitFor();
});

test("an index that would help is named", async (t) => {
    const { page, editor } = await openQuery(t, 5);
    await write(editor, "SELECT * FROM c WHERE c.status = 'open' AND c.total > 1 ORDER BY c.total");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("How it was answered").click();
    await page.getByText("(/status ASC, /total ASC)").waitFor();
});

test("a mistake is underlined at its place", async (t) => {
    const { page, editor } = await openQuery(t, 1, { allowErrors: [/400/] });
    await write(editor, "SELECT * FORM c");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/incorrect syntax near 'FORM'/).first().waitFor();
    assert.equal(await page.locator(".cm-lintRange-error").textContent(), "FORM");
});

test("keywords, functions and names of properties are completed", async (t) => {
    const { page, editor } = await openQuery(t, 3);
    await write(editor, "SELECT * FROM c WHERE ");
    await page.keyboard.type("ARRAY_CONT");
    await page.getByRole("option", { name: "ARRAY_CONTAINS", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await write(editor, "SELECT * FROM c WHERE c");
    await page.keyboard.type(".cust");
    await page.getByRole("option", { name: "customer" }).click();
    assert.match(await editor.textContent(), /c\.customer$/);
});

test("queries that have been run are kept in the browser", async (t) => {
    const { page, editor } = await openQuery(t, 2);
    await write(editor, "SELECT VALUE c.id FROM c");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/^2 rows/).waitFor();
    await page.reload();
    assert.equal(await editor.textContent(), "SELECT VALUE c.id FROM c");
    await page.getByLabel("Earlier queries").locator("option").nth(1).waitFor({ state: "attached" });
});
