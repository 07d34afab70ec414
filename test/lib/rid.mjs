// rid.mjs - takes resource ids apart, as the SDKs do.

function bytesOf(rid) {
    return Buffer.from(rid.replaceAll("-", "/"), "base64");
}

/** Kind, database and number of a resource id; throws if it is none. */
export function decodeRid(rid) {
    const bytes = bytesOf(rid);
    if (bytes.toString("base64").replaceAll("/", "-") !== rid)
        throw new Error(`'${rid}' is not the base64 of a resource id`);
    if (bytes.length === 3) return { kind: "offer" };
    if (bytes.length === 4) return { kind: "database", database: bytes.readUInt32LE(0) };
    const database = bytes.readUInt32LE(0);
    if (bytes.length === 8)
        return { kind: bytes[4] & 0x80 ? "container" : "user", database, parent: prefix(bytes, 4) };
    if (bytes.length !== 16) throw new Error(`'${rid}' has ${bytes.length} bytes`);
    const kinds = { 0: "document", 4: "conflict", 5: "pkrange", 6: "udf", 7: "trigger", 8: "sproc" };
    return { kind: kinds[bytes[15] >> 4], database, parent: prefix(bytes, 8) };
}

function prefix(bytes, count) {
    return bytes.subarray(0, count).toString("base64").replaceAll("/", "-");
}
