// random-queries.mjs - random items, and random queries over them from a small grammar.
//
// A query comes with what can be said about its results before it is run, so that two answers to it can
// be compared although they need not be equal to the byte (see sameAnswers).

/** What containers need for the ORDER BY clauses below, and a property that is computed. */
const COMPOSITES = [
    [["s"], ["n"]],
    [["n"], ["u", "descending"]],
    [["m"], ["u"]],
    [["o/x", "descending"], ["s"], ["u"]],
    [["kind"], ["q"]],
];
export const DEFINITION = {
    indexingPolicy: {
        indexingMode: "consistent",
        automatic: true,
        includedPaths: [{ path: "/*" }],
        excludedPaths: [{ path: '/"_etag"/?' }],
        compositeIndexes: COMPOSITES.map((list) =>
            list.map(([path, order = "ascending"]) => ({ path: `/${path}`, order }))),
    },
    computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.s) FROM c" }],
};

// ---- items ----

const TEXTS = ["", "a", "ab", "abc", "B", "b", "ba", "\u00e9t\u00e9", "\u{1f600}", "z".repeat(120) + "1",
    "z".repeat(120) + "2"];
const MIXED = [null, false, true, 0, 1, -2.5, 1e20, "", "a", "ab", "\u{1f600}", [], [1], [1, "a"], {}, { x: 1 }];
const TAGS = ["t0", "t1", "t2", "t3", 1, 2, true, null];
const KEYS = 31;

const key = (i) => (i === 0 ? null : i === 1 ? true : i % 7 === 0 ? i : `key ${i}`);
const list = (r, below, make) => Array.from({ length: r.below(below) }, make);

/** Numbers are whole or quarters, so that sums are exact in any order. */
export function randomItems(r, count) {
    const numbers = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
        const j = r.below(i + 1);
        [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
    }
    return numbers.map((u, i) => ({
        id: `item ${i}`,
        ...(r.chance(95) && { pk: key(r.below(KEYS)) }),
        u, // each once
        n: r.below(12) - 3,
        kind: `k${1 + r.below(4)}`, // true, always
        q: (r.below(80) - 40) / 4,
        s: r.pick(TEXTS),
        b: r.chance(40),
        ...(r.chance(85) && { m: r.pick(MIXED) }),
        ...(r.chance(80) && { o: { ...(r.chance(80) && { x: r.below(5) }), y: r.pick(TEXTS) } }),
        ...(r.chance(90) && { t: list(r, 4, () => r.pick(TAGS)) }),
        ...(r.chance(70) && { w: list(r, 3, () => ({ k: r.pick(TEXTS), v: r.below(6) })) }),
    }));
}

// ---- filters ----

const PATHS = ["u", "n", "kind", "q", "s", "b", "m", "o.x", "o.y", "t[0]", "pk", "none", "lower", "id"];
const NUMBERS = ["u", "n", "q", "o.x", "m"];
const TYPE_TESTS = ["IS_DEFINED", "IS_NUMBER", "IS_STRING", "IS_NULL", "IS_PRIMITIVE"];
const TEXT_TESTS = ["STARTSWITH", "CONTAINS", "ENDSWITH"];
const STRINGS = ["s", "kind", "o.y", "m", "lower"];

class Writer {
    parameters = [];

    constructor(r) {
        this.r = r;
    }

    /** A constant, as a literal or a parameter. */
    value(value) {
        if (!this.r.chance(25)) return JSON.stringify(value);
        const name = `@p${this.parameters.length}`;
        this.parameters.push({ name, value });
        return name;
    }

    constant(path) {
        const { r } = this;
        if (path === "pk") return this.value(key(r.below(KEYS)));
        if (path === "u") return this.value(r.below(200));
        if (["n", "q", "o.x"].includes(path)) return this.value(r.below(9) - 2);
        if (path === "kind") return this.value(`k${r.below(5)}`);
        if (["s", "o.y", "lower"].includes(path)) return this.value(r.pick(TEXTS));
        return this.value(r.pick(MIXED));
    }

    comparison() {
        const { r } = this;
        const path = r.pick(PATHS);
        const one = () => this.constant(path);
        switch (r.below(6)) {
            case 0:
                return `c.${path} IN (${Array.from({ length: 1 + r.below(4) }, one).join(", ")})`;
            case 1:
                return `c.${path} BETWEEN ${one()} AND ${one()}`;
            default:
                return `c.${path} ${r.pick(["=", "=", "!=", "<", "<=", ">", ">="])} ${one()}`;
        }
    }

    condition() {
        const { r } = this;
        switch (r.below(10)) {
            case 0:
                return `${r.pick(TYPE_TESTS)}(c.${r.pick(PATHS)})`;
            case 1:
                return `${r.pick(TEXT_TESTS)}(c.${r.pick(STRINGS)}, ${this.value(r.pick(["a", "b", "z"]))})`;
            case 2:
                return `ARRAY_CONTAINS(c.t, ${this.value(r.pick(TAGS))})`;
            case 3:
                return `EXISTS (SELECT VALUE 1 FROM e IN c.w WHERE e.v > ${this.value(r.below(6))})`;
            case 4:
                return `c.${r.pick(NUMBERS)} % 3 = ${r.below(3)}`;
            case 5:
                return this.ofKeys();
            default:
                return this.comparison();
        }
    }

    // What leads to some partitions only.
    ofKeys() {
        const { r } = this;
        if (r.chance(50)) return `c.pk = ${this.constant("pk")}`;
        const values = Array.from({ length: 2 + r.below(4) }, () => this.constant("pk"));
        return `c.pk IN (${values.join(", ")})`;
    }

    filter(depth = 2) {
        const { r } = this;
        const kind = depth === 0 ? 3 : r.below(6);
        if (kind === 0) return `(${this.filter(depth - 1)} AND ${this.filter(depth - 1)})`;
        if (kind === 1) return `(${this.filter(depth - 1)} OR ${this.filter(depth - 1)})`;
        if (kind === 2 && r.chance(40)) return `NOT (${this.filter(depth - 1)})`;
        return this.condition();
    }

    where() {
        return this.r.chance(55) ? ` WHERE ${this.filter()}` : "";
    }
}

// ---- queries ----
//
// `keys`      of a row, what it is ordered by; without them the order is not defined
// `isUnique`  no two rows have the same keys
// `isCut`     it has TOP or OFFSET LIMIT; `uncut` is the query without
// `isPlanned` a client can merge it; `isForSdk` the official one does it right
// `hasLists`  arrays inside of rows may come in any order

const cut = (r) =>
    r.chance(50) ? [`TOP ${r.below(40)} `, ""] : ["", ` OFFSET ${r.below(30)} LIMIT ${r.below(30)}`];

/** The query `make(top, end)` with TOP or OFFSET LIMIT, or without. */
function maybeCut(r, percent, make) {
    const uncut = make("", "");
    if (!r.chance(percent)) return { query: uncut };
    return { query: make(...cut(r)), uncut, isCut: true };
}

const member = (row, path) => path.split("/").reduce((value, name) => value?.[name], row);
const dotted = (path) => `c.${path.replaceAll("/", ".")}`;

const PROJECTIONS = [
    "*", "c.id, c.u", "VALUE c.u", "c.id, c.m, c.o.x AS x", "VALUE {a: c.n, b: c.m}", "VALUE [c.s, c.m, c.q]",
    "VALUE c.m", "c.lower, c.b", "VALUE c.o", "VALUE c.n * 2 + c.q", "c.u, ARRAY(SELECT VALUE e.v FROM e IN c.w) AS v",
    "c.u, (SELECT COUNT(1) AS k, SUM(e.v) AS s FROM e IN c.w) AS w", "VALUE ARRAY_LENGTH(c.t)", "c.id, c.u, 'x' AS x",
];

function plain(r, w) {
    const where = w.where();
    const projection = r.pick(PROJECTIONS);
    return { ...maybeCut(r, 25, (top, end) => `SELECT ${top}${projection} FROM c${where}${end}`), isForSdk: true };
}

const JOINS = [
    ["JOIN t IN c.t", "c.u, t", "t"],
    ["JOIN e IN c.w", "c.u, e.k, e.v", "e.v"],
    ["JOIN t IN c.t JOIN e IN c.w", "c.u, t, e.v", "e.k"],
    ["JOIN (SELECT VALUE e FROM e IN c.w WHERE e.v > 1) AS f", "c.u, f", "f.v"],
];

function joined(r, w) {
    const [join, projection, value] = r.pick(JOINS);
    const what = r.pick([projection, `VALUE ${value}`]);
    const where = w.where();
    return { ...maybeCut(r, 25, (top, end) => `SELECT ${top}${what} FROM c ${join}${where}${end}`), isForSdk: true };
}

function fromSubquery(r, w) {
    const where = w.where();
    return r.pick([
        { query: `SELECT VALUE s.u FROM (SELECT VALUE c FROM c${where}) AS s`, isForSdk: true },
        { query: `SELECT s.x, s.y FROM (SELECT VALUE c.o FROM c${where}) AS s`, isForSdk: true },
        { query: `SELECT VALUE t FROM t IN c.t WHERE t != ${w.value(r.pick(TAGS))}`, isForSdk: true },
        { query: "SELECT * FROM c.o", isForSdk: true },
    ]);
}

// Paths with how often a value comes twice, and whether all have one type: the SDK can sort only such.
const ORDERS = [
    ["u", true, true], ["n", false, true], ["q", false, true], ["s", false, true], ["kind", false, true],
    ["b", false, true], ["m", false, false], ["o/x", false, false], ["o/y", false, false], ["lower", false, true],
    ["none", false, false],
];

function orderOf(r) {
    if (r.chance(60)) {
        const [path, isUnique, isForSdk] = r.pick(ORDERS);
        return { paths: [path], directions: [r.pick(["", " ASC", " DESC"])], isUnique, isForSdk };
    }
    const columns = r.pick(COMPOSITES);
    const isReversed = r.chance(50);
    const paths = columns.map(([path]) => path);
    return {
        paths,
        directions: columns.map(([, order]) => ((order === "descending") !== isReversed ? " DESC" : " ASC")),
        isUnique: paths.includes("u"),
        isForSdk: !paths.some((path) => ["m", "o/x"].includes(path)),
    };
}

function ordered(r, w) {
    const { paths, directions, isUnique, isForSdk } = orderOf(r);
    const by = paths.map((path, i) => dotted(path) + directions[i]).join(", ");
    const where = w.where();
    const names = paths.map((path, i) => `${dotted(path)} AS k${i}`).join(", ");
    const inKeys = (row) => paths.map((_, i) => row[`k${i}`]);
    const inRow = (row) => paths.map((path) => member(row, path));
    // What is computed is not in the item.
    const isStored = !paths.includes("lower");
    const [what, keys, join = ""] = r.pick([
        isStored ? ["*", inRow] : [`${names}, c.id`, inKeys],
        [`${names}, c.id, c.u`, inKeys],
        [names, inKeys],
        [`VALUE {${paths.map((path, i) => `k${i}: ${dotted(path)}`).join(", ")}, n: c.n}`, inKeys],
        [`${names}, t`, inKeys, " JOIN t IN c.t"],
        [`${names}, e.v`, inKeys, " JOIN e IN c.w"],
    ]);
    return {
        ...maybeCut(r, 50, (top, end) => `SELECT ${top}${what} FROM c${join}${where} ORDER BY ${by}${end}`),
        keys,
        isUnique: isUnique && join === "",
        isForSdk,
    };
}

function distinct(r, w) {
    const where = w.where();
    if (r.chance(40)) {
        const path = r.pick(["s", "n", "kind", "o.x", "q", "m"]);
        const direction = r.pick(["", " DESC"]);
        return {
            ...maybeCut(r, 40, (top, end) =>
                `SELECT DISTINCT ${top}VALUE c.${path} FROM c${where} ORDER BY c.${path}${direction}${end}`),
            keys: (row) => [row],
            isUnique: path !== "m", // two arrays are different, but not in the order
            isForSdk: path === "kind",
        };
    }
    const [what, isForSdk, join = ""] = r.pick([
        ["VALUE c.kind", true], ["c.kind, c.n", true], ["VALUE c.m", false], ["c.s, c.b", true], ["VALUE c.o", true],
        ["c.m, c.o.x", false], ["VALUE t", false, " JOIN t IN c.t"], ["e.k, e.v", true, " JOIN e IN c.w"],
        ["VALUE c.lower", false], ["VALUE [c.kind, c.b]", true], ["c.none", false],
    ]);
    return {
        ...maybeCut(r, 25, (top, end) => `SELECT DISTINCT ${top}${what} FROM c${join}${where}${end}`),
        isForSdk,
    };
}

// Aggregates with whether the SDK adds them up right: a sum of what may be no number, or COUNTIF, it does not.
const AGGREGATES = [
    ["COUNT(1)", true], ["COUNT(c.m)", true], ["COUNT(c.o.x)", true], ["SUM(c.q)", true], ["SUM(c.n * 2)", true],
    ["SUM(c.m)", false], ["AVG(c.u)", false], ["AVG(c.o.x)", false], ["MIN(c.n)", false], ["MIN(c.s)", false],
    ["MIN(c.m)", false], ["MAX(c.u)", false], ["MAX(c.m)", false], ["MAX(c.s)", false], ["COUNTIF(c.n > 2)", false],
    ["SUM(c.none)", false], ["MAX(c.none)", false], ["AVG(c.none)", false], ["MAX(ARRAY_LENGTH(c.t))", false],
    ["MAKELIST(c.u)", true], ["MAKESET(c.kind)", true], ["MAKESET(c.m)", false], ["MAKELIST(c.o)", false],
];
const hasLists = (text) => text.includes("MAKE");

function some(r, count) {
    return Array.from({ length: count }, () => r.pick(AGGREGATES));
}

function aggregated(r, w) {
    const where = w.where();
    const [join, of] = r.pick([["", null], ["", null], ["", null], [" JOIN e IN c.w", "e.v"], [" JOIN t IN c.t", "t"]]);
    const chosen = some(r, 1 + r.below(4)).map(([text, isForSdk]) =>
        of && r.chance(50) ? [text.replace(/c\.\w+(\.x)?/, of), false] : [text, isForSdk]);
    const isForSdk = chosen.every(([, can]) => can);
    if (r.chance(40)) {
        const query = `SELECT VALUE ${chosen[0][0]} FROM c${join}${where}`;
        return { query, isForSdk: chosen[0][1], hasLists: hasLists(query) };
    }
    const named = chosen.map(([text], i) => (r.chance(70) ? `${text} AS a${i}` : text)).join(", ");
    return { query: `SELECT ${named} FROM c${join}${where}`, isForSdk, hasLists: hasLists(named) };
}

const GROUPS = ["c.kind", "c.n", "c.s", "c.m", "c.o.x", "c.lower", "c.b", "c.o", "c.pk", "c.n % 3", "c.none"];

function grouped(r, w) {
    const where = w.where();
    const by = [...new Set([r.pick(GROUPS), ...(r.chance(40) ? [r.pick(GROUPS)] : [])])];
    const chosen = some(r, r.below(4));
    // The SDK cannot add up nothing to something.
    const isForSdk = chosen.every(([, can]) => can);
    const names = by.map((text, i) => `${text} AS g${i}`);
    const aggregates = chosen.map(([text], i) => `${text} AS a${i}`);
    const isValue = r.chance(25);
    const what = isValue ? `VALUE ${chosen.length > 0 ? chosen[0][0] : by[0]}` : [...names, ...aggregates].join(", ");
    const make = (top, end) => `SELECT ${top}${what} FROM c${where} GROUP BY ${by.join(", ")}${end}`;
    return { ...maybeCut(r, 20, make), isForSdk, hasLists: hasLists(what) };
}

function groupedRows(r, w) {
    const where = w.where();
    const [join, by, aggregate] = r.pick([
        ["JOIN t IN c.t", "t", "COUNT(1)"],
        ["JOIN e IN c.w", "e.k", "SUM(e.v)"],
        ["JOIN e IN c.w", "e.v", "AVG(c.q)"],
    ]);
    return { query: `SELECT ${by} AS g, ${aggregate} AS a FROM c ${join}${where} GROUP BY ${by}`, isForSdk: true };
}

function counted(r, w) {
    const of = r.pick(["VALUE c.kind", "VALUE c.m", "c.n, c.kind", "VALUE c.lower", "VALUE c.o.x"]);
    const what = r.pick(["VALUE COUNT(1)", "COUNT(1) AS k", "COUNT(1)"]);
    return { query: `SELECT ${what} FROM (SELECT DISTINCT ${of} FROM c${w.where()})`, isForSdk: false };
}

/** What the server runs whole and no client can merge. */
function composed(r, w) {
    const where = w.where();
    return {
        query: r.pick([
            `SELECT VALUE MAX(c.u) - MIN(c.u) FROM c${where}`,
            `SELECT SUM(c.q) / COUNT(1) AS mean, COUNT(1) + 1 AS k FROM c${where}`,
            `SELECT c.kind, MAX(c.u) + 1 AS most FROM c${where} GROUP BY c.kind`,
            `SELECT s.kind, s.k FROM (SELECT c.kind, COUNT(1) AS k FROM c${where} GROUP BY c.kind) AS s WHERE s.k > 1`,
            `SELECT VALUE SUM(s.k) FROM (SELECT c.n, COUNT(1) AS k FROM c${where} GROUP BY c.n) AS s`,
        ]),
        isPlanned: false,
        isForSdk: false,
    };
}

const KINDS = [
    plain, plain, joined, fromSubquery, ordered, ordered, ordered, ordered, distinct, distinct, aggregated, aggregated,
    grouped, grouped, groupedRows, counted, composed,
];

export function randomQuery(r) {
    const writer = new Writer(r);
    const made = { isPlanned: true, ...r.pick(KINDS)(r, writer) };
    const { parameters } = writer;
    return { ...made, ...(parameters.length > 0 && { parameters }) };
}

// ---- comparing ----

const SYSTEM = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);

/** A value as text; members in the order of their names, and arrays sorted if their order is not defined. */
export function textOf(value, areListsSorted = false) {
    if (value === undefined) return "undefined";
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    if (Array.isArray(value)) {
        const texts = value.map((one) => textOf(one, areListsSorted));
        return `[${(areListsSorted ? texts.sort() : texts).join(",")}]`;
    }
    const names = Object.keys(value).filter((name) => value[name] !== undefined && !SYSTEM.has(name)).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${textOf(value[name], areListsSorted)}`).join(",")}}`;
}

function countsOf(texts) {
    const counts = new Map();
    for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
    return counts;
}

/** Those of a list that another has not, or not as often. */
function surplus(texts, others) {
    const left = countsOf(others);
    return texts.filter((text) => {
        const count = left.get(text) ?? 0;
        left.set(text, count - 1);
        return count === 0;
    });
}

/** Keys as text: in ORDER BY all arrays are the same, and all objects. */
const keysText = (keys) =>
    textOf(keys.map((key) => (Array.isArray(key) ? "array" : key !== null && typeof key === "object" ? "object" : key)));

const few = (list) => list.slice(0, 3).map((text) => text.slice(0, 200)).join(" ");

/** How the rows of one answer differ from those of another (both without limits in `whole`); or nothing. */
export function difference(spec, rows, expected, whole = expected) {
    if (rows.length !== expected.length) return `${rows.length} rows, expected ${expected.length}`;
    if (spec.keys)
        for (const [i, row] of rows.entries()) {
            const [found, wanted] = [row, expected[i]].map((one) => keysText(spec.keys(one)));
            if (found !== wanted) return `row ${i} has the key ${found}, expected ${wanted}`;
        }
    const text = (row) => textOf(row, spec.hasLists);
    const isExact = !spec.isCut || spec.isUnique;
    const extra = surplus(rows.map(text), (isExact ? expected : whole).map(text));
    return extra.length === 0 ? undefined : `${extra.length} rows too many: ${few(extra)}`;
}
