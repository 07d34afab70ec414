// random.mjs - random choices that can be repeated: a test prints its seed and takes it back.

/** Where to begin: ORRERY_TEST_SEED, or the same place each time. `make soak` looks elsewhere. */
export function chooseSeed() {
    return Number(process.env.ORRERY_TEST_SEED ?? 1) >>> 0;
}

export class Random {
    #state;

    constructor(seed) {
        this.#state = seed >>> 0;
    }

    /** 0 .. below-1 */
    below(count) {
        this.#state = (this.#state + 0x6d2b79f5) >>> 0;
        let z = this.#state;
        z = Math.imul(z ^ (z >>> 15), z | 1);
        z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
        return ((z ^ (z >>> 14)) >>> 0) % count;
    }

    pick(list) {
        return list[this.below(list.length)];
    }

    chance(percent) {
        return this.below(100) < percent;
    }
}
