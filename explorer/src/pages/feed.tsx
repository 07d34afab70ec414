// feed.tsx - the change feed of a container as a live list, the newest first.
import { json } from "@codemirror/lang-json";
import { useRef, useState } from "preact/hooks";
import { pathOf, type JsonObject } from "../api/client";
import { FeedReader } from "../api/feed";
import { Editor } from "../parts/editor";
import { Halted } from "../parts/halted";
import { clock, decimal } from "../parts/numbers";
import { useRepeated } from "../parts/repeat";
import { keyWords, type ContainerDefinition } from "../state";
import { texts } from "../texts";

const PERIOD_MS = 1000;
const KEPT_MAX = 500;

type From = "now" | "beginning";

interface Row {
    number: number; // counted from 1
    range: string;
    item: JsonObject;
}

interface Shown {
    rows: Row[];
    all: number;
    ranges: number;
    charge: number;
}

const NOTHING: Shown = { rows: [], all: 0, ranges: 0, charge: 0 };

export function Feed({ db, container }: { db: string; container: ContainerDefinition }) {
    const [from, setFrom] = useState<From>("now");
    const [isPaused, setPaused] = useState(false);
    const [shown, setShown] = useState<Shown>(NOTHING);
    const [open, setOpen] = useState<Row | null>(null);
    const reader = useRef<FeedReader | null>(null);

    const state = useRepeated(async () => {
        // A turn that was due before the choice may come after it, and makes a reader for what was chosen before.
        if (reader.current?.from !== from)
            reader.current = new FeedReader(pathOf("dbs", db, "colls", container.id), from);
        const { current } = reader;
        const changes = await current.read();
        if (reader.current !== current)
            return;
        setShown((before) => {
            const rows = changes.map((change, i) => ({ number: before.all + i + 1, ...change })).reverse();
            return { rows: [...rows, ...before.rows].slice(0, KEPT_MAX), all: before.all + changes.length, ranges: current.rangeCount, charge: current.charge };
        });
    }, PERIOD_MS, from, !isPaused);

    function begin(where: From): void {
        reader.current = null;
        setShown(NOTHING);
        setOpen(null);
        setFrom(where);
    }

    // Another container may have the name by now, in which the old positions mean nothing.
    function again(): void {
        begin(from);
        state.again();
    }

    return (
        <div class="items feed">
            <div class="items-list">
                <div class="buttons">
                    <label>{texts.feed.from} <select value={from} onChange={(event) => begin(event.currentTarget.value as From)}>
                        <option value="now">{texts.feed.now}</option>
                        <option value="beginning">{texts.feed.beginning}</option>
                    </select></label>
                    <button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>{isPaused ? texts.feed.resume : texts.feed.pause}</button>
                    <button onClick={() => { setShown({ ...shown, rows: [] }); setOpen(null); }}>{texts.feed.clear}</button>
                </div>
                <Halted {...state} again={again} isFirst={shown.ranges === 0} />
                <p class="hint" role="status">{shown.ranges === 0 ? state.failure === null && state.trouble === null && texts.loading : texts.feed.seen(shown.all, shown.rows.length)}</p>
                <p class="hint">{shown.ranges > 0 && texts.feed.cost(shown.ranges, decimal(shown.charge))}</p>
                <ul class="scroll" aria-label={texts.feed.list}>
                    {shown.rows.map((row) => (
                        <li key={row.number}>
                            <button class={open?.number === row.number ? "row chosen" : "row"} onClick={() => setOpen(row)}>
                                <span>{String(row.item["id"])}</span>
                                <span class="hint">{keyWords(container, row.item)}</span>
                                <time class="hint">{clock(Number(row.item["_ts"]))}</time>
                            </button>
                        </li>
                    ))}
                </ul>
                <p class="hint">{texts.feed.note}</p>
            </div>
            {open === null ? <p class="hint item">{texts.feed.choose}</p> : (
                <div class="item">
                    <p class="hint">{texts.feed.at(open.range, Number(open.item["_lsn"]))}</p>
                    <Editor key={open.number} initial={JSON.stringify(open.item, null, 2)} label={String(open.item["id"])} language={json()} isReadOnly />
                </div>
            )}
        </div>
    );
}
