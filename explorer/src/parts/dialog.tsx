// dialog.tsx - a question or a form above the page. The element's own behaviour gives Escape, the focus, and
// nothing behind it that can be reached.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { texts } from "../texts";

interface DialogProps {
    title: string;
    submit: string;
    isDangerous?: boolean;
    onSubmit: () => void;
    onClose: () => void;
    children?: ComponentChildren;
}

export function Dialog({ title, submit, isDangerous, onSubmit, onClose, children }: DialogProps) {
    const element = useRef<HTMLDialogElement>(null);
    useEffect(() => { element.current?.showModal(); }, []);
    return (
        <dialog ref={element} aria-label={title} onClose={onClose}>
            <form method="dialog" onSubmit={(event) => { event.preventDefault(); onSubmit(); }}>
                <h2>{title}</h2>
                {children}
                <div class="buttons">
                    <button type="button" onClick={onClose}>{texts.dialog.cancel}</button>
                    <button type="submit" class={isDangerous ? "danger" : "primary"}>{submit}</button>
                </div>
            </form>
        </dialog>
    );
}
