// spec.mjs - the conformance corpus of the query language, where it lies beside the project.
//
// The folder is $SPEC, or shared/spec beside the project.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { DEFAULTS } from "./definition.mjs";
import { ROOT } from "./server.mjs";

const FOLDER = process.env.SPEC ?? join(ROOT, "../shared/spec");

/** The cases of a file of the corpus; null if there is no such file. */
export function corpus(name) {
    const path = join(FOLDER, name);
    return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** Why tests of the corpus are skipped, or false. */
export const NO_CORPUS =
    !existsSync(FOLDER) && `there is no ${FOLDER}; SPEC names another folder with the conformance corpus`;

// --- Running

/** What the server does not have yet, by the category of an example: it must say so, and by name. */
export const UNAVAILABLE = {
    udf: /SC2003.*User-defined function 'REGEX_MATCH' could not be resolved/,
    vector: /SC2990.*'VectorDistance'.*not available/,
    "full-text": /SC2990.*'FullTextContains'.*not available/,
};

const AT_ONCE = 4;

/** Does `work` for all of a list, a few at a time. */
export async function each(list, work) {
    const rest = [...list];
    const one = async () => {
        while (rest.length > 0) await work(rest.shift());
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** Lists of those that have the same key. */
export function grouped(list, keyOf) {
    const groups = new Map();
    for (const one of list) {
        const key = JSON.stringify(keyOf(one));
        groups.set(key, [...(groups.get(key) ?? []), one]);
    }
    return [...groups.values()];
}

/** Lists of examples that can be asked of the same container. */
export const byContainer = (examples) =>
    grouped(examples, (one) => [one.docs, one.compositeIndexes, one.fullTextPolicy]);

/** The definition of a container for an example. */
export function definitionFor({ compositeIndexes, fullTextPolicy, indexingPolicy }) {
    const usual = { ...DEFAULTS.indexingPolicy, ...(compositeIndexes && { compositeIndexes }) };
    return {
        partitionKey: { paths: ["/id"], kind: "Hash", version: 2 },
        indexingPolicy: indexingPolicy ?? usual,
        ...(fullTextPolicy && { fullTextPolicy }),
    };
}

export const shown = (value) => JSON.stringify(value).slice(0, 600);

// --- Results

const SYSTEM = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);
const MADE_UP = /^made up \d+$/;

/** The items of an example, all with an id. */
export const withIds = (documents) => documents.map((item, i) => ({ id: `made up ${i}`, ...item }));

/** A result without what the server and withIds() have added, at any depth. */
export function bare(value) {
    if (Array.isArray(value)) return value.map(bare);
    if (value === null || typeof value !== "object") return value;
    const kept = Object.entries(value).filter(
        ([name, member]) => !SYSTEM.has(name) && !(name === "id" && MADE_UP.test(member)),
    );
    return Object.fromEntries(kept.map(([name, member]) => [name, bare(member)]));
}

const close = (a, b, tolerance) => Math.abs(a - b) <= tolerance * Math.max(Math.abs(a), Math.abs(b));

function sameArrays(a, b, isOrdered, how) {
    if (a.length !== b.length) return false;
    if (isOrdered) return a.every((value, i) => same(value, b[i], how));
    const rest = [...b];
    return a.every((value) => {
        const at = rest.findIndex((other) => same(value, other, how));
        if (at >= 0) rest.splice(at, 1);
        return at >= 0;
    });
}

function same(a, b, how) {
    if (typeof a === "number" && typeof b === "number") return close(a, b, how.tolerance);
    if (Array.isArray(a) && Array.isArray(b)) return sameArrays(a, b, !how.unorderedArrays, how);
    if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
    if (Array.isArray(a) || Array.isArray(b)) return false;
    const names = Object.keys(a);
    return (
        names.length === Object.keys(b).length &&
        names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name], how))
    );
}

/** Whether results are what an example of the corpus expects. */
export function isExpected({ expected, ordered, tolerance = 1e-12, unorderedArrays }, results) {
    return sameArrays(results, expected, ordered, { tolerance, unorderedArrays });
}
