// world.mjs - what a writer of the crash test believes to exist, and what the server has.
//
//     World     = { [database id]: { ru, containers: { [container id]: Container } } }
//     Container = { definition, ru }
//
// `ru` is null without an offer of one's own, a number for manual throughput, and a text such as
// "max 4000" for autoscale. `definition` is the container's body without system properties.
import { DEFAULTS, definitionOf } from "./definition.mjs";
import { call } from "./wire.mjs";

const DEFAULT_RU = 400;

const throughputHeader = (ru) =>
    ru === null
        ? {}
        : typeof ru === "number"
          ? { "x-ms-offer-throughput": String(ru) }
          : { "x-ms-cosmos-offer-autopilot-settings": `{"maxThroughput":${ru.split(" ")[1]}}` };

function throughputOf(offer) {
    if (!offer) return null;
    const auto = offer.content.offerAutopilotSettings;
    return auto ? `max ${auto.maxThroughput}` : offer.content.offerThroughput;
}

function randomDefinition(random, id, partitionKey) {
    const definition = {
        ...DEFAULTS,
        id,
        partitionKey,
        indexingPolicy: {
            indexingMode: "consistent",
            automatic: true, // false would come back as true
            includedPaths: [{ path: "/*" }],
            excludedPaths: [
                ...Array.from({ length: random.below(20) }, (_, i) => ({ path: `/excluded${i}/?` })),
                { path: '/"_etag"/?' },
            ],
        },
    };
    if (random.chance(50)) definition.defaultTtl = 1 + random.below(1_000_000);
    return definition;
}

/** A change that is possible in this world: the request, its target's name, the world after it. */
export function randomChange(random, world, newName) {
    const dice = random.below(100);
    const ids = Object.keys(world);
    if (ids.length === 0 || (dice < 10 && ids.length < 6))
        return createDatabase(random, world, newName("db"));
    const id = random.pick(ids);
    if (dice < 15) return deleteDatabase(world, id);
    const names = Object.keys(world[id].containers);
    if (names.length === 0 || (dice < 45 && names.length < 12))
        return createContainer(random, world, id, newName("c"));
    const name = random.pick(names);
    if (dice < 60) return deleteContainer(world, id, name);
    if (dice < 80 || world[id].containers[name].ru === null) return replaceContainer(random, world, id, name);
    return replaceOffer(random, world, id, name);
}

function createDatabase(random, world, id) {
    const ru = random.pick([null, 400, 1200, "max 4000"]);
    const after = structuredClone(world);
    after[id] = { ru, containers: {} };
    const headers = throughputHeader(ru);
    return { after, target: id, method: "POST", path: "/dbs", headers, body: { id }, status: 201 };
}

function deleteDatabase(world, id) {
    const after = structuredClone(world);
    delete after[id];
    return { after, target: id, method: "DELETE", path: `/dbs/${id}`, status: 204 };
}

function createContainer(random, world, id, name) {
    const key = random.pick([
        { paths: ["/pk"], kind: "Hash" },
        { paths: ["/a/b"], kind: "Hash", version: 2 },
        { paths: ["/a", "/b"], kind: "MultiHash", version: 2 },
    ]);
    const body = randomDefinition(random, name, key);
    const asked = random.pick([null, 700, 20_000, "max 5000"]);
    const after = structuredClone(world);
    after[id].containers[name] = {
        definition: body,
        ru: asked ?? (world[id].ru === null ? DEFAULT_RU : null),
    };
    const headers = throughputHeader(asked);
    return { after, target: name, method: "POST", path: `/dbs/${id}/colls`, headers, body, status: 201 };
}

function deleteContainer(world, id, name) {
    const after = structuredClone(world);
    delete after[id].containers[name];
    return { after, target: name, method: "DELETE", path: `/dbs/${id}/colls/${name}`, status: 204 };
}

function replaceContainer(random, world, id, name) {
    const body = randomDefinition(random, name, world[id].containers[name].definition.partitionKey);
    const after = structuredClone(world);
    after[id].containers[name].definition = body;
    return { after, target: name, method: "PUT", path: `/dbs/${id}/colls/${name}`, body, status: 200 };
}

// The sender looks up the offer first, because the server chooses its id.
function replaceOffer(random, world, id, name) {
    const isAuto = typeof world[id].containers[name].ru === "string";
    const ru = isAuto ? 1000 * (5 + random.below(20)) : 100 * (10 + random.below(200));
    const content = isAuto ? { offerAutopilotSettings: { maxThroughput: ru } } : { offerThroughput: ru };
    const after = structuredClone(world);
    after[id].containers[name].ru = isAuto ? `max ${ru}` : ru;
    return { after, target: name, offerOf: [id, name], method: "PUT", body: { content }, status: 200 };
}

async function list(server, path, name) {
    const resources = [];
    let token;
    do {
        const headers = { "x-ms-max-item-count": "-1", ...(token && { "x-ms-continuation": token }) };
        const answer = await call(server, { path, headers });
        if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
        resources.push(...answer.json[name]);
        token = answer.headers["x-ms-continuation"];
    } while (token);
    return resources;
}

/** An offer as it is when its partitions have been split or merged for it, which ends by itself. */
export function settled(body) {
    if (body.content?.isOfferReplacePending === undefined) return body;
    return { ...body, content: { ...body.content, isOfferReplacePending: false } };
}

/** Everything that the server has: the world, and all bodies with the name of what they belong to. */
export async function observe(server) {
    const offers = new Map();
    const found = [];
    const names = new Map();
    for (const offer of await list(server, "/offers", "Offers")) {
        if (offers.has(offer.offerResourceId)) throw new Error(`two offers for ${offer.offerResourceId}`);
        offers.set(offer.offerResourceId, offer);
    }
    const world = {};
    for (const database of await list(server, "/dbs", "Databases")) {
        names.set(database._rid, database.id);
        found.push({ name: database.id, body: database });
        const containers = {};
        for (const container of await list(server, `/dbs/${database.id}/colls`, "DocumentCollections")) {
            names.set(container._rid, container.id);
            found.push({ name: container.id, body: container });
            const ru = throughputOf(offers.get(container._rid));
            containers[container.id] = { definition: definitionOf(container), ru };
        }
        world[database.id] = { ru: throughputOf(offers.get(database._rid)), containers };
    }
    for (const [owner, body] of offers) {
        if (!names.has(owner)) throw new Error(`an offer belongs to ${owner}, which does not exist`);
        found.push({ name: names.get(owner), body: settled(body) });
    }
    return { world, found };
}
