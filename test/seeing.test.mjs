// Statistics of partitions and keys agree with what clients were told, for every observer; `orrery top`.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { SIZES, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, run, sharedServer, startServer } from "./lib/server.mjs";
import { call, query, send, signed, unique } from "./lib/wire.mjs";

const DOCUMENT = readFileSync(join(ROOT, "docs/seeing.md"), "utf8");
const READ_ONLY = Buffer.from("only to look at").toString("base64");
const RELAXED = ["--durability", "relaxed"];

const server = await sharedServer({ args: [...RELAXED, "--read-only-key", READ_ONLY] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: unique("seen") });

const linkOf = (container) => `dbs/${container.database.id}/colls/${container.id}`;

/** A path under /_orrery, signed as what it is about. */
function look(at, what, { link = "", type = link === "" ? "" : "colls", key = at.key, headers } = {}) {
    const path = `/_orrery/${link === "" ? "" : `${link}/`}${what}`;
    return send(at.endpoint, { path, headers: headers ?? signed({ key, path, type, link }) });
}

async function view(at, container, what) {
    const answer = await look(at, what, { link: linkOf(container) });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

const cents = (units) => Math.round(units * 100);
const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);

/** What a tally of clients has been told: in all, and by key. */
class Told {
    total = 0;
    keys = new Map();

    note(charge, key) {
        this.total += cents(charge);
        if (key !== undefined) this.keys.set(key, (this.keys.get(key) ?? 0) + cents(charge));
    }
}

/** Asks for items in every way there is, each of which costs something. */
async function work(container, told) {
    const docs = `/${linkOf(container)}/docs`;
    const expectOk = (answer) => assert.ok(answer.status < 300, answer.text);
    for (let i = 0; i < 30; i++) {
        const pk = i % 3 === 0 ? "hot" : `cool-${i}`;
        const { requestCharge, item } = await container.items.create({ id: `${i}`, pk, n: i });
        told.note(requestCharge, pk);
        for (let reads = 0; reads < (pk === "hot" ? 20 : 2); reads++)
            told.note((await item.read()).requestCharge, pk);
        told.note((await item.replace({ id: `${i}`, pk, n: -i })).requestCharge, pk);
        told.note((await item.patch([{ op: "incr", path: "/n", value: 1 }])).requestCharge, pk);
    }
    const missing = await container.item("none", "hot").read();
    assert.equal(missing.statusCode, 404);
    told.note(missing.requestCharge, "hot");
    const batch = await container.items.batch(
        [
            { operationType: "Create", resourceBody: { id: "b1", pk: "hot" } },
            { operationType: "Read", id: "0" },
        ],
        "hot",
    );
    told.note(batch.headers["x-ms-request-charge"], "hot");
    const bulk = await container.items.bulk(
        ["x", "y", "z"].map((pk) => ({ operationType: "Create", resourceBody: { id: "bulk", pk } })),
    );
    for (const [i, { requestCharge }] of bulk.entries()) told.note(requestCharge, ["x", "y", "z"][i]);
    const queries = [
        ["SELECT * FROM c", { "x-ms-documentdb-partitionkey": '["hot"]' }, "hot"],
        ["SELECT * FROM c WHERE c.pk = 'cool-1'", {}, "cool-1"],
        ["SELECT VALUE COUNT(1) FROM c", {}, undefined],
    ];
    for (const [text, headers, pk] of queries) {
        const answer = await query(server, docs, text, {
            headers: { "x-ms-documentdb-query-enablecrosspartition": "True", ...headers },
        });
        expectOk(answer);
        told.note(answer.headers["x-ms-request-charge"], pk);
    }
    const list = await call(server, { path: docs });
    expectOk(list);
    told.note(list.headers["x-ms-request-charge"]);
    told.note((await container.item("b1", "hot").delete()).requestCharge, "hot");
}

for (const size of SIZES)
    test(`what clients were told is what is seen, with ${size.partitions} partitions`, async () => {
        const container = await newContainer(database, size);
        const told = new Told();
        const begun = Math.floor(Date.now() / 1000);
        await work(container, told);

        const layout = await view(server, container, "layout");
        assert.equal(layout.ranges.length, size.partitions);
        assert.equal(cents(layout.totals.ru.total), told.total);
        assert.equal(sum(layout.ranges.map(({ ru }) => cents(ru.total))), told.total);
        assert.equal(layout.totals.throttled.total, 0);
        assert.equal(layout.totals.items, 33);
        assert.equal(layout.totals.logicalPartitions, 24);
        assert.equal(layout.totals.logicalPartitionsExact, true);
        assert.equal(layout.totals.ru.allotted, size.throughput);
        assert.deepEqual(
            { mode: layout.throughput.mode, ru: layout.throughput.ru, isShared: layout.throughput.isShared },
            { mode: "manual", ru: size.throughput, isShared: false },
        );

        const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
        assert.deepEqual(
            layout.ranges.map(({ id, min, max, parents }) => [id, min, max, parents]),
            ranges.map(({ id, minInclusive, maxExclusive, parents }) => [id, minInclusive, maxExclusive, parents]),
        );

        const spaces = layout.ranges.map(({ space }) => space);
        assert.ok(spaces.every((space) => Number.isSafeInteger(space) && space > 1)); // 1 is the catalogue's
        assert.equal(new Set(spaces).size, size.partitions);

        // The current second is included, if it is asked for.
        const later = Math.floor(Date.now() / 1000) + 2;
        for (const grain of ["second", "5min"]) {
            const history = await view(server, container, `history?grain=${grain}&from=${begun}&to=${later}`);
            const all = history.ranges.flatMap(({ ru }) => ru.map(cents));
            assert.equal(sum(all), told.total, grain);
            for (const [i, { id, ru, requests }] of history.ranges.entries()) {
                assert.equal(id, layout.ranges[i].id);
                assert.equal(sum(ru.map(cents)), cents(layout.ranges[i].ru.total));
                assert.equal(sum(requests), layout.ranges[i].requests.total);
                assert.equal(ru.length, (history.to - history.from) / history.step);
            }
        }

        const top = await view(server, container, "top?count=100");
        assert.equal(cents(top.total), told.total);
        const found = new Map(top.rows.map(({ key, amount }) => [JSON.parse(key)[0], cents(amount)]));
        assert.deepEqual(new Map([...found].sort()), new Map([...told.keys].sort()));
        assert.equal(top.rows[0].key, '["hot"]');
        assert.equal(top.rows[0].amountMax, top.rows[0].amount);
        assert.ok(Math.abs(top.rows[0].share - told.keys.get("hot") / told.total) < 0.001);

        const bySize = await view(server, container, "top?by=size&count=3");
        assert.equal(bySize.rows[0].key, '["hot"]');
        assert.equal(bySize.rows[0].items, 10);
        assert.equal(bySize.rows.length, 3);
        assert.equal(bySize.total, layout.totals.bytes);
        assert.equal((await view(server, container, "top?by=throttled")).rows.length, 0);

        const metrics = (await look(server, "metrics")).text
            .split("\n")
            .filter((line) => line.startsWith("orrery_partition_request_units_total{"))
            .filter((line) => line.includes(`database="${database.id}",container="${container.id}"`))
            .map((line) => cents(line.split(" ").at(-1)));
        assert.equal(metrics.length, size.partitions);
        assert.equal(sum(metrics), told.total);

        const { json } = await look(server, "containers");
        const own = json.containers.find((row) => row.container === container.id);
        assert.equal(cents(own.ru.total), told.total);
        assert.equal(own.physicalPartitions, size.partitions);
    });

test("a hot key is seen with its throttled requests, and a cool one without", async (t) => {
    const throttled = await startServer(t, {
        isThrottled: true,
        args: [...RELAXED, "--partition-ru", "400", "--no-burst"],
    });
    const { database: db } = await clientOf(throttled).databases.create({ id: "shop" });
    const { container } = await db.containers.create({
        id: "orders",
        partitionKey: { paths: ["/pk"], version: 2 },
        throughput: 800,
    });
    const docs = `/${linkOf(container)}/docs`;
    const read = (pk) =>
        call(throttled, {
            path: `${docs}/none`,
            headers: { "x-ms-documentdb-partitionkey": JSON.stringify([pk]) },
        });
    // Dear enough that a slow server has to refuse them, too, and for long enough to fill a whole second.
    const body = { id: "1", pk: "hot", text: "x".repeat(60_000) };
    const until = performance.now() + 2500;
    let refused = 0;
    let served = 0;
    let told = 0;
    const client = async () => {
        while (refused < 20 || performance.now() < until) {
            const headers = { "x-ms-documentdb-is-upsert": "True" };
            const answer = await call(throttled, { method: "POST", path: docs, headers, body });
            told += cents(answer.headers["x-ms-request-charge"]);
            if (answer.status === 429) refused++;
            else served++;
        }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    // Any key that lives elsewhere is served all the same.
    const { ranges: before } = await view(throttled, container, "layout");
    const hot = before.findIndex((range) => range.throttled.total > 0);
    for (let i = 0; i < 20; i++) await read(`cool-${i}`);

    const { ranges, totals } = await view(throttled, container, "layout");
    assert.equal(ranges[hot].throttled.total, totals.throttled.total);
    assert.equal(ranges[1 - hot].throttled.total, 0);
    assert.ok(ranges[1 - hot].requests.total > 0);
    assert.ok(totals.throttled.total >= refused, `${totals.throttled.total} of ${refused}`);
    assert.ok(ranges[hot].requests.total >= refused + served);
    assert.equal(ranges[hot].ru.allotted, 400);

    const byThrottled = await view(throttled, container, "top?by=throttled");
    assert.equal(byThrottled.rows[0].key, '["hot"]');
    assert.equal(byThrottled.rows[0].amount, refused);
    assert.equal(byThrottled.rows[0].range, ranges[hot].id);
    const byUse = await view(throttled, container, "top");
    assert.equal(byUse.rows[0].key, '["hot"]');
    assert.equal(cents(byUse.rows[0].amount), told);

    // Consumption is of seconds that are over.
    let consumption = 0;
    for (let i = 0; i < 50 && consumption < 90; i++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        const seen = await view(throttled, container, "layout");
        consumption = seen.ranges[hot].normalizedConsumption;
        assert.ok(seen.ranges[1 - hot].normalizedConsumption < 50);
    }
    assert.ok(consumption >= 90, `${consumption}%`);

    const { status, stdout } = run(["top", "--endpoint", throttled.endpoint, "--once"]);
    assert.equal(status, 0);
    assert.match(stdout, /^orrery top - shop\/orders /);
    assert.match(stdout, /manual 800 RU\/s, 2 partitions/);
    const lines = stdout.split("\n").filter((line) => /^ +\d+ {2}/.test(line));
    assert.match(lines[hot], /X/);
    assert.doesNotMatch(lines[1 - hot], /X/);
    assert.match(stdout, /429s {2}share {4}part {2}key, by throttled requests\n +[\d,]+ [\d. ]+% +\d {2}\["hot"\]/);
    assert.doesNotMatch(stdout, /\x1b/);
});

test("any key of the account is enough, and none is not", async () => {
    const container = await newContainer(database);
    const link = linkOf(container);
    for (const what of ["layout", "top", "history"]) {
        assert.equal((await look(server, what, { link, key: READ_ONLY })).status, 200);
        errorAnswer(await look(server, what, { link, headers: {} }), 401, "Unauthorized", { substatus: 5000 });
        const other = Buffer.from("another").toString("base64");
        errorAnswer(await look(server, what, { link, key: other }), 401, "Unauthorized");
    }
    for (const what of ["containers", "metrics"]) {
        assert.equal((await look(server, what, { key: READ_ONLY })).status, 200);
        assert.equal((await look(server, what, { headers: {} })).status, 401);
    }
    for (const [token, status] of [
        [server.key, 200],
        [READ_ONLY, 200],
        ["", 401],
        ["bm9uZQ==", 401],
    ]) {
        const headers = { authorization: `Bearer ${token}` };
        assert.equal((await look(server, "metrics", { headers })).status, status, token);
        assert.equal((await look(server, "containers", { headers })).status, 401);
    }
});

test("what cannot be asked is refused in the protocol's form", async () => {
    const container = await newContainer(database);
    const link = linkOf(container);
    const rows = [
        ["layout?x=1", 400, "BadRequest", /'x' is not a parameter/],
        ["top?by=name", 400, "BadRequest", /ru, throttled or size/],
        ["top?count=1000", 400, "BadRequest", /from 1 to 100/],
        ["history?grain=day", 400, "BadRequest", /second or 5min/],
        ["history?from=0", 400, "BadRequest", /at most 3600 seconds/],
        ["nothing", 404, "NotFound", /layout, top, history, queries, paths and advice/],
    ];
    for (const [what, status, code, message] of rows)
        errorAnswer(await look(server, what, { link }), status, code, { message });
    const missing = { link: `dbs/${database.id}/colls/none` };
    errorAnswer(await look(server, "layout", missing), 404, "NotFound", { message: /none/ });
});

test("after a restart sizes are as before and counting begins anew", async (t) => {
    const own = await startServer(t);
    const { database: db } = await clientOf(own).databases.create({ id: "d" });
    const { container } = await db.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    for (const pk of ["a", "b"]) await container.items.create({ id: "1", pk });
    const before = await view(own, container, "layout");
    await own.restart();
    const after = await view(own, container, "layout");
    for (const member of ["items", "bytes", "logicalPartitions"])
        assert.equal(after.totals[member], before.totals[member]);
    assert.equal(after.totals.logicalPartitions, 2);
    assert.ok(before.totals.ru.total > 0);
    assert.equal(after.totals.ru.total, 0);
    assert.equal((await view(own, container, "top")).rows.length, 0);
});

test("without statistics there are sizes, and the rest says why not", async (t) => {
    const own = await startServer(t, { args: [...RELAXED, "--no-statistics"] });
    const { database: db } = await clientOf(own).databases.create({ id: "d" });
    const { container } = await db.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    await container.items.create({ id: "1", pk: "a" });
    const layout = await view(own, container, "layout");
    assert.deepEqual([layout.hasStatistics, layout.totals.items, layout.totals.ru.total], [false, 1, 0]);
    const answer = await look(own, "history", { link: linkOf(container) });
    errorAnswer(answer, 400, "BadRequest", { message: /--no-statistics/ });
    const { status, stderr } = run(["top", "--endpoint", own.endpoint, "--once"]);
    assert.equal(status, 1);
    assert.match(stderr, /--no-statistics/);
});

// ---- orrery top ----

test("orrery top shows the container that it is told to", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "1", pk: "\u001b[2J\u202e\"quoted\"" });
    const args = ["top", "--endpoint", server.endpoint, "--once", "--key", READ_ONLY];
    const named = run([...args, "--database", database.id, "--container", container.id]);
    assert.equal(named.status, 0, named.stderr);
    assert.ok(named.stdout.startsWith(`orrery top - ${database.id}/${container.id} `));
    // What a client has chosen is no command to the terminal.
    assert.match(named.stdout, /\["\\u001b\[2J\\u202e\\"quoted\\""\]/);
    assert.doesNotMatch(named.stdout, /[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u202e]/);
    const busiest = run(args);
    assert.equal(busiest.status, 0, busiest.stderr);
    assert.match(busiest.stdout, /^orrery top - /);
    // The key may come from elsewhere.
    const env = { ORRERY_KEY: READ_ONLY };
    assert.equal(run(["top", "--endpoint", `${server.endpoint}/`, "--once"], { env }).status, 0);
});

test("orrery top speaks https with a certificate that it is told to trust", () => {
    const args = ["top", "--endpoint", server.tlsEndpoint, "--once", "--cert", join(server.data, "tls-cert.pem")];
    const { status, stdout, stderr } = run(args);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^orrery top - /);
});

test("orrery top says what is wrong with what it is told", () => {
    const endpoint = ["--endpoint", server.endpoint];
    const rows = [
        [["--help"], 0, /Usage: orrery top/],
        [["--onec"], 2, /did you mean '--once'/],
        [["--endpoint"], 2, /needs a value/],
        [["--endpoint", `${server.endpoint}/dbs`], 2, /is not an endpoint/],
        [["--endpoint", server.tlsEndpoint, "--once"], 1, /certificate of https:.* is not trusted/],
        [["--endpoint", "localhost"], 2, /http:\/\/localhost:8081/],
        [["--key", "%"], 2, /not base64/],
        [["--key", READ_ONLY, "--key-file", "x"], 2, /exclude each other/],
        [["--key-file", "/nowhere/at/all"], 2, /cannot read/],
        [["--interval", "0"], 2, /from 1 to 3600/],
        [[...endpoint, "--once", "--key", "bm9uZQ=="], 1, /answered 401/],
        [[...endpoint, "--once", "--database", "none", "--container", "none"], 1, /answered 404/],
        [[...endpoint, "--once", "--database", "none"], 1, /no container of that name/],
        [["--endpoint", "http://127.0.0.1:1", "--once"], 1, /cannot reach the server.*refused/],
    ];
    for (const [args, expected, pattern] of rows) {
        const { status, stdout, stderr } = run(["top", ...args]);
        assert.equal(status, expected, `${args.join(" ")}: ${stderr}`);
        assert.match(expected === 0 ? stdout : stderr, pattern);
    }
});

/** Runs it in a terminal, does something when the first frame is there, and returns all that it has drawn. */
function inTerminal(command, act) {
    return new Promise((resolve, reject) => {
        // A shell that waited for it would get the Ctrl-C as well, and some die of that.
        const child = spawn("script", ["-qefc", `exec ${command}`, "/dev/null"], {
            env: { ...process.env, TERM: "xterm-256color", SHELL: "/bin/sh" },
        });
        let output = "";
        let isDrawn = false;
        child.on("error", reject);
        child.stdout.on("data", (piece) => {
            output += piece;
            if (isDrawn || !output.includes("q quits")) return;
            isDrawn = true;
            act(child);
        });
        child.on("close", (code) => resolve({ code, output }));
    });
}

// It is part of every Debian, but a chroot without /dev/pts has no terminals.
const tried = spawnSync("script", ["-qefc", "true", "/dev/null"], { encoding: "utf8" });
const noTerminal = tried.status !== 0 && `NOT TESTED: no terminal: ${tried.error ?? tried.stderr + tried.stdout}`;

test("orrery top leaves the terminal as it was", { skip: noTerminal }, async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "1", pk: "a" });
    const command = `${BINARY} top --endpoint ${server.endpoint}`;
    const ends = {
        "the key q": (child) => child.stdin.write("q"),
        "Ctrl-C": (child) => child.stdin.write("\x03"),
    };
    for (const [name, act] of Object.entries(ends)) {
        const { code, output } = await inTerminal(command, act);
        assert.equal(code, 0, name);
        assert.ok(output.includes("\x1b[?1049h\x1b[?25l"), name); // a screen of its own, without a cursor
        assert.match(output, /\x1b\[0m\x1b\[\?25h\x1b\[\?1049l\s*$/, name);
        assert.match(output, /\x1b\[97;48;5;\d+m/);
    }
});

// ---- the document ----

/** What such a command would print; curl itself is none of the packages that tests need. */
async function fetched(command, key) {
    const [, name, value, url] = /^curl --fail -s -H "([\w-]+): (.*)" (\S+)\n$/.exec(command);
    const answer = await fetch(url, { headers: { [name]: value.replace("$COSMOS_KEY", key) } });
    assert.equal(answer.status, 200, command);
    return answer.text();
}

test("the examples of the document run as they stand", async (t) => {
    const own = await startServer(t);
    const env = { ...process.env, PATH: `${dirname(BINARY)}:${process.env.PATH}`, COSMOS_KEY: own.key };
    const blocks = (kind) => [...DOCUMENT.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, "gms"))];
    const here = (code) => code.replaceAll("http://localhost:8081", own.endpoint);
    for (const [, code] of blocks("js")) {
        const path = join(ROOT, `test/.seeing-${process.pid}.mjs`); // beside this file, where the SDK is found
        t.after(() => rmSync(path, { force: true }));
        writeFileSync(path, here(code));
        const { status, stdout, stderr } = spawnSync(process.execPath, [path], { env, encoding: "utf8" });
        assert.equal(status, 0, stderr);
        assert.match(stdout, /^30 items, 4 keys\n\["ada"\] used 90% of the request units\n$/);
    }
    const [top, metrics] = await Promise.all(
        blocks("sh").map(([, code]) => {
            if (code.startsWith("curl ")) return fetched(here(code), own.key);
            const { status, stdout, stderr } = spawnSync("sh", ["-euc", here(code)], { env, encoding: "utf8" });
            assert.equal(status, 0, stderr);
            return stdout;
        }),
    );
    assert.match(top, /^orrery top - shop\/orders .*\["ada"\]/s);
    const named = [...DOCUMENT.matchAll(/`(orrery_partition)?(_[a-z_]+)`/g)].map(([, , name]) => name);
    const counted = [...metrics.matchAll(/^# TYPE orrery_partition(\S+) /gm)].map(([, name]) => name);
    for (const name of counted)
        assert.ok(
            named.includes(name) || DOCUMENT.includes(`orrery_partition${name}`),
            `docs/seeing.md has not ${name}`,
        );
});
