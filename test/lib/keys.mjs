// keys.mjs - asking a server about the account's keys, by hand and with the command.
import { randomBytes } from "node:crypto";

import { run } from "./server.mjs";
import { send, signed } from "./wire.mjs";

const PATH = "/_orrery/keys";

export const newKey = () => randomBytes(64).toString("base64");

/** A request to /_orrery/keys, signed with a key as one for the account. */
export function askKeys(server, { key = server.key, method = "GET", body, headers = {}, endpoint } = {}) {
    return send(endpoint ?? server.endpoint, {
        method,
        path: PATH,
        headers: { ...signed({ key, method, path: "/" }), ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
    });
}

export const rotateAnswer = (server, name, options = {}) =>
    askKeys(server, { method: "POST", body: { name }, ...options });

/** Makes a new key; its text. */
export async function rotate(server, name, options) {
    const answer = await rotateAnswer(server, name, options);
    if (answer.status !== 200) throw new Error(`rotating ${name}: ${answer.status} ${answer.text}`);
    return answer.json.key;
}

/** Whether the server takes this key. */
export async function isGood(server, key) {
    const { status } = await send(server.endpoint, { path: "/dbs", headers: signed({ key, path: "/dbs" }) });
    if (status !== 200 && status !== 401) throw new Error(`unexpected status ${status}`);
    return status === 200;
}

/** The keys that are stored in a folder, by name. */
export function storedKeys(data, args = []) {
    const { status, stdout, stderr } = run(["key", "list", "--show", "--data", data, ...args]);
    if (status !== 0) throw new Error(stderr);
    const pairs = [...stdout.matchAll(/^([a-z-]+) .*\n {4}(\S+)$/gm)].map(([, name, key]) => [name, key]);
    return Object.fromEntries(pairs);
}
