// unsaved.tsx - what a user has typed and not stored, or has begun and not ended: before it is given up, the user is asked.
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { texts } from "../texts";
import { Dialog } from "./dialog";

// Text goes with its editor, work with the page that has begun it.
type Kind = "text" | "work";

const unsaved = new Map<object, { words: string; kind: Kind }>();
const question = signal<{ words: string; answer: (may: boolean) => void } | null>(null);

// A page that is closed takes the texts with it: the browser asks, in words of its own.
addEventListener("beforeunload", (event) => {
    if (unsaved.size > 0)
        event.preventDefault();
});

// 'words' say what is lost if this part of the page goes now; null if nothing is.
export function useUnsaved(words: string | null, kind: Kind = "text"): void {
    useLayoutEffect(() => {
        if (words === null)
            return undefined;
        const mark = {};
        unsaved.set(mark, { words, kind });
        return () => { unsaved.delete(mark); };
    }, [words]);
}

export const hasUnsaved = (): boolean => unsaved.size > 0;

// Whether what is unsaved may go, all or only text: asks if there is something, once at a time. After a yes it counts as gone.
export function mayDiscard(only?: Kind): Promise<boolean> {
    const lost = [...unsaved].filter(([, { kind }]) => only === undefined || kind === only);
    if (lost.length === 0)
        return Promise.resolve(true);
    question.peek()?.answer(false);
    return new Promise((resolve) => {
        const answer = (may: boolean): void => {
            question.value = null;
            if (may)
                lost.forEach(([mark]) => unsaved.delete(mark));
            resolve(may);
        };
        question.value = { words: lost.map(([, { words }]) => words).join(" "), answer };
    });
}

export function UnsavedQuestion() {
    const asked = question.value;
    return asked === null ? null : (
        <Dialog title={texts.unsaved.title} submit={texts.unsaved.discard} isDangerous onSubmit={() => asked.answer(true)} onClose={() => asked.answer(false)}>
            <p>{asked.words}</p>
        </Dialog>
    );
}
