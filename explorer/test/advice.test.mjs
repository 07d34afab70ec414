// advice.test.mjs - the server's advice about the partition key, with its charts.
import assert from "node:assert/strict";
import test from "node:test";
import { call, expectAccessible, openPage, picture, startServer } from "./browser.mjs";

const COLL = "dbs/shop/colls/orders";
const MAP = `/_explorer/#/${COLL}/map`;
const SLOW = { timeout: 20_000 };
const CROSS = {
    "x-ms-documentdb-isquery": "True", "content-type": "application/query+json", "x-ms-documentdb-query-enablecrosspartition": "True",
};

// Many customers in few countries; the country is the key, and one of them has half of everything.
async function makeHot(server, count = 1200) {
    await call(server, "POST", "dbs", { body: { id: "shop" } });
    await call(server, "POST", "dbs/shop/colls", {
        body: { id: "orders", partitionKey: { paths: ["/country"], kind: "Hash", version: 2 } }, headers: { "x-ms-offer-throughput": "1000" },
    });
    const make = (i) => {
        const country = i % 2 === 0 ? "Germany" : ["France", "India", "Japan"][i % 3];
        return call(server, "POST", `${COLL}/docs`, {
            body: { id: `${i}`, country, customer: `customer ${(i * 7919) % 311}`, total: i + 0.5, note: "x".repeat(i % 40) },
            headers: { "x-ms-documentdb-partitionkey": JSON.stringify([country]) },
        });
    };
    for (let i = 0; i < count; i += 50)
        await Promise.all(Array.from({ length: 50 }, (_, k) => make(i + k)));
}

async function ask(server, query, times) {
    for (let i = 0; i < times; i++)
        await call(server, "POST", `${COLL}/docs`, { body: { query, parameters: [] }, headers: CROSS });
}

const open = async (page) => {
    await page.locator("summary", { hasText: "Would another partition key be better?" }).press("Enter");
    return page.locator("details.advice");
};

test("a hot key is named, and a better one is shown beside it with charts, by keyboard and in both themes", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeHot(server);
    await ask(server, "SELECT * FROM c WHERE c.customer = 'customer 5'", 8);
    await ask(server, "SELECT * FROM c WHERE c.country = 'India' ORDER BY c.customer, c.total", 1).catch(() => undefined);
    await ask(server, "SELECT VALUE COUNT(1) FROM c WHERE c.country = 'India'", 2);
    const page = await openPage(t, server, { path: MAP, colorScheme: "light", viewport: { width: 1280, height: 1100 } });
    const advice = await open(page);
    await advice.getByRole("status").filter({ hasText: /^Use \/customer/ }).waitFor(SLOW);
    await advice.getByText(/^Measured on 1,200 of 1,200 items, laid out on 10 physical partitions\. Queries were recorded 10 times\./).waitFor();

    // The ranking: the best first, the key of now marked and judged.
    const rows = advice.getByRole("region", { name: "Keys, the best first" }).locator("tbody tr");
    assert.match(await rows.first().textContent(), /^\/customer/);
    const now = rows.filter({ hasText: "(now)" });
    assert.match(await now.textContent(), /^\/country \(now\)no/);

    // Both are compared: charts with words for those who do not see them.
    const better = advice.getByRole("region", { name: /^Key \/customer/ });
    const worse = advice.getByRole("region", { name: "Key /country", exact: true });
    await better.waitFor();
    for (const card of [better, worse])
        for (const name of [/^Storage of each physical partition; the fullest has [\d.]+× the mean/, /^Writes over time/, /of the queries visit one partition/, /of 20 GB/])
            await card.getByRole("img", { name }).waitFor();
    const skew = async (card) => Number(/has ([\d.]+)×/.exec(await card.getByRole("img", { name: /^Storage/ }).getAttribute("aria-label"))[1]);
    assert.ok(await skew(worse) > 3 && await skew(better) < 2);
    assert.ok(await worse.locator("svg rect.hot").count() > 0);
    await worse.getByText(/Refused:.*"Germany", has 50/).waitFor();
    await better.getByText("Queries with this key").press("Enter");
    assert.match(await better.getByRole("region", { name: /^Queries with the key/ }).textContent(), /c\.customer = @s1/);
    await advice.getByText(/Indexing policy/).waitFor();
    await advice.getByText(/No query uses \/note/).waitFor();

    // Another key, by keyboard.
    const third = rows.nth(1).getByRole("button");
    const name = await third.textContent();
    await third.press("Enter");
    await advice.getByRole("region", { name: `Key ${name}`, exact: true }).waitFor();
    assert.equal(await third.getAttribute("aria-pressed"), "true");

    // With a rate, the day on which a value is full is told.
    await advice.getByLabel("New items a day, if you know").fill("900000000");
    await advice.getByRole("button", { name: "Measure again" }).press("Enter");
    await worse.getByText(/It is full on \d{4}-\d\d-\d\d\./).waitFor(SLOW);
    await advice.getByText(`orrery advise --endpoint ${server.endpoint} --database shop --container orders`).waitFor();
    await rows.first().getByRole("button").press("Enter");
    await better.waitFor();
    await expectAccessible(page);
    await page.getByText("Signed in with the development key.").waitFor({ state: "detached", ...SLOW }); // it goes by itself
    await page.setViewportSize({ width: 1280, height: 1560 });
    await page.waitForTimeout(300);
    await advice.evaluate((element) => element.scrollIntoView());
    await picture(page, "advice");
    await page.getByLabel("Theme").selectOption("dark");
    await page.waitForTimeout(300);
    await advice.evaluate((element) => element.scrollIntoView());
    await expectAccessible(page);
    await picture(page, "advice-dark");
});

test("on a phone nothing sticks out; a container without items and a server that is busy say so", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeHot(server, 0);
    const page = await openPage(t, server, { path: MAP, allowErrors: [/400/, /429/], viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
    const advice = await open(page);
    await advice.getByText("The container has no items to learn from.").waitFor(SLOW);
    await call(server, "DELETE", COLL);
    await call(server, "DELETE", "dbs/shop");
    await makeHot(server, 300);
    await page.reload();
    await open(page);
    await advice.getByText("No queries were recorded, so it is not known which partitions they visit.").first().waitFor(SLOW);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("main *")].filter((element) =>
        element.closest(".scroll, .map, pre, .visually-hidden") === null && element.getBoundingClientRect().right > innerWidth + 1).map((element) => element.outerHTML.slice(0, 100))), []);
    await expectAccessible(page);
    await advice.evaluate((element) => element.scrollIntoView());
    await picture(page, "advice-phone");

    await page.route("**/advice*", (route) => route.fulfill({ status: 429, contentType: "application/json", body: '{"message":"Another advice is being made; there is one at a time."}' }));
    await advice.getByRole("button", { name: "Measure again" }).click();
    await advice.getByRole("alert").filter({ hasText: "one at a time" }).waitFor();
});

test("a measurement is cancelled, also by leaving the page, and can be repeated", async (t) => {
    const server = await startServer(t, ["--no-rate-limit"]);
    await makeHot(server, 300);
    const page = await openPage(t, server, { path: MAP });
    // The answer is held up on its way, so that there is time to cancel.
    const held = [];
    await page.route("**/advice*", (route) => { held.push(route); });
    const advice = await open(page);
    await advice.getByRole("progressbar", { name: "Measuring" }).waitFor(SLOW);
    assert.equal(await advice.getByRole("button", { name: "Measure", exact: true }).isDisabled(), true);
    const failed = page.waitForEvent("requestfailed", (request) => request.url().includes("/advice"));
    await advice.getByRole("button", { name: "Cancel" }).click();
    await failed;
    await advice.getByRole("alert").filter({ hasText: "Cancelled." }).waitFor();
    assert.equal(await advice.getByRole("progressbar").count(), 0);
    await advice.getByRole("button", { name: "Measure", exact: true }).click();
    await advice.getByRole("progressbar").waitFor();
    const left = page.waitForEvent("requestfailed", (request) => request.url().includes("/advice"));
    await page.getByRole("link", { name: "Items", exact: true }).click();
    await left;
    await page.unroute("**/advice*");
    await page.getByRole("link", { name: "Partitions", exact: true }).click();
    await open(page);
    await advice.getByRole("status").filter({ hasText: /^Use / }).waitFor(SLOW);
    assert.ok(held.length >= 2);
});
