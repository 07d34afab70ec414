// query.test.mjs - the SQL editor, its results, and how they were found.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, picture, startServer, write } from "./browser.mjs";

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
    await page.getByText(/^100 rows, [\d.]+ RU, [\d.]+ ms, 1 page$/).waitFor();
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

test("the indexes that were used are named, also a composite one", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    const composite = [{ path: "/status", order: "ascending" }, { path: "/total", order: "ascending" }];
    await makeOrders(server, 60, { more: { indexingPolicy: { includedPaths: [{ path: "/*" }], compositeIndexes: [composite] } } });
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/query" });
    const used = async (query) => {
        await write(page.getByRole("textbox", { name: "SQL" }), query);
        await Promise.all([page.waitForResponse((answer) => answer.request().method() === "POST"), page.getByRole("button", { name: "Run" }).click()]);
        const how = page.locator("details.how");
        await how.waitFor();
        if (!await how.evaluate((element) => element.open))
            await page.getByText("How it was answered").click();
        await page.waitForTimeout(300); // until this answer is shown
        const text = await how.locator("dl").innerText({ timeout: 5000 }).catch(() => "");
        return /Used\s*\n(.*)/.exec(text)?.[1] ?? "";
    };
    assert.equal(await used("SELECT * FROM c WHERE c.total > 85"), "/total/?");
    assert.equal(await used("SELECT * FROM c WHERE c.customer = 'c1'"), "/customer/?");
    assert.match(await used("SELECT * FROM c WHERE c.status = 'open' AND c.total > 1 ORDER BY c.status, c.total"), /\(\/status ASC, \/total ASC\)/);
    await expectAccessible(page);
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

// Opens the list of completions at the end of a text.
async function completions(page, editor, text, typed) {
    await write(editor, text);
    await page.keyboard.type(typed);
    await page.getByRole("listbox").waitFor();
    return page.getByRole("listbox").getByRole("option").allTextContents();
}

test("completion knows every property of the index, nested ones, elements of arrays and names to quote", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/note/?" }] };
    await makeOrders(server, 120, { more: { indexingPolicy } });
    const rare = {
        id: "zz", customer: "rare", address: { city: "Ulm", street: "x" }, "first name": "Ada", order: 1,
        lines: [{ article: "book", "unit price": 3 }], matrix: [[{ cell: 1 }]], note: "not in the index",
    };
    await call(server, "POST", "dbs/shop/colls/orders/docs", { body: rare, headers: { "x-ms-documentdb-partitionkey": '["rare"]' } });
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/query" });
    const editor = page.getByRole("textbox", { name: "SQL" });
    const rows = [
        ["SELECT * FROM c WHERE c", ".address.ci", "city", "SELECT * FROM c WHERE c.address.city"],
        ["SELECT * FROM c WHERE c", ".fir", "first name", 'SELECT * FROM c WHERE c["first name"]'],
        ["SELECT * FROM c WHERE c", '["fir', "first name", 'SELECT * FROM c WHERE c["first name"]'],
        ["SELECT * FROM c WHERE c", "['addr", "address", "SELECT * FROM c WHERE c.address"],
        ["SELECT * FROM c WHERE c", ".ord", "order", 'SELECT * FROM c WHERE c["order"]'],
        ["SELECT * FROM c WHERE c.lines[0]", ".art", "article", "SELECT * FROM c WHERE c.lines[0].article"],
        ["SELECT * FROM c WHERE c.matrix[0][1]", ".ce", "cell", "SELECT * FROM c WHERE c.matrix[0][1].cell"],
        ['SELECT * FROM c WHERE c["address"]', ".str", "street", 'SELECT * FROM c WHERE c["address"].street'],
        ["SELECT * FROM c JOIN l IN c.lines WHERE l", ".uni", "unit price", 'SELECT * FROM c JOIN l IN c.lines WHERE l["unit price"]'],
        ["SELECT VALUE EXISTS(SELECT VALUE 1 FROM m IN c.matrix JOIN n IN m WHERE n", ".ce", "cell", /n\.cell$/],
        ["SELECT * FROM orders WHERE orders", ".cust", "customer", "SELECT * FROM orders WHERE orders.customer"],
    ];
    for (const [text, typed, name, expected] of rows) {
        await completions(page, editor, text, typed);
        await page.getByRole("option", { name }).first().click();
        const found = await editor.textContent();
        assert.ok(expected instanceof RegExp ? expected.test(found) : found === expected, `${text}${typed}: ${found}`);
    }
    // What is in none of the first items is there all the same, and what the index does not have says so if a sample shows it.
    const all = await completions(page, editor, "SELECT * FROM c WHERE c", ".");
    for (const name of ["address", "customer", "first name", "lines", "total"])
        assert.ok(all.some((text) => text.startsWith(name)), `${name} of ${all}`);
    assert.ok(all.some((text) => /^lines\s*array$/.test(text)), `${all}`);
    assert.equal(all.some((text) => text.startsWith("note")), false);
    await page.keyboard.press("Escape");
    await expectAccessible(page);
});

test("properties that the index does not have are taken from a sample, and marked", async (t) => {
    const server = await startServer(t);
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/status/?" }] };
    await makeOrders(server, 3, { more: { indexingPolicy } });
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/query" });
    const all = await completions(page, page.getByRole("textbox", { name: "SQL" }), "SELECT * FROM c WHERE c", ".");
    assert.ok(all.some((text) => /^status\s*not indexed$/.test(text)), `${all}`);
    assert.ok(all.includes("total"), `${all}`);
});

test("names with letters of any language are completed", async (t) => {
    const { server, page, editor } = await openQuery(t, 1);
    await call(server, "POST", "dbs/shop/colls/orders/docs", {
        body: { id: "g", customer: "c1", größe: { länge: 2 }, цена: 3 }, headers: { "x-ms-documentdb-partitionkey": '["c1"]' },
    });
    await page.reload();
    for (const [text, typed, name, expected] of [
        ["SELECT * FROM c WHERE c", ".grö", "größe", "SELECT * FROM c WHERE c.größe"],
        ["SELECT * FROM c WHERE c.größe", ".lä", "länge", "SELECT * FROM c WHERE c.größe.länge"],
        ["SELECT * FROM ü WHERE ü", ".це", "цена", "SELECT * FROM ü WHERE ü.цена"],
    ]) {
        assert.deepEqual((await completions(page, editor, text, typed)).filter((option) => !option.startsWith(name)), []);
        await page.getByRole("option", { name }).first().click();
        assert.equal(await editor.textContent(), expected);
        await page.keyboard.press("Control+Enter"); // and the server reads it as one name
        await page.getByText(/^\d rows?, |The query has no results/).first().waitFor();
    }
});

test("after udf. come the container's functions and no properties", async (t) => {
    const { server, page, editor } = await openQuery(t, 2);
    await call(server, "POST", "dbs/shop/colls/orders/udfs", { body: { id: "twice", body: "function (n) { return 2 * n; }" } });
    assert.deepEqual(await completions(page, editor, "SELECT VALUE udf", "."), ["twice"]);
    await page.getByRole("option", { name: "twice" }).click();
    assert.equal(await editor.textContent(), "SELECT VALUE udf.twice(");
});

test("nothing is marked as not indexed if it is not known what the index has", async (t) => {
    const { server, page, editor } = await openQuery(t, 3, { allowErrors: [/429/] });
    const answers = {
        refused: { status: 429, json: { code: "TooManyRequests", message: "not now" } },
        "cut short": { json: { paths: ["/customer/?"], isComplete: false } },
        complete: { json: { paths: ["/customer/?"], isComplete: true } },
    };
    for (const [name, answer] of Object.entries(answers)) {
        await page.unrouteAll();
        await page.route(`${server.endpoint}/_orrery/dbs/shop/colls/orders/paths`, (route) => route.fulfill(answer));
        await page.reload();
        const all = await completions(page, editor, "SELECT * FROM c WHERE c", ".");
        assert.ok(all.some((text) => text.startsWith("total")), `${name}: ${all}`);
        assert.equal(all.some((text) => text.includes("not indexed")), name === "complete", `${name}: ${all}`);
    }
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

// How many rows there are, by the words above them.
const rowsShown = (page, rows, pages = 1) => page.getByText(new RegExp(`^${rows} rows?, .* ${pages} pages?$`)).waitFor();

test("a query of the history is what the editor shows and what runs, also after an edit", async (t) => {
    const { page, editor } = await openQuery(t, 5);
    for (const [query, rows] of [["SELECT VALUE 1", 1], ["SELECT VALUE c.id FROM c", 5]]) {
        await write(editor, query);
        await page.getByRole("button", { name: "Run" }).click();
        await rowsShown(page, rows);
    }
    const earlier = page.getByLabel("Earlier queries");
    for (const turn of [1, 2]) {
        await earlier.selectOption("SELECT VALUE 1");
        assert.equal(await editor.textContent(), "SELECT VALUE 1", `turn ${turn}`);
        await page.getByRole("button", { name: "Run" }).click();
        await rowsShown(page, 1);
        await write(editor, "SELECT VALUE c.total FROM c");
    }
    await page.getByRole("button", { name: "Run" }).click();
    await rowsShown(page, 5);
});

test("the next page is of the query whose rows are shown, whatever was typed since", async (t) => {
    const { page, editor } = await openQuery(t, 150, { allowErrors: [/400/] });
    await write(editor, "SELECT VALUE c.id FROM c");
    await page.getByRole("button", { name: "Run" }).click();
    await rowsShown(page, 100);
    await write(editor, "SELECT VALUE c.total FROM c WHERE c.total > 3");
    const [sent] = await Promise.all([page.waitForRequest((request) => request.method() === "POST"), page.getByRole("button", { name: "Next page" }).click()]);
    assert.equal(sent.postDataJSON().query, "SELECT VALUE c.id FROM c");
    await rowsShown(page, 150, 2);
    assert.match(await editor.textContent(), /c\.total/);
});

test("while a query runs the keyboard does not begin another one", async (t) => {
    const { server, page, editor } = await openQuery(t, 5);
    const sent = [];
    await page.route(`${server.endpoint}/dbs/shop/colls/orders/docs`, async (route) => {
        if (route.request().method() === "POST") {
            sent.push(route.request().postDataJSON().query);
            await new Promise((resolve) => setTimeout(resolve, sent.length === 1 ? 800 : 0));
        }
        await route.continue();
    });
    await write(editor, "SELECT VALUE c.id FROM c");
    await page.keyboard.press("Control+Enter");
    await write(editor, "SELECT VALUE 1");
    await page.keyboard.press("Control+Enter");
    await rowsShown(page, 5);
    await page.waitForTimeout(300);
    await rowsShown(page, 5);
    assert.deepEqual(sent, ["SELECT VALUE c.id FROM c"]);
});

test("JSON is that of the newest answer, also if it has taken as long as the last one", async (t) => {
    const { server, page, editor } = await openQuery(t, 5);
    await page.route(`${server.endpoint}/dbs/shop/colls/orders/docs`, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, headers: { ...answer.headers(), "x-ms-request-duration-ms": "3" } });
    });
    for (const word of ["first", "second"]) {
        await write(editor, `SELECT VALUE "${word}"`);
        await page.getByRole("button", { name: "Run" }).click();
        await rowsShown(page, 1);
        await page.getByLabel("Show as").selectOption("JSON");
        await page.getByRole("textbox", { name: "Results" }).getByText(`"${word}"`).waitFor();
    }
});

test("the plan says how many partitions were visited, and names those that it explains", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 20, { ru: 120_000 });
    const ranges = (await call(server, "GET", "dbs/shop/colls/orders/pkranges")).PartitionKeyRanges.map(({ id }) => id);
    assert.ok(ranges.length > 16, `${ranges.length}`);
    const page = await openPage(t, server, { path: "/_explorer/#/dbs/shop/colls/orders/query" });
    const editor = page.getByRole("textbox", { name: "SQL" });
    const ask = async (query) => {
        await write(editor, query);
        const [answer] = await Promise.all([page.waitForResponse((one) => one.request().method() === "POST"), page.getByRole("button", { name: "Run" }).click()]);
        await page.waitForTimeout(200);
        return JSON.parse(decodeURIComponent(answer.headers()["x-orrery-explain"]));
    };
    await ask("SELECT * FROM c WHERE c.total >= 0");
    await page.getByText("How it was answered").click();
    await page.getByText(`${ranges.length} physical partitions visited; the first 16 are explained.`).waitFor();
    assert.deepEqual((await page.locator(".plan > li").allTextContents()).map((text) => /^Partition (\d+):/.exec(text)?.[1]), ranges.slice(0, 16));
    const named = new Set();
    for (let i = 0; i < 7; i++) {
        const told = await ask(`SELECT * FROM c WHERE c.customer = 'c${i}'`);
        const [{ partition }] = told.partitions;
        named.add(partition);
        await page.getByText("1 physical partition visited.").waitFor();
        assert.ok((await page.locator(".plan > li").first().textContent()).startsWith(`Partition ${partition}: by `));
    }
    assert.ok(named.size > 1);
    await expectAccessible(page);
});

test("a partition that another node has read has no number of items", async (t) => {
    const { server, page } = await openQuery(t, 2);
    const told = { partitions: [{ partition: "7", by: "another node" }], partitionsVisited: 1 };
    await page.route(`${server.endpoint}/dbs/shop/colls/orders/docs`, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, headers: { ...answer.headers(), "x-orrery-explain": JSON.stringify(told) } });
    });
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("How it was answered").click();
    await page.getByText("Partition 7: by another node.", { exact: true }).waitFor();
});

test("a query that the browser cannot keep succeeds all the same", async (t) => {
    const { page, editor } = await openQuery(t, 3);
    await page.evaluate(() => {
        Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
    });
    await write(editor, "SELECT VALUE c.id FROM c");
    await page.getByRole("button", { name: "Run" }).click();
    await rowsShown(page, 3);
    assert.equal(await page.getByText("Failed").count(), 0);
    await page.getByLabel("Earlier queries").selectOption("SELECT VALUE c.id FROM c"); // until the page is left
});
