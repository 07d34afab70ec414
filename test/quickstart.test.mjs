// The quick starts for curl and JavaScript run as they stand and print what they show. Those for other languages run in
// test/sdks; what can be said about them without their tools is checked here.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { blockOf, blocksOf, hasPrograms, pageText, runProgram } from "./lib/pages.mjs";
import { DEVELOPMENT_KEY, ROOT, startServer, temporaryFolder } from "./lib/server.mjs";

const LANGUAGES = { javascript: "js", python: "python", java: "java", dotnet: "csharp", go: "go" };
const pageOf = (name) => pageText(`docs/quickstart/${name}.md`);

test("the quick start for curl runs as it stands", async (t) => {
    if (!hasPrograms("curl", "openssl")) return t.skip("curl or openssl is not there");
    const page = pageOf("curl");
    const server = await startServer(t);
    const { code, stdout, stderr } = await runProgram("sh", ["-e", "-c", blocksOf(page, "sh").join("\n")], {
        cwd: temporaryFolder(),
        env: { ...process.env, COSMOS_ENDPOINT: server.endpoint },
    });
    assert.equal(code, 0, stderr);
    assert.equal(stdout, blockOf(page, "text"));
});

test("the quick start for JavaScript runs as it stands, and once more", async (t) => {
    const page = pageOf("javascript");
    const server = await startServer(t);
    const path = join(ROOT, `test/.quickstart-${process.pid}.mjs`); // beside this file, where the SDK is found
    t.after(() => rmSync(path, { force: true }));
    writeFileSync(path, blockOf(page, "js"));
    for (let i = 0; i < 2; i++) {
        const env = { ...process.env, COSMOS_ENDPOINT: server.endpoint };
        const { code, stdout, stderr } = await runProgram(process.execPath, [path], { env });
        assert.equal(code, 0, stderr);
        assert.equal(stdout, blockOf(page, "text"));
    }
});

// The steps that every quick start has, as words that each program must have.
const STEPS = [
    /COSMOS_ENDPOINT.*http:\/\/localhost:8081/s,
    /orders/,
    /customer/,
    /upsert/i,
    /read/i,
    /SELECT/,
    /replace/i,
    /429/,
    /etag/i,
];

for (const [name, language] of Object.entries(LANGUAGES))
    test(`the quick start for ${name} has every step, the well-known key, and what it prints`, () => {
        const page = pageOf(name);
        const program = blockOf(page, language);
        for (const step of STEPS) assert.match(program, step);
        assert.ok(program.includes(DEVELOPMENT_KEY));
        const printed = blockOf(page, "text");
        assert.match(printed, /^order 1 of ada: 42/);
        assert.match(printed, /412: somebody has changed the order since\n$/);
    });

test("the SDKs that begin with direct mode are told to use the gateway", () => {
    assert.match(blockOf(pageOf("dotnet"), "csharp"), /ConnectionMode = ConnectionMode\.Gateway/);
    assert.match(blockOf(pageOf("java"), "java"), /\.gatewayMode\(\)/);
});
