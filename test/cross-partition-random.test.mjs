// Random queries over random items: over 1, 5 and 25 physical partitions, at once and page by page, run by
// the server and merged by clients, all give the same.
//
// Each case has a number of its own in the seed, so that its choices do not depend on those of
// others: ORRERY_TEST_SEED=n repeats a run, ORRERY_TEST_CASES=n makes it longer or shorter.
import assert from "node:assert/strict";
import test from "node:test";

import { complaint, filled } from "./lib/every-way.mjs";
import { MANY, SIZES } from "./lib/items.mjs";
import { chooseSeed, Random } from "./lib/random.mjs";
import { difference, randomItems } from "./lib/random-queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { each } from "./lib/spec.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed", "--extensions"] });
const { database } = await clientOf(server).databases.create({ id: unique("random") });

const seed = chooseSeed();
const CASES = Number(process.env.ORRERY_TEST_CASES ?? 300);
const ROUNDS = [20, 150, 400]; // items
const randomOf = (round, number) => new Random(seed ^ Math.imul(1 + round + 10 * number, 0x9e3779b1));

test("answers that differ are told apart", () => {
    const keys = (row) => [row.k];
    const [a, b, c, d] = [{ k: 1, v: 1 }, { k: 1, v: 2 }, { k: 2, v: [1, 2] }, { k: 2, v: [2, 1] }];
    for (const [spec, rows, expected, what, whole] of [
        [{}, [a, c], [c, a]],
        [{}, [a], [a, b], /1 rows, expected 2/],
        [{}, [a, a], [a, b], /1 rows too many/],
        [{}, [c], [d], /1 rows too many/],
        [{ hasLists: true }, [c], [d]],
        [{ keys }, [b, a, c], [a, b, c]], // equal keys may come in any order
        [{ keys }, [c, a], [a, c], /row 0 has the key \[2\], expected \[1\]/],
        [{ keys }, [{ k: [1] }], [{ k: [2] }], /rows too many/], // an array is not another, only in its order
        [{ keys, isCut: true }, [b], [a], undefined, [a, b]],
        [{ keys, isCut: true, isUnique: true }, [b], [a], /rows too many/, [a, b]],
        [{ isCut: true }, [a, a], [a, b], /rows too many/, [a, b, c]],
    ]) {
        const found = difference(spec, rows, expected, whole);
        if (what) assert.match(found ?? "nothing", what);
        else assert.equal(found, undefined);
    }
});

for (const [round, count] of ROUNDS.entries())
    test(`random queries over ${count} items give the same everywhere`, async (t) => {
        t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
        const items = randomItems(randomOf(round, 0), count);
        const containers = await filled(database, [...SIZES, MANY], items);
        const numbers = Array.from({ length: Math.ceil(CASES / ROUNDS.length) }, (_, i) => i + 1);
        const seen = { answers: 0, rows: 0 };
        const wrong = [];
        await each(numbers, async (number) => {
            if (wrong.length >= 10) return;
            const what = await complaint(server, containers, randomOf(round, number), seen);
            if (what) wrong.push(`case ${number}: ${what}`);
        });
        t.diagnostic(`${numbers.length} queries, ${seen.answers} answers compared, ${seen.rows} rows`);
        assert.equal(wrong.length, 0, `ORRERY_TEST_SEED=${seed}\n${wrong.join("\n")}`);
        // Most queries find something, or the test says little.
        assert.ok(seen.rows > numbers.length);
    });
