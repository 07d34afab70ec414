// Reserved throughput: offers, their limits, and the physical partitions that follow from them.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, ids, pagesOf, refused } from "./lib/check.mjs";
import { evenBounds } from "./lib/epk.mjs";
import { decodeRid } from "./lib/rid.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { call, query, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "plain" });

const KEY = { paths: ["/pk"], kind: "Hash", version: 2 };
const MANUAL = "x-ms-offer-throughput";
const AUTOSCALE = "x-ms-cosmos-offer-autopilot-settings";

async function container(more = {}, owner = database) {
    const body = { id: unique("c"), partitionKey: structuredClone(KEY), ...more };
    return owner.containers.create(body);
}

const offerOf = async (made) => (await made.container.readOffer()).resource;

const replaceOffer = (offer, content, headers = {}) =>
    call(server, {
        method: "PUT",
        path: `/offers/${offer._rid}`,
        link: offer._rid.toLowerCase(),
        headers,
        body: { ...offer, content },
    });

async function rangesOf(made) {
    return (await made.container.readPartitionKeyRanges().fetchAll()).resources;
}

// --- Offers

test("a container gets 400 request units if nothing is said", async () => {
    const made = await container();
    const offer = await offerOf(made);
    const { _rid, _self, _etag, _ts, id, ...body } = offer;
    assert.deepEqual(body, {
        resource: made.resource._self,
        offerType: "Invalid",
        offerResourceId: made.resource._rid,
        offerVersion: "V2",
        content: {
            offerThroughput: 400,
            offerIsRUPerMinuteThroughputEnabled: false,
            offerMinimumThroughputParameters: {
                maxThroughputEverProvisioned: 400,
                maxConsumedStorageEverInKB: 0,
            },
            isOfferReplacePending: false,
            offerLastReplaceTimestamp: made.resource._ts,
        },
    });
    assert.equal(decodeRid(_rid).kind, "offer");
    assert.equal(id, _rid);
    assert.equal(_self, `offers/${_rid}/`);
    assert.match(_etag, /^".+"$/);
    assert.ok(Number.isInteger(_ts));
});

test("a container gets the throughput it asks for", async () => {
    const offer = await offerOf(await container({ throughput: 700 }));
    assert.equal(offer.content.offerThroughput, 700);
    assert.equal(offer.content.offerAutopilotSettings, undefined);
});

test("an autoscale container has a maximum and begins at a tenth of it", async () => {
    const offer = await offerOf(await container({ maxThroughput: 4000 }));
    assert.equal(offer.content.offerThroughput, 400);
    assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 4000);
    assert.equal(offer.content.offerAutopilotSettings.maximumTierThroughput, 4000);
    assert.equal(offer.content.offerMinimumThroughputParameters.maxThroughputEverProvisioned, 4000);
});

test("the settings that the SDKs send for autoscale are understood", async () => {
    const offer = await offerOf(
        await container({
            maxThroughput: 5000,
            autoUpgradePolicy: { throughputPolicy: { incrementPercent: 10 } },
        }),
    );
    assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 5000);
});

test("a database has an offer only if it asked for one", async () => {
    const none = await client.databases.create({ id: unique("none") });
    assert.equal((await none.database.readOffer()).resource, undefined);
    const manual = await client.databases.create({ id: unique("manual"), throughput: 800 });
    const { resource } = await manual.database.readOffer();
    assert.equal(resource.content.offerThroughput, 800);
    assert.equal(resource.offerResourceId, manual.resource._rid);
    assert.equal(resource.resource, manual.resource._self);
    const auto = await client.databases.create({ id: unique("auto"), maxThroughput: 2000 });
    const { resource: scaled } = await auto.database.readOffer();
    assert.equal(scaled.content.offerAutopilotSettings.maxThroughput, 2000);
});

test("a read tells the minimum and that nothing is pending", async () => {
    const read = async (more) => {
        const offer = await offerOf(await container(more));
        return client.offer(offer.id).read();
    };
    const { resource, headers } = await read({ throughput: 400 });
    assert.equal(resource.content.offerThroughput, 400);
    assert.equal(headers["x-ms-cosmos-min-throughput"], "400");
    assert.equal(headers["x-ms-offer-replace-pending"], "false");
    assert.equal(headers.etag, resource._etag);
    assert.equal((await read({ throughput: 100_000 })).headers["x-ms-cosmos-min-throughput"], "1000");
    assert.equal((await read({ maxThroughput: 1000 })).headers["x-ms-cosmos-min-throughput"], "1000");
    assert.equal((await read({ maxThroughput: 50_000 })).headers["x-ms-cosmos-min-throughput"], "5000");
});

test("an offer that is missing is not found", async () => {
    for (const rid of ["AAAA", "////".replaceAll("/", "-")]) {
        const path = `/offers/${rid}`;
        errorAnswer(await call(server, { path }), 404, "NotFound");
        errorAnswer(await call(server, { method: "PUT", path, body: {} }), 404, "NotFound");
    }
    errorAnswer(await call(server, { method: "POST", path: "/offers", body: {} }), 405, "MethodNotAllowed");
    const offer = await offerOf(await container());
    errorAnswer(
        await call(server, { method: "DELETE", path: `/offers/${offer._rid}` }),
        405,
        "MethodNotAllowed",
    );
});

// --- Replacing

test("an offer is replaced, and remembers the most that it ever was", async () => {
    const made = await container();
    const offer = await offerOf(made);
    const content = { ...offer.content, offerThroughput: 1200 };
    const { resource, headers, statusCode } = await client.offer(offer.id).replace({ ...offer, content });
    assert.equal(statusCode, 200);
    assert.equal(resource.content.offerThroughput, 1200);
    assert.equal(resource.content.offerMinimumThroughputParameters.maxThroughputEverProvisioned, 1200);
    assert.equal(resource._rid, offer._rid);
    assert.notEqual(resource._etag, offer._etag);
    assert.ok(resource.content.offerLastReplaceTimestamp >= offer.content.offerLastReplaceTimestamp);
    assert.equal(headers["x-ms-offer-replace-pending"], "false");
    assert.equal(headers["x-ms-cosmos-min-throughput"], "400");
    assert.deepEqual(await offerOf(made), resource);
    const back = await client.offer(offer.id).replace({ ...resource, content: { offerThroughput: 400 } });
    assert.equal(back.resource.content.offerMinimumThroughputParameters.maxThroughputEverProvisioned, 1200);
});

test("an offer cannot fall far below the most that it ever was", async () => {
    const offer = await offerOf(await container({ throughput: 100_000 }));
    const answer = await replaceOffer(offer, { offerThroughput: 900 });
    errorAnswer(answer, 400, "BadRequest", { message: /between 1000 and 1000000/ });
    assert.equal((await replaceOffer(offer, { offerThroughput: 1000 })).status, 200);
});

test("an offer remembers the most that was ever stored, also after a restart", async (t) => {
    const target = await startServer(t, { args: ["--durability", "relaxed"] });
    const { database: owner } = await clientOf(target).databases.create({ id: "d" });
    const made = await owner.containers.create({ id: "c", partitionKey: KEY });
    for (let i = 0; i < 4; i++) await made.container.items.create({ id: `${i}`, pk: "p", text: "x".repeat(500_000) });
    const stored = async () =>
        (await clientOf(target).offers.readAll().fetchAll()).resources[0].content
            .offerMinimumThroughputParameters.maxConsumedStorageEverInKB;
    const most = await stored();
    assert.ok(most >= 1950 && most <= 2100, `${most} KB`);
    for (let restart = 0; restart < 2; restart++) {
        await target.restart();
        assert.equal(await stored(), most);
        const container = clientOf(target).database("d").container("c");
        for (let i = 0; restart === 0 && i < 4; i++) await container.item(`${i}`, "p").delete();
        assert.equal(await stored(), most);
    }
});

test("If-Match decides whether an offer may be replaced", async () => {
    const offer = await offerOf(await container());
    const content = { offerThroughput: 500 };
    errorAnswer(await replaceOffer(offer, content, { "if-match": '"old"' }), 412, "PreconditionFailed");
    assert.equal((await replaceOffer(offer, content, { "if-match": offer._etag })).status, 200);
    errorAnswer(await replaceOffer(offer, content, { "if-match": offer._etag }), 412, "PreconditionFailed");
});

test("what an offer belongs to cannot be changed", async () => {
    const offer = await offerOf(await container());
    const other = await offerOf(await container());
    for (const name of ["id", "_rid", "offerResourceId", "resource"]) {
        for (const value of [other[name], 7]) {
            const answer = await call(server, {
                method: "PUT",
                path: `/offers/${offer._rid}`,
                body: { ...offer, [name]: value, content: { offerThroughput: 500 } },
            });
            errorAnswer(answer, 400, "BadRequest", { message: new RegExp(`'${name}'`) });
        }
    }
});

test("a manual offer becomes an autoscale one and back", async () => {
    const made = await container({ throughput: 4300 });
    const toAuto = await replaceOffer(
        await offerOf(made),
        { offerThroughput: 4300 },
        { "x-ms-cosmos-migrate-offer-to-autopilot": "true" },
    );
    assert.equal(toAuto.status, 200, toAuto.text);
    assert.equal(toAuto.json.content.offerAutopilotSettings.maxThroughput, 5000);
    assert.equal(toAuto.json.content.offerThroughput, 500);
    assert.equal(toAuto.headers["x-ms-cosmos-min-throughput"], "1000");
    assert.deepEqual(await offerOf(made), toAuto.json);

    const toManual = await replaceOffer(toAuto.json, toAuto.json.content, {
        "x-ms-cosmos-migrate-offer-to-manual-throughput": "True",
    });
    assert.equal(toManual.status, 200, toManual.text);
    assert.equal(toManual.json.content.offerAutopilotSettings, undefined);
    assert.equal(toManual.json.content.offerThroughput, 5000);
});

test("a migration to autoscale may name its maximum", async () => {
    const offer = await offerOf(await container());
    const answer = await replaceOffer(
        offer,
        { offerThroughput: -1, offerAutopilotSettings: { maxThroughput: 9000 } },
        { "x-ms-cosmos-migrate-offer-to-autopilot": "true" },
    );
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.content.offerAutopilotSettings.maxThroughput, 9000);
});

test("an autoscale offer's maximum is replaced", async () => {
    const offer = await offerOf(await container({ maxThroughput: 4000 }));
    const answer = await replaceOffer(offer, { offerAutopilotSettings: { maxThroughput: 10_000 } });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.content.offerAutopilotSettings.maxThroughput, 10_000);
    assert.equal(answer.json.content.offerThroughput, 1000);
});

test("a change of kind must be said in a header", async () => {
    const manual = await offerOf(await container());
    const auto = await offerOf(await container({ maxThroughput: 4000 }));
    const message = /x-ms-cosmos-migrate-offer-to-/;
    errorAnswer(
        await replaceOffer(manual, { offerAutopilotSettings: { maxThroughput: 4000 } }),
        400,
        "BadRequest",
        { message },
    );
    errorAnswer(await replaceOffer(auto, { offerThroughput: 400 }), 400, "BadRequest", { message });
});

for (const [what, content] of [
    ["no content", undefined],
    ["an empty content", {}],
    ["a text", { offerThroughput: "500" }],
    ["half a unit", { offerThroughput: 500.5 }],
    ["less than nothing", { offerThroughput: -400 }],
    ["null", { offerThroughput: null }],
]) {
    test(`an offer is not replaced by one with ${what}`, async () => {
        const made = await container();
        const offer = await offerOf(made);
        errorAnswer(await replaceOffer(offer, content), 400, "BadRequest", { message: /content/ });
        assert.deepEqual(await offerOf(made), offer);
    });
}

// --- Limits

const LIMITS = [
    [{ [MANUAL]: "300" }, /between 400 and 1000000 .* increments of 100; found '300'/],
    [{ [MANUAL]: "450" }, /between 400 and 1000000 .* increments of 100; found '450'/],
    [{ [MANUAL]: "1000100" }, /between 400 and 1000000/],
    [{ [MANUAL]: "-400" }, /between 400 and 1000000/],
    [{ [MANUAL]: "many" }, /between 400 and 1000000/],
    [{ [MANUAL]: "99999999999999999999" }, /between 400 and 1000000/],
    [{ [AUTOSCALE]: '{"maxThroughput":900}' }, /between 1000 and 1000000 .* increments of 1000; found '900'/],
    [{ [AUTOSCALE]: '{"maxThroughput":1500}' }, /increments of 1000/],
    [{ [AUTOSCALE]: '{"maxThroughput":1001000}' }, /between 1000 and 1000000/],
    [{ [AUTOSCALE]: '{"maxThroughput":4000.5}' }, /increments of 1000/],
    [{ [AUTOSCALE]: '{"maxThroughput":"4000"}' }, /maxThroughput/],
    [{ [AUTOSCALE]: "{}" }, /maxThroughput/],
    [{ [AUTOSCALE]: "[]" }, /maxThroughput/],
    [{ [AUTOSCALE]: "{" }, /./],
    [{ [MANUAL]: "400", [AUTOSCALE]: '{"maxThroughput":4000}' }, /not both/],
];
test("throughput outside its bounds is refused for databases and containers, with the bounds", async (t) => {
    for (const [headers, message] of LIMITS) {
        await t.test(JSON.stringify(headers), async () => {
            const id = unique("no");
            const db = await call(server, { method: "POST", path: "/dbs", headers, body: { id } });
            errorAnswer(db, 400, "BadRequest", { message });
            const body = { id, partitionKey: KEY };
            const coll = await call(server, { method: "POST", path: "/dbs/plain/colls", headers, body });
            errorAnswer(coll, 400, "BadRequest", { message });
            await refused(client.database(id).read(), 404);
            await refused(database.container(id).read(), 404);
        });
    }
});

test("the bounds themselves are accepted", async () => {
    for (const [headers, ru] of [
        [{ [MANUAL]: "400" }, 400],
        [{ [MANUAL]: " 1000 " }, 1000],
        [{ [AUTOSCALE]: '{"maxThroughput":1000}' }, 100],
    ]) {
        const body = { id: unique("yes"), partitionKey: KEY };
        const answer = await call(server, { method: "POST", path: "/dbs/plain/colls", headers, body });
        assert.equal(answer.status, 201, answer.text);
        const { resource } = await database.container(body.id).readOffer();
        assert.equal(resource.content.offerThroughput, ru);
    }
});

test("a container without a partition key has one partition and at most 10000 units", async () => {
    const create = (ru) =>
        call(server, {
            method: "POST",
            path: "/dbs/plain/colls",
            headers: { "x-ms-version": "2018-06-18", [MANUAL]: String(ru) },
            body: { id: unique("fixed") },
        });
    errorAnswer(await create(10_100), 400, "BadRequest", { message: /between 400 and 10000/ });
    const answer = await create(10_000);
    assert.equal(answer.status, 201, answer.text);
    const made = { container: database.container(answer.json.id) };
    assert.equal((await rangesOf(made)).length, 1);
    const offer = await offerOf(made);
    errorAnswer(await replaceOffer(offer, { offerThroughput: 20_000 }), 400, "BadRequest", {
        message: /10000/,
    });
});

// --- Finding offers

test("offers are listed in pages and found by what they belong to", async (t) => {
    const target = await startServer(t, { args: ["--durability", "relaxed"] });
    const own = clientOf(target);
    const { database: shared, resource: parent } = await own.databases.create({
        id: "shared",
        throughput: 1000,
    });
    const { database: bare } = await own.databases.create({ id: "bare" });
    const made = [];
    for (let i = 0; i < 5; i++) made.push(await container({ throughput: 400 + 100 * i }, bare));
    await container({}, shared); // shares the database's offer

    const owners = [parent._rid, ...made.map(({ resource }) => resource._rid)];
    for (const maxItemCount of [1, 4, 100]) {
        const pages = await pagesOf(own.offers.readAll({ maxItemCount }), maxItemCount);
        assert.deepEqual(
            pages.flat().map((offer) => offer.offerResourceId),
            owners,
        );
    }
    const listed = await call(target, { path: "/offers" });
    assert.deepEqual(Object.keys(listed.json), ["_rid", "Offers", "_count"]);
    assert.equal(listed.json._rid, "");

    for (const { resource } of made) {
        const byResource = `SELECT * from root where root.resource = "${resource._self}"`;
        const first = (await own.offers.query(byResource).fetchAll()).resources;
        const byRid = {
            query: "select * from root r where r.offerResourceId= @targetRID",
            parameters: [{ name: "@targetRID", value: resource._rid }],
        };
        const second = (await own.offers.query(byRid).fetchAll()).resources;
        assert.equal(first.length, 1);
        assert.deepEqual(second, first);
        assert.equal(first[0].offerResourceId, resource._rid);
    }
    const none = await query(target, "/offers", "SELECT * FROM r WHERE r.offerResourceId = 'AAAA'");
    assert.deepEqual(none.json.Offers, []);
});

test("an offer goes with its container", async () => {
    const made = await container();
    const offer = await offerOf(made);
    await made.container.delete();
    errorAnswer(await call(server, { path: `/offers/${offer._rid}` }), 404, "NotFound");
});

// --- Shared throughput

test("containers of a database with throughput share it unless they have their own", async () => {
    const { database: shared } = await client.databases.create({ id: unique("shared"), throughput: 25_000 });
    const sharing = await container({}, shared);
    assert.equal((await sharing.container.readOffer()).resource, undefined);
    assert.equal((await rangesOf(sharing)).length, 3);
    const dedicated = await container({ throughput: 400 }, shared);
    assert.equal((await offerOf(dedicated)).content.offerThroughput, 400);
    assert.equal((await rangesOf(dedicated)).length, 1);
});

test("25 containers may share a database's throughput, the 26th needs its own", async () => {
    const { database: shared } = await client.databases.create({ id: unique("full"), throughput: 400 });
    for (let i = 0; i < 25; i++) await container({ id: `c${i}` }, shared);
    await container({ id: "own", throughput: 400 }, shared);
    await refused(container({ id: "c25" }, shared), 400, {
        message: /25 containers.*x-ms-offer-throughput/s,
    });
    await container({ id: "c25", throughput: 400 }, shared);
    await shared.container("c0").delete();
    await container({ id: "c26" }, shared);
    await refused(container({ id: "c27" }, shared), 400, { message: /25 containers/ });
    assert.equal((await shared.containers.readAll().fetchAll()).resources.length, 27);
});

// --- Physical partitions

for (const [ru, count] of [
    [400, 1],
    [6_000, 1],
    [6_100, 2],
    [10_000, 2],
    [25_000, 5],
    [25_100, 5],
    [30_000, 5],
    [60_000, 10],
    [1_000_000, 167],
]) {
    for (const version of [1, 2]) {
        test(`${ru} units make ${count} partitions of equal size, hash version ${version}`, async () => {
            const made = await container({ throughput: ru, partitionKey: { ...KEY, version } });
            const ranges = await rangesOf(made);
            const bounds = evenBounds(version, count);
            assert.deepEqual(
                ranges.map((range) => range.minInclusive),
                bounds.slice(0, -1),
            );
            assert.deepEqual(
                ranges.map((range) => range.maxExclusive),
                bounds.slice(1),
            );
            assert.deepEqual(
                ids(ranges),
                ranges.map((_, i) => String(i)),
            );
        });
    }
}

test("the bounds are those of the protocol's examples", () => {
    const F = (text, more = 31) => text + "F".repeat(more);
    assert.deepEqual(evenBounds(2, 2), ["", F("1"), "FF"]);
    assert.deepEqual(evenBounds(2, 4), ["", F("0"), `${F("1", 30)}E`, `${F("2", 30)}D`, "FF"]);
    assert.deepEqual(evenBounds(1, 2), ["", "05C1DFFFFFFFFC", "FF"]);
    assert.deepEqual(evenBounds(1, 4), ["", "05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA", "FF"]);
});

test("hierarchical keys are divided like hash version 2, autoscale by its maximum", async () => {
    const partitionKey = { paths: ["/a", "/b"], kind: "MultiHash", version: 2 };
    const multi = await rangesOf(await container({ throughput: 30_000, partitionKey }));
    assert.deepEqual(
        multi.map((range) => range.minInclusive),
        evenBounds(2, 5).slice(0, -1),
    );
    const auto = await rangesOf(await container({ maxThroughput: 50_000 }));
    assert.equal(auto.length, 5);
});

test("a partition key range has the protocol's shape", async () => {
    const made = await container({ throughput: 12_000 });
    const rid = made.resource._rid;
    const path = `/dbs/plain/colls/${made.resource.id}/pkranges`;
    const answer = await call(server, { path });
    assert.deepEqual(Object.keys(answer.json), ["_rid", "PartitionKeyRanges", "_count"]);
    assert.equal(answer.json._rid, rid);
    assert.equal(answer.json._count, 2);
    assert.equal(answer.headers["x-ms-item-count"], "2");
    assert.equal(answer.headers["x-ms-content-path"], rid);
    for (const [i, range] of answer.json.PartitionKeyRanges.entries()) {
        assert.equal(range.id, String(i));
        assert.equal(range.status, "online");
        assert.deepEqual(range.parents, []);
        assert.deepEqual(range.ownedArchivalPKRangeIds, []);
        assert.equal(range.throughputFraction, 0.5);
        assert.equal(range.ridPrefix, i);
        assert.equal(range._self, `${made.resource._self}pkranges/${range._rid}/`);
        assert.ok(Number.isInteger(range.lsn) && Number.isInteger(range._ts));
        assert.deepEqual(decodeRid(range._rid), {
            kind: "pkrange",
            database: decodeRid(rid).database,
            parent: rid,
        });
        for (const one of [`${path}/${i}`, `/${range._self}`])
            assert.deepEqual((await call(server, { path: one })).json, range);
    }
    for (const missing of ["2", "-1", "x", "AAAA", "99999999999999999999"])
        errorAnswer(await call(server, { path: `${path}/${missing}` }), 404, "NotFound");
    errorAnswer(await call(server, { method: "DELETE", path: `${path}/0` }), 405, "MethodNotAllowed");
});

test("a client that asks for changes of the partitions is told when there are none", async () => {
    const made = await container({ throughput: 18_000 });
    const path = `/${made.resource._self}pkranges`;
    const ask = (etag) =>
        call(server, {
            path,
            type: "pkranges",
            link: made.resource._rid.toLowerCase(),
            headers: {
                "a-im": "Incremental Feed",
                "x-ms-max-item-count": "-1",
                ...(etag && { "if-none-match": etag }),
            },
        });
    // .NET asks again with the last ETag until it gets 304.
    const seen = [];
    let answer = await ask();
    for (let i = 0; i < 5 && answer.status === 200; i++) {
        seen.push(...answer.json.PartitionKeyRanges);
        assert.ok(answer.headers.etag);
        answer = await ask(answer.headers.etag);
    }
    assert.equal(answer.status, 304);
    assert.equal(answer.bytes.length, 0);
    assert.ok(answer.headers.etag);
    assert.deepEqual(ids(seen), ["0", "1", "2"]);
    assert.equal((await ask(answer.headers.etag)).status, 304);

    // Replacing the container or its throughput changes no partition.
    await made.container.replace({ ...made.resource, defaultTtl: 4 });
    assert.equal((await ask(answer.headers.etag)).status, 304);

    // A container of the same name is another one: the old ETag is worth nothing.
    await made.container.delete();
    const again = await container({ id: made.resource.id, throughput: 12_000 });
    const path2 = `/dbs/plain/colls/${again.resource.id}/pkranges`;
    const fresh = await call(server, { path: path2, headers: { "if-none-match": answer.headers.etag } });
    assert.equal(fresh.status, 200);
    assert.equal(fresh.json._count, 2);
});

test("the partitions of a container come in pages", async () => {
    const made = await container({ throughput: 60_000 });
    const path = `/dbs/plain/colls/${made.resource.id}/pkranges`;
    for (const size of [1, 3, 10, 11]) {
        const seen = [];
        let token;
        do {
            const headers = { "x-ms-max-item-count": String(size) };
            if (token) headers["x-ms-continuation"] = token;
            const answer = await call(server, { path, headers });
            assert.equal(answer.status, 200, answer.text);
            assert.ok(answer.json._count <= size);
            seen.push(...ids(answer.json.PartitionKeyRanges));
            token = answer.headers["x-ms-continuation"];
        } while (token);
        assert.deepEqual(
            seen,
            Array.from({ length: 10 }, (_, i) => String(i)),
        );
    }
    const pages = await pagesOf(made.container.readPartitionKeyRanges({ maxItemCount: 4 }), 4);
    assert.equal(pages.flat().length, 10);
    errorAnswer(await call(server, { path, headers: { "x-ms-continuation": "x" } }), 400, "BadRequest");
});

test("offers and partitions are the same after a restart", async (t) => {
    const target = await startServer(t);
    const everything = async () => {
        const own = clientOf(target);
        const { resources: offers } = await own.offers.readAll().fetchAll();
        const { resources: ranges } = await own
            .database("d")
            .container("c")
            .readPartitionKeyRanges()
            .fetchAll();
        return { offers, ranges };
    };
    const own = clientOf(target);
    const { database: d } = await own.databases.create({ id: "d", maxThroughput: 3000 });
    await d.containers.create({ id: "c", partitionKey: KEY, throughput: 24_000 });
    const before = await everything();
    assert.equal(before.offers.length, 2);
    assert.equal(before.ranges.length, 4);
    await target.restart();
    assert.deepEqual(await everything(), before);
});
