// sign.ts - the signature of a request, made in the browser.
import type { Credential } from "./session";

const keys = new Map<string, Promise<CryptoKey>>();

function hmacKey(key: string): Promise<CryptoKey> {
    let made = keys.get(key);
    if (made === undefined) {
        const bytes = Uint8Array.from(atob(key), (c) => c.charCodeAt(0));
        made = crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
        keys.set(key, made);
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
    const signature = await crypto.subtle.sign("HMAC", await hmacKey(given.key), new TextEncoder().encode(text));
    const base64 = btoa(String.fromCharCode(...new Uint8Array(signature)));
    return encodeURIComponent(`type=master&ver=1.0&sig=${base64}`);
}
