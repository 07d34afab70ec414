// returned_focus.ts - where the focus goes when the editor that had it is closed: to its row in the list beside it.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

// The function that is returned is called with the _rid of what is closed. Rows have it in data-rid; without one the first
// button of 'host' gets the focus. A user who is elsewhere by then stays there.
export function useReturnedFocus(host: RefObject<HTMLElement>, isOpen: boolean): (rid: string) => void {
    const [closed, setClosed] = useState<string | null>(null);
    useEffect(() => {
        if (closed === null || isOpen)
            return;
        setClosed(null);
        if (document.activeElement !== null && document.activeElement !== document.body)
            return;
        const rows = [...host.current?.querySelectorAll<HTMLElement>("[data-rid]") ?? []];
        (rows.find((row) => row.dataset["rid"] === closed) ?? host.current?.querySelector("button"))?.focus();
    }, [closed, isOpen]);
    return setClosed;
}
