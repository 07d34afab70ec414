// `orrery export`: all items exactly once, also while they change and partitions are split; queries;
// and exports that are killed and resumed. Round trips with `orrery import` are in import.test.mjs.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gunzipSync } from "node:zlib";

import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { SIZES, contentOf, fill, newContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, sharedServer, temporaryFolder } from "./lib/server.mjs";
import { rangesOf, sameIds } from "./lib/splits.mjs";
import { digestOf, isPage, proxyOf, start, transferred } from "./lib/transfer.mjs";

const server = await sharedServer({ args: CHAOS });
const { database } = await clientOf(server).databases.create({ id: "export" });
const folder = temporaryFolder();

let files = 0;
const path = (name) => join(folder, `${files++}-${name}`);
const rowsOf = (text) => text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
const readRows = (file) => rowsOf(readFileSync(file, "utf8"));

// Large enough for several pages a partition.
const someItems = (count, bytes = 10) =>
    Array.from({ length: count }, (_, i) => ({ id: `${i}`, pk: `p${i % 41}`, n: i, text: "x".repeat(bytes) }));

async function filled(count, { size = SIZES[0], bytes = 10 } = {}) {
    const container = await newContainer(database, size);
    const items = someItems(count, bytes);
    await fill(container, items);
    return { container, items };
}

const bySize = SIZES.map((size) => ({ size, made: filled(120, { size }) }));
for (const { size, made } of bySize) {
    test(`all items are written, with and without what the server adds, ${size.partitions} partitions`, async () => {
        const { container, items } = await made;
        const kept = rowsOf((await transferred("export", server, container, ["--quiet"])).stdout);
        sameIds(kept, items, "kept");
        for (const name of ["_rid", "_self", "_etag", "_attachments", "_ts"]) assert.ok(name in kept[0], name);
        const stripped = rowsOf((await transferred("export", server, container, ["--quiet", "--strip-system"])).stdout);
        const byNumber = stripped.sort((a, b) => a.n - b.n);
        assert.deepEqual(byNumber, items);
        const array = path("a.json");
        await transferred("export", server, container, ["--strip-system", "--output", array]);
        sameIds(JSON.parse(readFileSync(array, "utf8")), items, "array");
        const packed = path("a.jsonl.gz");
        await transferred("export", server, container, ["--output", packed]);
        sameIds(rowsOf(gunzipSync(readFileSync(packed)).toString()), items, "gzip");
    });

    test(`results of queries are written, merged where they must be, ${size.partitions} partitions`, async () => {
        const { container, items } = await made;
        const query = async (text, ...more) =>
            (await transferred("export", server, container, ["--quiet", "--query", text, ...more])).stdout;
        assert.equal(await query("SELECT VALUE COUNT(1) FROM c"), "120\n");
        const top = rowsOf(await query("SELECT TOP 5 c.id, c.n FROM c ORDER BY c.n DESC"));
        assert.deepEqual(top.map(({ n }) => n), [119, 118, 117, 116, 115]);
        sameIds(rowsOf(await query("SELECT * FROM c WHERE c.n < 50")), items.slice(0, 50), "filter");
        const keys = rowsOf(await query("SELECT DISTINCT VALUE c.pk FROM c"));
        assert.equal(new Set(keys).size, 41);
        assert.equal(keys.length, 41);
        const csv = await query("SELECT c.id, c.n FROM c WHERE c.n = 7", "--format", "csv");
        assert.equal(csv, 'id,n\r\n"7",7\r\n');
    });
}

test("a query that is wrong, and results that are no rows", async () => {
    const { container } = await bySize[0].made;
    const wrong = await transferred("export", server, container, ["--query", "SELEC"], { code: 1 });
    assert.match(wrong.stderr, /answered 400/);
    const scalar = ["--query", "SELECT VALUE c.n FROM c", "--format", "csv"];
    const { stderr } = await transferred("export", server, container, scalar, { code: 1 });
    assert.match(stderr, /cannot be a row of CSV/);
    const absent = await transferred("export", server, { id: "none", database }, [], { code: 1 });
    assert.match(absent.stderr, /answered 404/);
});

test("a container without items", async () => {
    const container = await newContainer(database);
    assert.equal((await transferred("export", server, container, ["--quiet"])).stdout, "");
    const array = path("empty.json");
    await transferred("export", server, container, ["--output", array]);
    assert.deepEqual(JSON.parse(readFileSync(array, "utf8")), []);
    assert.equal(await digestOf(server, container), `${"0".repeat(32)} 0`);
});

test("digests tell containers apart", async () => {
    const { container } = await filled(50);
    const { container: other } = await filled(50, { size: SIZES[1] });
    assert.equal(await digestOf(server, container), await digestOf(server, other));
    const before = await digestOf(server, container);
    await container.item("7", "p7").patch([{ op: "incr", path: "/n", value: 1 }]);
    assert.notEqual(await digestOf(server, container), before);
    await container.item("7", "p7").patch([{ op: "incr", path: "/n", value: -1 }]);
    assert.equal(await digestOf(server, container), before, "_etag and _ts do not count");
});

/** Runs an export through a proxy that calls `hook` with the number of each page that is asked for. */
async function exportWith(t, container, args, hook) {
    let pages = 0;
    const proxy = await proxyOf(t, server, (incoming) => (isPage(incoming) ? hook(++pages, incoming) : undefined));
    return { proxy, run: () => transferred("export", proxy, container, args), pages: () => pages };
}

for (const query of [[], ["--query", "SELECT * FROM c WHERE c.n >= 0"], ["--query", "SELECT * FROM c ORDER BY c.n"]]) {
    test(`1,000 items over splits and a merge, ${query[1] ?? "all"}`, async (t) => {
        const { container, items } = await filled(1000, { bytes: 20_000 });
        const output = path("split.jsonl");
        const move = async (what, body) => moved(server, (await cause(server, container, what, body)).event);
        const ids = async () => (await rangesOf(container)).map(({ id }) => id);
        const moves = {
            2: () => move("split", { parts: 3 }),
            4: async () => move("split", { range: (await ids())[0], parts: 2 }),
            6: async () => move("merge", { ranges: (await ids()).slice(0, 2) }),
        };
        let last = Promise.resolve(); // pages are asked for at the same time, and moves come one by one
        const hook = (page) => (page in moves ? (last = last.then(moves[page]).then(() => undefined)) : undefined);
        const { run: runIt, pages } = await exportWith(t, container, ["--digest", "--output", output, ...query], hook);
        const { stdout } = await runIt();
        assert.ok(pages() >= 6, `${pages()} pages, so all moves were made`);
        sameIds(readRows(output), items, "over splits");
        assert.equal(stdout.trim(), await digestOf(server, container));
    });
}

test("items that change meanwhile are written once", async (t) => {
    const { container, items } = await filled(1000, { bytes: 20_000 });
    let isBusy = true;
    let changed = 0;
    const writer = (async () => {
        for (let i = 0; isBusy; i = (i + 7) % 1000, changed++)
            await container.item(`${i}`, `p${i % 41}`).patch([{ op: "incr", path: "/n", value: 1000 }]);
    })();
    const output = path("changing.jsonl");
    const { run: runIt } = await exportWith(t, container, ["--output", output], async () => {
        const before = changed;
        await until(() => changed > before + 30);
    });
    await runIt();
    isBusy = false;
    await writer;
    sameIds(readRows(output), items, "changing");
});

test("failures and throttling are waited for", async (t) => {
    const { container, items } = await filled(600, { bytes: 20_000 });
    const output = path("failures.jsonl");
    const { run: runIt } = await exportWith(t, container, ["--output", output], (page, incoming) => {
        if (page % 4 === 1) return { status: 503, headers: {}, body: "" };
        if (page % 4 === 2) return { status: 429, headers: { "x-ms-retry-after-ms": "2" }, body: "" };
        if (page % 4 === 3) incoming.socket.destroy();
        return undefined;
    });
    const { stderr } = await runIt();
    assert.match(stderr, / [1-9]\d* throttled/);
    sameIds(readRows(output), items, "failures");
});

test("a page that is cut is not taken for a whole one", async (t) => {
    const { container } = await filled(20);
    const body = '{"_rid":"x","Documents":[{"id":"1"},{"id":"2"';
    for (const answer of [
        { status: 200, headers: {}, body },
        { status: 200, headers: { "x-ms-item-count": "3" }, body: `${body}}]}` },
    ]) {
        const proxy = await proxyOf(t, server, (incoming) => (isPage(incoming) ? answer : undefined));
        const { stderr } = await transferred("export", proxy, container, [], { code: 1 });
        assert.match(stderr, /not complete/);
    }
});

for (const name of ["a.jsonl", "a.json", "a.jsonl.gz", "a.jsonl.zst"]) {
    test(`killed in the middle and resumed: ${name}`, async (t) => {
        const { container } = await filled(1000, { bytes: 20_000 });
        const output = path(name);
        const resume = path("resume");
        const args = ["--digest", "--output", output, "--resume", resume];
        const digest = await digestOf(server, container);
        // The server is silent after a few pages, and the process is killed when it has noted them.
        const { proxy } = await exportWith(t, container, args, (page) => (page > 3 ? new Promise(() => {}) : undefined));
        const child = start("export", proxy.endpoint, container, args);
        await until(() => existsSync(resume) && JSON.parse(readFileSync(resume, "utf8")).written > 0, { timeout_ms: 60_000 });
        child.kill("SIGKILL");
        await child.done;
        writeFileSync(output, Buffer.concat([readFileSync(output), Buffer.from("torn")]));
        const { stdout, stderr } = await transferred("export", server, container, args);
        assert.match(stderr, /1,000 items read.*earlier runs/);
        assert.equal(stdout.trim(), digest);
        const copy = await newContainer(database);
        const imported = await transferred("import", server, copy, ["--digest", output]);
        assert.equal(imported.stdout.trim(), digest, "the file holds each item once");
        const again = await transferred("export", server, container, args, { code: 1 });
        assert.match(again.stderr, /is finished/);
    });
}

test("--max-ru is not exceeded", async () => {
    const { container } = await filled(1000, { bytes: 10_000 });
    const begun = performance.now();
    const { stderr } = await transferred("export", server, container, ["--max-ru", "200", "--output", "/dev/null"]);
    const elapsed_s = (performance.now() - begun) / 1000;
    const ru = Number(/ (\d+) RU/.exec(stderr)[1]);
    assert.ok(ru > 1000, `${ru} RU`);
    // A second's units may be used at once; what the last page costs is known when it is there.
    assert.ok(ru <= 200 * (elapsed_s + 1) + ru / 2, `${ru} RU in ${elapsed_s} s`);
});

test("an interrupt ends it cleanly", async (t) => {
    const { container, items } = await filled(1000, { bytes: 20_000 });
    const output = path("a.jsonl");
    const args = ["--output", output, "--resume", path("resume")];
    let child;
    const { proxy } = await exportWith(t, container, args, (page) => {
        if (page === 3) child.kill("SIGINT");
    });
    child = start("export", proxy.endpoint, container, args);
    const { code, stderr } = await child.done;
    assert.equal(code, 1, stderr);
    assert.match(stderr, /the same command goes on from here/);
    await transferred("export", server, container, args);
    sameIds(readRows(output).map(contentOf), items, "resumed");
});

test("the command line is checked", () => {
    const from = ["--database", "d", "--container", "c"];
    for (const [args, pattern] of [
        [[], /--database and --container are needed/],
        [[...from, "out.jsonl"], /named with --output/],
        [[...from, "--format", "xml"], /--format must be/],
        [[...from, "--compress", "lz4"], /--compress must be/],
        [[...from, "--resume", "x"], /--resume needs --output/],
        [[...from, "--output", "a.tsv"], /written with commas/],
        [[...from, "--resume", "x", "--output", "a.csv"], /cannot be used with CSV/],
        [[...from, "--concurrency", "101"], /from 1 to 100/],
    ]) {
        const { status, stderr } = run(["export", ...args]);
        assert.equal(status, 2, `${args.join(" ")}: ${stderr}`);
        assert.match(stderr, pattern);
    }
    const help = run(["export", "--help"]);
    assert.equal(help.status, 0);
    assert.match(help.stdout, /Usage: orrery export/);
});
