// cluster.test.mjs - nodes, owners and a partition that moves, in a cluster of three nodes over a PostgreSQL pair.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { Engine, startCluster } from "../../test/lib/cluster.mjs";
import { call, expectAccessible, openPage, picture, startServer } from "./browser.mjs";
import { routesOfServer, tryFromAnotherSite } from "./routes.mjs";

const SLOW = { timeout: 20_000 };
const MAP = "/_explorer/#/dbs/shop/colls/orders/map";
const READ_ONLY = Buffer.alloc(64, 9).toString("base64");
let engine;
let cluster;
const closing = []; // browsers, which go before the nodes that they ask

before(async () => {
    engine = new Engine();
    cluster = await startCluster({ after: () => undefined }, { engine, args: ["--read-only-key", READ_ONLY], isThrottled: true });
    const [a] = cluster.nodes;
    await cluster.until(({ nodes }) => nodes.filter(({ state }) => state === "live").length === 3, "complete");
    await call(a, "POST", "dbs", { body: { id: "shop" } });
    await call(a, "POST", "dbs/shop/colls", {
        body: { id: "orders", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 } },
        headers: { "x-ms-offer-throughput": "24000" },
    });
    for (let i = 0; i < 40; i++) {
        const item = { id: String(i), customer: `c${i}` };
        await call(a, "POST", "dbs/shop/colls/orders/docs", { body: item, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([item.customer]) } });
    }
});

after(async () => {
    for (const close of closing)
        await close();
    await Promise.all(cluster.living.map((node) => node.stopWell()));
    engine.end();
});

const pageOf = (t, node, options) => openPage(t, { endpoint: node.endpoint, closing }, options);

// Waits until each node has each partition, and tells who owns the second one of the container, and who else there is.
async function settled() {
    const { spaces, nodes } = await cluster.until((status) => status.spaces.every(({ ownerLives, owner, replicas }) =>
        ownerLives && status.nodes.every(({ name }) => name === owner || replicas.some(({ node, state }) => node === name && state === "following"))), "settled");
    const range = (await call(cluster.nodes[0], "GET", "_orrery/dbs/shop/colls/orders/layout")).ranges[1];
    const { owner } = spaces.find(({ id }) => id === range.space);
    const [to, neither] = nodes.map(({ name }) => name).filter((name) => name !== owner);
    return { id: range.id, space: range.space, from: owner, to, neither };
}

const move = ({ space, to }) => call(cluster.nodes[0], "POST", `_orrery/cluster/move?space=${space}&node=${to}`);
const nodeOf = (name) => cluster.nodes.find((node) => node.name === name);

const rowOf = (page, table, text) => page.getByRole("region", { name: table, exact: true }).getByRole("row").filter({ hasText: text });

test("nodes, owners, copies and a move are seen as they are", async (t) => {
    const [a] = cluster.nodes;
    const page = await pageOf(t, a);
    await page.getByRole("link", { name: "Cluster" }).click();
    const log = page.getByRole("log", { name: "Recent events" });
    await log.getByText("a serves the catalogue: assigned").waitFor(SLOW);

    for (const node of cluster.nodes) {
        const row = rowOf(page, "Nodes", node.endpoint);
        await row.getByRole("rowheader", { name: node.name }).waitFor();
        await row.getByText("live", { exact: true }).waitFor();
    }
    const place = await settled();
    await move(place);
    const { id, from, to, space } = place;
    const row = rowOf(page, "Partitions and their owners", `shop/orders ${id}`);
    const owner = row.getByRole("cell").nth(2);
    await owner.filter({ hasText: new RegExp(`^${to}$`) }).waitFor(SLOW);
    assert.equal(await row.getByRole("cell").nth(1).textContent(), String(space));
    await row.getByText(new RegExp(`^${from}: \\d+$`)).waitFor(SLOW); // what was the owner has a copy
    await log.getByText(new RegExp(`shop/orders ${id} is owned by ${to} now|${to} serves shop/orders ${id}`)).first().waitFor(SLOW);
    await rowOf(page, "Partitions and their owners", "the catalogue").waitFor();

    // The numbers of the page are those of the server.
    const status = await cluster.status(a);
    for (const { name, owned } of status.nodes)
        assert.equal(await rowOf(page, "Nodes", nodeOf(name).endpoint).getByRole("cell").nth(1).textContent(), String(owned));
    await expectAccessible(page);
    await picture(page, "cluster");

    // A partition that is being given away: it is over in a moment, so the answer is made to have one.
    const given = page.getByRole("region", { name: "Partitions that are given away" });
    await given.getByText("None at this moment.").first().waitFor();
    await page.route((url) => url.pathname === "/_orrery/cluster", async (route) => {
        const answer = await route.fetch();
        const body = await answer.json();
        await route.fulfill({ response: answer, json: { ...body, moves: [{ space, to: "c", reason: "an operator asked for it", stage: "waiting" }] } });
    });
    const waiting = given.getByRole("row").nth(1);
    await waiting.getByText(`shop/orders ${id}`).waitFor(SLOW);
    assert.deepEqual((await waiting.getByRole("cell").allTextContents()).slice(1), ["c", "waits for a copy that is near enough", "an operator asked for it"]);
    await expectAccessible(page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
});

// How many bars in the colour of texts the map has, at the lower end of the second of four bands: names of owners are at
// the upper end. Run in the page.
function barsOf() {
    const canvas = document.querySelectorAll(".map canvas")[1];
    const [left, top, bottom] = [34, 18, 20];
    const row = top + Math.floor((canvas.height - top - bottom) / 2) - 4;
    const { data } = canvas.getContext("2d").getImageData(left, row, canvas.width - left, 1);
    const isText = (x) => data[4 * x] === 0x1c && data[4 * x + 1] === 0x21 && data[4 * x + 2] === 0x30 && data[4 * x + 3] === 255;
    let bars = 0;
    for (let x = 0; x < data.length / 4; x++)
        bars += isText(x) && (x === 0 || !isText(x - 1)) ? 1 : 0;
    return bars;
}

test("a change of owner is drawn on the map as it happens, whichever node shows the page", async (t) => {
    // A node tells why it has given or got a partition; of one between two others, the page sees only that it has moved.
    for (const [role, reason] of [["from", /now: from [abc]: an operator asked for it$/], ["to", /now: assigned(: an operator asked for it)?$/], ["neither", /now$/]]) {
        const place = await settled();
        const { id, to } = place;
        const page = await pageOf(t, nodeOf(place[role]), { path: MAP });
        await page.getByRole("application", { name: /Map of the partitions/ }).waitFor(SLOW);
        await page.getByText("changed its owner").waitFor(SLOW);
        const changes = page.getByRole("log", { name: "Changes of owner" }).getByRole("listitem");
        const own = changes.filter({ hasText: `partition ${id} ` }); // others may move by themselves meanwhile
        const before = await own.count();
        await move(place);
        await own.nth(before).waitFor(SLOW); // one more than there were
        // Not the first one in the list: partitions are spread evenly again after a move.
        await own.filter({ hasText: `partition ${id} is owned by ${to} now` }).filter({ hasText: reason }).first().waitFor(SLOW);
        const { owner } = (await cluster.status(nodeOf(place[role]))).spaces.find((one) => one.id === place.space);
        await rowOf(page, "Physical partitions", owner).filter({ has: page.getByRole("cell", { name: id, exact: true }) }).first().waitFor(SLOW);
        assert.equal(await page.getByText("Its node does not answer.").count(), 0); // any node has the numbers of all
        const lines = await changes.filter({ hasText: `partition ${id} ` }).count();
        for (let i = 0; i < 100 && await page.evaluate(barsOf) !== lines; i++)
            await page.waitForTimeout(100);
        assert.equal(await page.evaluate(barsOf), lines, "each change is a bar");
        assert.ok(lines > 0);
        await expectAccessible(page);
        await picture(page, `cluster-map-${role}`);
    }
});

test("the page is readable in dark on a phone; a node is drained and used again with the keyboard", async (t) => {
    const [a, b] = cluster.nodes;
    const page = await pageOf(t, a, { path: "/_explorer/#/cluster", colorScheme: "dark", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
    await page.getByRole("button", { name: "Drain node b" }).press("Enter", SLOW);
    const dialog = page.getByRole("dialog", { name: "Drain node b" });
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.equal((await cluster.status(a)).nodes.find(({ name }) => name === "b").state, "live", "nothing without the second yes");
    await page.getByRole("button", { name: "Drain node b" }).press("Enter");
    await dialog.getByRole("button", { name: "Drain", exact: true }).press("Enter");
    const row = rowOf(page, "Nodes", b.endpoint);
    await row.getByText("draining").waitFor(SLOW);
    await row.getByRole("cell").nth(1).filter({ hasText: /^0$/ }).waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Use node b again" }).press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Use again" }).press("Enter");
    await row.getByText("live", { exact: true }).waitFor(SLOW);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("main *")].filter((element) =>
        element.closest(".scroll, .events, .visually-hidden") === null && element.getBoundingClientRect().right > innerWidth).map((element) => element.outerHTML.slice(0, 100))), [], "nothing sticks out");
    await expectAccessible(page);
    await picture(page, "cluster-phone-dark");
});

test("a read-only key sees the cluster and cannot change it; a token sees nothing of it", async (t) => {
    const [a] = cluster.nodes;
    const page = await pageOf(t, a, { allowErrors: [/401|403/] });
    const signIn = async (text) => {
        await page.getByRole("button", { name: "Sign out" }).click();
        await page.getByLabel("Key, connection string or resource token").fill(text);
        await page.getByRole("button", { name: "Sign in" }).click();
    };
    await signIn(READ_ONLY);
    await page.getByRole("link", { name: "Cluster" }).click();
    await page.getByRole("row", { name: /^b / }).first().waitFor(SLOW);
    assert.equal(await page.getByRole("button", { name: /^Drain/ }).count(), 0);

    await call(a, "POST", "dbs/shop/users", { body: { id: "ada" } });
    const { _token } = await call(a, "POST", "dbs/shop/users/ada/permissions", { body: { id: "all", permissionMode: "All", resource: "dbs/shop/colls/orders" } });
    await signIn(_token);
    await page.getByText("A resource token does not show the cluster.").waitFor(SLOW); // the address is still that of the page
    assert.equal(await page.getByRole("link", { name: "Cluster" }).count(), 0);
});

const catalogueOwner = async () => (await cluster.status(cluster.nodes[0])).spaces.find(({ id }) => id === 1).owner;

test("a node that does not drive splits shows them, and what was refused and asked of other nodes", async (t) => {
    const leader = await catalogueOwner();
    const other = cluster.nodes.find(({ name }) => name !== leader);
    await call(other, "POST", "dbs/shop/colls", {
        body: { id: "grown", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 } }, headers: { "x-ms-offer-throughput": "400" },
    });
    const write = (customer, i) => call(other, "POST", "dbs/shop/colls/grown/docs", {
        body: { id: `${i}`, customer, text: "x".repeat(4000) }, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([customer]), "x-ms-documentdb-is-upsert": "true" },
    }).then(() => 0, () => 1);
    for (const node of [other, nodeOf(leader)]) {
        const page = await pageOf(t, node, { path: "/_explorer/#/dbs/shop/colls/grown/map" });
        const map = page.getByRole("application");
        await map.waitFor(SLOW);
        let refused = 0;
        for (let i = 0; i < 3; i++)
            refused += (await Promise.all(Array.from({ length: 150 }, (_, k) => write("ada", k)))).reduce((a, b) => a + b, 0);
        if (node === other) { // before there is throughput for all
            assert.ok(refused > 0);
            await page.getByText(/\d+ answered 429/).first().waitFor(SLOW);
        }
        await page.waitForTimeout(2500);
        await map.focus();
        await page.keyboard.press("End");
        const cell = page.getByRole("region", { name: /^Partition \d+ at/ });
        const upserts = cell.getByRole("region", { name: "Its requests at that time" }).getByRole("row").filter({ hasText: "upsert" });
        for (let i = 0; i < 60 && await upserts.count() === 0; i++) {
            await page.keyboard.press("ArrowLeft");
            await page.waitForTimeout(50);
        }
        await upserts.waitFor();
        await cell.getByRole("region", { name: /^Its partition keys/ }).getByText('"ada"').waitFor(SLOW);
        if (node !== other)
            continue;
        // Twice as many partitions, without --enable-chaos.
        const { Offers } = await call(other, "GET", "offers");
        const { _rid } = await call(other, "GET", "dbs/shop/colls/grown");
        const offer = Offers.find(({ offerResourceId }) => offerResourceId === _rid);
        await call(other, "PUT", `offers/${offer.id}`, { body: { ...offer, content: { offerThroughput: 12_000 } } });
        await page.getByRole("log", { name: "Splits and merges" }).getByText(/split of 0 into 1, 2: done, for throughput/).waitFor({ timeout: 40_000 });
        await page.waitForFunction(() => document.querySelectorAll("[aria-label='Physical partitions'] tbody tr").length === 2);
    }
});

test("a page of another site gets nothing from a node, and changes nothing in the cluster", async (t) => {
    const [a] = cluster.nodes;
    await settled();
    const told = async () => {
        // Partitions may still be moving after the tests before, but nobody has ordered that.
        const all = await Promise.all(cluster.nodes.map((node) => cluster.status(node)));
        return { nodes: all[0].nodes.map(({ name, state }) => [name, state]).sort(), orders: all.map(({ events }) => events.filter(({ kind, reason }) => /operator/.test(reason) || /drain|recover/.test(kind)).length) };
    };
    const before = await told();
    const routes = routesOfServer().filter((route) => route.includes("_orrery/"));
    await tryFromAnotherSite(t, { endpoint: a.endpoint, closing }, routes);
    assert.deepEqual(await told(), before);
});

test("the page of a node lives through the death of another one, and shows who has its partitions", async (t) => {
    const { id, from, space } = await settled();
    const here = cluster.nodes.find(({ name }) => name !== from);
    const page = await pageOf(t, here, { path: MAP, allowErrors: [/./] }); // answers of a failover are errors in the console
    await page.getByRole("application").waitFor(SLOW);
    const changes = page.getByRole("log", { name: "Changes of owner" }).getByRole("listitem");
    const before = await changes.filter({ hasText: `partition ${id} ` }).count();
    await nodeOf(from).kill();
    const isTaken = (status) => status.spaces.every(({ ownerLives, owner }) => ownerLives && owner !== from);
    const { spaces } = await cluster.until(isTaken, "taken over", { node: here });
    const { owner } = spaces.find((one) => one.id === space);
    await changes.filter({ hasText: `partition ${id} ` }).nth(before).waitFor({ timeout: 40_000 }); // one more
    await changes.filter({ hasText: `partition ${id} is owned by ${owner} now` }).first().waitFor(SLOW);
    await rowOf(page, "Physical partitions", owner).filter({ has: page.getByRole("cell", { name: id, exact: true }) }).first().waitFor(SLOW);
    await page.getByText("is asked again after pauses").waitFor({ state: "detached", timeout: 40_000 }); // nobody has clicked
    assert.equal(await page.getByText(/^Stopped/).count(), 0);
});

test("a server alone shows nothing of it", async (t) => {
    const server = await startServer(t);
    const page = await openPage(t, server, { path: "/_explorer/#/cluster" });
    await page.getByText("This server is not a node of a cluster.").waitFor(SLOW);
    assert.equal(await page.getByRole("link", { name: "Cluster" }).count(), 0);
    await expectAccessible(page);
});
