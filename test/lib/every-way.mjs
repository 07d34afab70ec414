// every-way.mjs - a random query in every way there is to run it: over containers with the same items and
// different numbers of partitions, whole and page by page, by the server and merged by clients.
import assert from "node:assert/strict";

import { fill, newContainer } from "./items.mjs";
import { mergeAll } from "./merge.mjs";
import { askAll } from "./queries.mjs";
import { DEFINITION, difference, randomQuery } from "./random-queries.mjs";

/** A container of each size, with the same items, as pairs of a name for messages and the container. */
export async function filled(database, sizes, items) {
    const containers = [];
    for (const size of sizes) {
        const container = await newContainer(database, size, DEFINITION);
        await fill(container, items);
        containers.push([`${size.partitions} partitions`, container]);
    }
    return containers;
}

const specOf = ({ query, parameters }) => ({ query, ...(parameters && { parameters }) });

/** Sizes of pages, another for each. */
const sizes = (r) => {
    const most = r.pick([3, 12, 60]);
    return () => (r.chance(5) ? -1 : 1 + r.below(most));
};

async function bySdk(r, container, spec) {
    const options = {
        maxItemCount: r.pick([1, 5, 20, 100]),
        maxDegreeOfParallelism: r.pick([-1, 1, 2, 30]),
        bufferItems: r.chance(50),
    };
    const feed = container.items.query(specOf(spec), { forceQueryPlan: true, ...options });
    return (await feed.fetchAll()).resources;
}

/** All ways of a query but the first, as pairs of a name and what it gives. */
async function* answers(server, containers, r, spec) {
    const query = specOf(spec);
    for (const [where, container] of containers) {
        if (where !== containers[0][0]) yield [`${where}, whole`, await askAll(server, container, query, { size: -1 })];
        yield [`${where}, pages`, await askAll(server, container, query, { size: sizes(r) })];
    }
    if (spec.isPlanned) {
        const [where, container] = r.pick(containers);
        const { results } = await mergeAll(server, container, query, { size: r.pick([-1, 1, 7]) });
        yield [`${where}, own client`, results];
    }
    // Without an order TOP and OFFSET LIMIT make the SDK take from whichever range answers first.
    if (spec.isForSdk && !(spec.isCut && !spec.keys)) {
        const [where, container] = r.pick(containers);
        yield [`${where}, SDK`, await bySdk(r, container, spec)];
    }
}

/** What is wrong with the answers to a random query, compared with that of the first container; or nothing.
 *  `seen` counts what was compared. */
export async function complaint(server, containers, r, seen) {
    const spec = randomQuery(r);
    const [[, one]] = containers;
    let way = "whole on one partition";
    try {
        const expected = await askAll(server, one, specOf(spec), { size: -1 });
        const uncut = { ...specOf(spec), query: spec.uncut };
        const whole = spec.isCut ? await askAll(server, one, uncut, { size: -1 }) : expected;
        seen.rows += expected.length;
        way = "the next";
        for await (const [name, found] of answers(server, containers, r, spec)) {
            const what = difference(spec, found, expected, whole);
            assert.ok(!what, `${name}: ${what}`);
            way = `the one after ${name}`;
            seen.answers++;
        }
    } catch (error) {
        return `${JSON.stringify(specOf(spec))}\n  ${way}: ${error.message}`;
    }
}
