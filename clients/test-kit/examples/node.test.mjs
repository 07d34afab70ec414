// node:test: node --test examples/node.test.mjs
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { CosmosClient } from "@azure/cosmos";
import { startOrrery } from "orrery-test-kit";

const SEED = fileURLToPath(new URL("shop.json", import.meta.url));

let orrery;
let orders;

before(async () => {
    orrery = await startOrrery({ seed: SEED });
    const client = new CosmosClient(orrery.connectionString);
    orders = client.database("shop").container("orders");
    await orrery.snapshot("shop");
});
beforeEach(() => orrery.restore("shop"));
after(() => orrery.stop());

test("an order is deleted", async () => {
    await orders.item("1", "ada").delete();
    const { resources } = await orders.items.readAll().fetchAll();
    assert.deepEqual(resources.map(({ id }) => id), ["2"]);
});

test("the next test sees the orders of the seed file again", async () => {
    const { resource } = await orders.item("1", "ada").read();
    assert.equal(resource.total, 42);
});
