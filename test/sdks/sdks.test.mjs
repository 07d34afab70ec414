// sdks.test.mjs - the same day of work through the newest SDKs of four languages.
//
// Each SDK has a folder here with a program and the versions it is built with. What a program needs is
// installed below build/sdks. A language that is not there, or whose packages cannot be fetched, is
// skipped and says so; a program that does not compile or that finds a wrong answer fails.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ROOT, startServer } from "../lib/server.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const MINUTE_MS = 60_000;

/** Runs a command to its end; what it printed, and whether it ended well. */
function run(command, options = {}) {
    const [file, ...args] = command;
    const ended = spawnSync(file, args, { encoding: "utf8", timeout: 8 * MINUTE_MS, killSignal: "SIGKILL", ...options });
    const output = ended.error ? `${ended.error.message}\n` : `${ended.stdout}${ended.stderr}`;
    return { isOk: ended.status === 0, output };
}

/** An SDK: which program tells its version, how to fetch, build and run. */
const SDKS = {
    javascript: {
        version: { command: [process.execPath, "--version"], pattern: /^v(\d+)/, needed: [20] },
        fetch: (source, build) => {
            cpSync(source, build, { recursive: true });
            return run(["npm", "ci", "--loglevel=error"], { cwd: build });
        },
        program: (source, build) => [process.execPath, join(build, "program.mjs")],
    },
    python: {
        version: { command: ["python3", "--version"], pattern: /^Python (\d+)\.(\d+)/, needed: [3, 9] },
        fetch: (source, build) => {
            const made = run(["python3", "-m", "venv", build]);
            if (!made.isOk) return made;
            return run([join(build, "bin/pip"), "install", "--quiet", "-r", join(source, "requirements.txt")]);
        },
        program: (source, build) => [join(build, "bin/python"), join(source, "program.py")],
    },
    go: {
        version: { command: ["go", "version"], pattern: /go(\d+)\.(\d+)/, needed: [1, 25] },
        fetch: (source) => run(["go", "mod", "download"], { cwd: source }),
        compile: (source, build) => run(["go", "build", "-o", join(build, "program"), "."], { cwd: source }),
        program: (source, build) => [join(build, "program")],
    },
    java: {
        version: { command: ["javac", "-version"], pattern: /^javac (\d+)/, needed: [17] },
        fetch: (source, build) => maven(source, build, "dependency:build-classpath", `-Dmdep.outputFile=${build}/classpath`),
        compile: (source, build) => maven(source, build, "compile"),
        program: (source, build) => [
            "java",
            // The certificate is self-signed, as that of every emulator.
            "-DCOSMOS.EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED=true",
            "-cp",
            `${build}/classes:${readFileSync(join(build, "classpath"), "utf8").trim()}`,
            "Program",
        ],
    },
};

function maven(source, build, ...goals) {
    return run(["mvn", "-B", "-q", `-Dbuild.folder=${build}`, ...goals], { cwd: source });
}

/** Why the language cannot be used here, or undefined. */
function missing({ command, pattern, needed }) {
    const found = pattern.exec(run(command).output);
    if (!found) return `${command[0]} is not there`;
    const version = found.slice(1).map(Number);
    const isNew = compare(version, needed) >= 0;
    return isNew ? undefined : `${command[0]} is ${version.join(".")}, ${needed.join(".")} is needed`;
}

function compare(version, needed) {
    const i = needed.findIndex((part, at) => version[at] !== part);
    return i < 0 ? 0 : version[i] - needed[i];
}

for (const [name, sdk] of Object.entries(SDKS)) {
    test(`a day of work with the SDK for ${name}`, async (t) => {
        const reason = missing(sdk.version);
        if (reason) return t.skip(reason);
        const source = join(HERE, name);
        const build = join(ROOT, "build/sdks", name);
        mkdirSync(build, { recursive: true });
        const fetched = sdk.fetch(source, build);
        if (!fetched.isOk) return t.skip(`its packages cannot be installed: ${fetched.output.slice(0, 400)}`);
        const compiled = sdk.compile?.(source, build) ?? { isOk: true };
        assert.ok(compiled.isOk, compiled.output);

        const server = await startServer(t);
        const [file, ...args] = sdk.program(source, build);
        const ended = run([file, ...args], {
            env: {
                ...process.env,
                COSMOS_ENDPOINT: server.endpoint,
                COSMOS_TLS_ENDPOINT: server.tlsEndpoint,
                COSMOS_KEY: server.key,
            },
            timeout: 2 * MINUTE_MS,
        });
        assert.ok(ended.isOk && /^ok whole$/m.test(ended.output), ended.output);
    });
}
