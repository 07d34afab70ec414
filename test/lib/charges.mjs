// charges.mjs - the rows of src/throughput/charge.def, and what the documentation of the service makes of them.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "./server.mjs";

const text = readFileSync(join(ROOT, "src/throughput/charge.def"), "utf8");

function sizes(macro) {
    const rows = [...text.matchAll(new RegExp(`^${macro}\\((\\d+), ([\\d.]+)\\)$`, "gm"))];
    return new Map(rows.map(([, kilobytes, units]) => [Number(kilobytes), Number(units)]));
}

/** Units by kilobytes, as they are published. */
export const READ = sizes("CHARGE_READ_SIZE");
export const WRITE = sizes("CHARGE_WRITE_SIZE");

/** Every constant: name, units, per, why. */
export const CONSTANTS = [
    ...text.matchAll(/^CHARGE_CONSTANT\(\w+, "([^"]*)", ([\d.]+), "([^"]*)", "([^"]*)"\)$/gm),
].map(([, name, units, per, why]) => ({ name, units, per, why }));

const lines = text.split("\n").filter((line) => /^CHARGE_\w+\(/.test(line)).length;
if (lines !== READ.size + WRITE.size + CONSTANTS.length) throw new Error("charge.def has rows of another form");

/** The policies under which items are written, and how many of the ten values of itemOf() they include. */
export const POLICIES = {
    "no index": { values: 0, indexingPolicy: { indexingMode: "none", automatic: false } },
    "two values indexed": {
        values: 2,
        indexingPolicy: {
            includedPaths: [{ path: "/n0/?" }, { path: "/n1/?" }],
            excludedPaths: [{ path: "/*" }],
        },
    },
    "everything indexed": { values: 10, indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [] } },
};

/** An item whose text has `kilobytes` kilobytes, with ten values besides id and partition key. The largest
 *  leaves room for what is stored with it: more than 2 MB are refused. */
export function itemOf(id, kilobytes, pk = "p") {
    const bytes = Math.min(kilobytes * 1024, 2048 * 1024 - 512);
    const item = { id, pk, text: "" };
    for (let i = 0; i < 9; i++) item[`n${i}`] = i;
    item.text = "x".repeat(bytes - JSON.stringify(item).length);
    return item;
}

/** By the published rules: an item of `kilobytes`, of whose values `values` are indexed; two change. */
export const OPERATIONS = {
    read: (kilobytes) => READ.get(kilobytes),
    create: (kilobytes, values) => WRITE.get(kilobytes) + 0.2 * values,
    replace: (kilobytes, values) => 2 * WRITE.get(kilobytes) + 0.2 * 2 * Math.min(values, 2),
    patch: (kilobytes, values) => OPERATIONS.replace(kilobytes, values) + 0.4 * 2,
    delete: (kilobytes, values) => OPERATIONS.create(kilobytes, values),
};

/** What each operation costs, through the SDK. */
export async function measure(container, kilobytes) {
    const item = itemOf(`i${kilobytes}`, kilobytes);
    const there = container.item(item.id, item.pk);
    const answers = {
        create: await container.items.create(item),
        read: await there.read(),
        replace: await there.replace({ ...item, n0: 7, n1: 8 }),
        patch: await there.patch([
            { op: "set", path: "/n0", value: 5 },
            { op: "set", path: "/n1", value: 6 },
        ]),
        delete: await there.delete(),
    };
    return Object.fromEntries(Object.keys(OPERATIONS).map((name) => [name, answers[name].requestCharge]));
}

/** A table of Markdown: what each operation costs here, what is published, and how far that is. */
export function tableOf(measured, values) {
    const names = Object.keys(OPERATIONS);
    const cell = (ours, published) => {
        const off = (100 * (ours - published)) / published;
        return `${ours.toFixed(2)} / ${published.toFixed(2)} / ${off < 0 ? "" : "+"}${off.toFixed(1)}%`;
    };
    const rows = [...measured].map(([kilobytes, charges]) => {
        const cells = names.map((name) => cell(charges[name], OPERATIONS[name](kilobytes, values)));
        return `| ${kilobytes} KB | ${cells.join(" | ")} |`;
    });
    return [`| size | ${names.join(" | ")} |`, `|---|${"---|".repeat(names.length)}`, ...rows].join("\n");
}
