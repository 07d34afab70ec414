// test-kit.test.mjs - the examples of clients/test-kit, run by Vitest, Jest and pytest.
//
// The runners are installed below build/sdks/test-kit. Without them, or without the packages, an example is skipped and says so.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { startOrrery } from "../../clients/test-kit/index.js";
import { BINARY, ROOT } from "../lib/server.mjs";

const HERE = fileURLToPath(new URL("test-kit", import.meta.url));
const KIT = join(ROOT, "clients/test-kit");
const BUILD = join(ROOT, "build/sdks/test-kit");
const MINUTE_MS = 60_000;
process.env.ORRERY = BINARY;

function run(command, options = {}) {
    const [file, ...args] = command;
    // The runners are runs of their own, and not parts of this one.
    const { NODE_TEST_CONTEXT: _, ...env } = { ...process.env, CI: "true", ...options.env };
    const ended = spawnSync(file, args, { encoding: "utf8", timeout: 8 * MINUTE_MS, killSignal: "SIGKILL", ...options, env });
    const output = ended.error ? `${ended.error.message}\n` : `${ended.stdout}${ended.stderr}`;
    return { isOk: ended.status === 0, output };
}

/** Why the examples cannot be run at all, or undefined. */
async function missing() {
    const orrery = await startOrrery();
    const reason = await orrery.snapshots().then(
        () => undefined,
        (error) => (/: 404 /.test(error.message) ? "this server has no snapshots" : undefined),
    );
    await orrery.stop();
    return reason;
}

test("the examples of clients/test-kit run with Vitest and Jest", async (t) => {
    const reason = await missing();
    if (reason) return t.skip(reason);
    mkdirSync(BUILD, { recursive: true });
    rmSync(join(BUILD, "node_modules/orrery-test-kit"), { recursive: true, force: true });
    cpSync(HERE, BUILD, { recursive: true });
    // Without a lock file: npm cannot write one that names no registry for packages of other platforms, which Vitest has.
    const fetched = run(["npm", "install", "--no-package-lock", "--loglevel=error"], { cwd: BUILD });
    if (!fetched.isOk) return t.skip(`the packages cannot be installed: ${fetched.output.slice(0, 400)}`);
    cpSync(KIT, join(BUILD, "node_modules/orrery-test-kit"), { recursive: true });
    cpSync(join(KIT, "examples"), join(BUILD, "examples"), { recursive: true });
    const vitest = run(["npx", "vitest", "run", "examples/vitest.test.mjs"], { cwd: BUILD });
    assert.ok(vitest.isOk, vitest.output);
    const jest = run(["npx", "jest", "examples/jest.test.js"], { cwd: BUILD });
    assert.ok(jest.isOk, jest.output);
    const node = run([process.execPath, "--test", "examples/node.test.mjs"], { cwd: BUILD });
    assert.ok(node.isOk, node.output);
});

test("the example of clients/test-kit runs with pytest", async (t) => {
    const reason = await missing();
    if (reason) return t.skip(reason);
    const build = join(BUILD, "python");
    rmSync(build, { recursive: true, force: true });
    const made = run(["python3", "-m", "venv", build]);
    if (!made.isOk) return t.skip(`python3 has no venv: ${made.output.slice(0, 400)}`);
    const fetched = run([join(build, "bin/pip"), "install", "--quiet", "-r", join(HERE, "requirements.txt")]);
    if (!fetched.isOk) return t.skip(`the packages cannot be installed: ${fetched.output.slice(0, 400)}`);
    const command = [join(build, "bin/python"), "-m", "pytest", "-q", "-p", "orrery_test_kit.fixtures", "-p", "no:cacheprovider"];
    const env = { PYTHONPATH: join(KIT, "python"), PYTHONDONTWRITEBYTECODE: "1" };
    const ended = run([...command, join(KIT, "python/examples")], { env });
    assert.ok(ended.isOk && /\b2 passed/.test(ended.output), ended.output);
});

test("the kit for Python does what its own tests say", async (t) => {
    const python = run(["python3", "-c", "import sys; sys.exit(sys.version_info < (3, 9))"]);
    if (!python.isOk) return t.skip("there is no python3 of at least 3.9");
    const ended = run(["python3", "-B", "-m", "unittest", "-v", "test_kit"], { cwd: join(KIT, "python"), timeout: MINUTE_MS });
    assert.ok(ended.isOk, ended.output);
});
