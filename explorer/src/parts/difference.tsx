// difference.tsx - two texts side by side, with what differs marked; the right one can be edited.
import { json } from "@codemirror/lang-json";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "preact/hooks";
import { highlightFor } from "./editor";
import { isDark } from "./theme";

export function Difference({ before, after, onChange }: { before: string; after: string; onChange?: (text: string) => void }) {
    const host = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
        const shared = [lineNumbers(), json(), highlightFor(isDark.peek()), EditorView.lineWrapping];
        const view = new MergeView({
            root,
            parent: root as unknown as Element,
            a: { doc: before, extensions: [shared, EditorState.readOnly.of(true)] },
            b: {
                doc: after,
                extensions: [shared, EditorView.updateListener.of((update) => { if (update.docChanged) onChange?.(update.state.doc.toString()); })],
            },
        });
        return () => view.destroy();
    }, []);
    return <div class="editor difference" ref={host} />;
}
