// Vitest: npx vitest run examples/vitest.test.mjs
import { CosmosClient } from "@azure/cosmos";
import { fileURLToPath } from "node:url";
import { startOrrery } from "orrery-test-kit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const SEED = fileURLToPath(new URL("shop.json", import.meta.url));
let orrery;
let orders;

beforeAll(async () => {
    orrery = await startOrrery({ seed: SEED });
    const client = new CosmosClient(orrery.connectionString);
    orders = client.database("shop").container("orders");
    await orrery.snapshot("shop");
});
beforeEach(() => orrery.restore("shop"));
afterAll(() => orrery.stop());

test("an order is deleted", async () => {
    await orders.item("1", "ada").delete();
    const { resources } = await orders.items.readAll().fetchAll();
    expect(resources.map(({ id }) => id)).toEqual(["2"]);
});

test("the next test sees the orders of the seed file again", async () => {
    const { resource } = await orders.item("1", "ada").read();
    expect(resource.total).toBe(42);
});
