// clock.mjs - a wall clock of a server's own, which a test can make jump; the machine's clock stays as it is.
//
// clock-shim.c, loaded into the server, adds what a file says to the time. It needs a C compiler. A server with the
// address sanitizer refuses to have something loaded before it.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT, temporaryFolder } from "./server.mjs";

let shim;

function build() {
    const library = join(temporaryFolder(), "clock-shim.so");
    execFileSync("gcc", ["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, join(ROOT, "test/lib/clock-shim.c")]);
    return library;
}

export class Clock {
    #file = join(temporaryFolder(), "clock");
    #isMade = false;

    constructor() {
        shim ??= build();
        this.set(0);
    }

    /** What a server with this clock has in its environment. */
    get env() {
        return { LD_PRELOAD: shim, TEST_CLOCK: this.#file };
    }

    /** From now on it is so many seconds ahead of the machine's clock, or behind it. */
    set(ahead_s) {
        const bytes = Buffer.alloc(8);
        bytes.writeBigInt64LE(BigInt(ahead_s));
        writeFileSync(this.#file, bytes, { flag: this.#isMade ? "r+" : "w" }); // never cut: it is mapped
        this.#isMade = true;
    }
}
