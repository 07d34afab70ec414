// partition_record.ts - what is known of a container's physical partitions over time.
//
// The server tells the use of the partitions that exist now. What it told of those that a split or a merge has
// retired since is kept here, as long as the page is open. Of those that were retired before, the list of moves
// tells that they were there and when they ended, but not what they did: they have no cells.
import { STEP_S, type Grain, type History, type HistoryRange, type Layout, type Move } from "../api/orrery";

export interface Operation {
    kind: string; // read, upsert, ...
    ru: number;
    requests: number;
    throttled: number;
}

export interface Cell {
    ru: number;
    requests: number;
    throttled: number;
    allotted: number; // request units of this slot, as it was then
    operations: Operation[] | null; // null: not asked for
}

// A physical partition as long as it lived, [begun, ended) in seconds.
export interface Band {
    id: string;
    min: string;
    max: string;
    begun: number; // 0: before all that is known
    ended: number; // Infinity: it lives
}

// The whole container in one slot.
export interface Total extends Omit<Cell, "allotted" | "operations"> {
    provisioned: number;
}

// A second in which requests were refused.
export interface Throttle {
    time: number;
    throttled: number;
}

export const COLUMNS_MAX: Record<Grain, number> = { second: 600, "5min": 288 };
const BANDS_MAX = 2000;
const MOVES_MAX = 256; // as many as the server tells
const FIELDS = 5; // slot, ru, requests, throttled, allotted

// The last so many slots of one partition, as rows of five numbers in a ring.
class Ring {
    private readonly rows: Float64Array;
    private readonly operations: (Operation[] | null)[];

    constructor(private readonly capacity: number) {
        this.rows = new Float64Array(capacity * FIELDS).fill(-1);
        this.operations = new Array<Operation[] | null>(capacity).fill(null);
    }

    put(slot: number, cell: Cell): void {
        const place = slot % this.capacity;
        this.rows.set([slot, cell.ru, cell.requests, cell.throttled, cell.allotted], place * FIELDS);
        this.operations[place] = cell.operations;
    }

    at(slot: number): Cell | null {
        const place = slot % this.capacity;
        const row = place * FIELDS;
        const [found, ru, requests, throttled, allotted] = this.rows.subarray(row, row + FIELDS);
        return found === slot ? { ru: ru!, requests: requests!, throttled: throttled!, allotted: allotted!, operations: this.operations[place]! } : null;
    }
}

// Those of one slot of a history; null if it does not tell them.
function operationsAt(range: HistoryRange, i: number): Operation[] | null {
    return range.operations?.map(({ kind, ru, requests, throttled }) => ({ kind, ru: ru[i]!, requests: requests[i]!, throttled: throttled[i]! }))
        .filter(({ requests }) => requests > 0) ?? null;
}

const byMin = (a: Band, b: Band): number => (a.min < b.min ? -1 : a.min > b.min ? 1 : 0);

export class PartitionRecord {
    bands: Band[] = []; // in the order of hashes, then of time
    version = 0; // changes with the bands
    private readonly byId = new Map<string, Band>();
    private readonly rings: Record<Grain, Map<string, Ring>> = { second: new Map(), "5min": new Map() };
    private readonly totals: Record<Grain, Map<number, Total>> = { second: new Map(), "5min": new Map() };
    private readonly end: Record<Grain, number> = { second: 0, "5min": 0 }; // the first slot that is not known
    private throughput = 0;
    private isDivided = false; // what partitions are allotted is what is provisioned
    private taken = new Set<string>(); // moves
    private known = new Map<string, Move>();

    constructor(readonly rid: string) {}

    // Those of a history of one slot of one partition; null if there is no such partition any more.
    static operationsOf(history: History): Operation[] | null {
        return history.ranges[0] === undefined ? null : operationsAt(history.ranges[0], 0);
    }

    // The slot after the last one that is known.
    to(grain: Grain): number {
        return this.end[grain];
    }

    // Which second to ask the history from: some slots again, as requests may have been counted a little late.
    askFrom(grain: Grain, now: number): number {
        const step = STEP_S[grain];
        return Math.max(this.end[grain] - 2, Math.floor(now / step) - COLUMNS_MAX[grain]) * step;
    }

    takeLayout(layout: Layout): void {
        this.throughput = layout.throughput.current ?? 0;
        this.isDivided = layout.throughput.mode === "manual" && !layout.throughput.isShared;
        const living = new Set(layout.ranges.map((range) => range.id));
        for (const band of this.bands) {
            if (band.ended === Infinity && !living.has(band.id)) {
                band.ended = layout.time; // until the move tells it exactly
                this.version++;
            }
        }
        for (const range of layout.ranges) {
            if (!this.byId.has(range.id))
                this.add({ id: range.id, min: range.min, max: range.max, begun: this.bands.length === 0 || range.parents.length === 0 ? 0 : layout.time, ended: Infinity });
        }
    }

    // The newest first. In a cluster one node tells them, and the next one that does so has not seen those before.
    get moves(): Move[] {
        return [...this.known.values()].sort((a, b) => b.ended - a.ended).slice(0, MOVES_MAX);
    }

    // 'moves' are the container's, the newest first.
    takeMoves(moves: Move[]): void {
        for (const move of moves.filter(({ stage }) => stage === "done" || stage === "failed"))
            this.known.set(`${move.sources.join()} ${move.targets.join()} ${move.ended}`, move);
        this.known = new Map([...this.known].slice(-MOVES_MAX));
        const taken = new Set<string>();
        for (const move of moves) {
            const name = `${move.event} ${move.ended}`; // numbers begin anew with the server
            const targets = move.targets.map((id) => this.byId.get(id));
            if (!this.taken.has(name) && (move.stage !== "done" || targets.length === 0 || targets.some((band) => band === undefined)))
                continue;
            taken.add(name);
            if (this.taken.has(name))
                continue;
            const made = (targets as Band[]).sort(byMin);
            for (const band of made)
                this.change(band, "begun", move.ended);
            // The places of the cuts between sources that nobody has seen are unknown, but not their order. '!' sorts
            // before all digits, so that these stand between the ends.
            const min = made[0]!.min;
            const cuts = move.sources.map((_, i) => (i === 0 ? min : `${min}!${i}`));
            for (const [i, id] of move.sources.entries()) {
                const band = this.byId.get(id);
                if (band === undefined)
                    this.add({ id, min: cuts[i]!, max: cuts[i + 1] ?? made[made.length - 1]!.max, begun: 0, ended: move.ended });
                else
                    this.change(band, "ended", move.ended);
            }
        }
        this.taken = taken;
    }

    takeHistory(grain: Grain, history: History): void {
        const step = STEP_S[grain];
        const first = history.from / step;
        for (const range of history.ranges) {
            let ring = this.rings[grain].get(range.id);
            if (ring === undefined) {
                ring = new Ring(COLUMNS_MAX[grain] + 1);
                this.rings[grain].set(range.id, ring);
            }
            for (let i = 0; i < range.ru.length; i++)
                ring.put(first + i, {
                    ru: range.ru[i]!, requests: range.requests[i]!, throttled: range.throttled[i]!, allotted: range.allotted[i]! * step,
                    operations: operationsAt(range, i) ?? ring.at(first + i)?.operations ?? null,
                });
        }
        const end = history.to / step;
        for (let slot = first; slot < end; slot++)
            this.addUp(grain, slot);
        for (const slot of this.totals[grain].keys()) { // the oldest first
            if (slot >= end - COLUMNS_MAX[grain])
                break;
            this.totals[grain].delete(slot);
        }
        this.end[grain] = Math.max(this.end[grain], end);
        this.forget();
    }

    cell(grain: Grain, band: Band, slot: number): Cell | null {
        return this.rings[grain].get(band.id)?.at(slot) ?? null;
    }

    // A band has the slots from the one that it begins in up to the one that it ends in.
    has(grain: Grain, band: Band, slot: number): boolean {
        const step = STEP_S[grain];
        return slot >= Math.floor(band.begun / step) && slot < Math.floor(band.ended / step);
    }

    bandsAt(grain: Grain, slot: number): Band[] {
        return this.bands.filter((band) => this.has(grain, band, slot));
    }

    // Those that have a slot in [from, to).
    bandsIn(grain: Grain, from: number, to: number): Band[] {
        const step = STEP_S[grain];
        return this.bands.filter((band) => {
            const begun = Math.floor(band.begun / step);
            const ended = Math.floor(band.ended / step);
            return begun < ended && begun < to && ended > from;
        });
    }

    // Null if nothing is known of the slot.
    total(grain: Grain, slot: number): Total | null {
        return this.totals[grain].get(slot) ?? null;
    }

    // Seconds of the last minutes, the newest first.
    get throttles(): Throttle[] {
        return [...this.totals.second].filter(([, { throttled }]) => throttled > 0).map(([time, { throttled }]) => ({ time, throttled })).sort((a, b) => b.time - a.time);
    }

    private addUp(grain: Grain, slot: number): void {
        const cells = this.bandsAt(grain, slot).map((band) => this.cell(grain, band, slot));
        const known = cells.filter((cell) => cell !== null);
        if (known.length === 0)
            return;
        const sum = (what: "ru" | "requests" | "throttled" | "allotted"): number => known.reduce((all, cell) => all + cell[what], 0);
        const provisioned = this.totals[grain].get(slot)?.provisioned
            ?? (this.isDivided && known.length === cells.length ? sum("allotted") / STEP_S[grain] : this.throughput);
        this.totals[grain].set(slot, { ru: sum("ru"), requests: sum("requests"), throttled: sum("throttled"), provisioned });
    }

    private add(band: Band): void {
        this.byId.set(band.id, band);
        this.bands.push(band);
        this.bands.sort((a, b) => byMin(a, b) || a.begun - b.begun);
        this.version++;
    }

    private change(band: Band, what: "begun" | "ended", time: number): void {
        if (band[what] === time)
            return;
        band[what] = time;
        this.version++;
    }

    // Bands that are off the map of a day; in a storm of splits, the oldest.
    private forget(): void {
        const oldest = (this.end["5min"] - COLUMNS_MAX["5min"]) * STEP_S["5min"];
        const gone = this.bands.filter((band) => band.ended < oldest);
        if (this.bands.length > BANDS_MAX)
            gone.push(...this.bands.filter((band) => band.ended !== Infinity).sort((a, b) => a.ended - b.ended).slice(0, this.bands.length - BANDS_MAX));
        for (const band of gone) {
            this.byId.delete(band.id);
            this.rings.second.delete(band.id);
            this.rings["5min"].delete(band.id);
        }
        if (gone.length > 0) {
            this.bands = this.bands.filter((band) => !gone.includes(band));
            this.version++;
        }
    }
}
