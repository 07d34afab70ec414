// sign.ts - the signature of a request, made in the browser.
import type { Credential } from "./session";

type Key = Extract<Credential, { kind: "key" }>;

// By the credential itself, so that the text of a key is nowhere once nobody is signed in with it.
const keys = new WeakMap<Key, Promise<CryptoKey>>();

function hmacKey(given: Key): Promise<CryptoKey> {
    let made = keys.get(given);
    if (made === undefined) {
        const bytes = Uint8Array.from(atob(given.key), (c) => c.charCodeAt(0));
        made = crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
        keys.set(given, made);
    }
    return made;
}

// WebCrypto is there for HTTPS and for localhost only.
export const canSign = (): boolean => globalThis.crypto?.subtle !== undefined;

export async function authorization(
    given: Credential, method: string, resourceType: string, link: string, date: string,
): Promise<string> {
    if (given.kind === "token")
        return encodeURIComponent(given.token);
    const text = `${method.toLowerCase()}\n${resourceType.toLowerCase()}\n${link}\n${date.toLowerCase()}\n\n`;
    const signature = await crypto.subtle.sign("HMAC", await hmacKey(given), new TextEncoder().encode(text));
    const base64 = btoa(String.fromCharCode(...new Uint8Array(signature)));
    return encodeURIComponent(`type=master&ver=1.0&sig=${base64}`);
}
