// repeat.ts - work that is done again and again while the page is looked at.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { tellFailure, wordsOf } from "./notices";

interface Repeated {
    failure: string | null; // why it has stopped
    trouble: string | null; // why the last turn failed, which is tried again
    again: () => void;
}

// Between attempts after the first failure, the second, and so on.
const PAUSES_MS = [1000, 2000, 5000, 10_000];

// What another attempt can mend: no answer, an answer that says so, or a server in trouble. Everything else is stopped
// at: a key that is not enough, a container that is gone.
const isPassing = (error: unknown): boolean =>
    error instanceof ApiError ? error.status >= 500 || error.status === 408 || error.status === 410 || error.status === 429 : error instanceof TypeError;

// Runs 'work' every 'periodMs', counted from its beginning, never twice at a time. It stops while the browser shows
// another tab, when the page is left, when it fails for good, and while 'isOn' is false; it begins anew if 'key' changes.
export function useRepeated(work: (signal: AbortSignal) => Promise<void>, periodMs: number, key: string, isOn = true): Repeated {
    const [failure, setFailure] = useState<string | null>(null);
    const [trouble, setTrouble] = useState<string | null>(null);
    const [attempt, setAttempt] = useState(0);
    const current = useRef(work);
    current.current = work;

    useEffect(() => {
        if (!isOn)
            return undefined;
        const abort = new AbortController();
        let timer: number | undefined;
        let isBusy = false;
        let isOver = false;
        let failures = 0;
        // How long until the next turn.
        const turn = async (): Promise<number> => {
            const begun = performance.now();
            try {
                await current.current(abort.signal);
                failures = 0;
                if (!isOver)
                    setTrouble(null);
            } catch (error) {
                if (isOver)
                    return 0;
                setTrouble(isPassing(error) ? wordsOf(error) : null);
                if (isPassing(error))
                    return PAUSES_MS[Math.min(failures++, PAUSES_MS.length - 1)]!;
                isOver = true;
                setFailure(wordsOf(error));
                tellFailure(error);
            }
            return Math.max(0, periodMs - (performance.now() - begun));
        };
        const run = async (): Promise<void> => {
            if (isBusy || isOver || document.hidden)
                return;
            isBusy = true;
            const wait = await turn();
            isBusy = false;
            if (!isOver && !document.hidden)
                timer = setTimeout(() => void run(), wait);
        };
        const look = (): void => {
            clearTimeout(timer);
            void run();
        };
        document.addEventListener("visibilitychange", look);
        setFailure(null);
        setTrouble(null);
        void run();
        return () => {
            isOver = true;
            clearTimeout(timer);
            abort.abort();
            document.removeEventListener("visibilitychange", look);
        };
    }, [key, periodMs, isOn, attempt]);

    return { failure, trouble, again: () => setAttempt((count) => count + 1) };
}
