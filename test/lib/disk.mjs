// disk.mjs - small disks of a test's own, and the faults that real disks have.
//
// A disk is a tmpfs in a mount namespace of its own: it is as small as a test wants it, no other process
// sees it, and it is gone with its last process. A user who is not root becomes root in a user
// namespace; where neither is permitted (a chroot, a plain container) the tests that need a disk
// are skipped, and say why.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { temporaryFolder } from "./server.mjs";

/** The ways to a namespace in which we may mount: how to make one, and how to enter it. */
const WAYS = [
    { make: ["-m"], enter: ["-m"] },
    { make: ["-rm"], enter: ["-m", "-U", "--preserve-credentials"] },
];
const MOUNT = ["mount", "-t", "tmpfs", "none", tmpdir()];
const tries = WAYS.map(({ make }) => spawnSync("unshare", [...make, ...MOUNT], { encoding: "utf8" }));
const way = WAYS[tries.findIndex(({ status }) => status === 0)];

/** Options of a test that needs a disk: why it must be skipped, if it must. */
export function needsDisk() {
    if (way !== undefined) return {};
    const reasons = tries.map(({ error, stderr }) => error ?? stderr.trim()).join("; ");
    const skip = `NOT TESTED: there is no disk to be had without a mount namespace: ${reasons}`;
    console.error(`# ${skip}`);
    return { skip };
}

class Disk {
    #holder;
    #filler = 0;

    constructor(folder, holder) {
        this.#holder = holder;
        this.folder = folder;
        this.data = join(folder, "data");
    }

    /** The command that runs another one where the disk can be seen; it keeps its process id. */
    get within() {
        return ["nsenter", "-t", String(this.#holder.pid), ...way.enter];
    }

    /** A path of the disk as this process can reach it. */
    outside(path) {
        return join(`/proc/${this.#holder.pid}/root`, path);
    }

    #do(...command) {
        const [file, ...args] = [...this.within, ...command];
        const { status, stderr, error } = spawnSync(file, args, { encoding: "utf8" });
        if (status !== 0) throw new Error(`${command.join(" ")}: ${error ?? stderr}`);
    }

    /** No file can be made, changed or removed any more; one that is open for writing stays so. */
    makeReadOnly() {
        this.#do("mount", "--bind", this.folder, this.folder);
        this.#do("mount", "-o", "remount,ro,bind", this.folder);
    }

    makeWritable() {
        this.#do("umount", "-l", this.folder);
    }

    /** Something else takes room, until only so much is left; if there is less, that stays. */
    leave(megabytes) {
        const more = this.freeBytes - megabytes * 2 ** 20;
        if (more <= 0) return;
        this.#filler += more;
        this.#do("fallocate", "-l", String(this.#filler), join(this.folder, "filler"));
    }

    /** Something else takes all of it, to the last byte, whoever else writes meanwhile. */
    fill() {
        this.leave(1);
        this.#do("sh", "-c", 'cat /dev/zero >>"$0" 2>/dev/null || true', join(this.folder, "filler"));
    }

    /** What leave() or fill() took is free again. */
    release() {
        this.#filler = 0;
        this.#do("rm", join(this.folder, "filler"));
    }

    /** Waits until nothing is written or removed any more. */
    async quiet() {
        let before;
        for (let same = 0; same < 5; await new Promise((resolve) => setTimeout(resolve, 50))) {
            const now = this.freeBytes;
            same = now === before ? same + 1 : 0;
            before = now;
        }
    }

    get freeBytes() {
        const [file, ...args] = [...this.within, "stat", "-f", "-c", "%a %S", this.folder];
        const [blocks, size] = spawnSync(file, args, { encoding: "utf8" }).stdout.split(" ");
        return blocks * size;
    }
}

/** A disk that lives until the test is done, and its servers have ended. */
export async function smallDisk(t, megabytes) {
    const folder = temporaryFolder();
    const script = `mount -t tmpfs -o size=${megabytes}m none "$0" && echo ready && exec cat`;
    const holder = spawn("unshare", [...way.make, "sh", "-c", script, folder]);
    t.after(() => holder.stdin.end());
    let errors = "";
    holder.stderr.on("data", (text) => (errors += text));
    await new Promise((resolve, reject) => {
        createInterface({ input: holder.stdout }).once("line", resolve);
        holder.once("close", () => reject(new Error(`there is no disk to be had: ${errors}`)));
        holder.once("error", reject);
    });
    return new Disk(folder, holder);
}

/** From now on no file of the process may grow beyond `bytes`: null takes that back. */
export function limitFiles(pid, bytes) {
    const limit = `--fsize=${bytes ?? "unlimited"}:unlimited`;
    const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), limit], { encoding: "utf8" });
    if (status !== 0) throw new Error(`prlimit: ${stderr}`);
}

/** The server's files that end like this, the largest first. */
export function storeFiles(data, suffix) {
    const folder = join(data, "store");
    return readdirSync(folder)
        .filter((name) => name.endsWith(suffix))
        .map((name) => join(folder, name))
        .sort((a, b) => statSync(b).size - statSync(a).size);
}

/** Where the records of a log end; after them it has zeros for those to come. See src/store/rocksdb/wal_scan.c. */
export function endOfLog(path) {
    const [BLOCK, HEADER] = [32768, 7];
    const bytes = readFileSync(path);
    let at = 0;
    while (at + HEADER <= bytes.length) {
        const left = BLOCK - (at % BLOCK);
        if (left < HEADER) at += left;
        else if (bytes[at + 6] === 0) return at;
        else at += HEADER + bytes.readUInt16LE(at + 4);
    }
    return at;
}

/** Changes some bytes of a file, as a failing disk does. */
export function damage(path, position, count = 16) {
    const file = openSync(path, "r+");
    const bytes = Buffer.alloc(count);
    readSync(file, bytes, 0, count, position);
    for (let i = 0; i < count; i++) bytes[i] ^= 0x55;
    writeSync(file, bytes, 0, count, position);
    closeSync(file);
}
