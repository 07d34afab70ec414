// kept.ts - what the browser keeps for all tabs. Browsers may refuse that, and it may be full: then nothing is kept, and
// everything else works.

export function readKept(name: string): string | null {
    try {
        return localStorage.getItem(name);
    } catch {
        return null;
    }
}

export function keep(name: string, text: string): void {
    try {
        localStorage.setItem(name, text);
    } catch {
        // It is for convenience only.
    }
}

// All whose names begin so.
export function forgetKept(beginning: string): void {
    try {
        for (const name of Object.keys(localStorage).filter((kept) => kept.startsWith(beginning)))
            localStorage.removeItem(name);
    } catch {
        // Then nothing was kept.
    }
}
