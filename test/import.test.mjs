// `orrery import`: every format, ids and keys, bad rows, throttling, and that nothing is lost or written
// twice when it is killed and resumed. What it writes is read back with the SDK or compared by digest.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";

import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { KEY } from "./lib/definition.mjs";
import { SIZES, contentOf, newContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ofOneNode, run, sharedServer, startServer, temporaryFolder } from "./lib/server.mjs";
import { digestOf, isBulk, proxyOf, start, transfer, transferred } from "./lib/transfer.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const { database } = await clientOf(server).databases.create({ id: "import" });
const folder = temporaryFolder();

let files = 0;
function file(name, content) {
    const path = join(folder, `${files++}-${name}`);
    writeFileSync(path, content);
    return path;
}
const lines = (items) => items.map((item) => JSON.stringify(item) + "\n").join("");
const allOf = async (container) =>
    (await container.items.readAll().fetchAll()).resources.map(contentOf).sort((a, b) => (a.id < b.id ? -1 : 1));
const sorted = (items) => [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
const someItems = (count, more = {}) =>
    Array.from({ length: count }, (_, i) => ({ id: `${i}`, pk: `p${i % 13}`, n: i / 4, text: "x".repeat(i % 40), ...more }));

// Values of every kind, which every format must keep.
const VARIED = [
    { id: "1", pk: "a", n: 1.5, t: true, f: false, z: null, e: "", o: {}, l: [] },
    { id: "2", pk: "b", deep: { a: { b: ["x", { y: 1 }, null] } }, "a.b": "dot", "q[0]": "bracket" },
    { id: "3", pk: "007", n: "1", t: "true", z: "null", e: "{}", s: 'a,b"c\r\nd\té中😀' },
    { id: "4", pk: 7, n: 9007199254740993000, m: -1e-300, deep: 7 },
    { id: "5", pk: null, tags: [["a"], []] },
    { id: "6", tags: "no key" },
    { id: "/ é?#".replace(/[/?#]/g, "_"), pk: "clé", n: -0.5 },
];

for (const size of SIZES) {
    test(`what is exported is imported again, in every format, ${size.partitions} partitions`, async () => {
        const source = await newContainer(database, size);
        const items = [...VARIED, ...someItems(400).map((item) => ({ ...item, id: `more${item.id}` }))];
        await transferred("import", server, source, ["--quiet", file("varied.jsonl", lines(items))]);
        assert.deepEqual(await allOf(source), sorted(items));
        const digest = await digestOf(server, source);
        assert.equal(digest.split(" ")[1], `${items.length}`);
        for (const name of ["a.jsonl", "a.json", "a.csv", "a.jsonl.gz", "a.json.zst", "a.csv.gz", "a.csv.zst"]) {
            const path = join(folder, `${size.partitions}-${name}`);
            const strip = name.length % 2 === 0 ? ["--strip-system"] : [];
            const exported = await transferred("export", server, source, ["--digest", "--output", path, ...strip]);
            assert.equal(exported.stdout.trim(), digest, name);
            const copy = await newContainer(database, size);
            const imported = await transferred("import", server, copy, ["--digest", path]);
            assert.equal(imported.stdout.trim(), digest, name);
            assert.equal(await digestOf(server, copy), digest, name);
        }
        const copy = await newContainer(database, size);
        const whole = await transferred("export", server, source, ["--quiet"]);
        await transferred("import", server, copy, ["--quiet", "-"], { input: whole.stdout });
        assert.equal(await digestOf(server, copy), digest, "through standard output and input");
    });
}

test("cells of CSV have types, unless they are kept as text", async () => {
    const csv =
        "\ufeffid,n,zip,ok,none,quoted,address.city,address.geo[0],address.geo[1],missing\r\n" +
        '1,12.5,00123,true,null,"12",Bern,46.9,7.4,\r\n' +
        '2,-1e3,1.,no,NULL,"a ""b"", c\n",,1,,x\r\n';
    const typed = await newContainer(database);
    await transferred("import", server, typed, [file("a.csv", csv), "--set", "/pk={zip}"]);
    assert.deepEqual(await allOf(typed), [
        {
            ...{ id: "1", n: 12.5, zip: "00123", ok: true, none: null, quoted: "12" },
            ...{ address: { city: "Bern", geo: [46.9, 7.4] }, pk: "00123" },
        },
        {
            ...{ id: "2", n: -1000, zip: "1.", ok: "no", none: "NULL", quoted: 'a "b", c\n' },
            ...{ address: { geo: [1] }, missing: "x", pk: "1." },
        },
    ]);
    const text = await newContainer(database);
    await transferred("import", server, text, [file("b.tsv", "id\tn\tok\te\n1\t12\ttrue\t\n"), "--csv-strings"]);
    assert.deepEqual(await allOf(text), [{ id: "1", n: "12", ok: "true", e: "" }]);
    const semicolon = await newContainer(database);
    await transferred("import", server, semicolon, ["--format", "csv", "--delimiter", ";", "-"], { input: "id;a\n1;2,5\n" });
    assert.deepEqual(await allOf(semicolon), [{ id: "1", a: "2,5" }]);
});

test("ids and keys are made of other properties", async () => {
    const container = await newContainer(database);
    const rows = [
        { order: 7, user: "ada", date: "2024-01-01", _ts: 1, _rid: "x" },
        { order: 8, user: "bob", date: "2024-01-02", deep: { a: [1] } },
    ];
    const args = ["--id-from", "/order", "--set", "/pk={user}-{date}", "--set", "/source=shop {{1}}", "--set", "/copy={deep.a[0]}"];
    const { stderr } = await transferred("import", server, container, [...args, file("a.json", JSON.stringify(rows))], { code: 1 });
    assert.match(stderr, /a\.json:1: the row has no 'deep\.a\[0\]'/);
    assert.deepEqual(await allOf(container), [
        { id: "8", order: 8, user: "bob", date: "2024-01-02", deep: { a: [1] }, pk: "bob-2024-01-02", source: "shop {1}", copy: 1 },
    ]);
});

test("a row without an id gets one that is the same each time", async () => {
    const container = await newContainer(database);
    const rows = Array.from({ length: 50 }, (_, i) => ({ pk: `p${i % 3}`, same: "row" }));
    const path = file("a.jsonl", lines(rows));
    await transferred("import", server, container, [path]);
    const first = await allOf(container);
    assert.equal(first.length, 50);
    for (const { id } of first) assert.match(id, /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
    await transferred("import", server, container, [path]);
    assert.deepEqual(await allOf(container), first, "nothing is there twice");
});

test("of two versions of an item in one file the last one is written", async () => {
    const container = await newContainer(database, SIZES[1]);
    const rows = Array.from({ length: 3000 }, (_, i) => ({ id: `${i % 7}`, pk: `p${i % 7}`, version: i }));
    await transferred("import", server, container, [file("a.jsonl", lines(rows))]);
    const found = await allOf(container);
    assert.deepEqual(
        found.map(({ version }) => version),
        Array.from({ length: 7 }, (_, id) => Math.max(...rows.filter((row) => row.id === `${id}`).map(({ version }) => version))),
    );
});

test("bad rows are kept with their reason, and the others are written", async () => {
    const container = await newContainer(database);
    const text = [
        '{"id":"1","pk":"a"}',
        '{"id":"2",',
        "",
        "7",
        '{"id":"x/y","pk":"a"}',
        `{"id":"big","pk":"a","text":"${"x".repeat(2_200_000)}"}`,
        '{"id":["3"]}',
        '{"id":"4","pk":"a"}',
    ].join("\n");
    const path = file("bad.jsonl", text);
    const rejects = join(folder, "rejects.jsonl");
    const { stderr } = await transferred("import", server, container, ["--rejects", rejects, path], { code: 1 });
    assert.match(stderr, /^2 items written, 5 rejected/m);
    const found = readFileSync(rejects, "utf8").trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(
        found.map(({ file: name, line }) => [name, line]),
        [2, 4, 5, 6, 7].map((line) => [path, line]),
        "in the order of the file",
    );
    assert.match(found[0].reason, /at byte \d+/);
    assert.equal(found[0].row, '{"id":"2",');
    assert.match(found[1].reason, /must be a JSON object/);
    assert.match(found[2].reason, /the server answered 400/);
    assert.match(found[3].reason, /the server answered 413/);
    assert.match(found[4].reason, /the id must be text/);
    assert.deepEqual((await allOf(container)).map(({ id }) => id), ["1", "4"]);

    const printed = await transferred("import", server, container, [path], { code: 1 });
    assert.match(printed.stderr, /bad\.jsonl:2: /, "without a file they are printed");
});

test("folders, several files, and files that cannot be read", async () => {
    const container = await newContainer(database);
    const root = join(folder, "tree");
    mkdirSync(join(root, "sub"), { recursive: true });
    writeFileSync(join(root, "a.jsonl"), lines([{ id: "1", pk: "a" }]));
    writeFileSync(join(root, "sub", "b.json"), JSON.stringify({ id: "2", pk: "a" }, null, 4));
    writeFileSync(join(root, "sub", "c.csv.gz"), gzipSync("id,pk\n3,a\n"));
    writeFileSync(join(root, "d.jsonl.gz"), gzipSync(lines(someItems(1000))).subarray(0, 500));
    writeFileSync(join(root, ".hidden"), "nonsense");
    const more = file("more.json", JSON.stringify([{ id: "4", pk: "a" }]));
    const { stderr } = await transferred("import", server, container, [root, more], { code: 1 });
    assert.match(stderr, /d\.jsonl\.gz:0: .*ends in the middle of its compressed data/);
    const ids = new Set((await allOf(container)).map(({ id }) => id));
    for (const id of ["1", "2", "3", "4"]) assert.ok(ids.has(id), id);
    const missing = await transferred("import", server, container, [join(folder, "nothing")], { code: 1 });
    assert.match(missing.stderr, /cannot read/);
});

test("database and container are made, with one path or several", async () => {
    const args = ["--create", "--partition-key", "/tenant,/user", "--throughput", "1000"];
    const named = { id: "made", database: { id: "made" } };
    const path = file("a.jsonl", lines([{ id: "1", tenant: "t", user: "u" }]));
    await transferred("import", server, named, [...args, path]);
    const container = clientOf(server).database("made").container("made");
    const { resource } = await container.read();
    assert.deepEqual(resource.partitionKey.paths, ["/tenant", "/user"]);
    assert.equal(resource.partitionKey.kind, "MultiHash");
    assert.equal((await container.readOffer()).resource.content.offerThroughput, 1000);
    assert.equal((await container.item("1", ["t", "u"]).read()).statusCode, 200);
    await transferred("import", server, named, [...args, path], {}); // it exists already
    const other = await transferred("import", server, named, ["--partition-key", "/pk", path], { code: 1 });
    assert.match(other.stderr, /partition key is not \/pk/);
    const absent = await transferred("import", server, { id: "none", database: { id: "none" } }, [path], { code: 1 });
    assert.match(absent.stderr, /answered 404/);
});

// ---- an advised key ----

const sales = (count) =>
    Array.from({ length: count }, (_, i) => ({
        id: `o${i}`,
        user: `u${(i * 7919) % 701}`,
        country: ["de", "fr", "in"][i % 3],
        day: `2026-01-${String(1 + Math.floor((i * 28) / count)).padStart(2, "0")}`,
    }));
const ADVISED = ["--create", "--partition-key", "advise"];
const toAdvised = (id) => ({ id, database: { id: "advised" } });
const keyOf = async (id) =>
    (await clientOf(server).database("advised").container(id).read()).resource.partitionKey.paths;

test("--partition-key advise chooses the key of a new container, also of standard input", async () => {
    const rows = sales(3000);
    const { stderr } = await transferred("import", server, toAdvised("file"), [...ADVISED, file("a.jsonl", lines(rows))]);
    assert.match(stderr, /partition key \/user, advised by 3000 of the rows: 701 values, the most frequent has 0\.2%/);
    assert.match(stderr, /next best: /);
    assert.deepEqual(await keyOf("file"), ["/user"]);
    const digest = await digestOf(server, toAdvised("file"));
    assert.equal(digest.split(" ")[1], "3000");
    // What was read of a pipe to choose is imported as well, compressed or not.
    for (const [id, input] of [["pipe", lines(rows)], ["packed", gzipSync(lines(rows))]]) {
        await transferred("import", server, toAdvised(id), [...ADVISED, "--quiet", "-"], { input });
        assert.deepEqual(await keyOf(id), ["/user"]);
        assert.equal(await digestOf(server, toAdvised(id)), digest, id);
    }
    // Properties that are set count too, and a container that exists keeps its key.
    const few = rows.map(({ id, country, day }) => ({ id, country, day, a: `${Number(id.slice(1)) % 40}`, b: `${Number(id.slice(1)) % 37}` }));
    const args = [...ADVISED, "--set", "/pk={a}-{b}", "--set", "/id={id}-{country}-{day}"];
    const set = await transferred("import", server, toAdvised("set"), [...args, file("b.jsonl", lines(few))]);
    assert.match(set.stderr, /advised by/);
    const again = await transferred("import", server, toAdvised("file"), [...ADVISED, file("c.jsonl", lines(few))]);
    assert.doesNotMatch(again.stderr, /advised by/);
    assert.deepEqual(await keyOf("file"), ["/user"]);
});

test("--partition-key advise refuses where nothing fits, and makes nothing", async () => {
    const rows = Array.from({ length: 2000 }, (_, i) => ({ country: ["de", "fr", "in"][i % 3], ok: i % 2 === 0 }));
    const args = [...ADVISED, "--set", "/id={country}-{ok}"];
    const { stderr } = await transferred("import", server, toAdvised("none"), [...args, file("a.jsonl", lines(rows))], { code: 1 });
    assert.match(stderr, /no property of the rows is a good partition key\..*Nothing was made/s);
    await assert.rejects(keyOf("none"), { code: 404 });
    const empty = await transferred("import", server, toAdvised("none"), [...ADVISED, file("b.jsonl", "\n")], { code: 1 });
    assert.match(empty.stderr, /no rows to learn a partition key from/);
    const bad = await transferred("import", server, toAdvised("none"), [...ADVISED, file("c.jsonl", "{nonsense\n")], { code: 1 });
    assert.match(bad.stderr, /no rows to learn a partition key from/);
    const late = await transferred("import", server, toAdvised("file"), ["--partition-key", "advise", "-"], { code: 2, input: "" });
    assert.match(late.stderr, /advise is for --create/);
});

test("a server that throttles is waited for", async (t) => {
    const throttled = await startServer(t, { isThrottled: true, args: ["--durability", "relaxed", "--no-burst"] });
    const { database: own } = await clientOf(throttled).databases.create({ id: "slow" });
    const container = await newContainer(own, { throughput: 400 });
    const items = someItems(300);
    const { stderr } = await transferred("import", throttled, container, [file("a.jsonl", lines(items))]);
    assert.match(stderr, /^300 items written, /m);
    assert.match(stderr, / [1-9][\d,]* throttled/);
    assert.equal((await digestOf(throttled, container)).split(" ")[1], "300");
});

test("--max-ru is not exceeded", async () => {
    const container = await newContainer(database);
    const begun = performance.now();
    const { stderr } = await transferred("import", server, container, ["--max-ru", "1000", file("a.jsonl", lines(someItems(600)))]);
    const elapsed_s = (performance.now() - begun) / 1000;
    const ru = Number(/ (\d+) RU/.exec(stderr)[1]);
    assert.ok(ru > 3000, `${ru} RU`);
    // A second's units may be used at once, and the last request may cost more than was thought.
    assert.ok(ru <= 1000 * (elapsed_s + 1) + 250, `${ru} RU in ${elapsed_s} s`);
});

const written = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).written : 0);

for (const withIds of [true, false]) {
    test(`killed in the middle and resumed, ${withIds ? "with" : "without"} ids`, async (t) => {
        const container = await newContainer(database, SIZES[1]);
        const rows = someItems(3000).map(({ id, ...rest }) => (withIds ? { id, ...rest } : rest));
        rows.splice(1000, 0, { id: ["bad"] }); // one of them is rejected
        const path = file("big.jsonl", lines(rows));
        const resume = join(folder, `resume-${withIds}`);
        const rejects = join(folder, `resume-rejects-${withIds}`);
        const args = ["--resume", resume, "--rejects", rejects, "--digest", path];
        for (let i = 0; i < 2; i++) {
            // After a few requests the server takes its time, until the import has noted that rows are done;
            // then it is silent, and the process is killed.
            const before = written(resume);
            const isNoted = () => written(resume) > before;
            let bulks = 0;
            const proxy = await proxyOf(t, server, async (incoming) => {
                if (!isBulk(incoming) || ++bulks <= 7) return undefined;
                await until(isNoted, { timeout_ms: 1500 }).catch(() => {});
                return isNoted() ? new Promise(() => {}) : undefined;
            });
            const child = start("import", proxy.endpoint, container, [...args, "--concurrency", "5"]);
            await until(isNoted, { timeout_ms: 60_000 });
            child.kill("SIGKILL");
            assert.equal((await child.done).signal, "SIGKILL");
        }
        assert.ok(written(resume) < 3000);
        const { stdout, stderr } = await transferred("import", server, container, args, { code: 1 });
        assert.match(stderr, /3,000 items written, 1 rejected.*earlier runs/);
        assert.equal(stdout.trim(), await digestOf(server, container));
        assert.equal((await allOf(container)).length, 3000);
        assert.equal(readFileSync(rejects, "utf8").trim().split("\n").length, 1, "one reject, not two");

        const again = await transferred("import", server, container, args, { code: 1 });
        assert.equal(again.stdout, stdout, "what is finished stays so");
        writeFileSync(path, lines(rows.slice(0, 10)));
        const changed = await transferred("import", server, container, args, { code: 1 });
        assert.match(changed.stderr, /other options or files/);
    });
}

test("an interrupt ends it cleanly, and it goes on from there", async (t) => {
    const container = await newContainer(database);
    const resume = join(folder, "interrupted");
    const args = ["--resume", resume, "--digest", file("a.jsonl", lines(someItems(2000)))];
    let bulks = 0;
    let child;
    const proxy = await proxyOf(t, server, (incoming) => {
        if (isBulk(incoming) && ++bulks === 8) child.kill("SIGINT");
    });
    child = start("import", proxy.endpoint, container, [...args, "--concurrency", "4"]);
    const stopped = await child.done;
    assert.equal(stopped.code, 1, stopped.stderr);
    assert.match(stopped.stderr, /the same command goes on from here/);
    const before = written(resume);
    assert.ok(before > 0 && before < 2000, `${before}`);
    assert.equal(stopped.stdout.trim().split(" ")[1], `${before}`, "everything acknowledged is noted");
    assert.equal((await digestOf(server, container)).split(" ")[1], `${before}`, "and nothing more was written");
    const { stdout } = await transferred("import", server, container, args);
    assert.equal(stdout.trim(), await digestOf(server, container));
});

test("an endpoint without bulk is written to one by one", async (t) => {
    const container = await newContainer(database);
    let refused = 0;
    const proxy = await proxyOf(t, server, (incoming) => {
        if (!isBulk(incoming)) return undefined;
        refused++;
        return { status: 400, headers: { "content-type": "application/json" }, body: '{"message":"no bulk here"}' };
    });
    const items = [...VARIED, ...someItems(500).map((item) => ({ ...item, id: `s${item.id}` }))];
    await transferred("import", proxy, container, [file("a.jsonl", lines(items))]);
    assert.ok(refused >= 3 && refused < 200, `${refused} attempts`);
    assert.deepEqual(await allOf(container), sorted(items));
});

test("failures of all kinds are tried again", async (t) => {
    const container = await newContainer(database, SIZES[1]);
    let count = 0;
    const proxy = await proxyOf(t, server, (incoming) => {
        if (!isBulk(incoming)) return undefined;
        count++;
        if (count % 5 === 1) return { status: 503, headers: {}, body: "" };
        if (count % 5 === 2) return { status: 429, headers: { "x-ms-retry-after-ms": "3" }, body: "" };
        if (count % 5 === 3) return { status: 410, headers: { "x-ms-substatus": "1002" }, body: "" };
        if (count % 5 === 4) {
            incoming.socket.destroy(); // the connection breaks
            return { status: 200, headers: {}, body: "" };
        }
        return undefined;
    });
    const items = someItems(1500);
    const { stdout } = await transferred("import", proxy, container, ["--digest", file("a.jsonl", lines(items))]);
    assert.equal(stdout.trim(), await digestOf(server, container));
    assert.equal(stdout.trim().split(" ")[1], "1500");
});

test("a server that is killed and comes back", async (t) => {
    const own = await startServer(t, { args: ["--durability", "relaxed"] });
    const { database: mine } = await clientOf(own).databases.create({ id: "killed" });
    const container = await newContainer(mine, SIZES[1]);
    let bulks = 0;
    const proxy = await proxyOf(t, own, async (incoming) => {
        if (!isBulk(incoming) || ++bulks !== 12) return;
        await own.kill();
        await own.start(); // on another port, which the proxy knows
    });
    const { stdout } = await transferred("import", proxy, container, ["--digest", file("a.jsonl", lines(someItems(4000)))]);
    assert.ok(bulks > 12);
    assert.equal(stdout.trim(), await digestOf(own, container));
    assert.equal(stdout.trim().split(" ")[1], "4000");
});

test("a wrong key ends it at once", async () => {
    const container = await newContainer(database);
    const key = Buffer.from("wrong").toString("base64");
    const path = file("a.jsonl", lines(someItems(3)));
    const { stderr } = await transferred("import", server, container, ["--key", key, path], { code: 1 });
    assert.match(stderr, /answered 401/);
    const closed = await transfer("import", { endpoint: "http://127.0.0.1:1" }, container, [path]);
    assert.equal(closed.code, 1);
    assert.match(closed.stderr, /cannot reach the server/);
});

test("partitions are split while it writes", async (t) => {
    const own = await startServer(t, { args: CHAOS });
    const { database: mine } = await clientOf(own).databases.create({ id: "split" });
    const container = await newContainer(mine);
    let bulks = 0;
    let isSplit = false;
    const proxy = await proxyOf(t, own, async (incoming) => {
        if (isBulk(incoming) && ++bulks === 10) {
            await moved(own, (await cause(own, container, "split", { parts: 3 })).event);
            isSplit = true;
        }
    });
    const { stdout } = await transferred("import", proxy, container, ["--digest", file("a.jsonl", lines(someItems(5000)))]);
    assert.ok(isSplit);
    assert.equal(stdout.trim(), await digestOf(own, container));
    assert.equal(stdout.trim().split(" ")[1], "5000");
});

test("HTTPS with a certificate that is trusted, or any", { skip: ofOneNode("the proxy has no TLS") }, async () => {
    const container = await newContainer(database);
    const path = file("a.jsonl", lines(someItems(20)));
    const tls = { endpoint: server.tlsEndpoint.replace("127.0.0.1", "localhost") };
    const cert = join(server.data, "tls-cert.pem");
    await transferred("import", tls, container, ["--cert", cert, path]);
    await transferred("import", tls, container, ["--insecure", path]);
    const { stderr } = await transferred("import", tls, container, [path], { code: 1 });
    assert.match(stderr, /certificate/);
});

test("the command line is checked", () => {
    const to = ["--database", "d", "--container", "c"];
    for (const [args, pattern] of [
        [[], /which file/],
        [["x"], /--database and --container are needed/],
        [[...to, "x", "--formt", "csv"], /did you mean '--format'/],
        [[...to, "x", "--format", "xml"], /--format must be/],
        [[...to, "x", "--create"], /--create needs --partition-key/],
        [[...to, "x", "--throughput", "400"], /is for --create/],
        [[...to, "x", "--concurrency", "0"], /from 1 to 1000/],
        [[...to, "x", "--max-ru", "fast"], /--max-ru must be/],
        [[...to, "x", "--delimiter", "ab"], /--delimiter must be/],
        [[...to, "x", "--cert", "a", "--insecure"], /exclude each other/],
        [[...to, "x", "--endpoint", "localhost"], /is not an endpoint/],
        [[...to, "x", "--key", "%"], /base64/],
    ]) {
        const { status, stderr } = run(["import", ...args]);
        assert.equal(status, 2, `${args.join(" ")}: ${stderr}`);
        assert.match(stderr, pattern);
    }
    const help = run(["import", "--help"]);
    assert.equal(help.status, 0);
    assert.match(help.stdout, /Usage: orrery import/);
    assert.match(run(["help"]).stdout, /import .*container/);
    assert.deepEqual(KEY.paths, ["/pk"], "what these tests take for granted");
});

test("templates that are none are refused before anything is written", async () => {
    const container = await newContainer(database);
    const path = file("a.jsonl", lines(someItems(3)));
    for (const [args, pattern] of [
        [["--set", "pk"], /expected PATH=TEMPLATE/],
        [["--set", "/pk={a"], /without its '}'/],
        [["--id-from", "a..b"], /is not the path/],
        [["--partition-key", "pk"], /is not a path/],
        [["--partition-key", "/a,"], /is not a path/],
    ]) {
        const { stderr } = await transferred("import", server, container, [...args, path], { code: 2 });
        assert.match(stderr, pattern);
    }
    assert.deepEqual(await allOf(container), []);
});
