// dialog.tsx - a question or a form above the page. The element's own behaviour gives Escape, the focus, and
// nothing behind it that can be reached.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { texts } from "../texts";
import { useAttempt } from "./notices";

interface DialogProps {
    title: string;
    submit: string;
    isDangerous?: boolean;
    isAnswer?: boolean; // it shows something, so there is nothing to cancel
    canSubmit?: boolean; // true if it is left out
    problem?: string; // why the last attempt failed
    onSubmit: () => void | Promise<void>; // submitted once until that has ended
    onClose: () => void;
    children?: ComponentChildren;
}

export function Dialog({ title, submit, isDangerous, isAnswer, canSubmit, problem, onSubmit, onClose, children }: DialogProps) {
    const element = useRef<HTMLDialogElement>(null);
    const isOver = useRef(false);
    const submitOnce = useAttempt();
    // Closing it gives the focus back to the button that opened it.
    useEffect(() => {
        const shown = element.current!;
        shown.showModal();
        return () => { isOver.current = true; shown.close(); };
    }, []);
    return (
        <dialog ref={element} aria-label={title} onClose={() => { if (!isOver.current) onClose(); }}>
            <form method="dialog" onSubmit={(event) => { event.preventDefault(); submitOnce(async () => onSubmit()); }}>
                <h2>{title}</h2>
                {children}
                {problem !== undefined && problem !== "" && <p role="alert" class="problem">{problem}</p>}
                <div class="buttons">
                    {isAnswer !== true && <button type="button" onClick={onClose}>{texts.dialog.cancel}</button>}
                    <button type="submit" disabled={canSubmit === false} class={isDangerous ? "danger" : "primary"}>{submit}</button>
                </div>
            </form>
        </dialog>
    );
}
