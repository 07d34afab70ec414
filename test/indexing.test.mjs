// The index as clients meet it: who is in it, what it costs, and how a new policy takes effect.
import assert from "node:assert/strict";
import test from "node:test";

import { indexing, paths } from "./lib/definition.mjs";
import { SIZES, callItems, newContainer, ownContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer();
const { database } = await clientOf(server).databases.create({ id: unique("indexing") });

const PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";

async function progress(container) {
    const { headers } = await container.read({ populateQuotaInfo: true });
    const text = headers[PROGRESS];
    assert.match(text, /^\d+$/);
    assert.ok(Number(text) <= 100, text);
    return Number(text);
}

test("a directive is Default, Include or Exclude, in any case", async () => {
    const container = await newContainer(database);
    const send = (id, directive) =>
        callItems(server, container, {
            method: "POST",
            key: "p",
            body: { id, pk: "p" },
            headers: { "x-ms-indexing-directive": directive },
        });
    for (const word of ["Default", "include", "EXCLUDE"]) assert.equal((await send(word, word)).status, 201);
    const refused = await send("other", "Lazy");
    assert.equal(refused.status, 400);
    assert.match(refused.text, /x-ms-indexing-directive is 'Lazy'/);
    assert.equal((await callItems(server, container, { id: "other", key: "p" })).status, 404);
    assert.equal((await callItems(server, container, { id: "EXCLUDE", key: "p" })).status, 200);
});

test("what is indexed costs, and what is not does not", async () => {
    const container = await newContainer(database);
    const few = { id: "few", pk: "p" };
    const many = { ...few, id: "many", ...Object.fromEntries([...Array(20).keys()].map((i) => [`n${i}`, i])) };
    const charge = async (body, directive = "Default") => {
        const answer = await callItems(server, container, {
            method: "POST",
            key: "p",
            body,
            headers: { "x-ms-indexing-directive": directive },
        });
        assert.equal(answer.status, 201, answer.text);
        return Number(answer.headers["x-ms-request-charge"]);
    };
    const base = await charge(few);
    assert.ok((await charge(many)) >= base + 20 * 0.2);
    assert.ok((await charge({ ...many, id: "excluded" }, "Exclude")) < base);
});

test("without a change of the policy the index is complete", async () => {
    const container = await newContainer(database);
    assert.equal(await progress(container), 100);
    await container.items.create({ id: "a", pk: "p" });
    assert.equal(await progress(container), 100);
    const { headers } = await container.read();
    assert.equal(headers[PROGRESS], undefined);
});

for (const size of SIZES)
    test(`a new policy takes effect in ${size.partitions} partitions, over a restart too`, async (t) => {
        const { server: own, container } = await ownContainer(t, size);
        for (let i = 0; i < 2000; i += 100) {
            const operations = Array.from({ length: 100 }, (_, k) => ({
                operationType: "Create",
                resourceBody: { id: `${i + k}`, pk: `p${k % 10}`, n: k, u: `${i}-${k}` },
            }));
            for (const response of await container.items.bulk(operations))
                assert.equal(response.statusCode, 201);
        }
        const policies = [
            indexing({ includedPaths: paths("/n/?"), excludedPaths: paths("/*") }),
            { indexingPolicy: { indexingMode: "none", automatic: false } },
            indexing({ includedPaths: paths("/*"), excludedPaths: paths("/n/?") }),
        ];
        for (const policy of policies) {
            const { resource } = await container.read();
            await container.replace({ ...resource, ...policy });
            await until(async () => (await progress(container)) === 100);
        }
        const { resource } = await container.read();
        await container.replace({ ...resource, ...indexing({}) });
        await own.restart(); // perhaps in the middle
        const again = clientOf(own).database(container.database.id).container(container.id);
        await until(async () => (await progress(again)) === 100);
        await own.stop();
        const { status, stdout } = run(["check", "--data", own.data]);
        assert.equal(status, 0, stdout);
        assert.match(stdout, /: everything agrees/);
        await own.start();
    });
