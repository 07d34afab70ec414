// Backups that are damaged, incomplete, or on a disk that is full: found, said, and never served.
import assert from "node:assert/strict";
import { copyFileSync, cpSync, existsSync, readFileSync, renameSync, rmSync, statSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { backup, check, generationsOf, manifestOf, manifestPath, restore, start } from "./lib/backups.mjs";
import { damage, needsDisk, smallDisk } from "./lib/disk.mjs";
import { zero } from "./lib/folder.mjs";
import { fill, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer, temporaryFolder } from "./lib/server.mjs";

async function twoGenerations(t) {
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    const to = join(temporaryFolder(), "backups");
    for (let round = 0; round < 2; round++) {
        await fill(container, Array.from({ length: 300 }, (_, i) => ({ id: `${round}-${i}`, pk: `p${i}`, text: "x".repeat(i * 5) })));
        await backup(server.endpoint, to);
    }
    return { server, to };
}

/** A restore fails with this message, and leaves nothing that could be served. */
function refusesRestore(to, message, ...more) {
    const data = join(temporaryFolder(), "data");
    const { status, stderr } = run(["restore", "--from", to, "--data", data, ...more]);
    assert.equal(status, 1, stderr);
    assert.match(stderr, message);
    if (!existsSync(join(data, "store"))) return;
    const served = run(["serve", "--data", data, "--port", "0"]);
    assert.equal(served.status, 1);
    assert.match(served.stderr, /is not complete: a restore into it was interrupted/);
}

test("a restore finds every damaged, cut or missing file", { timeout: 120_000 }, async (t) => {
    const { to } = await twoGenerations(t);
    const manifest = manifestOf(to, 2);
    const earlier = new Set(manifestOf(to, 1).files.map(({ sha256 }) => sha256));
    const kind = ({ name }) => name.replace(/\d+/, "N");
    const kinds = new Map(manifest.files.filter(({ size }) => size > 0).map((file) => [kind(file), file]));
    for (const wanted of ["store/N.sst", "store/CURRENT", "store/MANIFEST-N", "store/OPTIONS-N", "token.key"])
        assert.ok(kinds.has(wanted), `there is ${wanted}`);
    for (const { name, size, sha256 } of kinds.values()) {
        const path = join(to, "files", sha256);
        const saved = `${path}.saved`;
        copyFileSync(path, saved);
        const named = new RegExp(`the backup is damaged: files/${sha256}, which is '${name}'`);
        for (const at of [0, size >> 1, size - 1]) {
            damage(path, at, 1);
            refusesRestore(to, named);
            if (!earlier.has(sha256)) await restore(to, join(temporaryFolder(), "older"), "--generation", "1");
            copyFileSync(saved, path);
        }
        truncateSync(path, size - 1);
        refusesRestore(to, named);
        copyFileSync(saved, path);
        writeFileSync(path, Buffer.concat([readFileSync(saved), Buffer.from([0])]));
        refusesRestore(to, named);
        unlinkSync(path);
        refusesRestore(to, named);
        renameSync(saved, path);
    }
    const data = join(temporaryFolder(), "data");
    await restore(to, data);
    check(data);
});

test("a damaged manifest is no backup, and nothing is removed because of it", { timeout: 120_000 }, async (t) => {
    const { server, to } = await twoGenerations(t);
    const path = manifestPath(to, 2);
    const whole = readFileSync(path);
    const ways = {
        zeroed: () => zero(path, 0, whole.length),
        emptied: () => truncateSync(path, 0),
        cut: () => truncateSync(path, whole.length - 1),
        "cut in half": () => truncateSync(path, whole.length >> 1),
        "another number": () => copyFileSync(manifestPath(to, 1), path),
        "an LSN": () => damage(path, whole.indexOf('"lsn":') + 6, 1),
        "a name": () => damage(path, whole.indexOf("store/") + 8, 1),
        "its sum": () => damage(path, whole.length - 10, 1),
    };
    for (const [way, change] of Object.entries(ways)) {
        change();
        refusesRestore(to, /(manifest is damaged|is the manifest of generation 1).*--generation chooses another one/s);
        if (way === "zeroed") {
            const { status, stderr } = run(["backup", "--from", server.endpoint, "--to", to, "--keep", "1"]);
            assert.equal(status, 0);
            assert.match(stderr, /a manifest in '.*' is damaged, so nothing was removed/);
            assert.deepEqual(generationsOf(to), ["000001.json", "000002.json", "000003.json"]);
            rmSync(manifestPath(to, 3));
        }
        writeFileSync(path, whole);
    }
    // Names that lead elsewhere are refused even with a sum that matches; so is any sum that does not.
    writeFileSync(path, whole.toString().replace("store/CURRENT", "../CURRENT"));
    refusesRestore(to, /its checksum does not match/);
    writeFileSync(path, whole);
    await restore(to, join(temporaryFolder(), "data"));
    // A folder of backups may be copied, and needs no lock to be read.
    const copy = join(temporaryFolder(), "copy");
    cpSync(to, copy, { recursive: true });
    rmSync(join(copy, "LOCK"));
    await restore(copy, join(temporaryFolder(), "data"));
});

test("a server with damaged data says so in its backups", { timeout: 60_000 }, async (t) => {
    const { server } = await twoGenerations(t);
    await server.stop();
    writeFileSync(join(server.data, "store/DAMAGED"), "a test says so\n");
    await server.start();
    const to = join(temporaryFolder(), "backups");
    const { status, stderr } = run(["backup", "--from", server.endpoint, "--to", to]);
    assert.equal(status, 0);
    assert.match(stderr, /the server has found damage in its own data/);
    assert.equal(manifestOf(to, 1).damaged, true);
    assert.match(run(["restore", "--from", to, "--data", join(temporaryFolder(), "data")]).stderr, /damage/);
});

test("a full disk ends a backup and a restore, and leaves both able to go on", { timeout: 120_000, ...needsDisk() }, async (t) => {
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "db" });
    const container = await newContainer(database);
    const { randomBytes } = await import("node:crypto");
    const item = (i) => ({ id: `d${i}`, pk: `p${i}`, noise: randomBytes(48 << 10).toString("base64") });
    await fill(container, Array.from({ length: 160 }, (_, i) => item(i)));
    const disk = await smallDisk(t, 36);
    const to = join(disk.folder, "backups");
    const outside = disk.outside(to);
    disk.leave(4);
    const ask = (...args) => start(args, { within: disk.within }).ended;
    const full = await ask("backup", "--from", server.endpoint, "--to", to);
    assert.equal(full.status, 1, full.stdout);
    assert.match(full.stderr, /No space left on device/);
    assert.deepEqual(generationsOf(outside), []);
    disk.release();
    const done = await ask("backup", "--from", server.endpoint, "--to", to);
    assert.equal(done.status, 0, done.stderr);
    assert.deepEqual(generationsOf(outside), ["000001.json"]);
    assert.ok(statSync(manifestPath(outside, 1)).size > 0);
    // There is room for one copy of the data and not for two.
    disk.leave(2);
    const data = join(disk.folder, "data");
    const short = await ask("restore", "--from", to, "--data", data);
    assert.equal(short.status, 1);
    assert.match(short.stderr, /No space left on device/);
    const refused = await ask("check", "--data", data);
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /is not complete/);
    disk.release();
    const again = await ask("restore", "--from", to, "--data", data);
    assert.equal(again.status, 0, again.stderr);
    const checked = await ask("check", "--data", data);
    assert.equal(checked.status, 0, checked.stderr);
});
