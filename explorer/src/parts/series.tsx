// series.tsx - request units, requests and refusals of a container over time, beside what is provisioned.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { STEP_S, type Grain } from "../api/orrery";
import { texts } from "../texts";
import { coloursOf } from "./heat";
import { clock } from "./numbers";
import type { PartitionRecord } from "./partition_record";
import { isDark } from "./theme";

const HEIGHT = 180;
const LABELS_MAX = 60; // room for one on the time axis, in pixels
const DASHES: Record<"provisioned" | "requests", number[]> = { provisioned: [8, 5], requests: [2, 3] };

const TIMES = [60, 120, 300, 600, 3600, 2 * 3600, 3 * 3600, 6 * 3600]; // steps of the axis of time
const WHOLE = Array.from({ length: 10 }, (_, i) => [1, 2, 5].map((digit) => digit * 10 ** i)).flat(); // steps of an axis of counts

type Column = (number | null)[];

// Per second, whatever the grain is.
function dataOf(record: PartitionRecord, grain: Grain, count: number): uPlot.AlignedData {
    const step = STEP_S[grain];
    const to = record.to(grain);
    const times: number[] = [];
    const columns: [Column, Column, Column, Column] = [[], [], [], []];
    for (let slot = to - count; slot < to; slot++) {
        const total = record.total(grain, slot);
        times.push(slot * step);
        columns[0].push(total === null ? null : total.ru / step);
        columns[1].push(total === null || total.provisioned === 0 ? null : total.provisioned);
        columns[2].push(total === null ? null : total.requests / step);
        columns[3].push(total === null || total.throttled === 0 ? null : total.throttled / step);
    }
    return [times, ...columns];
}

const lineColours = (dark: boolean): { ru: string; requests: string } => dark ? { ru: "#9db1ff", requests: "#56c2a8" } : { ru: "#3954c9", requests: "#0b7a63" };

function optionsOf(width: number, dark: boolean): uPlot.Options {
    const colours = coloursOf(dark);
    const lines = lineColours(dark);
    const axis: uPlot.Axis = { stroke: colours.soft, grid: { stroke: colours.line, width: 0.5 }, ticks: { stroke: colours.line, width: 0.5 }, font: "11px system-ui, sans-serif" };
    const fromZero = (_: uPlot, _min: number, max: number): uPlot.Range.MinMax => [0, Math.max(1, max * 1.05)];
    return {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 0, 0, 0],
        scales: { x: { time: true }, ru: { range: fromZero }, count: { range: fromZero } },
        axes: [
            { ...axis, space: LABELS_MAX, incrs: TIMES, values: (_, splits) => splits.map((time) => clock(time, false)) },
            { ...axis, scale: "ru", size: 62 },
            { ...axis, scale: "count", side: 1, size: 50, incrs: WHOLE, grid: { show: false } },
        ],
        series: [
            {},
            { scale: "ru", stroke: lines.ru, width: 1.5, points: { show: false } },
            { scale: "ru", stroke: colours.text, width: 1.5, dash: DASHES.provisioned, points: { show: false } },
            { scale: "count", stroke: lines.requests, width: 1.5, dash: DASHES.requests, points: { show: false } },
            { scale: "count", stroke: colours.throttled, fill: colours.throttled, width: 0, paths: uPlot.paths.bars!({ size: [0.8, 20, 1] }), points: { show: false } },
        ],
    };
}

// A line as the chart draws it.
function Sample({ colour, dash }: { colour: string; dash?: number[] }) {
    return (
        <svg width="26" height="10" aria-hidden="true">
            <line x1="0" y1="5" x2="26" y2="5" stroke={colour} stroke-width={dash === undefined ? 3 : 2} stroke-dasharray={dash?.join(" ")} />
        </svg>
    );
}

// The last 'count' slots.
export function Series({ record, grain, count, tick }: { record: PartitionRecord; grain: Grain; count: number; tick: number }) {
    const host = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const dark = isDark.value;
    const colours = coloursOf(dark);
    const lines = lineColours(dark);

    useEffect(() => {
        const element = host.current!;
        plot.current = new uPlot(optionsOf(element.clientWidth, dark), dataOf(record, grain, count), element);
        const observer = new ResizeObserver(([entry]) => plot.current?.setSize({ width: Math.floor(entry!.contentRect.width), height: HEIGHT }));
        observer.observe(element);
        return () => { observer.disconnect(); plot.current?.destroy(); plot.current = null; };
    }, [record, grain, dark]);
    useEffect(() => plot.current?.setData(dataOf(record, grain, count)), [tick, count]);

    const last = record.total(grain, record.to(grain) - 1);
    const step = STEP_S[grain];
    return (
        <>
            <ul class="legend">
                <li><Sample colour={lines.ru} />{texts.map.seriesRu}</li>
                {last !== null && last.provisioned > 0 && <li><Sample colour={colours.text} dash={DASHES.provisioned} />{texts.map.seriesProvisioned}</li>}
                <li><Sample colour={lines.requests} dash={DASHES.requests} />{texts.map.seriesRequests}</li>
                <li><Sample colour={colours.throttled} />{texts.map.seriesThrottled}</li>
            </ul>
            <div class="series" ref={host} role="img"
                aria-label={last === null ? texts.map.series : texts.map.seriesNow(last.ru / step, last.provisioned, last.requests / step, last.throttled / step)} />
        </>
    );
}
