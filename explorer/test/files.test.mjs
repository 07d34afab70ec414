// files.test.mjs - files of items that are uploaded, and what is downloaded.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, startServer, write } from "./browser.mjs";

const ORDERS = "dbs/shop/colls/orders";

async function openItems(t, { count = 0, key, ...options } = {}) {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, count);
    const coll = key === undefined ? "orders" : "other";
    if (key !== undefined)
        await call(server, "POST", "dbs/shop/colls", { body: { id: coll, partitionKey: key } });
    const page = await openPage(t, server, { path: `/_explorer/#/dbs/shop/colls/${coll}`, ...options });
    await page.getByText("This container has no items.").or(page.getByText(/^\d+ items$/)).waitFor();
    return { server, page };
}

async function upload(page, name, text) {
    await page.getByLabel("Upload").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
    await page.getByText(/^Uploaded \d+ items/).last().waitFor();
}

// An item as it is stored, without what the server adds.
async function stored(server, coll, id, key) {
    const item = await call(server, "GET", `dbs/shop/colls/${coll}/docs/${id}`, { headers: { "x-ms-documentdb-partitionkey": JSON.stringify(key) } });
    return Object.fromEntries(Object.entries(item).filter(([name]) => !name.startsWith("_")));
}

async function downloaded(page, button) {
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    return { name: download.suggestedFilename(), content: JSON.parse(readFileSync(await download.path(), "utf8")) };
}

test("a JSON array is uploaded; a row that is refused is named with the reason, and the others are stored", async (t) => {
    const { server, page } = await openItems(t, { allowErrors: [/400/] });
    await upload(page, "items.json", JSON.stringify([
        { id: "a", customer: "c1", tags: ["x", { y: null }] }, { id: "slash/ed", customer: "c1" }, { customer: "größe" },
    ]));
    await page.getByText("Uploaded 2 items, 1 were refused.").waitFor();
    const refused = page.getByRole("alert", { name: "Rows of the file that were refused" });
    assert.match(await refused.textContent(), /^Row 2: .+\(400/);
    await expectAccessible(page);
    assert.deepEqual(await stored(server, "orders", "a", ["c1"]), { id: "a", customer: "c1", tags: ["x", { y: null }] });
    await page.getByText("2 items", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^[-0-9a-f]{36} "größe"$/ }).waitFor(); // it was given an id

    await upload(page, "again.json", JSON.stringify({ id: "a", customer: "c1", again: true }));
    await refused.waitFor({ state: "detached" });
    assert.equal((await stored(server, "orders", "a", ["c1"])).again, true, "what is there is replaced");
});

test("JSON lines are uploaded, and a file that is none of these is refused as a whole", async (t) => {
    const { server, page } = await openItems(t);
    await upload(page, "items.jsonl", '{"id":"1","customer":"c1","n":1.5}\n\n{"id":"2","customer":"c2","text":"a\\nb"}\r\n');
    assert.deepEqual(await stored(server, "orders", "1", ["c1"]), { id: "1", customer: "c1", n: 1.5 });
    assert.deepEqual(await stored(server, "orders", "2", ["c2"]), { id: "2", customer: "c2", text: "a\nb" });
    await page.getByLabel("Upload").setInputFiles({ name: "bad.jsonl", mimeType: "text/plain", buffer: Buffer.from('{"id":"3","customer":"c3"}\n[1]\n') });
    await page.getByText("The file has neither a JSON array, nor JSON lines, nor CSV.").waitFor();
    await assert.rejects(stored(server, "orders", "3", ["c3"]), /404/);
});

test("CSV is uploaded: quotes, commas, line ends in cells, numbers and empty cells", async (t) => {
    const { server, page } = await openItems(t, { allowErrors: [/400/] });
    await upload(page, "items.csv", 'id,customer,text,total,paid,zip\r\n1,c1,"a ""quoted"", text",12.50,true,01234\r\n2,c2,"two\nlines",-3,null,\r\nslash/ed,c3,x,1,false,5\r\n');
    assert.deepEqual(await stored(server, "orders", "1", ["c1"]), { id: "1", customer: "c1", text: 'a "quoted", text', total: 12.5, paid: true, zip: "01234" });
    assert.deepEqual(await stored(server, "orders", "2", ["c2"]), { id: "2", customer: "c2", text: "two\nlines", total: -3, paid: null });
    assert.match(await page.getByRole("alert", { name: "Rows of the file that were refused" }).textContent(), /^Row 3: .*slash.*\(400/);
    await page.getByText("Uploaded 2 items, 1 were refused.").waitFor();
});

test("rows are uploaded to a container with a hierarchical key", async (t) => {
    const { server, page } = await openItems(t, { key: { paths: ["/tenant", "/address/city"], kind: "MultiHash", version: 2 } });
    await upload(page, "items.json", JSON.stringify([{ id: "1", tenant: "t", address: { city: "Ulm" } }, { id: "2", tenant: "t", address: { city: 7 } }]));
    assert.equal((await stored(server, "other", "1", ["t", "Ulm"])).id, "1");
    assert.equal((await stored(server, "other", "2", ["t", 7])).id, "2");
    await page.getByRole("button", { name: '1 "t", "Ulm"' }).waitFor();
});

test("a row that is answered 429 is sent again", async (t) => {
    const { server, page } = await openItems(t, { allowErrors: [/429/] });
    let refusals = 0;
    await page.route(`${server.endpoint}/${ORDERS}/docs`, (route) => route.request().method() === "POST" && refusals++ < 2
        ? route.fulfill({ status: 429, headers: { "x-ms-retry-after-ms": "20" }, json: { code: "TooManyRequests", message: "too many" } }) : route.continue());
    await upload(page, "items.json", JSON.stringify([{ id: "1", customer: "c1" }]));
    await page.getByText("Uploaded 1 items.").waitFor();
    assert.equal(refusals, 3);
    await stored(server, "orders", "1", ["c1"]);
});

test("the items of the list and the results of a query are downloaded", async (t) => {
    const { page } = await openItems(t, { count: 5 });
    const items = await downloaded(page, page.getByRole("button", { name: "Download" }));
    assert.equal(items.name, "orders.json");
    assert.deepEqual(items.content.map(({ id, customer, total }) => [id, customer, total]).sort(), [0, 1, 2, 3, 4].map((i) => [String(i), `c${i}`, i * 1.5]));
    await page.getByRole("link", { name: "Query", exact: true }).click();
    await write(page.getByRole("textbox", { name: "SQL" }), "SELECT c.id, c.total FROM c WHERE c.total >= 3 ORDER BY c.total");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/^3 rows/).waitFor();
    const results = await downloaded(page, page.getByRole("button", { name: "Download" }));
    assert.equal(results.name, "results.json");
    assert.deepEqual(results.content, [{ id: "2", total: 3 }, { id: "3", total: 4.5 }, { id: "4", total: 6 }]);
});
