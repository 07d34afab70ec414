// docs/operations.md: its dashboard and its alerts name metrics that exist, in the form that Grafana and Prometheus
// read; its first start works; the events of the log that it names are those of the server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { rowsOf } from "../tools/reference.mjs";
import { selfSigned } from "./lib/certificates.mjs";
import { filesOf } from "./lib/folder.mjs";
import { blocksOf, pageText } from "./lib/pages.mjs";
import { ROOT, run, startServer, temporaryFolder } from "./lib/server.mjs";
import { send, signed } from "./lib/wire.mjs";

const PAGE = pageText("docs/operations.md");
const ALERTS = pageText("docs/prometheus-alerts.yml");
const DASHBOARD = JSON.parse(pageText("docs/grafana-dashboard.json"));

/** Every metric, with the labels that it may be asked for. */
const LABELS = new Map();
const note = (name, labels) => LABELS.set(name, new Set([...(LABELS.get(name) ?? ["instance"]), ...labels]));
for (const [, , name] of rowsOf("src/base/metrics.def", "METRIC_ROW")) noteSeries(name);
for (const [, name] of rowsOf("src/api/core/service_metrics.def", "SERVICE_METRIC_ROW")) noteSeries(name);
for (const [, name] of rowsOf("src/api/admin/partition_metrics.def", "PARTITION_METRIC_ROW"))
    note(name, ["database", "container", "range"]);

function noteSeries(series) {
    const [name, labels = ""] = series.split(/[{}]/);
    note(
        name,
        [...labels.matchAll(/(\w+)=/g)].map(([, label]) => label),
    );
}

/** An expression of PromQL asks for what there is; its brackets fit together. */
function checkExpression(text) {
    const names = [...text.matchAll(/\borrery_\w+/g)].map(([name]) => name);
    assert.ok(names.length > 0 || text.startsWith("up{"), `no metric in ${text}`);
    for (const name of names) assert.ok(LABELS.has(name), `there is no metric ${name}`);
    for (const [, name, labels] of text.matchAll(/\b(orrery_\w+)\{([^}]*)\}/g))
        for (const [, label] of labels.matchAll(/(\w+)=~?"/g))
            assert.ok(LABELS.get(name).has(label), `${name} has no label ${label}`);
    const open = [];
    for (const [bracket] of text.matchAll(/[()[\]{}]/g))
        if ("([{".includes(bracket)) open.push(bracket);
        else assert.equal(open.pop(), { ")": "(", "]": "[", "}": "{" }[bracket], text);
    assert.deepEqual(open, [], text);
    // A counter is asked for its growth, except where its value itself says something.
    for (const [name] of text.matchAll(/\borrery_\w+_total\b/g)) {
        const isGrowth = new RegExp(`(rate|increase)\\(${name}(\\{[^}]*\\})?\\[`).test(text);
        assert.ok(isGrowth || name === "orrery_store_damaged_reads_total", `${name} needs rate(): ${text}`);
    }
}

test("the dashboard has the form of Grafana's, and every panel shows something that exists", () => {
    const { title, uid, schemaVersion, panels, templating, time } = DASHBOARD;
    assert.deepEqual([title, uid, typeof time.from], ["Orrery", "orrery", "string"]);
    assert.ok(Number.isInteger(schemaVersion) && schemaVersion >= 36);
    const variables = new Map(templating.list.map((one) => [one.name, one]));
    assert.deepEqual([variables.get("datasource").type, variables.get("datasource").query], ["datasource", "prometheus"]);
    for (const { type, definition, query, datasource } of variables.values()) {
        if (type !== "query") continue;
        assert.equal(datasource.uid, "${datasource}");
        assert.equal(query.query, definition);
        const [, series, label] = /^label_values\((.*), (\w+)\)$/.exec(definition);
        assert.ok(LABELS.get(series.split("{")[0])?.has(label), definition);
    }
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, "ids are unique");
    const shown = panels.filter(({ type }) => type !== "row");
    assert.ok(shown.length > 15);
    for (const panel of shown) {
        assert.ok(["timeseries", "stat"].includes(panel.type), panel.type);
        assert.ok(panel.title && panel.fieldConfig.defaults.unit, panel.title);
        assert.deepEqual(panel.datasource, { type: "prometheus", uid: "${datasource}" });
        assert.ok(panel.targets.length > 0);
        assert.equal(new Set(panel.targets.map(({ refId }) => refId)).size, panel.targets.length);
        for (const { expr, datasource } of panel.targets) {
            assert.deepEqual(datasource, panel.datasource);
            checkExpression(expr);
            for (const [, name] of expr.matchAll(/\$(?!__)(\w+)/g)) assert.ok(variables.has(name), name);
        }
    }
});

test("the panels of the dashboard lie beside each other, not over each other", () => {
    const taken = new Set();
    for (const { title, gridPos: { x, y, w, h } } of DASHBOARD.panels) {
        assert.ok(x >= 0 && w > 0 && h > 0 && x + w <= 24, title);
        for (let i = x; i < x + w; i++)
            for (let j = y; j < y + h; j++) {
                assert.ok(!taken.has(`${i} ${j}`), `${title} lies over another panel`);
                taken.add(`${i} ${j}`);
            }
    }
});

/** The rules of the file, which keeps to a small part of YAML. */
function alertRules() {
    return ALERTS.split(/^ {6}- alert: /m)
        .slice(1)
        .map((text) => {
            const [, folded, plain] = /^ {8}expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)/m.exec(text);
            return { name: text.split("\n")[0], expr: (folded ?? plain).replace(/\s+/g, " ").trim(), text };
        });
}

test("the alerts ask for what there is, and the page says what to do for each", () => {
    const rules = alertRules();
    assert.ok(rules.length > 5);
    for (const { expr, text } of rules) {
        checkExpression(expr);
        assert.match(text, /^ {8}labels: \{ severity: (page|warn) \}$/m);
        assert.match(text, /^ {8}annotations: \{ summary: ".+" \}$/m);
    }
    const [, table] = PAGE.split("| alert | what to do |\n|---|---|\n");
    const rows = table.split("\n\n")[0].split("\n");
    assert.deepEqual(
        rows.map((row) => row.split(" | ")[0].slice(2)),
        rules.map(({ name }) => name),
    );
});

test("expressions and names of metrics on the pages exist", () => {
    for (const path of ["docs/operations.md", "docs/metrics.md", "docs/troubleshooting.md", "docs/seeing.md", "docs/disk.md"])
        for (const [name] of pageText(path).matchAll(/\borrery_\w+/g))
            assert.ok(LABELS.has(name), `${path}: there is no metric ${name}`);
    const [, expressions] = pageText("docs/metrics.md").split("## Expressions\n");
    for (const [, text] of expressions.matchAll(/\| `(.*)` \|$/gm)) checkExpression(text);
});

test("events of the log that the page names are events of the server", () => {
    const [, table] = PAGE.split("| event | meaning |\n|---|---|\n");
    const events = [...table.split("\n\n")[0].matchAll(/^\| `([a-z_.]+)/gm)].map(([, event]) => event);
    assert.ok(events.length > 3);
    const files = filesOf(join(ROOT, "src")).filter((path) => path.endsWith(".c"));
    const code = files.map((path) => readFileSync(join(ROOT, "src", path), "utf8")).join("\n");
    for (const event of events) assert.ok(code.includes(`"${event}"`), event);
});

test("the first start of the page works: a key, a certificate, TLS only", async (t) => {
    const [block] = blocksOf(PAGE, "sh");
    const [generate, serve] = block.trim().split("\n");
    const folder = temporaryFolder();
    const { cert, key } = selfSigned("server", folder);
    assert.equal(generate, "orrery key generate --to key");
    assert.equal(run(generate.split(" ").slice(1), { cwd: folder }).status, 0);
    const [, rest] = /^orrery serve --data \/var\/lib\/orrery --host 0\.0\.0\.0 (.*)$/.exec(serve);
    const server = await startServer(t, { host: "0.0.0.0", cwd: folder, args: rest.split(" ") });
    server.key = readFileSync(join(folder, "key"), "utf8").trim();
    const ca = readFileSync(cert, "utf8");
    assert.ok(key.endsWith("server.key"));
    assert.equal((await send(server.endpoint, { path: "/dbs" })).status, 403, "plain HTTP");
    const answer = await send(server.tlsEndpoint, { path: "/dbs", headers: signed({ key: server.key, path: "/dbs" }), ca });
    assert.equal(answer.status, 200, answer.text);
});
