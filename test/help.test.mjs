// Help, manual page and completion say the same as the tables of options, which are read here as text: a
// command that is not in src/cli/commands.def, or a table that no command uses, fails. And `orrery health`.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test from "node:test";

import { BINARY, ROOT, run, startServer, temporaryFolder } from "./lib/server.mjs";

const CLI = join(ROOT, "src/cli");
const ENDPOINT_OF_NOTHING = "http://127.0.0.1:1";

/** The options of a table, with those of the tables that it includes. */
function rowsOf(file) {
    const text = readFileSync(join(CLI, file), "utf8");
    const row = /^#include "cli\/([^"]+)"$|^(?:ARGUMENT|OPTION)_ROW\(\w+, "([^"]+)", (\w+), "([^"]*)", "([^"]*)", "((?:[^"\\]|\\.)+)"\)$/gm;
    const matches = [...text.matchAll(row)];
    const expected = text.split("\n").filter((line) => /^(ARGUMENT_ROW|OPTION_ROW|#include)/.test(line)).length;
    assert.equal(matches.length, expected, `rows of ${file} that are understood`);
    return matches.flatMap(([, included, name, kind, placeholder, fallback, help]) =>
        included ? rowsOf(included) : [{ name, kind, placeholder, fallback, help: help.replaceAll("\\", "") }],
    );
}

/** Command -> its options. */
function tables() {
    const found = new Map([["serve", rowsOf("options.def")]]);
    for (const file of readdirSync(CLI)) {
        const [, command] = file.match(/^(\w+)_options\.def$/) ?? [];
        if (command && command !== "connection") found.set(command, rowsOf(file));
    }
    return found;
}

const COMMANDS = [...readFileSync(join(CLI, "commands.def"), "utf8").matchAll(/^COMMAND_ROW\((\w+)_COMMAND\)$/gm)].map(
    ([, name]) => name.toLowerCase(),
);
const flat = (text) => text.replace(/\s+/g, " ");

test("help lists every command, and explains each with every option", () => {
    const list = run(["help"]).stdout;
    const listed = [...list.matchAll(/^  ([a-z]+) +\S/gm)].map(([, name]) => name);
    assert.deepEqual(listed.filter((name) => name !== "orrery"), COMMANDS);
    for (const [command, rows] of tables()) {
        assert.ok(COMMANDS.includes(command), `${command} has options, but no row in commands.def`);
        const help = run(["help", command]);
        assert.equal(help.status, 0);
        assert.deepEqual(run([command, "--help"]), help);
        assert.deepEqual(run([command, "-h"]), help);
        assert.ok(help.stdout.startsWith(`Usage: orrery ${command}`));
        assert.ok(rows.length > 0);
        const text = flat(help.stdout);
        for (const { name, kind, placeholder, fallback, help: words } of rows) {
            const value = kind !== "FLAG" && fallback ? ` (${fallback})` : "";
            assert.ok(text.includes(flat(` --${name} ${placeholder} ${words}${value} `)), `${command} --${name}`);
        }
    }
});

test("help refuses what it does not know", () => {
    for (const [args, pattern] of [
        [["help", "serv"], /there is no command 'serv'; did you mean 'serve'\?/],
        [["help", "script-worker"], /there is no command/],
        [["help", "serve", "top"], /one COMMAND/],
        [["help", "--man", "--completion", "bash"], /one COMMAND, or --man/],
        [["help", "--completion", "fish"], /must be bash, not 'fish'/],
        [["help", "--mann"], /did you mean '--man'/],
    ]) {
        const { status, stdout, stderr } = run(args);
        assert.equal(status, 2, args.join(" "));
        assert.equal(stdout, "");
        assert.match(stderr, pattern);
    }
});

test("a text that cannot be written is not taken for a whole one", () => {
    for (const args of [["--man"], ["--completion", "bash"], []]) {
        const result = spawnSync("sh", ["-c", 'exec "$0" help "$@" >/dev/full', BINARY, ...args], { encoding: "utf8" });
        assert.equal(result.status, 1, args.join(" "));
        assert.match(result.stderr, /cannot write the text/);
    }
});

test("the manual page has every option of every command", () => {
    const page = run(["help", "--man"]).stdout;
    const parts = new Map(page.split("\n.SS orrery ").slice(1).map((part) => [part.split("\n")[0], part]));
    assert.deepEqual([...parts.keys()], COMMANDS);
    const escape = (text) => text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("'", "\\(aq").replaceAll("~", "\\(ti");
    for (const [command, rows] of tables()) {
        for (const { name, help } of rows) {
            const part = parts.get(command);
            const begin = part.indexOf(`.TP\n\\fB\\-\\-${escape(name)}\\fR`);
            assert.notEqual(begin, -1, `${command} --${name}`);
            assert.ok(part.slice(begin).split("\n.TP\n")[0].includes(escape(help)), `${command} --${name}`);
        }
    }
});

test("roff and man have no complaints about the manual page", (t) => {
    const page = run(["help", "--man"]).stdout;
    let programs = 0;
    for (const [program, ...args] of [
        ["groff", "-man", "-ww", "-Tutf8"],
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "-"],
        ["mandoc", "-T", "lint", "-W", "warning"],
    ]) {
        const result = spawnSync(program, args, { input: page, encoding: "utf8", env: { ...process.env, LC_ALL: "C.UTF-8" } });
        if (result.error) continue;
        programs++;
        assert.equal(result.status, 0, result.stderr);
        assert.equal(result.stderr, "", program);
    }
    if (programs === 0) t.diagnostic("none of groff, man and mandoc is installed");
});

/** What bash offers for the last word of a line. */
function complete(words, cwd) {
    const script = `
        source <("$ORRERY" help --completion bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _orrery
        for word in "\${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done`;
    const result = spawnSync("bash", ["--norc", "-uc", script, "bash", ...words], {
        cwd,
        encoding: "utf8",
        env: { PATH: process.env.PATH, ORRERY: BINARY },
    });
    assert.equal(result.status, 0, result.stderr);
    assert.equal(result.stderr, "");
    return result.stdout.split("\n").slice(0, -1);
}

test("bash completes commands, options and values", () => {
    const script = run(["help", "--completion", "bash"]).stdout;
    const parsed = spawnSync("bash", ["-n"], { input: script, encoding: "utf8" });
    assert.equal(parsed.stderr, "");
    assert.equal(parsed.status, 0);
    const registered = spawnSync("bash", ["--norc", "-c", `${script}\ncomplete -p orrery`], { encoding: "utf8" });
    assert.match(registered.stdout, /^complete -F _orrery orrery$/m);

    const folder = temporaryFolder();
    mkdirSync(join(folder, "some data"));
    writeFileSync(join(folder, "some file.jsonl"), "");
    for (const [words, expected] of [
        [["orrery", ""], COMMANDS],
        [["orrery", "re"], ["restore"]],
        [["orrery", "help", "im"], ["import"]],
        [["orrery", "key", "ro"], ["rotate"]],
        [["orrery", "key", "rotate", "primary"], ["primary", "primary-read-only"]],
        [["orrery", "serve", "--durability", ""], ["sync", "relaxed"]],
        [["orrery", "serve", "--durability", "=", "r"], ["relaxed"]],
        [["orrery", "serve", "--durability", "="], ["sync", "relaxed"]],
        [["orrery", "serve", "--port", ""], []],
        [["orrery", "serve", "--no-r"], ["--no-rate-limit"]],
        [["orrery", "serve", "--data", "so"], ["some data"]],
        [["orrery", "import", "--format", "json"], ["jsonl", "json"]],
        [["orrery", "import", "so"], ["some data", "some file.jsonl"]],
        [["orrery", "import", "--csv-strings", "some f"], ["some file.jsonl"]],
        [["orrery", "nonsense", "--d"], []],
        [["orrery", "version", ""], []],
    ])
        assert.deepEqual(complete(words, folder).sort(), [...expected].sort(), words.join(" "));
    for (const [command, rows] of tables()) {
        const offered = complete(["orrery", command, "--"], folder);
        assert.deepEqual(offered, [...rows.map(({ name }) => `--${name}`), "--help"], command);
    }
});

test("orrery health says whether a server takes requests", async (t) => {
    const server = await startServer(t);
    for (const args of [
        [["health", "--endpoint", server.endpoint]],
        [["health"], { env: { ORRERY_PORT: `${server.port}` } }],
        [["health"], { env: { ORRERY_PORT: `${server.port}`, ORRERY_REQUIRE_TLS: "true" } }],
        [["health", "--endpoint", server.tlsEndpoint, "--insecure"]],
        [["health", "--endpoint", `https://localhost:${server.port}`, "--cert", join(server.data, "tls-cert.pem")]],
    ])
        assert.deepEqual(run(...args), { status: 0, stdout: "ok\n", stderr: "" }, JSON.stringify(args));
    assert.equal(run(["health", "--quiet", "--endpoint", server.endpoint]).stdout, "");
    for (const [args, status, pattern, env = {}] of [
        [["--endpoint", ENDPOINT_OF_NOTHING], 1, /cannot reach/],
        [["--endpoint", server.tlsEndpoint], 1, /not trusted/],
        [["--endpoint", "localhost"], 2, /is not an endpoint/],
        [["--timeout", "0"], 2, /from 1 to 3600/],
        [["--insecure", "--cert", "x"], 2, /exclude each other/],
        [["now"], 2, /is not an option/],
        [[], 2, /ORRERY_PORT must be a port/, { ORRERY_PORT: "0" }],
        [[], 2, /ORRERY_REQUIRE_TLS must be true or false/, { ORRERY_REQUIRE_TLS: "perhaps" }],
    ]) {
        const result = run(["health", ...args], { env });
        assert.equal(result.status, status, `${args}: ${result.stderr}`);
        assert.match(result.stderr, pattern);
        assert.equal(result.stdout, "");
    }
});

/** Like run, for a server of this process, which must be able to answer meanwhile. */
async function runAside(args) {
    const child = spawn(BINARY, args, { stdio: ["ignore", "pipe", "pipe"] });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].on("data", (data) => (result[name] += data));
    result.status = await new Promise((resolve) => child.on("close", resolve));
    return result;
}

test("orrery health makes what a stranger answers harmless, and does not take it for a server", async (t) => {
    const answers = {
        "/1": [503, '{"status":"degraded","reason":"the disk is full"}', 1, /^orrery: the server answered 503: the disk is full\n$/],
        "/2": [200, "hello", 1, /is it an Orrery server\?/],
        "/3": [200, '{"status":7}', 1, /is it an Orrery server\?/],
        "/4": [200, '{"status":"\\u001b[2J","reason":"\\u0007"}', 0, /^$/],
        "/5": [500, "\u001b[2J", 1, /^orrery: the server answered 500: \n$/],
    };
    let asked = "/1";
    const stranger = createServer((request, response) => {
        const [status, body] = answers[asked];
        response.writeHead(status).end(body);
    });
    await new Promise((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    t.after(() => stranger.close());
    for (const [name, [, , status, pattern]] of Object.entries(answers)) {
        asked = name;
        const result = await runAside(["health", "--endpoint", `http://127.0.0.1:${stranger.address().port}`]);
        assert.equal(result.status, status, name);
        assert.match(result.stderr, pattern, name);
        assert.doesNotMatch(result.stdout + result.stderr, /[\u0000-\u0009\u000b-\u001f]/, name);
    }
});
