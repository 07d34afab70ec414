// encryption.mjs - clients that encrypt properties before they send them, with a key store of the test's own.
import { createCipheriv, createDecipheriv, createHash } from "node:crypto";

import { clientOf } from "./sdk.mjs";

export const ALGORITHM = "AEAD_AES_256_CBC_HMAC_SHA256";

/** Wraps keys with keys that it derives from their names, as a vault would; `revoke` locks one up. */
export class KeyStore {
    encryptionKeyResolverName = "TESTKEYSTORE_VAULT";
    #revoked = new Set();

    revoke(name) {
        this.#revoked.add(name);
    }

    #secret(name) {
        // The SDK knows a key that it may not use any more by this status.
        if (this.#revoked.has(name)) throw Object.assign(new Error(`${name} was revoked`), { statusCode: 403 });
        return createHash("sha256").update(name).digest();
    }

    async wrapKey(name, algorithm, key) {
        const cipher = createCipheriv("aes-256-ecb", this.#secret(name), null);
        return Buffer.concat([cipher.update(key), cipher.final()]);
    }

    async unwrapKey(name, algorithm, wrapped) {
        const cipher = createDecipheriv("aes-256-ecb", this.#secret(name), null);
        return Buffer.concat([cipher.update(wrapped), cipher.final()]);
    }
}

/** A client that encrypts. Its timers end with the test. */
export function encryptingClient(t, server, { store = new KeyStore(), seconds } = {}) {
    const client = clientOf(server, {
        clientEncryptionOptions: { keyEncryptionKeyResolver: store, encryptionKeyTimeToLiveInSeconds: seconds },
    });
    t.after(() => client.dispose());
    return client;
}

export const metadataOf = (store, name) => ({
    type: store.encryptionKeyResolverName,
    name,
    value: `vault/${name}`,
    algorithm: "RSA-OAEP",
});

/** A policy that encrypts these paths; those that end with ! come out differently each time. */
export const policyOf = (paths, { key = "k1", version = 2 } = {}) => ({
    includedPaths: paths.map((path) => ({
        path: path.replace("!", ""),
        clientEncryptionKeyId: key,
        encryptionType: path.endsWith("!") ? "Randomized" : "Deterministic",
        encryptionAlgorithm: ALGORITHM,
    })),
    policyFormatVersion: version,
});
