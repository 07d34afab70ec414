// routes.mjs - every route of the server, from its own tables, and a page of another site that tries them all.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { openPage, signed } from "./browser.mjs";

export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const API = new URL("../../src/api/", import.meta.url);
const COLL = "dbs/shop/colls/orders";

// What is there in the tests; of other types something that is not.
const IDS = { DATABASE: "shop", CONTAINER: "orders", DOCUMENT: "1", STORED_PROCEDURE: "s", TRIGGER: "t", USER_DEFINED_FUNCTION: "u", USER: "ada", PERMISSION: "p", PARTITION_KEY_RANGE: "0" };

const read = (path) => readFileSync(new URL(path, API), "utf8");
const all = (text, pattern) => [...text.matchAll(pattern)].map(([, ...found]) => found);

// The list and one resource of each type of the protocol.
function resourceRoutes() {
    const items = { ACCOUNT: "" };
    return all(read("core/resources.def"), /^RESOURCE_ROW\((\w+), "(\w*)", "\w*", (\w+)\)/gm).flatMap(([type, segment, parent]) => {
        if (type === "ACCOUNT")
            return [""];
        const list = `${items[parent]}${items[parent] === "" ? "" : "/"}${segment}`;
        items[type] = `${list}/${IDS[type] ?? "x"}`;
        return [list, items[type]];
    });
}

const operationRoutes = () => all(/OPERATIONS\[\] = \{(.*?)^\};/ms.exec(read("dispatch.c"))[1], /SLICE_INIT\("(\w+)"\)/g).map(([name]) => `${COLL}/operations/${name}`);

const serviceRoutes = () => all(read("core/service.c"), /\{SLICE_INIT\("\/(\S*)"\), answer_\w+\}/g).map(([path]) => path);

// Below /_orrery: kinds of pages, tables of paths, and what the files say that they answer.
function adminRoutes() {
    const folder = new URL("admin/", API);
    const files = readdirSync(folder).filter((name) => /^orrery\w*\.c$/.test(name)).map((name) => read(`admin/${name}`));
    const routes = files.flatMap((text) => {
        const kinds = all(text, /^const OrreryKind \w+ = \{\s*\.name = SLICE_INIT\("(\w+)"\),(\s*\.is_of_container = true)?/gm)
            .map(([name, isOfContainer]) => isOfContainer === undefined ? `_orrery/${name}` : `_orrery/${COLL}/${name}`);
        const faults = all(/ChaosPath PATHS\[\] = \{(.*?)^\};/ms.exec(text)?.[1] ?? "", /\{SLICE_INIT\("(\w+)"\)/g).map(([name]) => `_orrery/chaos/${COLL}/${name}`);
        const orders = all(text, /\{SLICE_INIT\("\w+"\), SLICE_INIT\("(\/?\w*)"\), CLUSTER_\w+\}/g).map(([path]) => `_orrery/cluster${path}?node=n&space=1`);
        const told = all(text, /^ \* +(?:GET|HEAD|POST|PUT|PATCH|DELETE)(?:, (?:GET|DELETE))* +\/(_orrery\S+)/gm)
            .map(([path]) => path.replace("/dbs/{db}/colls/{coll}", `/${COLL}`).replace("{db}", "shop").replace(/\{\w+\}/g, "0"));
        return [...kinds, ...faults, ...orders, ...told];
    });
    const header = read("admin/orrery_int.h");
    routes.push(...all(header, /^ \* +\/(_orrery\/\w+) /gm).map(([path]) => path));
    // A folder of paths that is answered must be in the list.
    const prefixes = all(header, /^bool (\w+)_is_path\(/gm).map(([name]) => name).filter((name) => name !== "orrery");
    for (const prefix of prefixes)
        assert.ok(routes.some((route) => route.startsWith(`_orrery/${prefix}`)), `no route of ${prefix} is known`);
    assert.ok(prefixes.length >= 6, `${prefixes}`);
    return routes;
}

export function routesOfServer() {
    const routes = [...new Set([...resourceRoutes(), ...operationRoutes(), ...serviceRoutes(), ...adminRoutes(), "_explorer", "_explorer/", "_explorer/assets/none.js"])];
    // If a table were not understood, some of these would be missing.
    for (const known of [
        "", "dbs", COLL, `${COLL}/docs/1`, `${COLL}/pkranges/0`, `${COLL}/operations/partitionkeydelete`, `${COLL}/operations/partitionmerge`, "offers/x", "healthz", "metrics", "addresses/",
        "dbs/shop/users/ada/permissions/p", `_orrery/${COLL}/layout`, "_orrery/events", `_orrery/chaos/${COLL}/faults`, "_orrery/chaos", "_orrery/cluster?node=n&space=1",
        "_orrery/cluster/digest?node=n&space=1", "_orrery/cluster/move?node=n&space=1", "_orrery/backup/0/0/sum", "_orrery/backup/0", "_orrery/swap/0", "_orrery/dbs/shop/snapshots/0/restore", "_orrery/keys",
    ])
        assert.ok(routes.some((route) => route === known || route.startsWith(`${known}?`)), `${known} is not among ${routes.join(" ")}`);
    return routes;
}

// A page of another site sends each request without a signature, and with one, as the development key is public. It must
// not see any answer, and not show the explorer inside itself.
export async function tryFromAnotherSite(t, server, routes) {
    const foreign = createServer((_, answer) => {
        answer.setHeader("content-type", "text/html");
        answer.end(`<title>foreign</title><iframe src="${server.endpoint}/_explorer/"></iframe>`);
    });
    await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
    t.after(() => foreign.close());
    const page = await openPage(t, { endpoint: "http://127.0.0.1", closing: server.closing }, { path: `:${foreign.address().port}/`, allowErrors: [/./], allowHosts: true });
    const attempts = routes.flatMap((route) => METHODS.map((method) => ({ route, method, headers: signed(method, route) })));
    const seen = await page.evaluate(async ({ endpoint, attempts: tries }) => {
        const found = [];
        for (const { route, method, headers } of tries) {
            for (const init of [{ mode: "cors" }, { mode: "no-cors" }, { mode: "cors", headers }]) {
                try {
                    const answer = await fetch(`${endpoint}/${route}`, { method, ...init });
                    const text = await answer.text();
                    if (answer.status !== 0 || text !== "")
                        found.push(`${method} ${route}: ${answer.status} ${text.slice(0, 50)}`);
                } catch {
                    // Refused: as it should be.
                }
            }
        }
        return found;
    }, { endpoint: server.endpoint, attempts });
    assert.deepEqual(seen, []);
    const frame = page.frames().find((inner) => inner !== page.mainFrame());
    assert.ok(frame === undefined || !(await frame.locator("#app").count().catch(() => 0)));
}
