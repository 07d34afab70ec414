// merge.mjs - a client that follows query plans by hand: it sends the rewritten query to each
// physical range and merges what comes back, as the protocol says and as simply as possible. It sorts
// values of all types, which the official SDK does not, and can go on in the middle.
import assert from "node:assert/strict";

import { callItems, pathOf } from "./items.mjs";
import { askPage, resultsOf } from "./queries.mjs";
import { call } from "./wire.mjs";

export const FEATURES = [
    "Aggregate", "NonValueAggregate", "MultipleAggregates", "ListAndSetAggregate", "CountIf", "DCount",
    "Distinct", "GroupBy", "OrderBy", "MultipleOrderBy", "OffsetAndLimit", "Top",
];
const PLACE = "{documentdb-formattableorderbyquery-filter}";

/** The answer to a request for a plan; `type` is the content type, which differs between SDKs. */
export function askPlan(server, container, query, { features = FEATURES, type, headers, ...rest } = {}) {
    return callItems(server, container, {
        method: "POST",
        headers: {
            "content-type": type ?? "application/query+json",
            "x-ms-cosmos-is-query-plan-request": "True",
            "x-ms-cosmos-supported-query-features": features.join(", "),
            ...headers,
        },
        body: typeof query === "string" ? { query } : query,
        ...rest,
    });
}

export async function planOf(server, container, query, options) {
    const answer = await askPlan(server, container, query, options);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

/** The physical ranges, in their order. */
export async function rangesOf(server, container) {
    const link = pathOf(container);
    const { json } = await call(server, { path: `${link}/pkranges`, type: "pkranges", link: link.slice(1) });
    return json.PartitionKeyRanges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
}

const overlaps = (range, { min, max, isMaxInclusive }) =>
    min < range.maxExclusive && (range.minInclusive < max || (isMaxInclusive && range.minInclusive === max));

/** All rows of one range. */
async function rowsOf(server, container, query, range, size) {
    const rows = [];
    let token;
    do {
        const headers = { "x-ms-documentdb-partitionkeyrangeid": range.id };
        const answer = await askPage(server, container, query, { size, token, headers });
        rows.push(...resultsOf(answer, size));
        token = answer.headers["x-ms-continuation"];
    } while (token);
    return rows;
}

const TYPES = ["undefined", "null", "boolean", "number", "string", "array", "object"];
const typeOf = (v) => (v === null ? "null" : Array.isArray(v) ? "array" : typeof v);

/** The order of ORDER BY over values of one type each; arrays and objects are all the same here. */
export function compareValues(a, b) {
    const types = TYPES.indexOf(typeOf(a)) - TYPES.indexOf(typeOf(b));
    if (types !== 0) return types;
    if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
    if (typeof a === "object") return 0;
    return a < b ? -1 : a > b ? 1 : 0;
}

const compareRows = (info) => (a, b) => {
    for (const [i, direction] of info.orderBy.entries()) {
        const order = compareValues(a.orderByItems[i].item, b.orderByItems[i].item);
        if (order !== 0) return direction === "Descending" ? -order : order;
    }
    return 0;
};

/** The rows of all ranges in the order of ORDER BY; equal ones range by range. */
function mergeRows(info, lists) {
    const compare = compareRows(info);
    for (const list of lists)
        for (const [i, row] of list.entries()) {
            assert.equal(typeof row._rid, "string");
            assert.equal(row.orderByItems.length, info.orderBy.length);
            if (i > 0) assert.ok(compare(list[i - 1], row) <= 0, "a range's rows are sorted");
        }
    return lists
        .flatMap((list, range) => list.map((row) => ({ ...row, range })))
        .sort((a, b) => compare(a, b) || a.range - b.range);
}

const ADD = {
    Count: (parts) => parts.reduce((sum, { item }) => sum + item, 0),
    CountIf: (parts) => parts.reduce((sum, { item }) => sum + item, 0),
    Sum: (parts) => (parts.every(({ item }) => item !== undefined) ? ADD.Count(parts) : undefined),
    Average: (parts) => {
        if (!parts.every(({ item }) => item.sum !== undefined)) return undefined;
        const count = parts.reduce((sum, { item }) => sum + item.count, 0);
        return count === 0 ? undefined : parts.reduce((sum, { item }) => sum + item.sum, 0) / count;
    },
    Min: (parts) => extreme(parts, "min", -1),
    Max: (parts) => extreme(parts, "max", 1),
    MakeList: (parts) => parts.flatMap(({ item }) => item),
    MakeSet: (parts) => distinct(parts.flatMap(({ item }) => item)),
};

function extreme(parts, name, direction) {
    const counted = parts.filter(({ item2 }) => item2.count > 0).map(({ item2 }) => item2[name]);
    if (counted.includes(undefined)) return undefined; // a value that has no order
    return counted.sort((a, b) => -direction * compareValues(a, b))[0];
}

const sortNames = (_, v) => (v?.constructor === Object ? Object.fromEntries(Object.entries(v).sort()) : v);
/** A text that is the same for equal values, whatever the sequence of their properties. */
export const key = (value) => JSON.stringify(value, sortNames) ?? "undefined";
const distinct = (values) => [...new Map(values.map((value) => [key(value), value])).values()];

/** One result for each group of rows. */
function joinGroups(info, rows) {
    const groups = new Map();
    for (const row of rows) {
        const name = key(row.groupByItems ?? []);
        groups.set(name, [...(groups.get(name) ?? []), info.hasSelectValue && !row.groupByItems ? row : row.payload]);
    }
    const [aggregate] = info.aggregates;
    return [...groups.values()].map((parts) => {
        if (info.hasSelectValue) return aggregate ? ADD[aggregate](parts.map(([part]) => part)) : parts[0];
        const result = {};
        for (const alias of info.groupByAliases) {
            const type = info.groupByAliasToAggregateType[alias];
            result[alias] = type ? ADD[type](parts.map((part) => part[alias])) : parts[0][alias];
            if (result[alias] === undefined) delete result[alias];
        }
        return result;
    });
}

function finish(info, rows) {
    const isGrouped =
        info.groupByExpressions.length + info.groupByAliases.length + info.aggregates.length > 0;
    let results = isGrouped ? joinGroups(info, rows) : rows;
    if (info.orderBy.length > 0) results = results.map(({ payload }) => payload);
    results = results.filter((value) => value !== undefined);
    if (info.distinctType !== "None") results = distinct(results);
    if (info.offset !== null) results = results.slice(info.offset, info.offset + info.limit);
    if (info.top !== null) results = results.slice(0, info.top);
    if (!info.dCountInfo) return results;
    const { dCountAlias } = info.dCountInfo;
    return [dCountAlias === "" ? results.length : { [dCountAlias]: results.length }];
}

const specOf = (query) => (typeof query === "string" ? { query } : query);
const textOf = (spec, info, filter) => (info.rewrittenQuery || spec.query).replace(PLACE, () => filter);

/** All results of a query, by its plan; `ranges` says how many were asked. */
export async function mergeAll(server, container, query, { size = -1, ...options } = {}) {
    const spec = specOf(query);
    const plan = await planOf(server, container, spec, options);
    const info = plan.queryInfo;
    const ranges = (await rangesOf(server, container)).filter((range) =>
        plan.queryRanges.some((asked) => overlaps(range, asked)));
    const sent = { ...spec, query: textOf(spec, info, "true") };
    const lists = [];
    for (const range of ranges) lists.push(await rowsOf(server, container, sent, range, size));
    const rows = info.orderBy.length > 0 ? mergeRows(info, lists) : lists.flat();
    return { results: finish(info, rows), rows, info, ranges: ranges.length };
}

const IS = { boolean: "IS_BOOL", number: "IS_NUMBER", string: "IS_STRING", array: "IS_ARRAY", object: "IS_OBJECT" };
const isType = (type, text) => (type === "null" ? `IS_NULL(${text})` : `${IS[type]}(${text})`);

/** "text comes after value", in the order of types. */
function comesAfter(text, value, isDescending) {
    const at = TYPES.indexOf(typeOf(value));
    const others = (isDescending ? TYPES.slice(0, at) : TYPES.slice(at + 1)).map((type) =>
        type === "undefined" ? `NOT IS_DEFINED(${text})` : isType(type, text));
    const own = ["boolean", "number", "string"].includes(typeOf(value));
    if (own) others.unshift(`${text} ${isDescending ? "<" : ">"} ${JSON.stringify(value)}`);
    return others.length === 0 ? "false" : `(${others.join(" OR ")})`;
}

const equal = (text, value) =>
    value === undefined ? `(NOT IS_DEFINED(${text}))` : `(${text} = ${JSON.stringify(value)})`;

/** What a client puts in the place of the filter to go on at a row, which is included or not. */
function resumeFilter(info, row, isIncluded) {
    const values = row.orderByItems.map(({ item }) => item);
    const parts = info.orderByExpressions.map((text, i) => {
        const before = info.orderByExpressions.slice(0, i).map((earlier, j) => equal(earlier, values[j]));
        return `(${[...before, comesAfter(text, values[i], info.orderBy[i] === "Descending")].join(" AND ")})`;
    });
    if (isIncluded) parts.push(`(${info.orderByExpressions.map((text, i) => equal(text, values[i])).join(" AND ")})`);
    return parts.join(" OR ");
}

/** What an ORDER BY query gives after its first `done` rows, asked for again from the last of them. */
export async function goOn(server, container, query, whole, done, { size = -1 } = {}) {
    const spec = specOf(query);
    const { rows, info } = whole;
    const last = rows[done - 1];
    const seen = rows.slice(0, done).filter((row) => compareRows(info)(row, last) === 0);
    const lists = [];
    for (const [i, range] of (await rangesOf(server, container)).entries()) {
        // Equal rows come range by range, so those of the ranges in front have all been seen.
        const filter = resumeFilter(info, last, i >= last.range);
        const found = await rowsOf(server, container, { ...spec, query: textOf(spec, info, filter) }, range, size);
        for (const row of i === last.range ? seen.filter(({ range: own }) => own === i) : []) {
            const at = found.findIndex(({ _rid }) => _rid === row._rid);
            assert.ok(at >= 0, "the row to go on at is there");
            found.splice(at, 1);
        }
        lists.push(found);
    }
    return mergeRows(info, lists).map(({ payload }) => payload);
}
