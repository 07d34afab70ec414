// snapshots.mjs - snapshots of databases, and everything that a database has, for comparisons.
import assert from "node:assert/strict";

import { call } from "./wire.mjs";

const ask = (server, method, database, name, action = "") =>
    call(server, {
        method,
        path: `/_orrery/dbs/${encodeURIComponent(database)}/snapshots/${encodeURIComponent(name)}${action}`,
        type: "dbs",
        link: `dbs/${database}`,
    });

export const save = (server, database, name) => ask(server, "PUT", database, name);
export const restore = (server, database, name) => ask(server, "POST", database, name, "/restore");
export const drop = (server, database, name) => ask(server, "DELETE", database, name);

export const list = async (server, query = "") =>
    (await call(server, { path: `/_orrery/snapshots${query}`, type: "", link: "" })).json.snapshots;

export async function succeed(asked) {
    const answer = await asked;
    assert.ok(answer.status < 300, `${answer.status}: ${answer.text}`);
    return answer;
}

const all = async (feed) => (await feed.fetchAll()).resources;
const byId = (resources) => Object.fromEntries(resources.map((r) => [r.id, r]).sort(([a], [b]) => (a < b ? -1 : 1)));

/** What is provisioned, without what follows from it now, and what was ever stored under it. */
function offerOf(offers, rid) {
    const { content } = offers.find(({ offerResourceId }) => offerResourceId === rid) ?? { content: null };
    return JSON.parse(JSON.stringify(content, (name, value) => (/EverInKB|Pending/.test(name) ? undefined : value)));
}

async function observeContainer(container, offers) {
    const { resource } = await container.read();
    const items = await all(container.items.query("SELECT * FROM c"));
    const count = await all(container.items.query("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0 OR c.n < 0"));
    return {
        resource,
        offer: offerOf(offers, resource._rid),
        procedures: byId(await all(container.scripts.storedProcedures.readAll())),
        triggers: byId(await all(container.scripts.triggers.readAll())),
        functions: byId(await all(container.scripts.userDefinedFunctions.readAll())),
        items: items.map((item) => JSON.stringify(item)).sort(),
        count,
    };
}

/** All that clients can see of a database; null if there is none. */
export async function observe(client, id) {
    const database = client.database(id);
    const found = (await all(client.databases.readAll())).find((d) => d.id === id);
    if (!found) return null;
    const offers = await all(client.offers.readAll()).catch(() => []); // a serverless account has none
    const containers = {};
    for (const { id: name } of await all(database.containers.readAll()))
        containers[name] = await observeContainer(database.container(name), offers);
    const users = {};
    for (const user of await all(database.users.readAll())) {
        const permissions = await all(database.user(user.id).permissions.readAll());
        for (const permission of permissions) delete permission._token; // new for each read
        users[user.id] = { user, permissions: byId(permissions) };
    }
    return { resource: found, offer: offerOf(offers, found._rid), containers, users };
}
