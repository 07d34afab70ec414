// What README.md promises is true, and docs/options.md is complete.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { optionRows } from "./lib/options.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ROOT, run, startServer, temporaryFolder } from "./lib/server.mjs";

const FILE = join(ROOT, "README.md");
const skip = existsSync(FILE) ? false : "there is no README.md";
const text = skip ? "" : readFileSync(FILE, "utf8");
const options = readFileSync(join(ROOT, "docs/options.md"), "utf8");

function runScript(path, env) {
    return new Promise((resolve) => {
        const child = spawn(process.execPath, [path], { env: { ...process.env, ...env } });
        let output = "";
        child.stdout.on("data", (piece) => (output += piece));
        child.stderr.on("data", (piece) => (output += piece));
        child.on("close", (code) => resolve({ code, output }));
    });
}

test("the example of README.md runs as it stands", { skip }, async (t) => {
    const blocks = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
    assert.ok(blocks.length > 0, "README.md has no ```js block");
    const server = await startServer(t);
    for (const [i, code] of blocks.entries()) {
        // Beside this file, where the SDK is found.
        const path = join(ROOT, `test/.readme-${process.pid}-${i}.mjs`);
        t.after(() => rmSync(path, { force: true }));
        writeFileSync(path, code.replaceAll("http://localhost:8081", server.endpoint));
        const { code: status, output } = await runScript(path, { COSMOS_ENDPOINT: server.endpoint });
        assert.equal(status, 0, output);
        assert.match(output, /order 1 of ada: 42/);
        const again = await runScript(path, { COSMOS_ENDPOINT: server.endpoint });
        assert.equal(again.code, 0, again.output);
    }
});

test("the example of docs/change-feed.md runs as it stands", async (t) => {
    const page = readFileSync(join(ROOT, "docs/change-feed.md"), "utf8");
    const [, code] = /^```js\n(.*?)^```$/ms.exec(page);
    const server = await startServer(t);
    const path = join(ROOT, `test/.change-feed-${process.pid}.mjs`); // beside this file, where the SDK is found
    t.after(() => rmSync(path, { force: true }));
    writeFileSync(path, code);
    const { code: status, output } = await runScript(path, { COSMOS_ENDPOINT: server.endpoint });
    assert.equal(status, 0, output);
    assert.equal(output, /^```text\n(.*?)^```$/ms.exec(page)[1]);
});

test("the example of tokens in docs/security.md runs as it stands", async (t) => {
    const whole = readFileSync(join(ROOT, "docs/security.md"), "utf8");
    const page = whole.slice(whole.indexOf("## Users and tokens"));
    const [, code] = /^```js\n(.*?)^```$/ms.exec(page);
    const server = await startServer(t);
    const path = join(ROOT, `test/.security-${process.pid}.mjs`); // beside this file, where the SDK is found
    t.after(() => rmSync(path, { force: true }));
    writeFileSync(path, code);
    const { code: status, output } = await runScript(path, { COSMOS_ENDPOINT: server.endpoint, COSMOS_KEY: server.key });
    assert.equal(status, 0, output);
    assert.equal(output, /^```text\n(.*?)^```$/ms.exec(page)[1]);
});

test("the example of docs/backup.md runs as it stands", async (t) => {
    const page = readFileSync(join(ROOT, "docs/backup.md"), "utf8");
    const [, script] = /^```sh\n(.*?)^```$/ms.exec(page);
    const server = await startServer(t);
    const { database } = await clientOf(server).databases.create({ id: "shop" });
    const { container } = await database.containers.create({ id: "carts", partitionKey: { paths: ["/pk"] } });
    await container.items.create({ id: "1", pk: "ada" });
    const cwd = temporaryFolder();
    let output = "";
    for (const line of script.trim().split("\n")) {
        const [name, ...args] = line.replace("http://localhost:8081", server.endpoint).split(" ");
        assert.equal(name, "orrery");
        const { status, stdout, stderr } = run(args, { cwd });
        assert.equal(status, 0, `${line}: ${stderr}`);
        output += stdout;
    }
    // What the page shows, with other numbers.
    const form = (text) => text.replace(/\d+/g, "0").trim().split("\n");
    const shown = form(/^```text\n(.*?)^```$/ms.exec(page)[1]);
    assert.deepEqual(form(output).slice(0, shown.length), shown);
    assert.match(output, /everything agrees/);
    const copy = await startServer(t, { data: join(cwd, "restored") });
    const { resource } = await clientOf(copy).database("shop").container("carts").item("1", "ada").read();
    assert.equal(resource.id, "1");
});

test("the table in docs/options.md has the options of the program", () => {
    const rows = [...options.matchAll(/^\| `--([a-z-]+)( [A-Z0-9]+)?` \| (?:`([^`]*)`)? *\| (.*) \|$/gm)];
    const found = rows.map(([, name, placeholder = "", fallback = "", help]) => ({
        name,
        placeholder: placeholder.trim(),
        fallback,
        help,
    }));
    const expected = optionRows().map(({ name, kind, placeholder, fallback, help }) => ({
        name,
        placeholder,
        fallback: kind === "FLAG" ? "" : fallback,
        help,
    }));
    assert.deepEqual(found, expected);
});

test("every file that README.md links to exists", { skip }, () => {
    const links = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path]) => path);
    assert.ok(links.length > 0);
    const missing = links.filter((path) => !existsSync(join(ROOT, path)));
    assert.deepEqual(missing, []);
});
