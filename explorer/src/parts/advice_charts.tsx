// advice_charts.tsx - what a partition key would do, as charts: storage and writes of each partition, visits of queries, and
// how near its largest value comes to the limit. Each has a text for those who do not see it.
import type { ComponentChildren } from "preact";
import type { AdvisedKey } from "../api/advice";
import { texts } from "../texts";
import { bytes, decimal, percent } from "./numbers";

const WIDTH = 320;
const HEIGHT = 90;
const ROW = 6;
const HOT = 2; // times the mean, from where on a partition stands out
const LIMIT_BYTES = 20 * 1024 ** 3; // of a logical partition

export const timesText = (value: number): string => `${decimal(Math.round(value * 10) / 10)}\u00d7`;

function Chart({ height, label, children }: { height: number; label: string; children: ComponentChildren }) {
    return (
        <figure>
            <svg class="chart" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">{children}</svg>
            <figcaption>{label}</figcaption>
        </figure>
    );
}

// A bar for each physical partition; the line is the mean.
export function StorageChart({ advised }: { advised: AdvisedKey }) {
    const { storage } = advised;
    const mean = 1 / storage.length;
    const top = Math.max(2 * mean, ...storage) * 1.05;
    const width = WIDTH / storage.length;
    const y = (share: number): number => HEIGHT - share / top * HEIGHT;
    return (
        <Chart height={HEIGHT} label={texts.advice.storage(timesText(Math.max(...storage) / mean), storage.filter((share) => share === 0).length)}>
            <rect class="ground" x={0} y={0} width={WIDTH} height={HEIGHT} />
            {storage.map((share, i) => (
                <rect key={i} class={share > HOT * mean ? "hot" : "even"} x={i * width + 1} y={y(share)} width={Math.max(width - 2, 1)} height={HEIGHT - y(share)}>
                    <title>{texts.advice.partitionShare(i, percent(share))}</title>
                </rect>
            ))}
            <line class="mean" x1={0} x2={WIDTH} y1={y(mean)} y2={y(mean)} />
        </Chart>
    );
}

// A row for each time, a column for each partition: the stronger, the more of the writes went there.
export function WriteChart({ advised }: { advised: AdvisedKey }) {
    const { writes } = advised;
    if (writes.length === 0)
        return <p class="hint">{texts.advice.noWrites}</p>;
    const height = writes.length * ROW;
    return (
        <Chart height={height} label={texts.advice.writes(timesText(advised.writeSkew), percent(advised.busiestValueShare))}>
            <rect class="ground" x={0} y={0} width={WIDTH} height={height} />
            {writes.flatMap((shares, row) => shares.map((share, column) => {
                const times = share * shares.length;
                return times < 0.05 ? null : (
                    <rect key={`${row}-${column}`} class={times > HOT ? "hot" : "even"} fill-opacity={Math.min(1, times / 4 + 0.08)}
                        x={column * WIDTH / shares.length} y={row * ROW} width={WIDTH / shares.length - 1} height={ROW - 1} />
                );
            }))}
        </Chart>
    );
}

// One partition against all others, of all queries by how often they run.
export function VisitChart({ advised }: { advised: AdvisedKey }) {
    if (advised.queries === null)
        return <p class="hint">{texts.advice.noQueries}</p>;
    const { onePartitionShare: share, visitsMean } = advised.queries;
    const height = 18;
    return (
        <Chart height={height} label={texts.advice.visits(percent(share), decimal(visitsMean))}>
            <rect class="ground" x={0} y={0} width={WIDTH} height={height} />
            <rect class="even" x={0} y={0} width={WIDTH * share} height={height} />
            <rect class="hot" x={WIDTH * share} y={0} width={WIDTH * (1 - share)} height={height} />
        </Chart>
    );
}

// The largest value against the 20 GB that a logical partition may hold.
export function LimitChart({ advised }: { advised: AdvisedKey }) {
    const height = 18;
    const used = Math.min(1, advised.largestBytes / LIMIT_BYTES);
    const when = advised.fullOn === null ? texts.advice.rateUnknown : advised.fullOn === "never" ? texts.advice.neverFull : texts.advice.fullOn(advised.fullOn);
    return (
        <Chart height={height} label={`${texts.advice.limit(bytes(advised.largestBytes), percent(used))} ${when}`}>
            <rect class="ground" x={0} y={0} width={WIDTH} height={height} />
            <rect class={used > 0.5 ? "hot" : "even"} x={0} y={0} width={Math.max(1, WIDTH * used)} height={height} />
        </Chart>
    );
}
