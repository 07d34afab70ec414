// repeat.ts - work that is done again and again while the page is looked at.
import { useEffect, useRef, useState } from "preact/hooks";
import { tellFailure, wordsOf } from "./notices";

interface Repeated {
    failure: string | null; // why it has stopped
    again: () => void;
}

// Runs 'work' every 'periodMs', counted from its beginning, never twice at a time. It stops while the browser shows
// another tab, when the page is left, when it fails, and while 'isOn' is false; it begins anew if 'key' changes.
export function useRepeated(work: (signal: AbortSignal) => Promise<void>, periodMs: number, key: string, isOn = true): Repeated {
    const [failure, setFailure] = useState<string | null>(null);
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
        const run = async (): Promise<void> => {
            if (isBusy || isOver || document.hidden)
                return;
            isBusy = true;
            const begun = performance.now();
            try {
                await current.current(abort.signal);
            } catch (error) {
                if (!isOver) {
                    isOver = true;
                    setFailure(wordsOf(error));
                    tellFailure(error);
                }
            }
            isBusy = false;
            if (!isOver && !document.hidden)
                timer = setTimeout(() => void run(), Math.max(0, periodMs - (performance.now() - begun)));
        };
        const look = (): void => {
            clearTimeout(timer);
            void run();
        };
        document.addEventListener("visibilitychange", look);
        setFailure(null);
        void run();
        return () => {
            isOver = true;
            clearTimeout(timer);
            abort.abort();
            document.removeEventListener("visibilitychange", look);
        };
    }, [key, periodMs, isOn, attempt]);

    return { failure, again: () => setAttempt((count) => count + 1) };
}
