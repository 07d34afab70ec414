// rows.mjs - a batch in its binary form, as .NET sends and expects it.
//
//     body   = segment (record row)*
//     row    = 81, schema, presence bits, two integers, sized fields, sparse fields

const SEGMENT = Buffer.from("81f0d8ff7f010a000000", "hex");
const RECORD = Buffer.from("81f1d8ff7f", "hex");
const OPERATION = Buffer.from("817054e17f", "hex");
const RESULT = Buffer.from("817154e17f", "hex");
const CODES = { Create: 0, Patch: 1, Read: 2, Delete: 4, Replace: 5, Upsert: 20 };
const TYPE = { false: 2, true: 3, uint32: 0x0b, float64: 0x10, utf8: 0x14 };

// The CRC-32 of zlib, which Node 18 does not offer.
const TABLE = Array.from({ length: 256 }, (_, n) => {
    let c = n;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    return c >>> 0;
});
function checksum(bytes) {
    let c = 0xffffffff;
    for (const byte of bytes) c = TABLE[(c ^ byte) & 0xff] ^ (c >>> 8);
    return (c ^ 0xffffffff) >>> 0;
}

function int32(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
}

function varuint(value) {
    const bytes = [];
    for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
    return Buffer.from([...bytes, value]);
}

function sized(text) {
    const bytes = Buffer.from(text);
    return Buffer.concat([varuint(bytes.length), bytes]);
}

const sparseText = (token, text) => Buffer.concat([Buffer.from([TYPE.utf8, token]), sized(text)]);

function encodeOperation({ operationType, partitionKey, id, resourceBody, ...options }) {
    const fields = [
        [partitionKey, 4],
        [id, 16],
        [resourceBody && JSON.stringify(resourceBody), 64],
    ].filter(([text]) => text !== undefined);
    const presence = fields.reduce((bits, [, bit]) => bits | bit, 3);
    const parts = [OPERATION, Buffer.from([presence]), int32(CODES[operationType]), int32(2)];
    for (const [text] of fields) parts.push(sized(text));
    if (options.ifMatch) parts.push(sparseText(9, options.ifMatch));
    if (options.ifNoneMatch) parts.push(sparseText(10, options.ifNoneMatch));
    if (options.minimal) parts.push(Buffer.from([TYPE.true, 12]));
    return Buffer.concat(parts);
}

/** The body for a list of operations in the JSON form's shape. */
export function encodeRows(operations) {
    const parts = [SEGMENT];
    for (const operation of operations) {
        const row = encodeOperation(operation);
        parts.push(RECORD, int32(row.length), int32(checksum(row)), row);
    }
    return Buffer.concat(parts);
}

class Reader {
    at = 0;

    constructor(bytes) {
        this.bytes = bytes;
    }

    get atEnd() {
        return this.at === this.bytes.length;
    }

    take(count) {
        if (this.at + count > this.bytes.length) throw new Error("the row is cut short");
        this.at += count;
        return this.bytes.subarray(this.at - count, this.at);
    }

    expect(bytes) {
        const found = this.take(bytes.length);
        if (!found.equals(bytes)) throw new Error(`found ${found.toString("hex")}`);
    }

    int32() {
        return this.take(4).readInt32LE();
    }

    varuint() {
        let value = 0;
        for (let scale = 1; ; scale *= 0x80) {
            const [byte] = this.take(1);
            value += (byte & 0x7f) * scale;
            if (byte < 0x80) return value;
        }
    }

    text() {
        return this.take(this.varuint()).toString("utf8");
    }
}

function decodeResult(bytes) {
    const row = new Reader(bytes);
    row.expect(RESULT);
    const [presence] = row.take(1);
    const result = { statusCode: row.int32(), subStatusCode: row.int32() };
    if (presence & 4) result.eTag = row.text();
    if (presence & 8) result.resourceBody = JSON.parse(row.text());
    while (!row.atEnd) {
        const [type] = row.take(1);
        const token = row.varuint();
        if (token === 5 && type === TYPE.uint32) result.retryAfterMilliseconds = row.take(4).readUInt32LE();
        else if (token === 6 && type === TYPE.float64) result.requestCharge = row.take(8).readDoubleLE();
        else throw new Error(`an unknown sparse field ${token} of type ${type}`);
    }
    return result;
}

/** The results in an answer; throws if it is not one to the last byte. */
export function decodeRows(bytes) {
    const body = new Reader(bytes);
    body.expect(SEGMENT);
    const results = [];
    while (!body.atEnd) {
        body.expect(RECORD);
        const length = body.int32();
        const sum = body.take(4).readUInt32LE();
        const row = body.take(length);
        if (checksum(row) !== sum) throw new Error("the checksum is wrong");
        results.push(decodeResult(row));
    }
    return results;
}
