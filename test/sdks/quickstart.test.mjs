// quickstart.test.mjs - the quick starts of docs/quickstart, each built from its page as a reader would and run.
//
// A language that is not there, or whose packages cannot be fetched, is skipped and says so. A program that does not
// compile, or prints something else than its page shows, fails. curl and JavaScript are in test/quickstart.test.mjs.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { blockOf, hasPrograms, pageText, runProgram } from "../lib/pages.mjs";
import { ROOT, startServer } from "../lib/server.mjs";

const MINUTE_MS = 60_000;

/** How a reader gets from the page to a program: commands as the page shows them, files from its blocks, the same commands
 * in steps: those that fetch, those that build, the program. */
const QUICK_STARTS = {
    python: {
        needs: ["python3"],
        shown: ["pip install azure-cosmos", "python quickstart.py"],
        files: { "quickstart.py": "python" },
        fetch: [
            ["python3", "-m", "venv", "shop"],
            ["shop/bin/pip", "install", "--quiet", "azure-cosmos"],
        ],
        program: ["shop/bin/python", "quickstart.py"],
    },
    go: {
        needs: ["go"],
        shown: ["go mod init shop", "go get github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos@v1.5.0", "go mod tidy", "go run ."],
        files: { "main.go": "go" },
        fetch: [
            ["go", "mod", "init", "shop"],
            ["go", "get", "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos@v1.5.0"],
            ["go", "mod", "tidy"],
        ],
        build: [["go", "build", "-o", "quickstart", "."]],
        program: ["./quickstart"],
    },
    java: {
        needs: ["mvn", "javac"],
        shown: ["mvn -q compile exec:java"],
        files: { "pom.xml": "xml", "src/main/java/QuickStart.java": "java" },
        fetch: [["mvn", "-q", "-B", "dependency:resolve"]],
        build: [["mvn", "-q", "-B", "compile"]],
        program: ["mvn", "-q", "-B", "exec:java"],
    },
    dotnet: {
        needs: ["dotnet"],
        shown: ["dotnet add package Microsoft.Azure.Cosmos", "dotnet add package Newtonsoft.Json", "dotnet run"],
        fetch: [
            ["dotnet", "new", "console", "--force", "-o", ".", "-n", "shop"],
            ["dotnet", "add", "package", "Microsoft.Azure.Cosmos"],
            ["dotnet", "add", "package", "Newtonsoft.Json"],
        ],
        files: { "Program.cs": "csharp" },
        build: [["dotnet", "build", "--nologo", "-v", "quiet"]],
        program: ["dotnet", "run", "--no-build"],
    },
};

/** Runs commands one after the other; the output of the first that fails, or undefined. */
async function failureOf(commands, options) {
    for (const [file, ...args] of commands) {
        const ended = await runProgram(file, args, options).catch((error) => ({ code: 1, stdout: "", stderr: error.message }));
        if (ended.code !== 0) return `${file} ${args.join(" ")}: ${ended.stdout}${ended.stderr}`;
    }
    return undefined;
}

function writeFiles(folder, page, files) {
    for (const [path, language] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), blockOf(page, language));
    }
}

for (const [name, { needs, shown, files, fetch, build = [], program }] of Object.entries(QUICK_STARTS))
    test(`the quick start for ${name} runs as it stands, and once more`, { timeout: 10 * MINUTE_MS }, async (t) => {
        const page = pageText(`docs/quickstart/${name}.md`);
        for (const command of shown) assert.ok(blockOf(page, "console").includes(`${command}\n`), `the page does not show ${command}`);
        if (!hasPrograms(...needs)) return t.skip(`${needs.join(" or ")} is not there`);
        const folder = join(ROOT, "build/quickstart", name);
        if (existsSync(folder)) rmSync(folder, { recursive: true });
        mkdirSync(folder, { recursive: true });
        writeFiles(folder, page, files);
        const missing = await failureOf(fetch, { cwd: folder });
        if (missing) return t.skip(`its packages cannot be fetched: ${missing.slice(0, 400)}`);
        writeFiles(folder, page, files); // what a fetch has made of them
        const broken = await failureOf(build, { cwd: folder });
        assert.equal(broken, undefined);
        const server = await startServer(t);
        const env = { ...process.env, COSMOS_ENDPOINT: server.endpoint };
        for (let i = 0; i < 2; i++) {
            const ended = await runProgram(program[0], program.slice(1), { cwd: folder, env });
            assert.equal(ended.code, 0, ended.stderr);
            // Maven resets colours.
            assert.equal(ended.stdout.replaceAll("\x1b[0m", ""), blockOf(page, "text"));
        }
    });
