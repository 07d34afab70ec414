// difference.tsx - two texts side by side, with what differs marked; the right one can be edited. It has the texts that it
// begins with: another key makes another one.
import { json } from "@codemirror/lang-json";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "preact/hooks";
import { texts } from "../texts";
import { highlightFor } from "./editor";
import { isDark } from "./theme";

export function Difference({ before, after, onChange }: { before: string; after: string; onChange?: (text: string) => void }) {
    const host = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
        const named = (label: string) => EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" });
        const shared = [lineNumbers(), json(), highlightFor(isDark.peek()), EditorView.lineWrapping];
        const view = new MergeView({
            root,
            parent: root as unknown as Element,
            a: { doc: before, extensions: [shared, named(texts.difference.stored), EditorState.readOnly.of(true)] },
            b: {
                doc: after,
                extensions: [shared, named(texts.difference.mine), EditorView.updateListener.of((update) => { if (update.docChanged) onChange?.(update.state.doc.toString()); })],
            },
        });
        return () => view.destroy();
    }, []);
    return <div class="editor difference" ref={host} />;
}
