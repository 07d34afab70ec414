// The examples of docs/snapshots.md run as they stand.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import test from "node:test";

import { backup, check, restore as restoreFolder } from "./lib/backups.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { list, observe, restore, save, succeed } from "./lib/snapshots.mjs";

const page = readFileSync(join(ROOT, "docs/snapshots.md"), "utf8");
const exampleOf = (language) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(page)[1];

async function shop(t) {
    const server = await startServer(t);
    const client = clientOf(server);
    const { database } = await client.databases.create({ id: "shop" });
    const { container } = await database.containers.create({ id: "orders", partitionKey: "/pk" });
    await container.items.create({ id: "1", pk: "a" });
    return { server, client, container };
}

test("the commands of docs/snapshots.md run as they stand", async (t) => {
    const { server } = await shop(t);
    const folder = temporaryFolder();
    symlinkSync(BINARY, join(folder, "orrery"));
    const script = exampleOf("sh").replaceAll(/^(orrery snapshot \w+)/gm, `$1 --endpoint ${server.endpoint}`);
    const env = { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` };
    const { status, stdout, stderr } = spawnSync("sh", ["-e", "-c", script], { cwd: folder, env, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Saved 'seeded'.*^Restored 'seeded'.*^shop +seeded .*^Dropped 'seeded'/ms);
    assert.deepEqual(await list(server), []);
});

test("the program of docs/snapshots.md runs as it stands", async (t) => {
    const { server, container } = await shop(t);
    const file = join(temporaryFolder(), "example.mjs");

    writeFileSync(file, exampleOf("js"));
    const env = { ...process.env, COSMOS_ENDPOINT: server.endpoint };
    const { status, stderr } = spawnSync(process.execPath, [file], { env, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    await container.items.create({ id: "2", pk: "a" });
    await succeed(restore(server, "shop", "seeded"));
    assert.equal((await container.items.readAll().fetchAll()).resources.length, 1);
});

test("snapshots are in backups", async (t) => {
    const { server, client, container } = await shop(t);
    const before = await observe(client, "shop");
    await succeed(save(server, "shop", "seeded"));
    await container.delete();
    const folder = join(temporaryFolder(), "backups");
    await backup(server.endpoint, folder);
    const data = join(temporaryFolder(), "restored");
    await restoreFolder(folder, data);
    check(data); // the items of the container, too
    assert.match(run(["check", "--data", data]).stdout, /^\(in snapshots\)\/orders: 1 partitions, 1 items, .* 0 findings$/m);
    const copy = await startServer(t, { data });
    await succeed(restore(copy, "shop", "seeded"));
    assert.deepEqual(await observe(clientOf(copy), "shop"), before);
});
