// The examples of the conformance corpus over 1, 5 and 25 physical partitions, in every way there is to
// run a query: by the server, page by page; by the SDK, which merges what partitions answer; and by a
// client of our own (lib/merge.mjs). Whatever the way, the results are the documented ones, in
// their order where one is documented.
//
// Examples have few items, so that most partitions have none and many have one: what is merged is mostly
// nothing, which is what merging gets wrong. cross-partition-random.test.mjs has more items.
//
// The corpus lies outside of the project and is skipped where it is not (lib/spec.mjs).
import assert from "node:assert/strict";
import test from "node:test";

import { MANY, newContainer, SIZES } from "./lib/items.mjs";
import { mergeAll } from "./lib/merge.mjs";
import { askAll } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startAny } from "./lib/server.mjs";
import {
    bare, byContainer, corpus, definitionFor, each, isExpected, NO_CORPUS, shown, UNAVAILABLE, withIds,
} from "./lib/spec.mjs";

if (NO_CORPUS) console.error(`SKIPPED: ${NO_CORPUS}`);
const EXAMPLES = corpus("sql-examples.json") ?? [];
const SCALE = Number(process.env.ORRERY_TEST_SCALE ?? 1);

// TOP without ORDER BY may take any items; which ones is not specified (src/query/differences.md).
const UNDEFINED = ["suite/topOperator"];

// What the SDK (4.4) gets wrong when it merges, whatever a server answers.
const NOT_BY_SDK = [
    {
        why: "a MIN is lost when a range without values is read after one with values",
        is: ({ query }) => /\bMIN\(/i.test(query) && !/GROUP BY/i.test(query),
    },
    {
        why: "a SUM that is undefined in one range makes it ask for more without end",
        is: ({ query, expected }) => /^SELECT VALUE SUM\(/.test(query) && expected.length === 0,
    },
    {
        why: "a SUM or AVG that is undefined in one range is the sum of the others, or null",
        names: ["sdk/agg-avg-mixed", "sdk/agg-avg-prim-nonprim", "sdk/groupby-mixed-sum", "sdk/mixed-avg-is_defined"],
    },
    {
        why: "MAX throws on null, and does not see what has no order",
        names: ["suite/maxBooleanAndNull", "sdk/groupby-mixed-max", "sdk/mixed-max-is_defined", "sdk/mixed-max-is_null"],
    },
    {
        why: "ORDER BY throws on null, and when ranges begin with values of two types",
        names: [
            "sdk/multi-orderby-asc-asc", "sdk/multi-orderby-asc-desc", "sdk/multi-orderby-desc-asc",
            "sdk/multi-orderby-desc-desc", "sdk/orderby-mixed-asc", "sdk/orderby-one-per-type-defined-desc",
            "sdk/undefined-orderby-index-type", "sdk/undefined-orderby-type-index",
            "sdk/undefined-orderby-type-index-desc",
        ],
    },
];
const isBySdk = (example) =>
    !NOT_BY_SDK.some(({ is, names }) => is?.(example) || names?.includes(example.name));

const specOf = ({ query, parameters }) => ({ query, ...(parameters && { parameters }) });

const bySdk = (options) => ({
    name: `SDK ${JSON.stringify(options)}`,
    run: async (_server, container, example) => {
        const feed = container.items.query(specOf(example), { forceQueryPlan: true, ...options });
        // It has members that are undefined where they should not be there.
        return JSON.parse(JSON.stringify((await feed.fetchAll()).resources));
    },
});
const byServer = (size) => ({
    name: `server, pages of ${size}`,
    run: (server, container, example) => askAll(server, container, specOf(example), { size }),
});
const byOurs = (size) => ({
    name: `own client, pages of ${size}`,
    run: async (server, container, example) =>
        (await mergeAll(server, container, specOf(example), { size })).results,
});

const SDK = [
    {},
    { maxItemCount: 1 },
    { maxItemCount: 2, maxDegreeOfParallelism: 1 },
    { maxItemCount: 1, maxDegreeOfParallelism: 3, bufferItems: true },
    { maxItemCount: 3, maxDegreeOfParallelism: -1, bufferItems: true },
    { maxItemCount: 1000, maxDegreeOfParallelism: 25 },
    { maxDegreeOfParallelism: 0 },
    { maxItemCount: 2, bufferItems: true },
].map(bySdk);
const SERVER = [-1, 1, 2, 3, 7].map(byServer);
const OURS = [-1, 1, 2].map(byOurs);

/** Some of a list, others for each `at`. */
const some = (list, at, count) =>
    list.filter((_, i) => (i + list.length - (at % list.length)) % list.length < count * SCALE);

/** How an example is run: in many ways if it has items, in one if it has none. */
function waysOf(example, at) {
    const sdk = isBySdk(example) ? SDK : [];
    if (example.docs.length === 0) return some([...SERVER, ...sdk, ...OURS], at, 1);
    return [...some(SERVER, at, 2), ...some(sdk, at, 2), ...some(OURS, at, 1)];
}

async function answerTo(way, server, container, example) {
    try {
        return { rows: await way.run(server, container, example) };
    } catch (error) {
        return { error };
    }
}

/** What is wrong with an answer, or nothing. */
function complaint(example, way, { rows, error }) {
    const { name, query, expected, category } = example;
    if (error && UNAVAILABLE[category]?.test(error.message)) return;
    if (!error && isExpected(example, bare(rows))) return;
    if (!error && UNDEFINED.includes(name) && rows.length === expected.length) return;
    const got = error ? error.stack.slice(0, 600) : shown(rows);
    return `${name} by ${way.name}\n  ${query}\n  expected ${shown(expected)}\n  got      ${got}`;
}

for (const [s, size] of [...SIZES, MANY].entries())
    test(`examples are the same in all ways (${size.partitions} partitions)`, { skip: NO_CORPUS }, async (t) => {
        const server = await startAny(t, { args: ["--durability", "relaxed"] });
        const { database } = await clientOf(server).databases.create({ id: "examples" });
        const wrong = [];
        let runs = 0;
        await each([...byContainer(EXAMPLES).entries()], async ([g, examples]) => {
            const container = await newContainer(database, size, definitionFor(examples[0]));
            for (const item of withIds(examples[0].docs)) await container.items.create(item);
            for (const [i, example] of examples.entries())
                for (const way of waysOf(example, g + i + 3 * s)) {
                    const message = complaint(example, way, await answerTo(way, server, container, example));
                    if (message) wrong.push(message);
                    runs++;
                }
        });
        t.diagnostic(`${EXAMPLES.length} examples, ${runs} runs, ${wrong.length} of them wrong`);
        assert.equal(wrong.length, 0, wrong.join("\n"));
    });

test("what is left out is there to be left out", { skip: NO_CORPUS }, () => {
    const names = [...UNDEFINED, ...NOT_BY_SDK.flatMap(({ names = [] }) => names)];
    for (const name of names) assert.ok(EXAMPLES.some((example) => example.name === name), name);
    const left = EXAMPLES.filter((example) => !isBySdk(example)).length;
    assert.ok(left > 0 && left < EXAMPLES.length / 10, `${left} examples are left out`);
});
