// patience.ts - requests that are sent again: one after the other may need more than the throughput of the moment.
import { ApiError } from "./client";

const ATTEMPTS = 10;
const PAUSE_MS = 100; // if the server does not say

const pause = (ms: number, signal: AbortSignal): Promise<void> => new Promise((resolve) => {
    const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
});

// Does the work again, when the server says, as long as it is answered 429. What was aborted throws.
export async function patiently<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let attempts = 1; ; attempts++) {
        signal.throwIfAborted();
        try {
            return await work();
        } catch (error) {
            if (!(error instanceof ApiError) || error.status !== 429 || attempts === ATTEMPTS)
                throw error;
            await pause(Number(error.headers.get("x-ms-retry-after-ms") ?? PAUSE_MS), signal);
        }
    }
}
