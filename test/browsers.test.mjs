// Web pages: those of other sites can neither read nor change anything here, under any name.
//
// The rules by hand, always; and a real browser where there is one (Chromium, or what ORRERY_CHROMIUM names).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { hostname } from "node:os";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { startServer, temporaryFolder } from "./lib/server.mjs";
import { call, send, signed, unique } from "./lib/wire.mjs";

const ORIGIN = "http://app.example:3000";

const cors = (answer) => Object.keys(answer.headers).filter((name) => name.startsWith("access-control-"));

// --- By hand

test("without --cors no page of another origin is answered", async (t) => {
    const server = await startServer(t);
    for (const origin of [ORIGIN, "null", "http://localhost:3000", "http://localhost"]) {
        for (const request of [
            { path: "/dbs" },
            { path: "/healthz" },
            { path: "/metrics" },
            { path: "/dbs", method: "POST", body: { id: "x" } },
            {
                path: "/dbs",
                method: "OPTIONS",
                headers: { "access-control-request-method": "GET", "access-control-request-private-network": "true" },
            },
        ]) {
            const answer = await call(server, { ...request, headers: { ...request.headers, origin } });
            errorAnswer(answer, 403, "Forbidden", { message: new RegExp(`--cors ${origin}`) });
            assert.deepEqual(cors(answer), []);
        }
    }
    assert.equal((await call(server, { path: "/dbs" })).json._count, 0);
});

test("a page of the server itself needs no permission", async (t) => {
    const server = await startServer(t);
    const answer = await call(server, { path: "/dbs", headers: { origin: server.endpoint } });
    assert.equal(answer.status, 200);
    assert.deepEqual(cors(answer), []);
});

test("--cors lets pages of these origins in, and no others", async (t) => {
    const server = await startServer(t, { args: ["--cors", `${ORIGIN},null`, "--cors", "https://b.example"] });
    for (const origin of [ORIGIN, "null", "https://b.example"]) {
        const answer = await call(server, { path: "/dbs", headers: { origin } });
        assert.equal(answer.status, 200);
        assert.equal(answer.headers["access-control-allow-origin"], origin);
        assert.equal(answer.headers.vary, "origin");
    }
    const preflight = await send(server.endpoint, {
        method: "OPTIONS",
        path: "/dbs",
        headers: {
            origin: ORIGIN,
            "access-control-request-method": "DELETE",
            "access-control-request-headers": "authorization",
            "access-control-request-private-network": "true",
        },
    });
    assert.equal(preflight.status, 204);
    assert.match(preflight.headers["access-control-allow-methods"], /\bDELETE\b/);
    assert.equal(preflight.headers["access-control-allow-headers"], "authorization");
    assert.equal(preflight.headers["access-control-allow-private-network"], undefined);
    for (const origin of ["http://b.example", "https://b.example:8443", "https://evil.example"])
        assert.equal((await call(server, { path: "/dbs", headers: { origin } })).status, 403);
});

test("on loopback only names of this machine are served", async (t) => {
    const server = await startServer(t, { args: ["--public-endpoint", "https://db.example.com:443/"] });
    const ask = (host, path = "/dbs") => call(server, { path, headers: { host } });
    for (const host of ["localhost", "a.localhost:1", "127.0.0.1:99", "[::1]", "10.0.0.1", hostname(), "db.example.com"])
        assert.equal((await ask(host)).status, 200, host);
    for (const host of ["evil.example", "cosmos:8081", "host.docker.internal:8081", "localhost.evil.example"]) {
        for (const path of ["/dbs", "/", "/healthz", "/metrics"]) {
            const name = host.split(":")[0];
            errorAnswer(await ask(host, path), 400, "BadRequest", { message: new RegExp(`--allow-host ${name}\\.`) });
        }
    }
});

test("--allow-host adds names", async (t) => {
    const server = await startServer(t, { args: ["--allow-host", "cosmos,*.internal"] });
    const status = async (host) => (await call(server, { path: "/dbs", headers: { host } })).status;
    assert.equal(await status("cosmos:8081"), 200);
    assert.equal(await status("host.docker.internal"), 200);
    assert.equal(await status("other"), 400);
});

test("on a network, names without a dot are served, and all with a key of one's own", async (t) => {
    const known = await startServer(t, { host: "0.0.0.0", args: ["--allow-development-key"] });
    const own = await startServer(t, { host: "0.0.0.0", key: Buffer.alloc(64, 7).toString("base64") });
    const status = async (server, host) => (await call(server, { path: "/dbs", headers: { host } })).status;
    assert.equal(await status(known, "cosmos:8081"), 200);
    assert.equal(await status(known, "evil.example"), 400);
    assert.equal(await status(own, "cosmos:8081"), 200);
    assert.equal(await status(own, "db.example.com"), 200);
});

// --- With a browser

const CHROMIUM = [process.env.ORRERY_CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"].find(
    (path) => path !== undefined && existsSync(path),
);
const browser = { skip: CHROMIUM === undefined && "there is no Chromium here (Debian's package is chromium)" };

/** What a page does to the server, with the well-known key; it tells its own site how far it got. */
function attackPage(server, id) {
    const headers = (method, path) => signed({ key: server.key, method, path });
    const requests = {
        read: ["/dbs", { headers: headers("GET", "/dbs") }],
        create: ["/dbs", { method: "POST", headers: headers("POST", "/dbs"), body: JSON.stringify({ id: `${id}-new` }) }],
        remove: [`/dbs/${id}`, { method: "DELETE", headers: headers("DELETE", `/dbs/${id}`) }],
        simple: ["/healthz", {}],
        blind: ["/dbs", { method: "POST", mode: "no-cors", body: JSON.stringify({ id: `${id}-blind` }) }],
    };
    return `<!doctype html><script>
        const outcome = async ([path, options]) => {
            try {
                const answer = await fetch("http://localhost:${server.port}" + path, options);
                return answer.type === "opaque" ? "opaque" : answer.status + " " + (await answer.text()).slice(0, 2000);
            } catch (error) { return "blocked"; }
        };
        (async () => {
            const result = {};
            for (const [name, request] of Object.entries(${JSON.stringify(requests)}))
                result[name] = await outcome(request);
            await fetch("/result", { method: "POST", body: JSON.stringify(result) });
        })();
    </script>`;
}

function runBrowser(t, url, more = []) {
    const child = spawn(
        CHROMIUM,
        [
            ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
            ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
            ...[`--user-data-dir=${temporaryFolder()}`, ...more, url],
        ],
        { stdio: ["ignore", "pipe", "ignore"] },
    );
    const ended = new Promise((resolve) => child.once("close", resolve));
    const end = () => (child.kill("SIGKILL"), ended);
    t.after(end);
    return { child, ended, end };
}

/** A site that serves one page and waits for what it reports. */
async function openSite(t) {
    const site = createServer();
    await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
    t.after(() => site.close());
    const visit = (page, url) =>
        new Promise((resolve) => {
            let running = null;
            site.removeAllListeners("request");
            site.on("request", async (request, response) => {
                if (request.url !== "/result") {
                    response.setHeader("content-type", "text/html").end(request.url === "/" ? page : "");
                    return;
                }
                let text = "";
                for await (const piece of request) text += piece;
                response.end();
                await running.end();
                resolve(JSON.parse(text));
            });
            running = runBrowser(t, url);
        });
    return { port: site.address().port, visit };
}

test("a page of another site cannot read, create or delete anything", browser, async (t) => {
    const server = await startServer(t, { host: "localhost" });
    const site = await openSite(t);
    const id = unique("page");
    await call(server, { method: "POST", path: "/dbs", body: { id } });
    const result = await site.visit(attackPage(server, id), `http://127.0.0.1:${site.port}/`);
    assert.deepEqual(result, {
        read: "blocked",
        create: "blocked",
        remove: "blocked",
        simple: "blocked",
        blind: "opaque",
    });
    const { Databases } = (await call(server, { path: "/dbs" })).json;
    assert.deepEqual(
        Databases.map((database) => database.id),
        [id],
    );
});

test("a page of an origin that --cors names can do all that its key allows", browser, async (t) => {
    const site = await openSite(t);
    const origin = `http://127.0.0.1:${site.port}`;
    const server = await startServer(t, { host: "localhost", args: ["--cors", origin] });
    const id = unique("page");
    await call(server, { method: "POST", path: "/dbs", body: { id } });
    const result = await site.visit(attackPage(server, id), `${origin}/`);
    assert.match(result.read, new RegExp(`^200 .*"${id}"`));
    assert.match(result.create, /^201 /);
    assert.match(result.remove, /^204 /);
    assert.match(result.simple, /^200 /);
    const { Databases } = (await call(server, { path: "/dbs" })).json;
    assert.deepEqual(
        Databases.map((database) => database.id),
        [`${id}-new`],
    );
});

test("a name that was made to lead here shows a browser nothing", browser, async (t) => {
    const server = await startServer(t, { host: "localhost" });
    const rules = "--host-resolver-rules=MAP evil.example 127.0.0.1";
    const show = async (host) => {
        const { child, ended } = runBrowser(t, `http://${host}:${server.port}/healthz`, [rules, "--dump-dom"]);
        let text = "";
        child.stdout.setEncoding("utf8").on("data", (piece) => (text += piece));
        await ended;
        return text;
    };
    assert.match(await show("localhost"), /"status":"ok"/);
    const shown = await show("evil.example");
    assert.match(shown, /--allow-host evil\.example/);
    assert.doesNotMatch(shown, /"status":"ok"/);
});
