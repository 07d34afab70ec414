// What docs/import-export.md promises is true: its examples run in their order, and its tables are complete.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import test from "node:test";

import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, startServer, temporaryFolder } from "./lib/server.mjs";

const page = readFileSync(join(ROOT, "docs/import-export.md"), "utf8");

test("the examples of docs/import-export.md run as they stand", async (t) => {
    const server = await startServer(t);
    const folder = temporaryFolder();
    symlinkSync(BINARY, join(folder, "orrery"));
    const items = [1, 2, 3].map((n) => ({ id: `${n}`, user: `u${n}`, total: n }));
    writeFileSync(join(folder, "orders.jsonl"), items.map((item) => JSON.stringify(item)).join("\n"));
    writeFileSync(join(folder, "rows.csv"), "order,user,date\n7,ada,2024-01-01\n8,bob,2024-01-02\n");
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code]) => code);
    assert.equal(blocks.length, 4, "every example is known here");
    const outputs = blocks.map((code) => {
        // The examples are for a server at the usual place.
        const script = code.replaceAll(/^(orrery (?:import|export))/gm, `$1 --endpoint ${server.endpoint}`);
        const env = { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` };
        const { status, stdout, stderr } = spawnSync("sh", ["-e", "-c", script], { cwd: folder, env, encoding: "utf8" });
        assert.equal(status, 0, `${code}${stderr}`);
        return stdout;
    });
    const container = clientOf(server).database("shop").container("orders");
    const { resources } = await container.items.query("SELECT * FROM c ORDER BY c.id").fetchAll();
    const mapped = resources.find(({ id }) => id === "7");
    assert.deepEqual([mapped.pk, mapped.source], ["ada-2024-01-01", "web"]);
    // Three orders, two rows with the ids that were taken, and the same two with ids of their own.
    assert.match(outputs[3], /^[0-9A-F]{32} 7\n$/);
    assert.ok(existsSync(join(folder, "copy.jsonl.gz")));
    assert.equal(readFileSync(join(folder, "rejects.jsonl"), "utf8"), "");
});

function optionRows(path) {
    const text = readFileSync(join(ROOT, "src", path), "utf8");
    const row = /^(?:#include "(cli\/[^"]+)"|ARGUMENT_ROW\(\w+, "([^"]*)", (\w+), "([^"]*)", "([^"]*)", "([^"]*)"\))$/gm;
    return [...text.matchAll(row)].flatMap(([, included, name, , placeholder, fallback, help]) =>
        included ? optionRows(included) : [{ name, placeholder, fallback, help }],
    );
}

for (const command of ["import", "export"]) {
    test(`the table of docs/import-export.md has the options of orrery ${command}`, () => {
        const [, section] = page.split(`## Options of \`orrery ${command}\`\n`);
        const rows = [...section.split("\n## ")[0].matchAll(/^\| `--([a-z-]+)(?: ([^`]+))?` \| (?:`([^`]*)`)? \| (.*) \|$/gm)];
        const found = rows.map(([, name, placeholder = "", fallback = "", help]) => ({ name, placeholder, fallback, help }));
        const expected = optionRows(`cli/${command}_options.def`);
        assert.ok(expected.length > 10);
        assert.deepEqual(found, expected);
    });
}
