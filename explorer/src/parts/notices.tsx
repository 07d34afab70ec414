// notices.tsx - short messages at the edge of the page, read out by screen readers.
import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { ApiError } from "../api/client";
import { texts } from "../texts";

interface Notice {
    id: number;
    text: string;
    isError: boolean;
}

const SHOWN_MS = 6000;
const FAILURE_SHOWN_MS = 12_000; // they are longer, and read twice
const notices = signal<Notice[]>([]);
let lastId = 0;

function show(text: string, isError: boolean): void {
    const id = ++lastId;
    // The same failure again takes the place of the last one: several requests of a page often fail together.
    notices.value = [...notices.value.filter((notice) => !isError || notice.text !== text), { id, text, isError }];
    setTimeout(() => dismiss(id), isError ? FAILURE_SHOWN_MS : SHOWN_MS);
}

function dismiss(id: number): void {
    notices.value = notices.value.filter((notice) => notice.id !== id);
}

export const tell = (text: string): void => show(text, false);

export const wordsOf = (error: unknown): string =>
    error instanceof ApiError ? `${error.message} (${error.status}${error.substatus > 0 ? `/${error.substatus}` : ""})` : String((error as Error)?.message ?? error);

export const tellFailure = (error: unknown): void => show(texts.failed + wordsOf(error), true);

// Runs what a click began, and shows why if it fails.
export function attempt(work: () => Promise<void>): void {
    work().catch(tellFailure);
}

// The same for a form: a second click does nothing until the first one is answered.
export function useAttempt(): (work: () => Promise<void>) => void {
    const isBusy = useRef(false);
    return (work) => {
        if (isBusy.current)
            return;
        isBusy.current = true;
        work().catch(tellFailure).finally(() => { isBusy.current = false; });
    };
}

export function Notices() {
    return (
        <div class="notices" role="status" aria-live="polite">
            {notices.value.map((notice) => (
                <p key={notice.id} class={notice.isError ? "notice notice-error" : "notice"}>
                    {notice.text}
                    <button aria-label={texts.dismiss} title={texts.dismiss} onClick={() => dismiss(notice.id)}>×</button>
                </p>
            ))}
        </div>
    );
}
