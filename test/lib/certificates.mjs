// certificates.mjs - authorities and certificates of a test's own, made by the openssl program.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { temporaryFolder } from "./server.mjs";

const openssl = (...args) => execFileSync("openssl", args, { stdio: ["ignore", "pipe", "pipe"] });

class Pair {
    constructor(folder, name) {
        this.cert = join(folder, `${name}.pem`);
        this.key = join(folder, `${name}.key`);
    }

    get certText() {
        return readFileSync(this.cert, "utf8");
    }

    get keyText() {
        return readFileSync(this.key, "utf8");
    }

    /** What an agent of Node needs to show it. */
    get shown() {
        return { cert: this.certText, key: this.keyText };
    }
}

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** A certificate for localhost that nobody else has signed. */
export function selfSigned(name, folder = temporaryFolder()) {
    const pair = new Pair(folder, name);
    openssl(
        ...["req", "-x509", ...KEY, "-keyout", pair.key, "-out", pair.cert, "-days", "30"],
        ...["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    );
    return pair;
}

/** The same key, encrypted. */
export function withPassword(key, out) {
    openssl("ec", "-in", key, "-aes128", "-passout", "pass:secret", "-out", out);
}

/** An authority, which signs certificates of clients. */
export class Authority {
    #folder = temporaryFolder();
    #count = 0;

    constructor(name) {
        this.pair = new Pair(this.#folder, name);
        openssl(
            ...["req", "-x509", ...KEY, "-keyout", this.pair.key, "-out", this.pair.cert],
            ...["-days", "30", "-subj", `/CN=${name}`, "-addext", "keyUsage=critical,keyCertSign"],
        );
    }

    /** A certificate of `usage`; `days` may be negative: it has expired then. */
    sign(name, { usage = "clientAuth", days = 30 } = {}) {
        const pair = new Pair(this.#folder, name);
        const request = join(this.#folder, `${name}.csr`);
        const extensions = join(this.#folder, `${name}.cnf`);
        writeFileSync(extensions, `extendedKeyUsage=${usage}\nbasicConstraints=CA:FALSE\n`);
        openssl("req", ...KEY, "-keyout", pair.key, "-out", request, "-subj", `/CN=${name}`);
        openssl(
            ...["x509", "-req", "-in", request, "-out", pair.cert, "-CA", this.pair.cert],
            ...["-CAkey", this.pair.key, "-set_serial", String(++this.#count), "-days", String(days)],
            ...["-extfile", extensions],
        );
        return pair;
    }
}
