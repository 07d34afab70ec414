// session.ts - who is signed in: a key or a resource token, which is kept for this tab only.
import { computed, signal } from "@preact/signals";

// The key that the official emulator and this server's development mode have; it is public.
export const DEVELOPMENT_KEY =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const STORED = "orrery.credential";

// A token does not say what it is for, and opens no lists: the user names the container, and the partition key if the
// permission has one (as JSON, as in its header).
export interface Opened {
    db: string;
    coll: string;
    key: string;
}

// Whether a key only reads the server tells at sign-in, or by the first change that it refuses.
export type Credential = { kind: "key"; key: string; onlyReads?: boolean } | { kind: "token"; token: string; opened: Opened[] };

export const credential = signal<Credential | null>(null);

// False only for a key that is known to change nothing; what a token may do the server decides.
export const mayChange = computed(() => credential.value?.kind !== "key" || credential.value.onlyReads !== true);

// What is stored from before a reload, if it is one.
export function storedCredential(): Credential | null {
    try {
        const found = JSON.parse(sessionStorage.getItem(STORED) ?? "null");
        if (found?.kind === "key" && typeof found.key === "string")
            return found;
        if (found?.kind === "token" && typeof found.token === "string" && Array.isArray(found.opened))
            return found;
    } catch {
        // Somebody else's; it is overwritten by the next one.
    }
    return null;
}

export function keepCredential(given: Credential): void {
    try {
        sessionStorage.setItem(STORED, JSON.stringify(given));
    } catch {
        // A browser that keeps nothing: it lasts until the page is loaded again.
    }
    credential.value = given;
}

// Remembers that the server has refused a change because of the key.
export function noteRefusal(who: Credential, words: string): void {
    if (who.kind === "key" && who === credential.value && who.onlyReads !== true && /read-only key/i.test(words))
        keepCredential({ ...who, onlyReads: true });
}

export function forgetCredential(): void {
    try {
        sessionStorage.removeItem(STORED);
    } catch {
        // Then it was not kept.
    }
    credential.value = null;
}

function decoded(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text; // the server refuses it
    }
}

// What a user has pasted: a key, a connection string, or a resource token.
export function parseCredential(text: string): Credential | null {
    const trimmed = text.trim();
    if (/^type(=|%3d)resource/i.test(trimmed))
        return { kind: "token", token: trimmed.includes("%") ? decoded(trimmed) : trimmed, opened: [] };
    const inString = /(?:^|;)\s*AccountKey=([^;]+)/i.exec(trimmed);
    const key = inString?.[1] ?? trimmed;
    return /^[A-Za-z0-9+/]{16,}={0,2}$/.test(key) ? { kind: "key", key } : null;
}
