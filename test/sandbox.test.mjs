// What the running server can do no more, as the kernel tells it, and that everything else still works.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { workersOf } from "./lib/scripts.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { send } from "./lib/wire.mjs";

const field = (path, name) => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(readFileSync(path, "utf8"))[1];

/** What the log says that is on. */
function stateOf(server) {
    const line = server.lines.find((one) => / server\.sandbox /.test(one));
    assert.ok(line, server.lines.join("\n"));
    return Object.fromEntries([...line.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
}

// The sanitizers have threads of their own.
const isSanitized = (server) => /lib[at]san/.test(readFileSync(`/proc/${server.pid}/maps`, "utf8"));

async function useScripts(server) {
    const { database } = await clientOf(server).databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    const body = 'function () { getContext().getResponse().setBody("done"); }';
    await container.scripts.storedProcedures.create({ id: "p", body });
    const { resource } = await container.scripts.storedProcedure("p").execute("k");
    assert.equal(resource, "done");
    // The functions for shapes load their libraries now.
    const point = (x, y) => `{"type":"Point","coordinates":[${x},${y}]}`;
    const { resources } = await container.items
        .query(`SELECT VALUE ST_DISTANCE(${point(1, 2)}, ${point(3, 4)})`)
        .fetchAll();
    assert.ok(resources[0] > 300_000);
}

test("every thread and every worker has given up its rights", async (t) => {
    const server = await startServer(t);
    const state = stateOf(server);
    assert.equal(state.no_new_privs, "on");
    if (!isSanitized(server)) assert.equal(state.threads_before, "0"); // they would not be in it
    if (state.seccomp !== "on") return t.skip("NOT TESTED: this system has no filters of system calls");
    await useScripts(server);
    const threads = readdirSync(`/proc/${server.pid}/task`).map((id) => `/proc/${server.pid}/task/${id}/status`);
    const workers = workersOf(server).map(({ pid }) => `/proc/${pid}/status`);
    assert.ok(threads.length > 3);
    assert.ok(workers.length > 0);
    const names = threads.map((path) => field(path, "Name"));
    if (!isSanitized(server)) assert.ok(names.includes("jemalloc_bg_thd"), names.join()); // started, and inside
    for (const path of [...threads, ...workers]) {
        assert.equal(field(path, "NoNewPrivs"), "1", path);
        assert.equal(field(path, "Seccomp"), "2", path);
    }
    const core = /Max core file size\s+(\S+)/.exec(readFileSync(`/proc/${server.pid}/limits`, "utf8"))[1];
    assert.equal(core, "0");
});

test("a file outside the data folder cannot be made, even through a link", async (t) => {
    const trap = () => {
        const folder = temporaryFolder();
        const data = join(folder, "data");
        mkdirSync(data);
        symlinkSync(join(folder, "outside"), join(data, "token.key"));
        return { data, outside: join(folder, "outside") };
    };
    // Without the sandbox the server follows the link.
    const free = trap();
    const server = await startServer(t, { data: free.data, args: ["--no-sandbox"] });
    assert.match(server.lines.join("\n"), / server\.sandbox off/);
    assert.ok(existsSync(free.outside));
    assert.equal(field(`/proc/${server.pid}/status`, "NoNewPrivs"), "0");
    await useScripts(server);

    if (stateOf(await startServer(t)).landlock !== "on")
        return t.skip("NOT TESTED: this system has no Landlock");
    const caught = trap();
    const { status, stderr } = run(["serve", "--data", caught.data, "--port", "0"]);
    assert.equal(status, 1);
    assert.match(stderr, /cannot open '.*token\.key': Permission denied/);
    assert.ok(!existsSync(caught.outside));
});

test("the store may be a link to another disk", async (t) => {
    const folder = temporaryFolder();
    const data = join(folder, "data");
    mkdirSync(data);
    mkdirSync(join(folder, "disk"));
    symlinkSync(join(folder, "disk"), join(data, "store"));
    const server = await startServer(t, { data });
    await useScripts(server);
    await server.restart();
    assert.ok(readdirSync(join(folder, "disk")).length > 0);
});

test("it works for a user who is not root", async (t) => {
    if (process.getuid() !== 0) return t.skip("the other tests have shown it");
    const folder = temporaryFolder();
    chmodSync(folder, 0o777);
    const within = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    // The binary may be where only root can look.
    if (spawnSync(within[0], [...within.slice(1), BINARY, "version"]).status !== 0)
        return t.skip("NOT TESTED: another user cannot read the binary");
    const server = await startServer(t, { data: join(folder, "data"), within });
    assert.equal(field(`/proc/${server.pid}/status`, "Uid"), "65534");
    await useScripts(server);
    // Its workers say that they should go first when memory is short.
    for (const { pid } of workersOf(server)) assert.equal(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"), "800\n");
    assert.equal((await send(server.endpoint, { path: "/healthz" })).status, 200);
});
