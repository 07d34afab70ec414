// identity.mjs - identity tokens: those of an issuer of a test's own, and those that the tests of the
// official SDKs make for emulators.
import { constants, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";

import { DEVELOPMENT_KEY } from "./server.mjs";
import { send } from "./wire.mjs";

const encode = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const now = () => Math.floor(Date.now() / 1000);

const GROUPS = ["7ce1d003-4cb3-4879-b7c5-74062a35c66e", "e99ff30c-c229-4c67-ab29-30a6aebc3e58"];

/** As Python, Go and Java make it; `style: "net"` as .NET does. Undefined members are left out. */
export function emulatorToken({ key = DEVELOPMENT_KEY, style = "py", header = {}, claims = {} } = {}) {
    const isNet = style === "net";
    const head = isNet
        ? { alg: "RS256", kid: "x_9KSusKU5YcHf4", typ: "JWT" }
        : { typ: "JWT", alg: "RS256", x5t: "CosmosEmulatorPrimaryMaster", kid: "CosmosEmulatorPrimaryMaster" };
    const body = {
        aud: "https://localhost.localhost",
        iss: "https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984",
        iat: isNet ? 1596592335 : now(),
        nbf: now(),
        exp: now() + 7200,
        oid: "96313034-4739-43cb-93cd-74193adbe5b6",
        tid: isNet ? "7b1999a1-dfd7-440e-8204-00170979b984" : "EmulatorFederation",
        scp: "user_impersonation",
        groups: GROUPS,
        ...(isNet ? {} : { appid: "localhost", appidacr: "1", sub: "localhost", ver: "1.0", aio: "", acr: "1" }),
        ...claims,
    };
    // .NET and Go write their claims with line breaks and tabs.
    const text = isNet ? JSON.stringify(body, undefined, "\t") : JSON.stringify(body);
    return `${encode({ ...head, ...header })}.${encode(text)}.${encode(key)}`;
}

/** An issuer with keys of its own. */
export class Issuer {
    url = "https://issuer.example/tenant";
    audience = "https://orrery.example";
    #keys = new Map(); // by kid: { alg, privateKey }

    /** Another key; `keys()` shows it from now on. */
    add(kid, alg = "RS256") {
        const pair =
            alg[0] === "E"
                ? generateKeyPairSync("ec", { namedCurve: { ES256: "P-256", ES384: "P-384", ES512: "P-521" }[alg] })
                : generateKeyPairSync("rsa", { modulusLength: 2048 });
        this.#keys.set(kid, { alg, privateKey: pair.privateKey });
        return this;
    }

    remove(kid) {
        this.#keys.delete(kid);
    }

    /** The key set that it publishes. */
    keys() {
        const rows = [...this.#keys].map(([kid, { alg, privateKey }]) => ({
            ...createPublicKey(privateKey).export({ format: "jwk" }),
            kid,
            alg,
            use: "sig",
        }));
        return JSON.stringify({ keys: rows });
    }

    token(kid, claims = {}, header = {}) {
        const { alg, privateKey } = this.#keys.get(kid);
        const head = { typ: "JWT", alg, kid, ...header };
        const body = {
            iss: this.url,
            aud: this.audience,
            iat: now(),
            nbf: now(),
            exp: now() + 3600,
            oid: "11111111-2222-3333-4444-555555555555",
            ...claims,
        };
        const text = `${encode(head)}.${encode(body)}`;
        const digest = `sha${alg.slice(2)}`;
        const options = { key: privateKey, dsaEncoding: "ieee-p1363" };
        if (alg[0] === "P")
            Object.assign(options, { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST });
        return `${text}.${sign(digest, Buffer.from(text), options).toString("base64url")}`;
    }

    /** Publishes the key set on this machine, until the test is done; its URL. `asked` counts. */
    async publish(t) {
        this.asked = 0;
        const server = createServer((request, response) => {
            this.asked++;
            this.lastHeaders = request.headers;
            response.end(this.keys());
        });
        await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
        t.after(() => server.close());
        return `http://127.0.0.1:${server.address().port}/keys.json`;
    }
}

/** What the SDKs send: JavaScript, Python and Go as it is, .NET, Java and Rust encoded. */
export const plain = (token) => ({ authorization: `type=aad&ver=1.0&sig=${token}`, "x-ms-version": "2020-07-15" });
export const encoded = (token) => ({ ...plain(token), authorization: encodeURIComponent(plain(token).authorization) });

/** A request with an identity token. */
export function ask(server, token, { path = "/dbs", method = "GET", headers = {}, body, form = plain } = {}) {
    return send(server.endpoint, {
        method,
        path,
        headers: { ...form(token), ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
    });
}

/** What the SDK takes as `aadCredentials`. */
export const credentialOf = (token) => ({
    getToken: async () => ({ token: token(), expiresOnTimestamp: Date.now() + 3600_000 }),
});
