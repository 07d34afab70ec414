// map.test.mjs - the partition map with real splits, merges and refusals.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, makeOrders, openPage, picture, startServer } from "./browser.mjs";

const MAP = "/_explorer/#/dbs/shop/colls/orders/map";
const COLL = "dbs/shop/colls/orders";
const SLOW = { timeout: 20_000 };

// Writes so fast that a small container refuses: everything for one customer.
async function overload(server, customer, count) {
    const headers = { "x-ms-documentdb-partitionkey": JSON.stringify([customer]), "x-ms-documentdb-is-upsert": "true" };
    const write = (i) => call(server, "POST", `${COLL}/docs`, { body: { id: `hot-${i}`, customer, text: "x".repeat(4000) }, headers }).then(() => 0, () => 1);
    let refused = 0;
    for (let i = 0; i < count; i += 20)
        refused += (await Promise.all(Array.from({ length: 20 }, (_, k) => write(i + k)))).reduce((a, b) => a + b, 0);
    return refused;
}

const partitionNames = (page) => page.getByRole("region", { name: "Physical partitions" }).locator("tbody tr td:first-child").allTextContents();

const requestsOf = (cell) => cell.getByRole("region", { name: "Its requests at that time" });
const keysOf = (cell) => cell.getByRole("region", { name: /^Its partition keys/ });
const historyOf = async (server, more = "") => (await call(server, "GET", `_orrery/${COLL}/history?operations=true${more}`));

// The page asks for nothing while another tab is shown: what it shows stands still.
const show = (page, isHidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}, isHidden);

async function setThroughput(server, ru) {
    const { Offers } = await call(server, "GET", "offers");
    const [offer] = Offers;
    await call(server, "PUT", `offers/${offer.id}`, { body: { ...offer, content: { offerThroughput: ru } } });
}

// Presses a key until a cell of this partition is chosen: what has just happened is not yet in the last whole second.
async function pressUntil(page, key, partition) {
    const cell = page.getByRole("region", { name: new RegExp(`^Partition ${partition} at`) });
    for (let i = 0; i < 40 && !await cell.isVisible(); i++) {
        await page.keyboard.press(key);
        await page.waitForTimeout(250);
    }
    await cell.waitFor();
    return cell;
}

// The colours in the newest columns of the lower canvas, so that bands can be told from the picture itself.
function pixels(page) {
    return page.evaluate(() => {
        const canvas = document.querySelector(".map canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const found = new Set();
        for (let i = 0; i < data.length; i += 4)
            found.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
        return [...found];
    });
}

test("a hot key, refusals, a split and a merge are seen as they happen, with mouse and keyboard", async (t) => {
    const server = await startServer(t, ["--enable-chaos"]);
    await makeOrders(server, 30);
    assert.ok(await overload(server, "ada", 400) > 0, "the load is refused");
    const page = await openPage(t, server, { path: MAP });
    const map = page.getByRole("application", { name: /Map of the partitions/ });
    await map.waitFor(SLOW);

    // Refusals: in the list, and marked in the map.
    await page.getByText(/\d+ answered 429 within/).or(page.getByText(/^\d\d:\d\d:\d\d \d+ answered 429$/)).first().waitFor(SLOW);
    await page.waitForFunction(() => document.querySelector(".map canvas").width > 300);
    assert.ok((await pixels(page)).includes("209,0,91"), "throttled cells are marked");

    // A click shows the numbers of a cell, and the hot key by its name.
    const box = await map.boundingBox();
    await page.mouse.click(box.x + box.width - 10, box.y + box.height / 2);
    const cell = page.getByRole("region", { name: /^Partition 0 at \d\d:\d\d:\d\d$/ });
    await cell.waitFor();
    await page.waitForTimeout(2000); // until the seconds of the load are over, and known
    await page.keyboard.press("End");
    const refused = requestsOf(cell).getByRole("row").filter({ hasText: "upsert" }).filter({ has: page.locator("td.problem") });
    for (let i = 0; i < 60 && await refused.count() === 0; i++) {
        await page.keyboard.press("ArrowLeft");
        await page.waitForTimeout(50);
    }
    assert.ok(Number((await refused.getByRole("cell").nth(4).textContent()).replace(",", "")) > 0, "upserts were refused then");
    const hottest = keysOf(cell).getByRole("row").nth(1);
    await hottest.getByText('"ada"').waitFor(SLOW);
    assert.ok(Number((await hottest.getByRole("cell").nth(3).textContent()).replace(",", "")) > 0, "it was refused");

    // Arrow keys move the cell, and its values are read out.
    await map.focus();
    const place = async () => (await cell.getByRole("heading", { level: 2 }).textContent());
    const before = await place();
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction((old) => document.querySelector(".cell h2").textContent !== old, before);
    await page.getByRole("status").filter({ hasText: /^Partition 0 at .* percent, .* RU, .* requests, .* answered 429$/ }).waitFor({ state: "attached" });
    await page.keyboard.press("Escape");
    await cell.waitFor({ state: "detached" });

    // A split, asked for with the page's own button: bands end and begin, and a line tells it.
    await page.getByText("Split or merge on request").click();
    await page.getByRole("button", { name: "Split", exact: true }).click();
    const log = page.getByRole("log", { name: "Splits and merges" });
    await log.getByText(/split of 0 into 1, 2: done, as asked; \d+ items/).waitFor(SLOW);
    await page.waitForFunction(() => document.querySelectorAll("[aria-label='Physical partitions'] tbody tr").length === 2);
    assert.deepEqual(await partitionNames(page), ["1", "2"]);
    await overload(server, "ada", 60);
    await map.focus();
    await pressUntil(page, "End", 1);
    await page.keyboard.press("ArrowDown");
    await page.getByRole("region", { name: /^Partition 2 at/ }).waitFor();
    const retired = await pressUntil(page, "Home", 0); // it has what the page has seen
    await retired.getByText(/replaced at/).waitFor();
    await retired.getByText("0 of 400").waitFor();
    // Its requests are those that the page was told while it lived.
    for (let i = 0; i < 600 && await requestsOf(retired).getByRole("row").filter({ hasText: "upsert" }).count() === 0; i++)
        await page.keyboard.press("ArrowRight");
    await requestsOf(retired).getByRole("row").filter({ hasText: "upsert" }).waitFor();
    assert.equal(await retired.getByText(/replaced at/).count(), 1);
    await keysOf(retired).getByText('"ada"').waitFor(SLOW);
    await page.keyboard.press("End");
    await page.getByRole("region", { name: /^Partition 1 at/ }).waitFor();
    await expectAccessible(page);
    await picture(page, "map");
    await page.getByLabel("Show").selectOption("a day"); // and so has its day
    await map.focus();
    await page.keyboard.press("End");
    await (await pressUntil(page, "Home", 0)).getByText("0 of 120,000").waitFor();
    await page.getByLabel("Show").selectOption("the last minutes");

    await page.getByRole("button", { name: "Merge with the next one" }).click();
    await log.getByText(/merge of 1, 2 into 3: done/).waitFor(SLOW);
    await page.waitForFunction(() => document.querySelectorAll("[aria-label='Physical partitions'] tbody tr").length === 1);

    // Opened anew, the page knows of retired partitions from the list of moves alone.
    await page.reload();
    await log.getByText(/split of 0 into 1, 2: done/).waitFor(SLOW);
    await map.focus();
    await page.keyboard.press("End");
    await (await pressUntil(page, "Home", 0)).getByText("Not known").waitFor();
    await page.keyboard.press("Escape");

    await page.locator("summary", { hasText: "The map as a table" }).press("Enter");
    await page.getByRole("region", { name: "The map as a table" }).getByRole("columnheader", { name: "Partition 3" }).waitFor();
    await page.locator("summary", { hasText: "Would another partition key be better?" }).press("Enter");
    await page.getByText(`orrery advise --endpoint ${server.endpoint} --database shop --container orders`).waitFor();
    await page.getByLabel("Show").selectOption("a day");
    await page.getByText("not known").first().waitFor();
    await expectAccessible(page);
});

test("the map is readable in dark and on a phone, and asks for nothing when it is left", async (t) => {
    const server = await startServer(t, ["--enable-chaos"]);
    await makeOrders(server, 30, { ru: 20_000 });
    await overload(server, "ada", 200);
    const page = await openPage(t, server, { path: MAP, colorScheme: "dark", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
    const map = page.getByRole("application");
    await map.waitFor(SLOW);
    await call(server, "POST", `_orrery/chaos/${COLL}/split`, { body: { range: "2" } });
    await page.getByRole("log").getByText(/split of 2 into/).waitFor(SLOW);
    await overload(server, "ada", 100);
    await map.scrollIntoViewIfNeeded();
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("main *")].filter((element) =>
        element.closest(".scroll, .map, pre, .visually-hidden") === null && element.getBoundingClientRect().right > innerWidth).map((element) => element.outerHTML.slice(0, 100))), [], "nothing sticks out");
    await expectAccessible(page);
    await picture(page, "map-phone-dark");
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.waitForTimeout(1500);
    await picture(page, "map-dark");

    // Nothing is asked while another tab is shown, and when the page is left.
    let asked = 0;
    page.on("request", (request) => { asked += request.url().includes("/_orrery/") ? 1 : 0; });
    await show(page, true);
    await page.waitForTimeout(500); // what was under way
    asked = 0;
    await page.waitForTimeout(1500);
    assert.equal(asked, 0);
    await show(page, false);
    await page.waitForTimeout(200);
    assert.ok(asked > 0, "at once when it is shown again");
    await page.getByRole("link", { name: "Items", exact: true }).click();
    await page.getByText(/items/).first().waitFor();
    asked = 0;
    await page.waitForTimeout(1500);
    assert.equal(asked, 0);
});

test("a cell shows the queries of its time, and of another time that there were none", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 10);
    const body = { query: "SELECT * FROM c WHERE c.customer = 'c1' AND c.total > 5", parameters: [] };
    const headers = { "x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-documentdb-partitionkey": '["c1"]' };
    const ask = () => call(server, "POST", `${COLL}/docs`, { body, headers });
    await ask();
    const page = await openPage(t, server, { path: MAP });
    const map = page.getByRole("application");
    await map.waitFor(SLOW);
    await map.focus();
    const queries = page.getByRole("region", { name: /^Queries of the container around that time/ });
    for (let i = 0; i < 60 && !await queries.isVisible(); i++) {
        await ask();
        await page.keyboard.press("End");
        await page.waitForTimeout(200);
    }
    const row = queries.getByRole("row").nth(1);
    assert.match(await row.textContent(), /c\.total > @n\d/);
    assert.doesNotMatch(await row.textContent(), /c1|> 5\b/);
    assert.ok(Number(await row.getByRole("cell").nth(2).textContent()) >= 1);
    assert.ok(Number(await row.getByRole("cell").nth(3).textContent()) > 0);
    await expectAccessible(page);
    await page.keyboard.press("Home");
    await page.getByText("No queries were recorded then.").waitFor(SLOW);
    await page.getByText("the server does not record which partition a query visited when").waitFor();
    assert.ok(await page.evaluate(() => document.scrollingElement.scrollHeight <= innerHeight), "only what is in the page scrolls");
});

// Columns of the upper canvas in which the colour of lines goes through all cells.
function lines(page) {
    return page.evaluate(() => {
        const [cells, over] = document.querySelectorAll(".map canvas");
        const probe = document.createElement("canvas").getContext("2d");
        probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
        probe.fillRect(0, 0, 1, 1);
        const colour = [...probe.getImageData(0, 0, 1, 1).data].join();
        const { data } = over.getContext("2d").getImageData(0, 0, over.width, over.height);
        const found = [];
        for (let x = 0; x < over.width; x++) {
            let height = 0;
            for (let y = 0; y < over.height; y++)
                height += [...data.subarray((y * over.width + x) * 4, (y * over.width + x) * 4 + 4)].join() === colour ? 1 : 0;
            if (height >= cells.height)
                found.push(x);
        }
        return { found, width: over.width, groups: found.filter((x) => !found.includes(x - 1)).length };
    });
}

// How many bands the last column of the lower canvas has: the colour of the paper is between two of them.
function bandsAtTheEnd(page) {
    return page.evaluate(() => {
        const [cells] = document.querySelectorAll(".map canvas");
        const { data } = cells.getContext("2d").getImageData(cells.width - 2, 0, 1, cells.height);
        const colour = (y) => [...data.subarray(4 * y, 4 * y + 3)].join();
        let bands = 0;
        for (let y = 0; y < cells.height; y++)
            bands += colour(y) !== "255,255,255" && (y === 0 || colour(y - 1) === "255,255,255") ? 1 : 0;
        return bands;
    });
}

test("a split is a line through the map, and storage is told by logical partition", async (t) => {
    const server = await startServer(t, ["--enable-chaos"]);
    await makeOrders(server, 30);
    const headers = { "x-ms-documentdb-partitionkey": '["large"]' };
    await call(server, "POST", `${COLL}/docs`, { body: { id: "l", customer: "large", text: "x".repeat(90_000) }, headers });
    const page = await openPage(t, server, { path: MAP, colorScheme: "light" });
    await page.getByRole("application").waitFor(SLOW);
    await page.waitForFunction(() => document.querySelectorAll(".map canvas")[1].width > 300);
    await page.waitForTimeout(1200);
    assert.deepEqual((await lines(page)).found, []);
    await call(server, "POST", `_orrery/chaos/${COLL}/split`, { body: { range: "0", by: "hash" } });
    await page.getByRole("log", { name: "Splits and merges" }).getByText(/split of 0 into 1, 2: done/).waitFor(SLOW);
    let seen = { found: [] };
    for (let i = 0; i < 20 && seen.found.length === 0; i++) {
        await page.waitForTimeout(250);
        seen = await lines(page);
    }
    assert.ok(seen.found.length >= 1 && seen.found.length <= 3, `${seen.found}`);
    assert.ok(seen.found[0] > seen.width * 0.9, "it has just happened");
    const first = seen.found[0];
    await page.waitForTimeout(3000);
    assert.ok((await lines(page)).found[0] < first, "and moves to the left with time");

    // A merge is one, too, and the two bands are one again.
    assert.equal(await bandsAtTheEnd(page), 2);
    await call(server, "POST", `_orrery/chaos/${COLL}/merge`, { body: { ranges: ["1", "2"] } });
    await page.getByRole("log", { name: "Splits and merges" }).getByText(/merge of 1, 2 into 3: done/).waitFor(SLOW);
    for (let i = 0; i < 40 && (await lines(page)).groups < 2; i++)
        await page.waitForTimeout(250);
    assert.equal((await lines(page)).groups, 2);
    await page.waitForTimeout(2000);
    assert.equal(await bandsAtTheEnd(page), 1);

    const sizes = page.getByRole("region", { name: "Largest logical partitions" });
    await sizes.getByRole("row").nth(8).waitFor(SLOW);
    const cells = (row) => sizes.getByRole("row").nth(row).getByRole("cell").allTextContents();
    const largest = await cells(1);
    assert.equal(largest[0], '"large"');
    assert.equal(largest[1], "3", "the partition that has it now");
    assert.equal(largest[2], "1");
    assert.match(largest[3], /^9\d(\.\d)? KB$/);
    assert.ok(parseFloat(largest[5]) > 80, "most of the bytes");
    const items = [];
    for (let row = 2; row <= 8; row++)
        items.push(Number((await cells(row))[2]));
    assert.deepEqual(items.sort(), [4, 4, 4, 4, 4, 5, 5]);
});

test("an old cell lists no keys, since those that are known are of the last minutes", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 30);
    const page = await openPage(t, server, { path: MAP });
    const map = page.getByRole("application");
    await map.waitFor(SLOW);
    const cell = page.getByRole("region", { name: /^Partition 0 at/ });
    const keys = keysOf(cell);
    const tooOld = cell.getByText("Keys are counted for the last 5 minutes only, and this was earlier.");
    const click = async (share) => {
        const box = await map.boundingBox();
        await page.mouse.click(box.x + 34 + (box.width - 34) * share, box.y + box.height / 2);
    };
    // The newest cell, in whose minute there may be no request yet.
    const chooseNewest = async () => {
        await map.focus();
        for (let i = 0; i < 30 && await keys.getByText('"c1"').count() === 0; i++) {
            await call(server, "GET", `${COLL}/docs/1`, { headers: { "x-ms-documentdb-partitionkey": '["c1"]' } });
            await page.keyboard.press("End");
            await page.waitForTimeout(1000);
        }
        await keys.getByText('"c1"').waitFor(SLOW);
    };
    await chooseNewest();
    assert.equal(await tooOld.count(), 0);
    await click(0.02); // more than five minutes ago
    await tooOld.waitFor();
    await page.waitForResponse((answer) => answer.url().includes("/queries"), SLOW); // asked again
    assert.equal(await keys.count(), 0);
    await expectAccessible(page);
    await chooseNewest();
    // Of a day, keys of the last part are known, and those of an earlier one are not. The items may have come after it.
    await page.getByLabel("Show").selectOption("a day");
    await map.focus();
    await page.keyboard.press("End");
    await keys.getByText('"c1"').or(cell.getByText("No key of this partition was used then.")).waitFor(SLOW);
    for (let i = 0; i < 3; i++)
        await page.keyboard.press("ArrowLeft");
    await tooOld.waitFor();
    assert.equal(await keys.count(), 0);
});

test("without --enable-chaos the page says so; without the container it stops, and goes on with the next one", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { path: MAP, allowErrors: [/403|404/] });
    await page.locator("summary", { hasText: "Split or merge on request" }).press("Enter");
    await page.getByText("only if it was started with --enable-chaos").waitFor(SLOW);
    await call(server, "DELETE", COLL);
    await page.getByText(/^Stopped: .*\(404\)/).first().waitFor(SLOW);
    await call(server, "POST", "dbs/shop/colls", {
        body: { id: "orders", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 } }, headers: { "x-ms-offer-throughput": "900" },
    });
    await call(server, "POST", `${COLL}/docs`, { body: { id: "1", customer: "anew" }, headers: { "x-ms-documentdb-partitionkey": '["anew"]' } });
    await page.getByRole("button", { name: "Go on" }).first().click();
    await page.getByText("1 physical partition, 900 RU/s").waitFor(SLOW);
    await page.getByRole("region", { name: "Largest logical partitions" }).getByText('"anew"').waitFor({ timeout: 5000 }); // at once
    assert.equal(await page.getByText(/^Stopped/).count(), 0);
});

test("a cell shows the requests behind it by their kinds, with charges and refusals", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeOrders(server, 10);
    const page = await openPage(t, server, { path: MAP });
    const map = page.getByRole("application");
    await map.waitFor(SLOW);
    const key = { "x-ms-documentdb-partitionkey": '["c1"]' };
    const upsert = () => call(server, "POST", `${COLL}/docs`, { body: { id: "1", customer: "c1" }, headers: { ...key, "x-ms-documentdb-is-upsert": "true" } });
    const read = () => call(server, "GET", `${COLL}/docs/1`, { headers: key });
    const query = () => call(server, "POST", `${COLL}/docs`, {
        body: { query: "SELECT * FROM c" }, headers: { ...key, "x-ms-documentdb-isquery": "True", "content-type": "application/query+json" },
    });
    // All in one second.
    let second = 0;
    for (let i = 0; i < 10 && second === 0; i++) {
        await page.waitForTimeout(1050 - Date.now() % 1000);
        const now = Math.floor(Date.now() / 1000);
        await Promise.all([...Array.from({ length: 5 }, read), ...Array.from({ length: 7 }, upsert), query()]);
        second = Math.floor(Date.now() / 1000) === now ? now : 0;
    }
    assert.notEqual(second, 0);
    await page.waitForTimeout(2500);
    const { ranges: [told] } = await historyOf(server, `&from=${second}&to=${second + 1}`);
    assert.equal(told.requests[0], 13);
    await map.focus();
    await page.keyboard.press("End");
    const cell = page.getByRole("region", { name: /^Partition 0 at/ });
    for (let i = 0; i < 30 && await requestsOf(cell).getByRole("row").count() !== 4; i++) {
        await page.keyboard.press("ArrowLeft");
        await page.waitForTimeout(50);
    }
    const rows = await requestsOf(cell).getByRole("row").evaluateAll((found) => found.slice(1).map((row) => [...row.cells].map((one) => one.textContent)));
    const ruOf = (kind) => told.operations.find((one) => one.kind === kind).ru[0];
    const expected = [["upsert", "7", "upsert"], ["read an item", "5", "read"], ["query", "1", "query"]].map(([name, requests, kind]) => [name, requests, ruOf(kind)]).sort((a, b) => b[2] - a[2]);
    assert.deepEqual(rows.map(([name, requests]) => [name, requests]), expected.map(([name, requests]) => [name, requests]));
    for (const [i, row] of rows.entries()) {
        assert.ok(Math.abs(Number(row[2]) - expected[i][2]) < 0.06, `${row[2]} RU, ${expected[i][2]}`);
        assert.ok(Math.abs(parseFloat(row[3]) - expected[i][2] / told.ru[0] * 100) < 0.6);
        assert.equal(row[4], "0");
    }
    await keysOf(cell).getByText('"c1"').waitFor(SLOW); // of the minute of that second
    await expectAccessible(page);

    // Opened anew, the page is told what was before it.
    await page.reload();
    await map.waitFor(SLOW);
    await map.focus();
    await page.keyboard.press("End");
    for (let i = 0; i < 60 && await requestsOf(cell).getByRole("row").count() !== 4; i++) {
        await page.keyboard.press("ArrowLeft");
        await page.waitForTimeout(50);
    }
    await requestsOf(cell).getByRole("row").filter({ hasText: "upsert" }).waitFor();
});

// The colour of the band at the top of the lower canvas, so many columns from its end.
function colourOfColumn(page, fromEnd) {
    return page.evaluate((back) => {
        const [cells] = document.querySelectorAll(".map canvas");
        return `#${[...cells.getContext("2d").getImageData(cells.width - 3 * back - 2, 5, 1, 1).data].slice(0, 3).map((value) => value.toString(16).padStart(2, "0")).join("")}`;
    }, fromEnd);
}

const LIMITS = [0, 10, 25, 50, 75, 100, Infinity];
const LIGHT = ["#eef0f5", "#d5ead0", "#98d3bd", "#4fb3c6", "#2b84bb", "#2551a0", "#0d1f63"];

test("colours, the series and the table of partitions have the numbers of the server, also from before a change of throughput", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 30);
    const steps = [2, 5, 12, 20, 30];
    const burst = (count) => Promise.all(Array.from({ length: count }, (_, i) => call(server, "POST", `${COLL}/docs`, {
        body: { id: `b${i}`, customer: "c1" }, headers: { "x-ms-documentdb-partitionkey": '["c1"]', "x-ms-documentdb-is-upsert": "true" },
    })));
    for (const count of steps) {
        await burst(count);
        await new Promise((resolve) => setTimeout(resolve, 1100));
    }
    const changed = Math.floor(Date.now() / 1000);
    await setThroughput(server, 1000);
    for (const count of steps) {
        await new Promise((resolve) => setTimeout(resolve, 1100));
        await burst(count);
    }
    const page = await openPage(t, server, { path: MAP, colorScheme: "light" });
    const map = page.getByRole("application");
    await map.waitFor(SLOW);
    await page.waitForFunction(() => document.querySelectorAll(".map canvas")[1].width > 300);
    await page.waitForTimeout(1500);
    const polled = page.waitForResponse((answer) => answer.url().includes("grain=second"));
    const told = await (await polled).json();
    await show(page, true);
    await page.waitForTimeout(500);

    const last = told.to - 1;
    const { ranges: [range] } = await historyOf(server, `&from=${last - 30}&to=${told.to}`);
    const seen = new Set();
    for (let back = 2; back < 30; back++) { // the last two may have had later requests
        const at = 30 - back;
        assert.equal(range.allotted[at], last - back > changed ? 1000 : last - back < changed - 1 ? 400 : range.allotted[at]);
        const step = LIMITS.findIndex((limit) => range.ru[at] / range.allotted[at] * 100 <= limit);
        assert.equal(await colourOfColumn(page, back), LIGHT[step], `${range.ru[at]} of ${range.allotted[at]}`);
        seen.add(step);
    }
    assert.ok(seen.size >= 4, `several colours: ${[...seen]}`);

    // The series: what is read out is the last second, and what was provisioned before is drawn as it was.
    const label = await page.getByRole("img", { name: /^Use of the container: / }).getAttribute("aria-label");
    const end = told.ranges[0];
    assert.equal(label, `Use of the container: ${Math.round(end.ru.at(-1))} RU a second of 1000, ${end.requests.at(-1)} requests, 0 answered 429`);
    assert.ok(await heightsOfProvisioned(page) >= 2, "a line that has risen");

    const layout = await call(server, "GET", `_orrery/${COLL}/layout`);
    const row = page.getByRole("region", { name: "Physical partitions" }).getByRole("row").nth(1).getByRole("cell");
    const texts = await row.allTextContents();
    const [only] = layout.ranges;
    assert.deepEqual(texts.slice(0, 4), ["0", "all hashes", String(only.items), String(only.logicalPartitions)]);
    assert.equal(parseFloat(texts[4]), Math.round(only.bytes / 100) / 10, "KB");
    assert.match(texts[4], /KB$/);
    assert.deepEqual([texts[6], texts[8], texts[9]], ["1,000", texts[8], "0"]);
    assert.ok(parseFloat(texts[8]) > 0, "the peak of the last minute");

    // A cell from before the change tells its share as it was.
    await map.focus();
    await page.keyboard.press("End");
    await page.getByText(/ of 1,000$/).waitFor(SLOW);
    for (let i = 0; i < 30 && await page.getByText(/ of 400$/).count() === 0; i++)
        await page.keyboard.press("ArrowLeft");
    await page.getByText(/ of 400$/).waitFor();
});

// At how many heights the chart has much of the line of what is provisioned, which is drawn in the colour of texts.
function heightsOfProvisioned(page) {
    return page.evaluate(() => {
        const canvas = document.querySelector(".series canvas");
        const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const probe = document.createElement("canvas").getContext("2d");
        probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
        probe.fillRect(0, 0, 1, 1);
        const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
        let heights = 0;
        let isBefore = false;
        for (let y = 0; y < height; y++) {
            let found = 0;
            for (let x = 0; x < width; x++) {
                const i = 4 * (y * width + x);
                found += Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue) < 60 ? 1 : 0;
            }
            heights += found >= 5 && !isBefore ? 1 : 0;
            isBefore = found >= 5;
        }
        return heights;
    });
}

// Answers 503 to so many requests whose address has the text.
async function failFor(page, text, count) {
    let left = count;
    await page.route((url) => url.href.includes(text), (route) => left-- > 0
        ? route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"ServiceUnavailable","message":"in the middle of a failover"}' })
        : route.continue());
}

test("a server that is in trouble for a while is asked again after pauses, by every part of the page", async (t) => {
    const server = await startServer(t);
    await makeOrders(server, 30);
    const page = await openPage(t, server, { path: "/_explorer/", allowErrors: [/503/] });
    for (const [text, shown] of [["/layout", "1 physical partition, 400 RU/s"], ["by=size", '"c1"'], ["/events", "1 physical partition, 400 RU/s"]]) {
        await page.goto("about:blank");
        await failFor(page, text, 2);
        await page.goto(server.endpoint + MAP);
        await page.getByText("is asked again after pauses: in the middle of a failover (503)").first().waitFor(SLOW);
        await page.getByText(shown).first().waitFor(SLOW);
        await page.getByText("is asked again after pauses").waitFor({ state: "detached" });
    }
    // While it is shown: the map stays, and goes on by itself.
    await failFor(page, "/layout", 2);
    await page.getByText("is asked again after pauses").waitFor(SLOW);
    assert.ok(await page.getByRole("application").isVisible());
    await page.getByText("is asked again after pauses").waitFor({ state: "detached", timeout: 20_000 });
    // So does a cell.
    await page.getByRole("application").focus();
    await failFor(page, "by=throttled", 1);
    await page.keyboard.press("End");
    const cell = page.getByRole("region", { name: /^Partition 0 at/ });
    await cell.getByText("is asked again after pauses").waitFor(SLOW);
    await keysOf(cell).or(cell.getByText("No key of this partition was used then.")).first().waitFor(SLOW);
    await cell.getByText("is asked again after pauses").waitFor({ state: "detached" });
});

test("without statistics there is no map, but there are partitions", async (t) => {
    const server = await startServer(t, ["--no-statistics"]);
    await makeOrders(server, 3);
    const page = await openPage(t, server, { path: MAP });
    await page.getByText("--no-statistics").waitFor(SLOW);
    await page.getByRole("region", { name: "Physical partitions" }).waitFor();
    assert.deepEqual(await partitionNames(page), ["0"]);
    await expectAccessible(page);
});

// Some minutes of a shop: waves of customers, then one that wants everything, and splits that cannot help it.
test("a picture for the documentation", { skip: process.env.SCREENSHOTS === undefined && "only with SCREENSHOTS" }, async (t) => {
    const server = await startServer(t, ["--enable-chaos", "--partition-ru", "400"]);
    await makeOrders(server, 0, { ru: 1600 });
    const page = await openPage(t, server, { path: MAP, viewport: { width: 1280, height: 1000 }, colorScheme: "light" });
    await page.getByRole("application").waitFor(SLOW);
    const begun = Date.now();
    const seconds = () => (Date.now() - begun) / 1000;
    const send = (method, path, customer, more = {}) => call(server, method, `${COLL}/docs${path}`, {
        ...more, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([customer]), ...more.headers },
    }).catch(() => undefined);
    const write = (customer, i) => send("POST", "", customer, { body: { id: `${i % 50}`, customer, text: "x".repeat(600) }, headers: { "x-ms-documentdb-is-upsert": "true" } });
    const read = (customer, i) => send("GET", `/${i % 50}`, customer);
    let splits = 0;
    for (let i = 0; seconds() < 325; i++) {
        const wave = 12 + 10 * Math.sin(seconds() / 14);
        const isHot = seconds() > 110 && seconds() < 265;
        await Promise.all(Array.from({ length: Math.round(wave) }, (_, k) => (k % 4 === 0 ? read : write)(`customer ${(i * 7 + k * 13) % 40}`, i))
            .concat(isHot ? Array.from({ length: 25 }, (_, k) => (k % 6 === 0 ? read : write)("ada", i)) : []));
        if ((splits === 0 && seconds() > 165) || (splits === 1 && seconds() > 230)) {
            const { ranges } = await call(server, "GET", `_orrery/${COLL}/layout`);
            const busiest = ranges.sort((a, b) => b.ru.lastMinute - a.ru.lastMinute)[0];
            await call(server, "POST", `_orrery/chaos/${COLL}/split`, { body: { range: busiest.id, by: "hash" } });
            splits++;
        }
        await new Promise((resolve) => setTimeout(resolve, 200));
    }
    // The hot partition between the splits.
    const place = await page.getByRole("application").boundingBox();
    const cell = page.getByRole("region", { name: /^Partition \d+ at/ });
    const isHot = () => keysOf(cell).getByText('"ada"').count();
    for (let share = 0.12; share < 0.9 && await isHot() === 0; share += 0.06) {
        await page.mouse.click(place.x + place.width - 3 * 120, place.y + place.height * share);
        await keysOf(cell).waitFor(SLOW);
    }
    assert.ok(await isHot() > 0);
    for (let i = 0; i < 30 && await requestsOf(cell).locator("td.problem").count() === 0; i++) {
        await page.keyboard.press("ArrowRight");
        await page.waitForTimeout(100);
    }
    await keysOf(cell).getByText('"ada"').waitFor(SLOW);
    await page.waitForTimeout(500);
    await picture(page, "map-story");
    await page.getByLabel("Theme").selectOption("dark");
    await page.waitForTimeout(1200);
    await picture(page, "map-story-dark");
});
