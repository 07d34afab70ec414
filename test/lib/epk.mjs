// epk.mjs - hashes of partition keys, and where the first partitions of a container begin, computed a second time.

const hex = (bytes) => Buffer.from(bytes).toString("hex").toUpperCase();

// A double in an order-preserving form: eight bits, then seven at a time with a bit for "more".
function encodeNumber(value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    const bits = view.getBigUint64(0);
    const ordered = bits < 1n << 63n ? bits ^ (1n << 63n) : BigInt.asUintN(64, ~bits + 1n);
    const bytes = [5, Number(ordered >> 56n)];
    let rest = BigInt.asUintN(64, ordered << 8n);
    do {
        bytes.push(Number(rest >> 56n) | 1);
        rest = BigInt.asUintN(64, rest << 7n);
    } while (rest !== 0n);
    bytes[bytes.length - 1] &= 0xfe;
    return hex(bytes);
}

/** The bounds between `count` equal ranges, with "" in front and "FF" at the end. */
export function evenBounds(version, count) {
    const bounds = [""];
    for (let i = 1; i < count; i++) {
        if (version === 1) {
            bounds.push(encodeNumber(Math.floor(0xffffffff / count) * i));
        } else {
            const step = ((1n << 126n) - 1n) / BigInt(count);
            bounds.push((step * BigInt(i)).toString(16).toUpperCase().padStart(32, "0"));
        }
    }
    return [...bounds, "FF"];
}

// --- Hashes of version 2: MurmurHash3, 128 bits, of which the upper two are cut off

const MASK = (1n << 64n) - 1n;
const rotate = (x, bits) => ((x << bits) | (x >> (64n - bits))) & MASK;
const scrambleLow = (k) => (rotate((k * 0x87c37b91114253d5n) & MASK, 31n) * 0x4cf5ad432745937fn) & MASK;
const scrambleHigh = (k) => (rotate((k * 0x4cf5ad432745937fn) & MASK, 33n) * 0x87c37b91114253d5n) & MASK;

function finish(k) {
    k = ((k ^ (k >> 33n)) * 0xff51afd7ed558ccdn) & MASK;
    k = ((k ^ (k >> 33n)) * 0xc4ceb9fe1a85ec53n) & MASK;
    return k ^ (k >> 33n);
}

function murmur(bytes) {
    const padded = Buffer.concat([bytes, Buffer.alloc(16 - (bytes.length % 16))]);
    let [low, high, at] = [0n, 0n, 0];
    for (; at + 16 <= bytes.length; at += 16) {
        low = rotate(low ^ scrambleLow(padded.readBigUInt64LE(at)), 27n);
        low = ((low + high) * 5n + 0x52dce729n) & MASK;
        high = rotate(high ^ scrambleHigh(padded.readBigUInt64LE(at + 8)), 31n);
        high = ((high + low) * 5n + 0x38495ab5n) & MASK;
    }
    low ^= scrambleLow(padded.readBigUInt64LE(at)) ^ BigInt(bytes.length);
    high ^= scrambleHigh(padded.readBigUInt64LE(at + 8)) ^ BigInt(bytes.length);
    low = (low + high) & MASK;
    high = (high + low) & MASK;
    [low, high] = [finish(low), finish(high)];
    low = (low + high) & MASK;
    return [low, (high + low) & MASK];
}

/** The hash of a text as partition key, of a container whose key has one path and version 2. */
export function epkOf(text) {
    const [low, high] = murmur(Buffer.concat([Buffer.of(8), Buffer.from(text), Buffer.of(255)]));
    const hash = ((high << 64n) | low) & ((1n << 126n) - 1n);
    return hash.toString(16).toUpperCase().padStart(32, "0");
}
