// docs/errors.md and docs/metrics.md have what the tables in the code have, and a server answers with the same metrics.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { pageMade, pages, rowsOf } from "../tools/reference.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ROOT, sharedServer } from "./lib/server.mjs";
import { call, send } from "./lib/wire.mjs";

const server = await sharedServer();
const page = readFileSync(join(ROOT, "docs/errors.md"), "utf8");

for (const path of pages)
    test(`${path} is what the tables in the code say`, () => {
        assert.equal(readFileSync(join(ROOT, path), "utf8"), pageMade(path), "run make reference");
    });

/** Metrics of an answer as the pages have them: name, kind, help; of those with labels, the name alone. */
function metricsOf(text) {
    const help = new Map([...text.matchAll(/^# HELP (\w+) (.*)$/gm)].map(([, name, words]) => [name, words]));
    return [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, kind]) => [name, kind, help.get(name)]);
}

/** Rows as metricsOf has them: one for each name. */
function families(rows) {
    const found = new Map();
    for (const [kind, name, help] of rows) {
        const family = name.split("{")[0];
        if (!found.has(family)) found.set(family, [family, kind.toLowerCase(), help]);
    }
    return [...found.values()];
}

test("/metrics has the metrics of the page, and no others", async () => {
    const { status, text } = await send(server.endpoint, { path: "/metrics" });
    assert.equal(status, 200);
    const rows = [
        ...rowsOf("src/base/metrics.def", "METRIC_ROW").map(([, ...row]) => row),
        ...rowsOf("src/api/core/service_metrics.def", "SERVICE_METRIC_ROW"),
    ];
    assert.deepEqual(metricsOf(text), families(rows));
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    assert.deepEqual(
        lines.map((line) => line.slice(0, line.lastIndexOf(" "))),
        rows.map(([, name]) => name),
    );
    for (const line of lines) assert.match(line, / -?\d+$/);
});

test("/_orrery/metrics has the metrics of the page for each partition", async () => {
    const { database } = await clientOf(server).databases.create({ id: "measured" });
    await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    const headers = { authorization: `Bearer ${server.key}` };
    const { status, text } = await send(server.endpoint, { path: "/_orrery/metrics", headers });
    assert.equal(status, 200, text);
    const rows = rowsOf("src/api/admin/partition_metrics.def", "PARTITION_METRIC_ROW");
    assert.deepEqual(metricsOf(text), families(rows));
    for (const [, name] of rows)
        assert.match(text, new RegExp(`^${name}\\{database="measured",container="c",range="0"\\} [\\d.]+$`, "m"));
});

test("an error has the form that docs/errors.md shows", async () => {
    const answer = await call(server, { path: "/dbs/none/colls/none/docs" });
    assert.equal(answer.status, 404);
    assert.match(page, new RegExp(`^HTTP/1.1 404 Not Found\nx-ms-substatus: ${answer.headers["x-ms-substatus"]}\n`, "m"));
    assert.ok(answer.headers["x-ms-activity-id"]);
    const shown = JSON.parse(/^```json\n(.*?)^```$/ms.exec(page)[1]);
    assert.deepEqual(Object.keys(answer.json), Object.keys(shown));
    assert.equal(answer.json.code, shown.code);
});

test("errors of queries have the codes that docs/errors.md names", async () => {
    const { database } = await clientOf(server).databases.create({ id: "asked" });
    const { container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
    for (const [text, code] of [
        ["SELECT FROM", "SC1001"],
        ["SELECT x.a FROM c", "SC2001"],
        ["SELECT NOTHING(c) FROM c", "SC2005"],
        ["SELECT VALUE VectorDistance(c.v, [1]) FROM c", "SC2990"],
    ]) {
        assert.ok(page.includes(`\`${code}\``));
        const failed = await container.items.query(text).fetchAll().catch((error) => error);
        assert.equal(failed.code, 400);
        assert.match(failed.body?.message ?? failed.message, new RegExp(code), text);
    }
});
