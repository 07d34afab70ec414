// editor.tsx - CodeMirror as a component. It lives in a shadow root: there it adds its styles without
// <style> elements, which the content security policy does not allow.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { texts } from "../texts";
import { isDark } from "./theme";

const darkHighlight = HighlightStyle.define([
    { tag: [tags.string, tags.special(tags.string)], color: "#9ecb86" },
    { tag: [tags.number, tags.bool, tags.null], color: "#e0a96d" },
    { tag: [tags.keyword, tags.operatorKeyword], color: "#8fa7f0" },
    { tag: [tags.propertyName, tags.variableName], color: "#7fc4d8" },
    { tag: tags.comment, color: "#8a909c" },
]);

const look = EditorView.theme({
    "&": { height: "100%", fontSize: "13px", backgroundColor: "transparent", color: "inherit" },
    ".cm-scroller": { fontFamily: "ui-monospace, Menlo, Consolas, monospace", overflow: "auto" },
    ".cm-gutters": { backgroundColor: "transparent", border: "none", opacity: "0.8", color: "inherit" },
    ".cm-content": { caretColor: "currentColor" },
    ".cm-cursor": { borderLeftColor: "currentColor" },
    ".cm-activeLine": { backgroundColor: "rgba(127, 127, 127, 0.1)" },
    "&.cm-focused": { outline: "none" },
    ".cm-tooltip": { backgroundColor: "Canvas", color: "CanvasText", border: "1px solid GrayText" },
});

const LEAVE_MS = 2000; // after Escape, in which Tab leaves

export const highlightFor = (dark: boolean): Extension => syntaxHighlighting(dark ? darkHighlight : defaultHighlightStyle);

interface EditorProps {
    initial: string; // the editor has the text then; another key makes another editor
    label: string;
    language: Extension;
    onChange?: (text: string) => void;
    isReadOnly?: boolean;
    isTabFree?: boolean; // Tab goes to the next field, as in a form; otherwise a hint says how to leave it
    more?: Extension; // completion, linting, keys
    onView?: (view: EditorView) => void; // the editor itself, when it is made
    class?: string;
}

export function Editor({ initial, label, language, onChange, isReadOnly, isTabFree, more, onView, class: name }: EditorProps) {
    const host = useRef<HTMLDivElement>(null);
    const change = useRef(onChange);
    change.current = onChange;
    const colours = useRef(new Compartment());
    const takesTab = isTabFree !== true && isReadOnly !== true;

    useEffect(() => {
        const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
        const made = new EditorView({
            root,
            parent: root as unknown as Element,
            state: EditorState.create({
                doc: initial,
                extensions: [
                    more ?? [],
                    lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(),
                    keymap.of([...defaultKeymap, ...historyKeymap, ...(takesTab ? [indentWithTab] : [])]),
                    // CodeMirror does this itself, but not if the list of completions has taken the key.
                    EditorView.domEventObservers({ keydown: (event, view) => { if (event.key === "Escape") view.setTabFocusMode(LEAVE_MS); } }),
                    EditorState.readOnly.of(isReadOnly === true),
                    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", ...(takesTab ? { "aria-description": texts.leaveEditor } : {}) }), // the tabindex makes what scrolls reachable by keyboard
                    EditorView.updateListener.of((update) => { if (update.docChanged) change.current?.(update.state.doc.toString()); }),
                    EditorView.lineWrapping,
                    language, look, colours.current.of(highlightFor(isDark.peek())),
                ],
            }),
        });
        onView?.(made);
        const stop = isDark.subscribe((dark) => made.dispatch({ effects: colours.current.reconfigure(highlightFor(dark)) }));
        return () => { stop(); made.destroy(); };
    }, []);

    return (
        <>
            <div class={`editor ${name ?? ""}`} ref={host} />
            {takesTab && <p class="hint leave" aria-hidden="true">{texts.leaveEditor}</p>}
        </>
    );
}
