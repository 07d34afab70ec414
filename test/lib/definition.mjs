// definition.mjs - the bodies of containers: what is filled in, and how to write one in a line.

export const KEY = { paths: ["/pk"], kind: "Hash", version: 2 };

/** What a container has when nothing is said. */
export const DEFAULTS = {
    indexingPolicy: {
        indexingMode: "consistent",
        automatic: true,
        includedPaths: [{ path: "/*" }],
        excludedPaths: [{ path: '/"_etag"/?' }],
    },
    conflictResolutionPolicy: {
        mode: "LastWriterWins",
        conflictResolutionPath: "/_ts",
        conflictResolutionProcedure: "",
    },
    geospatialConfig: { type: "Geography" },
};

/** A container's body without what the server adds. */
export function definitionOf(resource) {
    return Object.fromEntries(Object.entries(resource).filter(([name]) => !name.startsWith("_")));
}

/** The default indexing policy with some of it changed. */
export const indexing = (more) => ({ indexingPolicy: { ...DEFAULTS.indexingPolicy, ...more } });

export const paths = (...list) => list.map((path) => ({ path }));

/** Vector embeddings, each of them a good one with some of it changed. */
export function vectors(...changes) {
    const good = { path: "/v", dataType: "float32", dimensions: 3, distanceFunction: "cosine" };
    return { vectorEmbeddingPolicy: { vectorEmbeddings: changes.map((change) => ({ ...good, ...change })) } };
}

/** Paths that clients encrypt, each as a pair of path and type. */
export function encrypted(policyFormatVersion, ...list) {
    const includedPaths = list.map(([path, encryptionType]) => ({
        path,
        clientEncryptionKeyId: "k1",
        encryptionType,
        encryptionAlgorithm: "AEAD_AES_256_CBC_HMAC_SHA256",
    }));
    return { clientEncryptionPolicy: { includedPaths, policyFormatVersion } };
}

/** Unique keys, each a list of paths. */
export const uniqueKeys = (...lists) => ({
    uniqueKeyPolicy: { uniqueKeys: lists.map((list) => ({ paths: list })) },
});

/** Computed properties, each a pair of name and query. */
export const computed = (...list) => ({ computedProperties: list.map(([name, query]) => ({ name, query })) });

export const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
