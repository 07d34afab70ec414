// The process: its options, its start and end, its log, and how it treats difficult clients.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import test from "node:test";

import { ids } from "./lib/check.mjs";
import { listAll, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, DEVELOPMENT_KEY, environment, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { Line, answers, call, requestText, send, signed, unique } from "./lib/wire.mjs";

const STOP_MS = 5000;
const newData = () => join(temporaryFolder(), "data");
const newKey = () => randomBytes(64).toString("base64");

async function freePort() {
    const probe = createServer();
    await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
    const { port } = probe.address();
    await new Promise((resolve) => probe.close(resolve));
    return port;
}

// --- The command line

test("the program says what it can do", () => {
    for (const args of [["help"], ["--help"], ["-h"]]) {
        const result = run(args);
        assert.equal(result.status, 0);
        assert.match(result.stdout, /serve .*run the server/);
    }
    assert.equal(run([]).status, 2);
    assert.match(run([]).stderr, /Usage: orrery/);
    for (const args of [["version"], ["--version"]])
        assert.match(run(args).stdout, /^orrery \d+\.\d+\.\d+\n$/);
    const { status, stderr } = run(["serv"]);
    assert.equal(status, 2);
    assert.match(stderr, /did you mean 'serve'\?/);
    assert.match(run(["conquer"]).stderr, /orrery help/);
});

const MISTAKES = [
    [["--prot", "1"], /no option 'prot'; did you mean 'port'\?/],
    [["--durabilty=sync"], /did you mean 'durability'\?/],
    [["--make-coffee"], /--help/],
    [["8081"], /'8081' is not an option/],
    [["--port"], /--port needs a value: --port N/],
    [["--port", "http"], /--port must be a whole number from 0 to 65535, not 'http'/],
    [["--port", "65536"], /--port .* 65535/],
    [["--port", "-1"], /--port/],
    [["--port="], /--port/],
    [["--threads", "257"], /--threads .* 256/],
    [["--cache", "much"], /--cache must be a size/],
    [["--cache", "99999999G"], /--cache/],
    [["--durability", "maybe"], /--durability must be sync or relaxed, not 'maybe'/],
    [["--log-level", "loud"], /--log-level must be error, warn, info or debug/],
    [["--connections-max", "0"], /--connections-max/],
    [["--idle-timeout", "0"], /--idle-timeout/],
    [["--request-timeout", "0"], /--request-timeout/],
    [["--trust-forwarded=perhaps"], /--trust-forwarded/],
    [["--public-endpoint", "db.example"], /--public-endpoint must be a URL/],
    [["--public-endpoint", "http://db.example"], /ends with '\/'/],
    [["--cert", "x.pem"], /--cert and --cert-key go together/],
    [["--key", "QUJD", "--key-file", "x"], /exclude each other/],
    [["--key-file", "/nowhere/key"], /cannot read '\/nowhere\/key'/],
    [["--config", "/nowhere/config"], /cannot read '\/nowhere\/config'/],
    [["--data", ""], /--data/],
];
for (const [args, message] of MISTAKES) {
    test(`'serve ${args.join(" ")}' is refused before anything happens`, () => {
        const { status, stdout, stderr } = run(["serve", "--data", newData(), ...args]);
        assert.equal(status, 2);
        assert.equal(stdout, "");
        assert.match(stderr, /^orrery: .*\n$/);
        assert.match(stderr, message);
    });
}

for (const [what, args, message] of [
    ["a key that is not base64", ["--key", "not base64!"], /primary key is not base64/],
    [
        "an address that does not exist",
        ["--host", "no.such.host.invalid"],
        /--host 'no\.such\.host\.invalid'/,
    ],
    ["an address of another machine", ["--host", "192.0.2.1", "--key", newKey()], /192\.0\.2\.1/],
    [
        "a certificate that does not exist",
        ["--cert", "/nowhere/c.pem", "--cert-key", "/nowhere/k.pem"],
        /\/nowhere\/c\.pem/,
    ],
]) {
    test(`the server does not start with ${what}, and says so`, () => {
        const { status, stderr } = run(["serve", "--data", newData(), "--port", "0", ...args]);
        assert.equal(status, 1);
        assert.match(stderr, message);
    });
}

test("every thread says what it is", async (t) => {
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "threads" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    await container.items.create({ id: "1", pk: "a" });
    await listAll(server, container);
    const folder = `/proc/${server.pid}/task`;
    const names = readdirSync(folder).map((id) => readFileSync(join(folder, id, "comm"), "utf8").trim());
    for (const name of ["catalog", "cleaner", "commit", "loop-0", "reminder", "worker", "writer"])
        assert.ok(names.includes(`orrery-${name}`), `${name} in ${names}`);
    const others = names.filter((name) => !/^(orrery|orrery-[a-z]+(-\d+)?|rocksdb:.*|jemalloc_bg_thd)$/.test(name));
    assert.deepEqual(others, []);
});

// --- Environment and configuration file

test("options come from the environment", async (t) => {
    const key = newKey();
    const server = await startServer(t, { env: { ORRERY_KEY: key, ORRERY_LOG_LEVEL: "debug" } });
    assert.equal((await clientOf(server, { key }).databases.readAll().fetchAll()).resources.length, 0);
    assert.ok(server.lines.some((line) => / debug /.test(line)));
});

test("a name in the environment that is no option is refused", () => {
    const { status, stderr } = run(["serve"], { env: { ORRERY_PROT: "1" } });
    assert.equal(status, 2);
    assert.match(stderr, /environment .*'prot'; did you mean 'port'\?/);
});

test("the command line wins over the environment, and that over the file", async (t) => {
    const folder = temporaryFolder();
    const config = join(folder, "orrery.conf");
    writeFileSync(
        config,
        [
            "# a comment",
            "",
            "  public-endpoint = http://file.example:1/  \r",
            "log-level = error",
            "secondary-key=U2Vjb25k",
            "trust-forwarded",
        ].join("\n"),
    );
    const endpointOf = async (server) =>
        (await call(server, { path: "/" })).json.writableLocations[0].databaseAccountEndpoint;
    const withFile = await startServer(t, { args: ["--config", config, "--log-level", "info"] });
    assert.equal(await endpointOf(withFile), "http://file.example:1/");
    assert.equal(
        (
            await clientOf(withFile, {
                key: "U2Vjb25k",
                connectionPolicy: { enableEndpointDiscovery: false },
            })
                .databases.readAll()
                .fetchAll()
        ).resources.length,
        0,
    );

    const env = {
        ORRERY_CONFIG: config,
        ORRERY_PUBLIC_ENDPOINT: "http://env.example:2/",
        ORRERY_LOG_LEVEL: "info",
    };
    assert.equal(await endpointOf(await startServer(t, { env })), "http://env.example:2/");

    const args = ["--public-endpoint=http://args.example:3/"];
    assert.equal(await endpointOf(await startServer(t, { env, args })), "http://args.example:3/");
});

for (const [what, text, message] of [
    ["an unknown option", "port = 1\nprot = 2\n", /:2: there is no option 'prot'; did you mean 'port'\?/],
    ["an option without a value", "port\n", /:1: expected 'port = N'/],
    ["another file", "config = x\n", /:1: a configuration file cannot name another one/],
    ["a bad value", "port = x\n", /--port must be a whole number/],
    ["too much", `# ${"x".repeat(70_000)}\n`, /more than 65536 bytes/],
]) {
    test(`a configuration file with ${what} is refused with its place`, () => {
        const config = join(temporaryFolder(), "orrery.conf");
        writeFileSync(config, text);
        const { status, stderr } = run(["serve", "--config", config]);
        assert.equal(status, 2);
        assert.match(stderr, message);
    });
}

test("a key is read from a file, with or without a line end", async (t) => {
    for (const end of ["", "\n", "  \r\n"]) {
        const file = join(temporaryFolder(), "key");
        const key = newKey();
        writeFileSync(file, key + end);
        const server = await startServer(t, { args: ["--key-file", file] });
        assert.equal((await clientOf(server, { key }).databases.readAll().fetchAll()).resources.length, 0);
    }
});

// --- Starting

test("a closed standard file is not taken by a file of the database", async (t) => {
    const data = newData();
    const script = `exec "$0" serve --data "$1" --port 0 <&- >&- 2>&-`;
    const child = spawn("sh", ["-c", script, BINARY, data], { stdio: "ignore", env: environment() });
    t.after(() => child.kill("SIGKILL"));
    const ended = new Promise((resolve) => child.once("exit", resolve));
    // A file may be closed between the listing of its number and the look at it.
    const link = (fd) => {
        try {
            return readlinkSync(`/proc/${child.pid}/fd/${fd}`);
        } catch (e) {
            if (e.code !== "ENOENT") throw e;
            return "closed meanwhile";
        }
    };
    const links = () => readdirSync(`/proc/${child.pid}/fd`).map((fd) => [fd, link(fd)]);
    await until(() => existsSync(join(data, "store/LOCK")) && links().some(([, link]) => link.endsWith("/store/LOCK")));
    for (const [fd, link] of links()) if (Number(fd) <= 2) assert.equal(link, "/dev/null");
    child.kill("SIGTERM");
    assert.equal(await ended, 0);
    assert.equal(statSync(join(data, "store/LOCK")).size, 0);

    // Nor does it seem to be an empty one, and what cannot be said is a failure.
    const shell = (line) => spawnSync("sh", ["-c", line, BINARY], { encoding: "utf8", timeout: 20_000, env: environment() });
    assert.match(shell(`exec "$0" serve --temporary --port 0 --stop-at-eof <&-`).stderr, /standard input, which is closed/);
    assert.notEqual(shell(`exec "$0" help >&-`).status, 0);
});

test("a folder belongs to one process at a time", async (t) => {
    const server = await startServer(t);
    const { status, stderr } = run(["serve", "--data", server.data, "--port", "0"]);
    assert.equal(status, 1);
    assert.match(stderr, /orrery: .*(in use|another process|already)/i);
    assert.ok(stderr.includes(server.data), stderr);
    await clientOf(server).databases.create({ id: "unharmed" });
    await server.restart();
    assert.equal((await clientOf(server).database("unharmed").read()).statusCode, 200);
});

test("a port that is in use is refused", async (t) => {
    const server = await startServer(t);
    const { status, stderr } = run([
        "serve",
        "--data",
        newData(),
        "--port",
        String(server.port),
        "--host",
        "127.0.0.1",
    ]);
    assert.equal(status, 1);
    assert.match(stderr, new RegExp(`orrery: .*${server.port}.*in use`, "i"));
});

test("a given port is used", async (t) => {
    const port = await freePort();
    const server = await startServer(t, { args: ["--port", String(port)] });
    assert.equal(server.port, port);
});

test("a data folder that cannot be used is refused by name", () => {
    const folder = temporaryFolder();
    const file = join(folder, "file");
    writeFileSync(file, "not a folder");
    const rows = [file, join(file, "below"), join(folder, "missing", "below")];
    if (process.getuid() !== 0) {
        const closed = join(folder, "closed");
        mkdirSync(closed);
        chmodSync(closed, 0o500);
        rows.push(closed);
    }
    for (const data of rows) {
        const { status, stderr } = run(["serve", "--data", data, "--port", "0"]);
        assert.equal(status, 1, `${data}: ${stderr}`);
        assert.ok(stderr.startsWith("orrery: ") && stderr.includes(data), stderr);
    }
});

test("a damaged data folder is refused, not repaired by guessing", async (t) => {
    const server = await startServer(t);
    await clientOf(server).databases.create({ id: "precious" });
    await server.stop();
    writeFileSync(join(server.data, "store", "CURRENT"), "garbage\n");
    const { status, stderr } = run(["serve", "--data", server.data, "--port", "0"]);
    assert.equal(status, 1);
    assert.ok(stderr.includes("orrery: ") && stderr.includes(server.data), stderr);
});

test("the banner shows endpoint, key, data folder and an example", async (t) => {
    const server = await startServer(t, { host: "localhost" });
    const { stdout, port } = server;
    assert.ok(stdout.includes(`http://localhost:${port}/`));
    assert.ok(stdout.includes(`https://localhost:${port}/`));
    assert.ok(stdout.includes(`/_explorer/emulator.pem`));
    assert.ok(stdout.includes(DEVELOPMENT_KEY));
    assert.ok(stdout.includes(server.data));
    assert.match(stdout, /new CosmosClient\(/);
});

test("a key of one's own is shown nowhere", async (t) => {
    const keys = Array.from({ length: 4 }, newKey);
    const server = await startServer(t, {
        key: keys[0],
        args: [
            "--secondary-key",
            keys[1],
            "--read-only-key",
            keys[2],
            "--secondary-read-only-key",
            keys[3],
            "--log-level",
            "debug",
        ],
    });
    for (const key of keys) await clientOf(server, { key }).databases.readAll().fetchAll();
    await clientOf(server, { key: newKey() })
        .databases.readAll()
        .fetchAll()
        .catch(() => {});
    await server.stop();
    const all = server.stdout + server.lines.join("\n");
    for (const key of [...keys, DEVELOPMENT_KEY]) assert.ok(!all.includes(key.slice(0, 20)));
    assert.ok(!all.includes("sig=") && !all.includes("sig%3"));
});

// --- The log

const LOG_LINE =
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (error|warn|info|debug) +[a-z_]+(\.[a-z_]+)* \w+=.*$/;

test("every line of the log is one event with fields", async (t) => {
    const server = await startServer(t, { args: ["--log-level", "debug"] });
    const activity = "11111111-2222-3333-4444-555555555555";
    await call(server, { path: "/dbs", headers: { "x-ms-activity-id": activity } });
    await send(server.endpoint, { path: "/dbs/a%0Ab%0Dforged" });
    await clientOf(server).databases.create({ id: unique("log") });
    await server.stop();
    for (const line of server.lines) assert.match(line, LOG_LINE);
    assert.ok(
        server.lines.some(
            (line) =>
                / debug request /.test(line) &&
                line.includes(`activity=${activity} `) &&
                line.includes("status=200"),
        ),
    );
    assert.ok(server.lines.some((line) => / info +server\.ready /.test(line)));
    assert.match(server.lines.at(-1), / info +server\.stopped /);
});

test("at the level info requests are not logged", async (t) => {
    const server = await startServer(t);
    await clientOf(server).databases.create({ id: unique("quiet") });
    await server.stop();
    assert.deepEqual(
        server.lines.filter((line) => / debug |request/.test(line)),
        [],
    );
});

// --- Stopping

async function assertStops(server, signal) {
    const { code, signal: by, took_ms } = await server.stop(signal);
    assert.equal(code, 0, `${code ?? by}:\n${server.lines.join("\n")}`);
    assert.ok(took_ms < STOP_MS, `it took ${took_ms} ms`);
}

for (const signal of ["SIGTERM", "SIGINT"]) {
    test(`${signal} ends the server well, idle connections or not`, async (t) => {
        const server = await startServer(t);
        await clientOf(server).databases.create({ id: "kept" });
        const idle = await Promise.all(Array.from({ length: 20 }, () => Line.open(server.port)));
        for (const line of idle.slice(10)) line.send(requestText("/healthz"));
        await Promise.all(idle.slice(10).map((line) => line.until(/"ok"/)));
        const begun = performance.now();
        await assertStops(server, signal);
        assert.ok(performance.now() - begun < 3500, "idle connections must not hold it up");
        await Promise.all(idle.map((line) => line.end()));
        await server.start();
        assert.equal((await clientOf(server).database("kept").read()).statusCode, 200);
    });
}

function halfRequest(server, id) {
    const body = JSON.stringify({ id });
    const headers = {
        ...signed({ key: server.key, method: "POST", path: "/dbs" }),
        "content-length": body.length,
    };
    return [requestText("/dbs", { method: "POST", headers }) + body.slice(0, 5), body.slice(5)];
}

test("a request that is on its way when the server is told to stop is still answered", async (t) => {
    const server = await startServer(t);
    const [first, rest] = halfRequest(server, "last");
    const line = await Line.open(server.port);
    line.send(`${requestText("/healthz")}${first}`);
    await line.until(/"ok"/); // so the server has the half that follows, too
    const stopped = server.stop();
    await server.logged(/server\.stopping/);
    line.send(rest);
    const list = answers(await line.end());
    assert.equal(list[1].status, 201, list[1].body);
    assert.equal(list[1].headers.connection, "close");
    const { code, took_ms } = await stopped;
    assert.equal(code, 0);
    assert.ok(took_ms < STOP_MS);
    await server.start();
    assert.equal((await clientOf(server).database("last").read()).statusCode, 200);
});

test("a request that never ends does not keep the server from stopping", async (t) => {
    const server = await startServer(t);
    const line = await Line.open(server.port);
    line.send(`${requestText("/healthz")}${halfRequest(server, "never")[0]}`);
    await line.until(/"ok"/);
    await assertStops(server, "SIGTERM");
});

test("what was acknowledged while the server was being stopped is there afterwards", async (t) => {
    const server = await startServer(t);
    const acknowledged = [];
    let stopping = false;
    // By hand, because the SDK repeats what failed when a connection breaks.
    const writer = async (number) => {
        for (let i = 0; !stopping; i++) {
            const body = { id: `w${number}-${i}` };
            const answer = await call(server, { method: "POST", path: "/dbs", body }).catch(() => null);
            if (answer?.status === 201) acknowledged.push(body.id);
        }
    };
    const writers = Array.from({ length: 8 }, (_, i) => writer(i));
    await new Promise((resolve) => {
        const poll = () => (acknowledged.length > 50 ? resolve() : setImmediate(poll));
        poll();
    });
    const stopped = server.stop();
    await server.logged(/server\.stopping/);
    stopping = true;
    assert.equal((await stopped).code, 0);
    await Promise.all(writers);
    await server.start();
    const found = new Set(ids((await clientOf(server).databases.readAll().fetchAll()).resources));
    assert.deepEqual(
        acknowledged.filter((id) => !found.has(id)),
        [],
    );
});

// --- Difficult clients

test("a client that dribbles its request is cut off in time", async (t) => {
    const server = await startServer(t, { args: ["--request-timeout", "1"] });
    const dribble = async (start, piece) => {
        const line = await Line.open(server.port);
        const begun = performance.now();
        line.send(start);
        const timer = setInterval(() => line.send(piece), 100);
        const text = await line.end();
        clearInterval(timer);
        line.close();
        const took = performance.now() - begun;
        assert.ok(took > 500 && took < 6000, `cut off after ${took} ms`);
        return text;
    };
    const headers = { ...signed({ key: server.key, method: "POST", path: "/dbs" }), "content-length": 1000 };
    const [head, body] = await Promise.all([
        dribble("GET /healthz HTTP/1.1\r\n", "x: y\r\n"),
        dribble(requestText("/dbs", { method: "POST", headers }), " "),
    ]);
    for (const text of [head, body]) {
        const [answer] = answers(text);
        assert.equal(answer.status, 408);
        assert.equal(JSON.parse(answer.body).code, "RequestTimeout");
    }
    assert.equal((await send(server.endpoint, { path: "/healthz" })).status, 200);
});

test("an idle connection is closed after its time, a busy one is not", async (t) => {
    const server = await startServer(t, { args: ["--idle-timeout", "1", "--request-timeout", "1"] });
    const begun = performance.now();
    const silent = await Line.open(server.port);
    const used = await Line.open(server.port);
    used.send(requestText("/healthz"));
    const busy = await Line.open(server.port);
    const timer = setInterval(() => busy.send(requestText("/healthz")), 200);
    await silent.end();
    await used.end();
    const took = performance.now() - begun;
    assert.ok(took > 700 && took < 6000, `closed after ${took} ms`);
    assert.equal(silent.received, "");
    assert.equal(answers(used.received).length, 1);
    assert.equal(busy.ended, false);
    clearInterval(timer);
    busy.close();
});

test("a handshake that does not go on is cut off", async (t) => {
    const server = await startServer(t, { args: ["--request-timeout", "1", "--idle-timeout", "1"] });
    const line = await Line.open(server.port);
    line.send("\x16\x03\x01\x02\x00\x01\x00");
    await line.end();
    const garbage = await Line.open(server.port);
    garbage.send(`\x16${"\xff".repeat(600)}`);
    await garbage.end();
    assert.equal((await send(server.tlsEndpoint, { path: "/healthz" })).status, 200);
});

test("connections beyond the limit are closed at once and counted", async (t) => {
    const server = await startServer(t, { args: ["--connections-max", "10"] });
    const lines = await Promise.all(Array.from({ length: 10 }, () => Line.open(server.port)));
    for (const line of lines) line.send(requestText("/healthz"));
    await Promise.all(lines.map((line) => line.until(/"ok"/)));
    const extra = await Line.open(server.port);
    assert.equal(await extra.end(), "");
    lines[0].send(requestText("/metrics"));
    const text = await lines[0].until(/orrery_store_memory_bytes \d+/);
    assert.match(text, /orrery_connections_refused_total 1\n/);
    assert.match(text, /orrery_connections_open 10\n/);
    for (const line of lines) line.close();
});

test("thousands of connections are held while requests go on", async (t) => {
    const limit = execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim();
    const files = limit === "unlimited" ? Infinity : Number(limit);
    const count = Math.min(10_000, files - 1000);
    if (count < 2000) return t.skip(`this system allows only ${files} open files`);
    const server = await startServer(t, { args: ["--connections-max", String(count + 100), "--request-timeout", "600"] });
    const lines = [];
    t.after(() => lines.forEach((line) => line.close()));
    while (lines.length < count) {
        const batch = Math.min(500, count - lines.length);
        lines.push(...(await Promise.all(Array.from({ length: batch }, () => Line.open(server.port)))));
    }
    const client = clientOf(server);
    for (let i = 0; i < 20; i++) await client.databases.create({ id: `held-${i}` });
    const metrics = (await send(server.endpoint, { path: "/metrics" })).text;
    assert.ok(Number(/orrery_connections_open (\d+)/.exec(metrics)[1]) >= count);
    assert.equal(lines.filter((line) => line.ended).length, 0);

    // They are all alive: every hundredth one, and the last, asks something.
    const asking = lines.filter((_, i) => i % 100 === 0 || i === count - 1);
    for (const line of asking) line.send(requestText("/healthz"));
    await Promise.all(asking.map((line) => line.until(/"ok"/)));
    await assertStops(server, "SIGTERM");
});
