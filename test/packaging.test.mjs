// What is packaged agrees with the program: options in the configuration of the Debian package, in the
// Dockerfile and in compose.yaml exist, and nothing opens the well-known key to other machines.
// tools/deb-test.sh installs the package itself.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { optionRows } from "./lib/options.mjs";
import { ROOT, run, startServer, temporaryFolder } from "./lib/server.mjs";

const read = (path) => readFileSync(join(ROOT, path), "utf8");
const NAMES = optionRows().map(({ name }) => name);
const optionOf = (variable) => variable.replace(/^ORRERY_/, "").toLowerCase().replaceAll("_", "-");

test("the configuration of the package names only options that exist, and the service reads it", async (t) => {
    const text = read("packaging/orrery.conf");
    const names = [...text.matchAll(/^#?([a-z-]+)(?: = .+)?$/gm)].map(([, name]) => name);
    assert.ok(names.length > 5);
    assert.deepEqual(names.filter((name) => !NAMES.includes(name)), []);
    assert.match(text, /^data = \/var\/lib\/orrery$/m);
    assert.match(text, /^key-file = \/etc\/orrery\/key$/m);

    const folder = temporaryFolder();
    const key = Buffer.alloc(64, 7).toString("base64");
    writeFileSync(join(folder, "key"), key);
    const config = join(folder, "orrery.conf");
    writeFileSync(config, text.replace("/var/lib/orrery", join(folder, "data")).replace("/etc/orrery/key", join(folder, "key")));
    const [, command] = read("packaging/orrery.service").match(/^ExecStart=\/usr\/bin\/orrery serve (.*)$/m);
    assert.equal(command, "--config /etc/orrery/orrery.conf");
    const server = await startServer(t, { args: ["--config", config] });
    assert.equal(run(["health", "--endpoint", server.endpoint]).stdout, "ok\n");
});

test("the image runs as nobody special, refuses the well-known key and asks the program how it is", () => {
    const text = read("Dockerfile").replaceAll("\\\n", " ");
    const last = text.slice(text.lastIndexOf("\nFROM "));
    const [, variables] = last.match(/^ENV (.*)$/m);
    for (const variable of variables.split(" ")) assert.ok(NAMES.includes(optionOf(variable.split("=")[0])), variable);
    assert.doesNotMatch(variables, /DEVELOPMENT_KEY/);
    assert.match(last, /^USER [1-9]\d*:[1-9]\d*$/m);
    assert.match(last, /rm -rf .*\/etc\/orrery/, "the key of the package is not in the image");
    const [, health] = last.match(/^HEALTHCHECK .*CMD (\[.*\])$/m);
    const [program, ...args] = JSON.parse(health);
    assert.equal(program, "orrery");
    assert.equal(run([...args, "--help"]).status, 0);
    assert.equal(run([...args, "--endpoint", "http://127.0.0.1:1"]).status, 1);
    const env = { ORRERY_HOST: "0.0.0.0", ORRERY_PORT: "0", ORRERY_DATA: join(temporaryFolder(), "data") };
    const refused = run(["serve"], { env });
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /--allow-development-key/);
});

test("compose.yaml opens the well-known key to this machine only", async (t) => {
    const text = read("compose.yaml");
    const variables = Object.fromEntries([...text.matchAll(/^ +(ORRERY_\w+): "?([^"\n]*)"?$/gm)].map(([, name, value]) => [name, value]));
    assert.ok(Object.keys(variables).length > 0);
    for (const name of Object.keys(variables)) assert.ok(NAMES.includes(optionOf(name)), name);
    assert.equal(variables.ORRERY_ALLOW_DEVELOPMENT_KEY, "true");
    const ports = [...text.matchAll(/^ +- "([0-9.]*:?\d+:\d+)"$/gm)].map(([, port]) => port);
    assert.deepEqual(ports, ["127.0.0.1:8081:8081"]);
    const server = await startServer(t, { args: ["--host", "0.0.0.0"], env: variables });
    assert.equal(run(["health", "--endpoint", `http://localhost:${server.port}`]).stdout, "ok\n");
});

test("the examples of clusters name only options that exist, and whole ones", () => {
    const lines = (text) => [...text.matchAll(/^([a-z-]+) = .+$/gm)].map(([, name]) => name);
    const node = lines(read("packaging/cluster/orrery-node.conf"));
    for (const name of ["host", "cluster", "cluster-secret", "node", "advertise"]) assert.ok(node.includes(name), name);
    const script = read("packaging/cluster/systemd.sh");
    const [, service] = script.match(/<<CONF\n(.*)\nCONF$/ms);
    for (const name of ["data", "key-file", "port", "cluster", "cluster-secret", "node", "advertise"]) assert.ok(lines(service).includes(name), name);
    const compose = [...read("packaging/cluster/compose.yaml").matchAll(/\b(ORRERY_[A-Z_]+):/g)].map(([, name]) => optionOf(name));
    assert.ok(compose.includes("cluster"));
    assert.deepEqual([...node, ...lines(service), ...compose].filter((name) => !NAMES.includes(name)), []);
    // It takes the unit of a server alone, and changes these lines of it.
    const unit = read("packaging/orrery.service");
    for (const [, pattern] of script.matchAll(/-e 's\|([^|]+)\|/g)) assert.match(unit, new RegExp(pattern, "m"), pattern);
});

test("the package installs beside a user or a group that exists", () => {
    const commands = ["addgroup", "adduser", "chgrp", "chmod", "deb-systemd-helper", "deb-systemd-invoke", "install", "orrery", "rm", "systemctl"];
    for (const known of ["", "group", "passwd", "group passwd"]) {
        const folder = temporaryFolder();
        const say = (name, body) => writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
        for (const name of commands) say(name, `echo ${name} "$@" >>${folder}/calls`);
        say("getent", `case " ${known} " in *" $1 "*) exit 0 ;; esac; exit 2`);
        execFileSync("/bin/sh", [join(ROOT, "packaging/debian/postinst"), "configure", ""], { env: { PATH: folder } });
        const calls = readFileSync(join(folder, "calls"), "utf8");
        assert.equal(/^addgroup .*orrery$/m.test(calls), !known.includes("group"), calls);
        assert.equal(/^adduser .*--ingroup orrery .*orrery$/m.test(calls), !known.includes("passwd"), calls);
        assert.match(calls, /^chgrp orrery/m);
    }
});
