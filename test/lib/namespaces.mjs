// namespaces.mjs - a network of this process alone, in which a node can be cut off from the engine, the other nodes
// or the clients without anybody being told: what it sends goes to a machine that is not there.
//
// It needs root and `ip`. A campaign runs itself anew in it (enterNetwork()); each node gets a namespace of its own
// at a bridge.
import { execFileSync, spawnSync } from "node:child_process";
import { createServer, connect } from "node:net";

const INSIDE = "ORRERY_KILLS_NETWORK";
const NOBODY = "02:00:00:00:00:fe";
const CLIENTS = "10.99.0.1";
const ENGINE = "10.99.0.2"; // of this namespace, too; an address of its own so that it can be cut alone

const ip = (...args) => execFileSync("ip", args, { stdio: ["ignore", "pipe", "pipe"] });

/** Runs this program again in a new network; it does not come back. Whatever ends it, the other one ends, too. */
export function enterNetwork() {
    if (process.env[INSIDE]) {
        for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
        return;
    }
    const command = ["setpriv", "--pdeathsig", "TERM", process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    const { status } = spawnSync("unshare", ["--net", ...command], {
        stdio: "inherit",
        env: { ...process.env, [INSIDE]: "1" },
    });
    process.exit(status ?? 1);
}

/** Passes connections to a port of this machine on, for nodes that see another address. */
function passOn(port) {
    const server = createServer((incoming) => {
        const outgoing = connect(port, "127.0.0.1");
        for (const [from, to] of [[incoming, outgoing], [outgoing, incoming]]) {
            from.setNoDelay(true);
            from.pipe(to);
            from.on("error", () => to.destroy());
            from.on("close", () => to.destroy());
        }
    });
    return new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, ENGINE, () => resolve(server));
    });
}

export class Network {
    #spaces = new Map(); // name of a node -> its namespace and address
    #servers = [];

    constructor() {
        ip("link", "set", "lo", "up");
        ip("link", "add", "nodes", "type", "bridge");
        for (const address of [CLIENTS, ENGINE]) ip("addr", "add", `${address}/24`, "dev", "nodes");
        ip("link", "set", "nodes", "up");
        process.on("exit", () => this.#forget());
    }

    /** The engine's ports answer at an address that nodes can reach; the URL with that address. */
    async engine(url) {
        const ports = [...url.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
        for (const port of ports) this.#servers.push(await passOn(port));
        return url.replaceAll("127.0.0.1", ENGINE);
    }

    /** A place for a node: its address, and the command that runs a program there. */
    add(name) {
        const number = 11 + this.#spaces.size;
        const space = `orrery-${process.pid}-${name}`;
        const address = `10.99.0.${number}`;
        ip("netns", "add", space);
        this.#spaces.set(name, { space, address });
        ip("link", "add", `node${number}`, "type", "veth", "peer", "name", "eth0", "netns", space);
        ip("link", "set", `node${number}`, "master", "nodes", "up");
        ip("-n", space, "addr", "add", `${address}/24`, "dev", "eth0");
        for (const device of ["eth0", "lo"]) ip("-n", space, "link", "set", device, "up");
        return { address, within: ["ip", "netns", "exec", space] };
    }

    /** Everything that the node sends to the "engine", the other "nodes" or the "clients" is lost from now on. */
    cut(name, from) {
        for (const address of this.#others(name, from))
            ip("-n", this.#spaces.get(name).space, "neigh", "replace", address, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0");
    }

    heal(name, from) {
        for (const address of this.#others(name, from))
            ip("-n", this.#spaces.get(name).space, "neigh", "del", address, "dev", "eth0");
    }

    #others(name, from) {
        if (from === "engine") return [ENGINE];
        if (from === "clients") return [CLIENTS];
        return [...this.#spaces].filter(([other]) => other !== name).map(([, { address }]) => address);
    }

    #forget() {
        for (const { space } of this.#spaces.values()) spawnSync("ip", ["netns", "del", space]);
    }

    end() {
        for (const server of this.#servers) server.close();
        this.#forget();
        this.#spaces.clear();
    }
}
