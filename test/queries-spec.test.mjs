// The conformance corpus of the query language through the SDK, on one and on five physical partitions.
//
// It lies outside of the project and is skipped where it is not (lib/spec.mjs); queries.test.mjs
// covers the same ground on its own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { newContainer, SIZES } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ROOT, startAny } from "./lib/server.mjs";
import {
    bare, byContainer, corpus, definitionFor, each, grouped, isExpected, NO_CORPUS, shown, UNAVAILABLE, withIds,
} from "./lib/spec.mjs";

if (NO_CORPUS) console.error(`SKIPPED: ${NO_CORPUS}`);
const EXAMPLES = corpus("sql-examples.json") ?? [];
const ERRORS = corpus("sql-errors.json") ?? [];

// Uncertain cases that differ, at least with some number of partitions; each with the subject of its
// row in differences.md.
const DIFFERENT = {
    "suite/topOperator": "TOP without ORDER BY",
    "SELECT VALUE 1 AS x": "`SELECT VALUE e AS x`",
};
const differed = new Set();

async function results(container, { query, parameters }) {
    try {
        return { rows: (await container.items.query({ query, parameters }).fetchAll()).resources };
    } catch (error) {
        return { error };
    }
}

function isListed(name) {
    if (!Object.hasOwn(DIFFERENT, name)) return false;
    differed.add(name);
    return true;
}

/** What is wrong with the answer to an example, or nothing. */
function complaint(example, { rows, error }) {
    const { name, query, category, expected, uncertain } = example;
    if (error && error.code === 400 && UNAVAILABLE[category]?.test(error.message)) return;
    if (!error && isExpected(example, bare(rows))) return;
    if (isListed(name)) return;
    const got = error ? `${error.code} ${error.message.slice(0, 600)}` : shown(rows);
    const how = uncertain ? " (uncertain: may be listed in DIFFERENT)" : "";
    return `${name}${how}\n  ${query}\n  expected ${shown(expected)}\n  got      ${got}`;
}

for (const size of SIZES) {
    const where = `${size.partitions} partitions`;

    test(`documented examples have documented results (${where})`, { skip: NO_CORPUS }, async (t) => {
        assert.ok(EXAMPLES.length > 0);
        // The server's own results: the SDK's way to add up partitions is not what is tested here.
        const server = await startAny(t, { args: ["--durability", "relaxed", "--merge", "always"] });
        const { database } = await clientOf(server).databases.create({ id: "examples" });
        const wrong = [];
        await each(byContainer(EXAMPLES), async (examples) => {
            const [{ docs }] = examples;
            const container = await newContainer(database, size, definitionFor(examples[0]));
            for (const item of withIds(docs)) await container.items.create(item);
            await each(examples, async (example) => {
                const message = complaint(example, await results(container, example));
                if (message) wrong.push(message);
            });
        });
        t.diagnostic(`${EXAMPLES.length} examples, ${wrong.length} of them wrong`);
        assert.equal(wrong.length, 0, wrong.join("\n"));
    });

    test(`invalid queries are refused with their codes (${where})`, { skip: NO_CORPUS }, async (t) => {
        assert.ok(ERRORS.length > 0);
        const server = await startAny(t, { args: ["--durability", "relaxed"] });
        const { database } = await clientOf(server).databases.create({ id: "errors" });
        const wrong = [];
        await each(
            grouped(ERRORS, ({ indexingPolicy }) => indexingPolicy ?? null),
            async (cases) => {
                const container = await newContainer(database, size, definitionFor(cases[0]));
                await container.items.create({ id: "a", name: "b", age: 1 });
                await each(cases, async (one) => {
                    const message = refusalComplaint(one, await results(container, one));
                    if (message) wrong.push(message);
                });
            },
        );
        t.diagnostic(`${ERRORS.length} invalid queries, ${wrong.length} of them wrong`);
        assert.equal(wrong.length, 0, wrong.join("\n"));
    });
}

/** What is wrong with the answer to an invalid query, or nothing. */
function refusalComplaint({ query, status, code, codeInferred, uncertain, crossPartitionOnly, why }, answer) {
    const { error } = answer;
    // The planner's refusals, of which the corpus has the status alone.
    if (crossPartitionOnly && error?.code === status) return;
    const message = /^message: ([^(]*)/.exec(why)?.[1].trim();
    const codes = codeInferred || uncertain || !code ? [] : [`"code":"${code}"`, `"code":${code},`];
    const isRight =
        error?.code === status &&
        (codes.length === 0 || codes.some((text) => error.message.includes(text))) &&
        (message === undefined || error.message.includes(message));
    if (isRight || isListed(query)) return;
    const got = error?.message ?? shown(answer.rows);
    return `${query}\n  expected ${status} ${code ?? message}\n  got      ${got}`;
}

test("what differs from the corpus is explained", { skip: NO_CORPUS }, () => {
    const text = readFileSync(join(ROOT, "src/query/differences.md"), "utf8");
    const cases = [...EXAMPLES, ...ERRORS];
    for (const [name, subject] of Object.entries(DIFFERENT)) {
        const one = cases.find((example) => example.name === name || example.query === name);
        assert.ok(one?.uncertain, `${name} is not uncertain`);
        assert.ok(differed.has(name), `${name} is listed, but does not differ`);
        assert.ok(text.includes(`\n| ${subject} |`), `differences.md has no row for ${subject}`);
    }
});
