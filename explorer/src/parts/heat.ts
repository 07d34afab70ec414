// heat.ts - the colours of the partition map: seven steps that differ in lightness first, so that they can be told apart
// without seeing hues. In light they go from pale to deep, in dark from deep to bright.
import type { Cell } from "./partition_record";

// A cell has the first step whose limit, in percent of its share, it does not exceed.
export const LIMITS = [0, 10, 25, 50, 75, 100, Infinity];

const LIGHT = ["#eef0f5", "#d5ead0", "#98d3bd", "#4fb3c6", "#2b84bb", "#2551a0", "#0d1f63"];
const DARK = ["#20242f", "#3f3a80", "#33638d", "#228b8d", "#3fb877", "#a0da39", "#fdee6b"];

export interface Colours {
    steps: string[];
    throttled: string;
    paper: string;
    text: string;
    soft: string;
    line: string;
    accent: string;
}

export function coloursOf(isDark: boolean): Colours {
    const style = getComputedStyle(document.documentElement);
    const named = (name: string): string => style.getPropertyValue(name).trim();
    return {
        steps: isDark ? DARK : LIGHT,
        throttled: isDark ? "#ff4f86" : "#d1005b",
        paper: named("--paper"), text: named("--text"), soft: named("--soft"), line: named("--line"), accent: named("--accent"),
    };
}

// Without a limit (serverless), everything that is used is full.
export const percentOf = (cell: Cell): number => cell.allotted > 0 ? cell.ru / cell.allotted * 100 : cell.ru > 0 ? 100 : 0;

export function stepOf(percent: number): number {
    return LIMITS.findIndex((limit) => percent <= limit);
}
