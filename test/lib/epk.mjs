// epk.mjs - where the first partitions of a container begin, computed a second time.

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
