// Jest: npx jest examples/jest.test.js
const { CosmosClient } = require("@azure/cosmos");
const { join } = require("node:path");
const { startOrrery } = require("orrery-test-kit");

const SEED = join(__dirname, "shop.json");
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
