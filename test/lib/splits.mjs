// splits.mjs - containers whose number of physical partitions changes while tests look on.
import assert from "node:assert/strict";

import { contentOf, pathOf, until } from "./items.mjs";
import { call } from "./wire.mjs";

/** A server on which a partition is small: 1,000 request units a second, so that 8,000 take eight. */
export const SMALL = ["--durability", "relaxed", "--partition-ru", "1000", "--auto-merge", "--merge", "always"];
export const PARTITION_RU = 1000;

export async function rangesOf(container) {
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    return resources.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
}

/** Asks for the throughput that gives the container `partitions` partitions. */
export async function setPartitions(container, partitions) {
    const { resource: offer } = await container.readOffer();
    const ru = partitions === 1 ? 400 : partitions * PARTITION_RU;
    offer.content = { offerThroughput: ru };
    await container.database.client.offer(offer.id).replace(offer);
}

/** Waits until there are `partitions` partitions; returns their ranges. */
export function waitForPartitions(container, partitions, options = { timeout_ms: 60_000 }) {
    return until(async () => {
        const ranges = await rangesOf(container);
        return ranges.length === partitions && ranges;
    }, options);
}

export async function bringTo(container, partitions) {
    await setPartitions(container, partitions);
    return waitForPartitions(container, partitions);
}

/** Ranges cover all hashes, one after the other, and none is its own ancestor. */
export function checkRanges(ranges) {
    let at = "";
    for (const { id, minInclusive, maxExclusive, parents = [] } of ranges) {
        assert.equal(minInclusive, at, "a range begins where the one before it ends");
        assert.ok(minInclusive < maxExclusive, `range ${id} is empty`);
        assert.ok(
            parents.every((parent) => Number(parent) < Number(id)),
            `range ${id} is younger than its parents ${parents}`,
        );
        at = maxExclusive;
    }
    assert.equal(at, "FF");
    assert.equal(new Set(ranges.map(({ id }) => id)).size, ranges.length);
}

/** What the server says of the container's partitions. */
export async function layoutOf(server, container) {
    const answer = await call(server, {
        path: `/_orrery${pathOf(container)}/layout`,
        type: "colls",
        link: pathOf(container).slice(1),
    });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

/** Nothing twice, nothing missing; in any order. */
export function sameIds(found, expected, message) {
    const ids = found.map(({ id }) => id);
    const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
    assert.deepEqual(twice, [], `${message}: found twice`);
    const there = new Set(ids);
    assert.deepEqual(
        expected.filter(({ id }) => !there.has(id)).map(({ id }) => id),
        [],
        `${message}: missing`,
    );
    assert.equal(ids.length, expected.length, `${message}: too many`);
}

export const byId = (items) => new Map(items.map((item) => [item.id, contentOf(item)]));
