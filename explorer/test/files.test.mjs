// files.test.mjs - files of items that are uploaded, and what is downloaded.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { answerUnsaved, call, expectAccessible, makeOrders, openPage, startServer, write } from "./browser.mjs";

const ORDERS = "dbs/shop/colls/orders";

async function openItems(t, { count = 0, key, ...options } = {}) {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, count);
    const coll = key === undefined ? "orders" : "other";
    if (key !== undefined)
        await call(server, "POST", "dbs/shop/colls", { body: { id: coll, partitionKey: key } });
    const page = await openPage(t, server, { path: `/_explorer/#/dbs/shop/colls/${coll}`, ...options });
    await page.getByText("This container has no items.").or(page.locator("p[role=status]", { hasText: /^\d+ items/ })).waitFor();
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

test("CSV: numbers that would change stay text, and that is said; surplus cells refuse their row", async (t) => {
    const { server, page } = await openItems(t);
    await upload(page, "items.csv", [
        "id,customer,n", "1,c1,9007199254740993", "2,c2,9007199254740992", "3,c3,0.1", "4,c4,1234567890123456789e-3", "5,c5,1.50e3", "6,c6,1e999", "7,c7,1,surplus", "8,c8,-0.10,,", "9,c9",
    ].join("\n"));
    const n = async (i) => (await stored(server, "orders", String(i), [`c${i}`])).n;
    assert.deepEqual(await Promise.all([1, 2, 3, 4, 5, 6, 8, 9].map(n)), ["9007199254740993", 9007199254740992, 0.1, "1234567890123456789e-3", 1500, "1e999", -0.1, undefined]);
    await page.getByText("3 numbers have more digits than a number of an item can keep, and were stored as text.").waitFor();
    assert.equal(await page.getByRole("alert", { name: "Rows of the file that were refused" }).textContent(), "Row 7: It has 4 cells, but there are only 3 columns.");
    await page.getByText("Uploaded 8 items, 1 were refused.").waitFor();
});

test("CSV with semicolons or tabs is as good, and a quote that is not closed refuses the file", async (t) => {
    const { server, page } = await openItems(t);
    await upload(page, "a.csv", 'id;customer;"text, and more"\n1;c1;"a;b"\n2;c2;1,5\n');
    assert.deepEqual(await stored(server, "orders", "1", ["c1"]), { id: "1", customer: "c1", "text, and more": "a;b" });
    assert.equal((await stored(server, "orders", "2", ["c2"]))["text, and more"], "1,5");
    await upload(page, "b.tsv", "id\tcustomer\tn\r\n3\tc3\t7\r\n");
    assert.equal((await stored(server, "orders", "3", ["c3"])).n, 7);
    for (const [text, words] of [
        ['id,customer,text\n4,c4,fine\n5,c5,"open\n6,c6,x\n', "The quote that begins in row 2 is not closed. Nothing was uploaded."],
        ["id,customer,n,n\n4,c4,1,2\n", 'Two columns have the name "n". Nothing was uploaded.'],
    ]) {
        await page.getByLabel("Upload").setInputFiles({ name: "bad.csv", mimeType: "text/plain", buffer: Buffer.from(text) });
        await page.getByText(words).waitFor();
        await assert.rejects(stored(server, "orders", "4", ["c4"]), /404/);
    }
});

const LINES = Array.from({ length: 60 }, (_, i) => JSON.stringify({ id: `u${i}`, customer: "c1" })).join("\n");

// Begins an upload whose rows take 100 ms each.
async function slowUpload(server, page) {
    const sent = [];
    await page.route(`${server.endpoint}/${ORDERS}/docs`, async (route) => {
        if (route.request().method() === "POST") {
            sent.push(route.request().headers()["authorization"]);
            await new Promise((resolve) => setTimeout(resolve, 100));
        }
        await route.continue().catch(() => undefined); // it may have been aborted
    });
    await page.getByLabel("Upload").setInputFiles({ name: "items.jsonl", mimeType: "text/plain", buffer: Buffer.from(LINES) });
    await page.getByText(/^Uploading: [2-9] of 60$/).waitFor();
    return sent;
}

test("an upload is cancelled, and ends when its page is left or somebody signs out", async (t) => {
    const { server, page } = await openItems(t, { allowErrors: [/ERR_ABORTED|Failed to load/] });
    let sent = await slowUpload(server, page);
    await page.getByRole("button", { name: "Cancel the upload" }).click();
    await page.getByText(/^The upload was stopped: \d+ of 60 rows are stored\./).waitFor();
    await page.getByText(/^\d items$/).waitFor();
    await page.unrouteAll({ behavior: "wait" });
    for (const [leave, arrived] of [
        [page.getByRole("link", { name: "Query", exact: true }), page.getByRole("textbox", { name: "SQL" })],
        [page.getByRole("button", { name: "Sign out" }), page.getByLabel("Key, connection string or resource token")],
    ]) {
        await page.getByRole("link", { name: "Items", exact: true }).click();
        sent = await slowUpload(server, page);
        await leave.click();
        await page.getByRole("dialog").getByText("The upload stops if you leave.").waitFor();
        await answerUnsaved(page, "Discard");
        await arrived.waitFor();
        const count = sent.length;
        await page.waitForTimeout(500);
        assert.ok(sent.length === count && count < 60, `${count} and then ${sent.length}`);
        await page.unrouteAll({ behavior: "wait" });
    }
    assert.equal(await page.getByText("Nobody is signed in").count(), 0);
});

test("all items of a container are downloaded, in pages, also if the list has not loaded them; and that is cancelled", async (t) => {
    const { server, page } = await openItems(t, { count: 230 });
    await page.getByText("100 items, more on the server").waitFor();
    let hold = null;
    await page.route(`${server.endpoint}/${ORDERS}/docs`, async (route) => {
        const headers = { ...route.request().headers(), "x-ms-max-item-count": "100" };
        if (hold !== null && headers["x-ms-continuation"] !== undefined)
            await hold;
        await route.continue({ headers }).catch(() => undefined);
    });
    const { name, content } = await downloaded(page, page.getByRole("button", { name: "Download" }));
    assert.equal(name, "orders.json");
    assert.equal(new Set(content.map(({ id }) => id)).size, 230);
    assert.equal(content.length, 230);

    let release;
    hold = new Promise((resolve) => { release = resolve; });
    const downloads = [];
    page.on("download", (download) => downloads.push(download));
    await page.getByRole("button", { name: "Download" }).click();
    await page.getByText("Downloading: 100 items").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Cancel the download" }).click();
    await page.getByText("The download was stopped.").waitFor();
    release();
    await page.getByRole("button", { name: "Download" }).waitFor();
    assert.equal(downloads.length, 0);
});

test("the items of a container and the results of a query are downloaded", async (t) => {
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
