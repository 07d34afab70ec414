// partition_map.tsx - the map: hashes from top to bottom, time from left to right, the use of each partition as colour.
//
// Two canvases lie on each other. The lower one has the cells; with each second it is moved to the left by one column and
// only the new columns are painted. The upper one has lines, labels and the cursor. Each cut between partitions that
// is in the picture, now or earlier, divides the height, and all parts are equally high: a narrow range is as
// visible as a wide one, and children stand where their parents stood.
import { useEffect, useRef, useState } from "preact/hooks";
import { STEP_S, type Grain, type Move } from "../api/orrery";
import { texts } from "../texts";
import { coloursOf, LIMITS, percentOf, stepOf, type Colours } from "./heat";
import { clock } from "./numbers";
import { COLUMNS_MAX, type Band, type PartitionRecord } from "./partition_record";
import { isDark } from "./theme";

// A partition that another node of the cluster has since then.
export interface OwnerMark {
    id: string; // of the partition
    at: number; // seconds since 1970
    epoch: number;
    owner: string;
    reason: string;
}

export interface CellPlace {
    id: string; // of the partition
    slot: number;
}

interface MapProps {
    record: PartitionRecord;
    grain: Grain;
    moves: Move[];
    owners: OwnerMark[]; // the newest first
    chosen: CellPlace | null;
    onChoose: (place: CellPlace | null) => void;
    onColumns: (count: number) => void; // how many fit
    tick: number; // changes when the record has
}

const LEFT = 34; // room for the names of partitions, in CSS pixels like all of these
const BOTTOM = 20; // for times
const TOP = 18; // for labels of moves
const ROW = 26;
const HEIGHT_MIN = 170;
const HEIGHT_MAX = 480;
const COLUMN_MIN = 3;
const LABEL_FONT = "11px system-ui, sans-serif";
const LATE = 2; // the last columns may still have changed

// Where everything is, in device pixels.
interface Geometry {
    ratio: number;
    left: number;
    top: number;
    column: number; // width of one; whole if columns are seconds, which move
    columns: number;
    height: number; // of the cells
    from: number; // the first slot, and the one after the last
    to: number;
    edges: Map<string, number>; // where a hash is
}

function geometryOf(record: PartitionRecord, grain: Grain, widthCss: number, heightCss: number): Geometry {
    const ratio = devicePixelRatio || 1;
    const room = Math.max(60, widthCss - LEFT) * ratio;
    // Seconds that do not fit are left out; a day is always a day.
    const isMoving = grain === "second";
    const column = isMoving ? Math.max(Math.round(COLUMN_MIN * ratio), Math.floor(room / COLUMNS_MAX.second)) : room / COLUMNS_MAX[grain];
    const columns = isMoving ? Math.min(COLUMNS_MAX.second, Math.floor(room / column)) : COLUMNS_MAX[grain];
    const to = record.to(grain);
    const from = to - columns;
    const height = Math.round((heightCss - BOTTOM - TOP) * ratio);
    const cuts = [...new Set(record.bandsIn(grain, from, to).flatMap((band) => [band.min, band.max]))].sort();
    const edges = new Map(cuts.map((cut, i) => [cut, Math.round(i / Math.max(1, cuts.length - 1) * height)]));
    return { ratio, left: Math.round(LEFT * ratio), top: Math.round(TOP * ratio), column, columns, height, from, to, edges };
}

const across = (g: Geometry, slot: number): number => Math.round((slot - g.from) * g.column);

function hatch(context: CanvasRenderingContext2D, colours: Colours, ratio: number): CanvasPattern | string {
    const tile = document.createElement("canvas");
    const size = Math.round(6 * ratio);
    tile.width = tile.height = size;
    const pen = tile.getContext("2d")!;
    pen.strokeStyle = colours.line;
    pen.lineWidth = ratio;
    for (const shift of [-size, 0, size]) {
        pen.beginPath();
        pen.moveTo(shift, size);
        pen.lineTo(shift + size, 0);
        pen.stroke();
    }
    return context.createPattern(tile, "repeat") ?? colours.line;
}

function paintColumns(context: CanvasRenderingContext2D, record: PartitionRecord, grain: Grain, g: Geometry, colours: Colours, first: number): void {
    const unknown = hatch(context, colours, g.ratio);
    context.fillStyle = colours.paper;
    context.fillRect(across(g, first), 0, across(g, g.to) - across(g, first), g.height);
    const bands = record.bandsIn(grain, first, g.to);
    for (const band of bands) {
        const top = g.edges.get(band.min) ?? 0;
        const bottom = g.edges.get(band.max) ?? g.height;
        const height = Math.max(1, bottom - top - Math.ceil(g.ratio));
        const mark = Math.max(1, Math.min(Math.round(6 * g.ratio), Math.floor(height / 3)));
        for (let slot = first; slot < g.to; slot++) {
            if (!record.has(grain, band, slot))
                continue;
            const cell = record.cell(grain, band, slot);
            const x = across(g, slot);
            const width = across(g, slot + 1) - x;
            context.fillStyle = cell === null ? unknown : colours.steps[stepOf(percentOf(cell))]!;
            context.fillRect(x, top, width, height);
            if (cell !== null && cell.throttled > 0) {
                context.fillStyle = colours.paper;
                context.fillRect(x, top + height - mark - Math.ceil(g.ratio), width, Math.ceil(g.ratio));
                context.fillStyle = colours.throttled;
                context.fillRect(x, top + height - mark, width, mark);
            }
        }
    }
}

/* ---- lines, labels, the cursor ---- */

function label(context: CanvasRenderingContext2D, g: Geometry, colours: Colours, text: string, x: number, y: number): number {
    const width = context.measureText(text).width + 8 * g.ratio;
    const right = g.left + g.columns * g.column;
    const at = Math.max(g.left, Math.min(x - width / 2, right - width));
    context.fillStyle = colours.text;
    context.fillRect(at, y, width, 15 * g.ratio);
    context.fillStyle = colours.paper;
    context.fillText(text, at + 4 * g.ratio, y + 11 * g.ratio);
    return at + width;
}

function paintTimes(context: CanvasRenderingContext2D, grain: Grain, g: Geometry, colours: Colours): void {
    const step = STEP_S[grain];
    const widthCss = g.columns * g.column / g.ratio;
    const every = grain === "second" ? 60 : (widthCss < 500 ? 6 : 3) * 3600;
    const zone = new Date().getTimezoneOffset() * 60; // days begin at midnight here
    const y = g.top + g.height;
    context.fillStyle = colours.soft;
    context.strokeStyle = colours.line;
    for (let time = Math.ceil((g.from * step - zone) / every) * every + zone; time < g.to * step; time += every) {
        const x = g.left + Math.round((time / step - g.from) * g.column) + 0.5;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x, y + 4 * g.ratio);
        context.stroke();
        const text = clock(time, false);
        const half = context.measureText(text).width / 2;
        if (x - half >= g.left - half && x + half <= g.left + g.columns * g.column)
            context.fillText(text, x - half, y + 15 * g.ratio);
    }
}

function paintNames(context: CanvasRenderingContext2D, record: PartitionRecord, grain: Grain, g: Geometry, colours: Colours): void {
    context.fillStyle = colours.text;
    context.textAlign = "right";
    let free = 0;
    for (const band of record.bandsAt(grain, g.to - 1)) {
        const top = g.edges.get(band.min) ?? 0;
        const bottom = g.edges.get(band.max) ?? g.height;
        const y = g.top + (top + bottom) / 2;
        if (y < free) // no room
            continue;
        context.fillText(band.id, g.left - 5 * g.ratio, y + 4 * g.ratio);
        free = y + 12 * g.ratio;
    }
    context.textAlign = "left";
}

function paintMoves(context: CanvasRenderingContext2D, grain: Grain, g: Geometry, colours: Colours, moves: Move[], bands: Map<string, Band>): void {
    const step = STEP_S[grain];
    let free = -Infinity; // where the last label ends
    for (const move of [...moves].reverse()) {
        const slot = Math.floor(move.ended / step);
        if (move.stage !== "done" || slot < g.from || slot > g.to)
            continue;
        const parts = [...move.sources, ...move.targets].flatMap((id) => bands.get(id) ?? []);
        const tops = parts.flatMap((band) => g.edges.get(band.min) ?? []);
        const bottoms = parts.flatMap((band) => g.edges.get(band.max) ?? []);
        if (tops.length === 0)
            continue;
        const x = g.left + across(g, slot);
        context.fillStyle = colours.text;
        context.fillRect(x - g.ratio, g.top - 3 * g.ratio, 2 * g.ratio, Math.max(...bottoms) + 3 * g.ratio);
        context.fillStyle = colours.paper; // above what was moved the line is dashed
        for (let y = g.top; y < g.top + Math.min(...tops); y += 6 * g.ratio)
            context.fillRect(x - g.ratio, y, 2 * g.ratio, 3 * g.ratio);
        const text = texts.map.moveLabel(move.what, move.sources.join(", "), move.targets.join(", "));
        if (x - context.measureText(text).width / 2 > free)
            free = label(context, g, colours, text, x, 0);
    }
}

// A bar through the band, and the name of the new owner where there is room; the newest names come first.
function paintOwners(context: CanvasRenderingContext2D, grain: Grain, g: Geometry, colours: Colours, owners: OwnerMark[], bands: Map<string, Band>): void {
    const placed = owners.flatMap((mark) => {
        const slot = Math.floor(mark.at / STEP_S[grain]);
        const band = bands.get(mark.id);
        const top = band === undefined ? undefined : g.edges.get(band.min);
        const bottom = band === undefined ? undefined : g.edges.get(band.max);
        return top === undefined || bottom === undefined || slot < g.from || slot > g.to ? []
            : [{ mark, x: g.left + across(g, slot), y: g.top + top, height: bottom - top - g.ratio }];
    });
    for (const [colour, half] of [[colours.paper, 2], [colours.text, 1]] as const) { // so that bars are seen on every colour
        context.fillStyle = colour;
        for (const { x, y, height } of placed)
            context.fillRect(x - half * g.ratio, y, 2 * half * g.ratio, height);
    }
    const begins = new Map<string, number>(); // where the last name in each band begins
    for (const { mark, x, y, height } of placed) {
        const text = texts.map.ownerLabel(mark.owner);
        const width = context.measureText(text).width + 8 * g.ratio;
        const begin = Math.min(x - width / 2, g.left + g.columns * g.column - width);
        if (height < 17 * g.ratio || begin + width > (begins.get(mark.id) ?? Infinity))
            continue;
        begins.set(mark.id, begin);
        label(context, g, colours, text, x, y + g.ratio);
    }
}

function paintOver(context: CanvasRenderingContext2D, props: MapProps, g: Geometry, colours: Colours): void {
    const { record, grain, moves, owners, chosen } = props;
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    context.font = LABEL_FONT.replace("11px", `${11 * g.ratio}px`);
    const bands = new Map(record.bands.map((band) => [band.id, band]));
    paintTimes(context, grain, g, colours);
    paintNames(context, record, grain, g, colours);
    paintOwners(context, grain, g, colours, owners, bands);
    paintMoves(context, grain, g, colours, moves, bands);
    const band = chosen === null ? undefined : bands.get(chosen.id);
    if (chosen !== null && band !== undefined && chosen.slot >= g.from && chosen.slot < g.to) {
        const top = g.top + (g.edges.get(band.min) ?? 0);
        const height = (g.edges.get(band.max) ?? g.height) - (g.edges.get(band.min) ?? 0) - g.ratio;
        const x = g.left + across(g, chosen.slot);
        for (const [colour, grow] of [[colours.paper, 3], [colours.text, 2]] as const) {
            context.strokeStyle = colour;
            context.lineWidth = (grow === 3 ? 4 : 2) * g.ratio;
            context.strokeRect(x - 2 * g.ratio, top, g.column + 4 * g.ratio, height);
        }
        context.lineWidth = 1;
    }
}

/* ---- the component ---- */

export function bandOf(record: PartitionRecord, id: string): Band | undefined {
    return record.bands.find((band) => band.id === id);
}

// The neighbour of a cell in the direction of a key; null if the key is not one of these.
function moved(record: PartitionRecord, grain: Grain, g: Geometry, from: CellPlace | null, key: string): CellPlace | null {
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(key))
        return null;
    const last = g.to - 1;
    const slot = from === null ? last : Math.max(g.from, Math.min(last,
        key === "ArrowLeft" ? from.slot - 1 : key === "ArrowRight" ? from.slot + 1 : key === "Home" ? g.from : key === "End" ? last : from.slot));
    const there = record.bandsAt(grain, slot);
    if (there.length === 0)
        return null;
    const before = from === null ? undefined : bandOf(record, from.id);
    // To the side the band may be another one: that which has the beginning of this one's hashes, or the first within it.
    const at = before === undefined ? 0 : Math.max(0, there.findIndex((band) => band.max > before.min));
    const index = Math.max(0, Math.min(there.length - 1, key === "ArrowUp" ? at - 1 : key === "ArrowDown" ? at + 1 : at));
    return { id: there[index]!.id, slot };
}

export function PartitionMap(props: MapProps) {
    const { record, grain, chosen, onChoose, tick } = props;
    const box = useRef<HTMLDivElement>(null);
    const cells = useRef<HTMLCanvasElement>(null);
    const over = useRef<HTMLCanvasElement>(null);
    const painted = useRef<{ key: string; to: number } | null>(null);
    const geometry = useRef<Geometry | null>(null);
    const [width, setWidth] = useState(0);
    const dark = isDark.value;

    useEffect(() => {
        const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
        observer.observe(box.current!);
        return () => observer.disconnect();
    }, []);

    useEffect(() => {
        if (width === 0 || record.to(grain) === 0)
            return;
        const rows = record.bandsIn(grain, record.to(grain) - COLUMNS_MAX[grain], record.to(grain)).length;
        const height = Math.max(HEIGHT_MIN, Math.min(HEIGHT_MAX, rows * ROW)) + TOP + BOTTOM;
        const g = geometryOf(record, grain, width, height);
        geometry.current = g;
        props.onColumns(g.columns);
        const colours = coloursOf(dark);
        const edges = [...g.edges.keys()].join(" ");
        const key = [width, height, g.ratio, grain, dark, record.version, edges].join("|");
        const canvas = cells.current!;
        const context = canvas.getContext("2d", { alpha: false })!;
        let first = g.from;
        if (painted.current?.key === key && painted.current.to > g.from && Number.isInteger(g.column)) {
            const shift = (g.to - painted.current.to) * g.column;
            if (shift > 0)
                context.drawImage(canvas, -shift, 0);
            first = Math.max(g.from, painted.current.to - LATE);
        } else {
            for (const one of [canvas, over.current!]) {
                one.width = one === canvas ? Math.round(g.columns * g.column) : Math.round(width * g.ratio);
                one.height = one === canvas ? g.height : Math.round(height * g.ratio);
                one.style.width = `${one.width / g.ratio}px`;
                one.style.height = `${one.height / g.ratio}px`;
            }
            canvas.style.left = `${LEFT}px`;
            canvas.style.top = `${TOP}px`;
            box.current!.style.height = `${height}px`;
        }
        paintColumns(context, record, grain, g, colours, first);
        painted.current = { key, to: g.to };
        paintOver(over.current!.getContext("2d")!, props, g, colours);
    }, [tick, width, grain, dark, chosen, record, devicePixelRatio]);

    function click(event: MouseEvent): void {
        const g = geometry.current;
        if (g === null)
            return;
        const place = box.current!.getBoundingClientRect();
        const slot = g.from + Math.floor(((event.clientX - place.left) * g.ratio - g.left) / g.column);
        const y = (event.clientY - place.top) * g.ratio - g.top;
        if (slot < g.from || slot >= g.to)
            return;
        const band = record.bandsAt(grain, slot).find(({ min, max }) => y >= (g.edges.get(min) ?? 0) && y < (g.edges.get(max) ?? 0));
        if (band !== undefined)
            onChoose({ id: band.id, slot });
    }

    function press(event: KeyboardEvent): void {
        if (event.key === "Escape" && chosen !== null) {
            onChoose(null);
        } else if (geometry.current !== null) {
            const next = moved(record, grain, geometry.current, chosen, event.key);
            if (next === null)
                return;
            onChoose(next);
        }
        event.preventDefault();
    }

    return (
        <div class="map" ref={box} role="application" tabIndex={0} aria-label={texts.map.label} aria-describedby="map-keys" onClick={click} onKeyDown={press}>
            <canvas ref={cells} aria-hidden="true" />
            <canvas ref={over} aria-hidden="true" />
        </div>
    );
}

// What the colours mean; painted, as inline styles are not allowed.
export function Legend({ hasOwners }: { hasOwners: boolean }) {
    const dark = isDark.value;
    const colours = coloursOf(dark);
    const swatch = (colour: string) => (element: HTMLElement | null): void => { element?.style.setProperty("background-color", colour); };
    return (
        <ul class="legend" aria-label={texts.map.legend}>
            {LIMITS.map((limit, i) => (
                <li key={`${dark}${limit}`}><span class="swatch" ref={swatch(colours.steps[i]!)} />{texts.map.step(LIMITS[i - 1] ?? null, limit)}</li>
            ))}
            <li key={`${dark}429`}><span class="swatch swatch-throttled" ref={swatch(colours.throttled)} />{texts.map.throttledCells}</li>
            <li><span class="swatch swatch-unknown" />{texts.map.unknown}</li>
            {hasOwners && <li><span class="swatch swatch-owner" />{texts.map.ownerChanged}</li>}
        </ul>
    );
}
