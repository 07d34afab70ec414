// `orrery check`: what is whole is said to be whole, and what cannot be checked is said, too. That it
// finds what is wrong is shown beside the code (src/partition/partition_check_test.c), where damage can be made.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { uniqueKeys } from "./lib/definition.mjs";
import { SIZES, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer, temporaryFolder } from "./lib/server.mjs";

const check = (data) => run(["check", "--data", data]);

test("a folder with items of every kind is whole", async (t) => {
    const server = await startServer(t, { args: ["--durability", "relaxed"] });
    const { database } = await clientOf(server).databases.create({ id: "checked" });
    const containers = [];
    for (const size of SIZES)
        containers.push(await newContainer(database, size, { ...uniqueKeys(["/u"]), defaultTtl: -1 }));
    await newContainer(database, SIZES[0], {
        indexingPolicy: { indexingMode: "none", automatic: false },
    });
    for (const container of containers) {
        for (let i = 0; i < 50; i++) {
            const item = { id: `${i}`, pk: `p${i % 7}`, u: i, tags: ["a", i], deep: { n: i / 3 } };
            if (i % 5 === 0) item.ttl = 3600;
            await container.items.create(item);
        }
        for (let i = 0; i < 50; i += 3) await container.item(`${i}`, `p${i % 7}`).delete();
        await container.item("1", "p1").patch([{ op: "incr", path: "/deep/n", value: 1 }]);
    }

    const busy = check(server.data);
    assert.equal(busy.status, 1, "a server has the folder");
    assert.match(busy.stderr, /^orrery: /m);

    await server.stop();
    const { status, stdout, stderr } = check(server.data);
    assert.equal(stderr, "");
    assert.equal(status, 0, stdout);
    for (const { id } of containers)
        assert.match(stdout, new RegExp(`^checked/${id}: \\d partitions, 33 items, [1-9]\\d* index terms, 0 findings$`, "m"));
    assert.match(stdout, /^3 containers with 66 items: everything agrees$/m);

    // Nothing was changed: the server goes on with the folder.
    await server.start();
    await server.stop();
    assert.equal(check(server.data).status, 0);
});

test("what is no data folder is said to be none, and not made one", () => {
    const folder = join(temporaryFolder(), "nothing");
    const { status, stderr } = check(folder);
    assert.equal(status, 1);
    assert.match(stderr, /is not a data folder/);
    assert.equal(existsSync(folder), false);
});

test("the command line is checked", () => {
    const help = run(["check", "--help"]);
    assert.equal(help.status, 0);
    assert.match(help.stdout, /Usage: orrery check/);
    assert.match(run(["help"]).stdout, /check .*data folder/);
    for (const [args, pattern] of [
        [["--data"], /--data needs a value/],
        [["--data="], /must not be empty/],
        [["--date", "x"], /no option '--date'/],
        [["data"], /'data' is not an option/],
    ]) {
        const { status, stderr } = run(["check", ...args]);
        assert.equal(status, 2, args.join(" "));
        assert.match(stderr, pattern);
    }
    assert.match(run(["check"], { env: { ORRERY_DATA: "/no/such" } }).stderr, /'\/no\/such' is not/);
});
