// map.tsx - the physical partitions of a container, live: the map, what is in a cell, the use of the whole container,
// what has happened, and where the bytes are.
import { useRef, useState } from "preact/hooks";
import { isNode, readCluster, type ClusterStatus } from "../api/cluster";
import {
    askMerge, askSplit, checkChaos, keyText, readEvents, readHistory, readKeys, readLargest, readLayout, readQueries, readSlot, STEP_S, TOP_MINUTES,
    type Grain, type Layout, type Move, type RangeKeys, type RangeLayout, type RecordedQuery, type TopRow,
} from "../api/orrery";
import { mayChange } from "../api/session";
import { Halted } from "../parts/halted";
import { percentOf } from "../parts/heat";
import { attempt, tell } from "../parts/notices";
import { bytes, clock, count, decimal } from "../parts/numbers";
import { OwnerRecord } from "../parts/owner_record";
import { bandOf, Legend, PartitionMap, type CellPlace, type OwnerMark } from "../parts/partition_map";
import { PartitionRecord, type Cell, type Operation, type Throttle } from "../parts/partition_record";
import { useRepeated } from "../parts/repeat";
import { Series } from "../parts/series";
import type { ContainerDefinition } from "../state";
import { texts } from "../texts";
import { Advice } from "./advice";

const PERIOD_MS = 1000;
const DAY_PERIOD_MS = 60_000; // of the day while it is not shown, so that a split does not take it away
const CELL_PERIOD_MS = 5000;
const OPERATIONS_MAX = 12_000; // slots of partitions in one answer with the kinds of their requests: some megabytes
const SIZES_PERIOD_MS = 15_000;
const KEYS_SHOWN = 10;
const REFUSED_KEYS = 100; // to find how often those that are shown were refused
const QUERIES_SHOWN = 10;
const SIZES_SHOWN = 15;
const MOVES_SHOWN = 30;
const SPELLS_SHOWN = 30;
const TABLE_ROWS = 30;

type PageProps = { db: string; container: ContainerDefinition };

const hashText = (hash: string, end: string): string => hash === "" || hash === "FF" ? end : hash.includes("!") ? "?" : hash.length > 14 ? `${hash.slice(0, 12)}...` : hash;
const spanText = ({ min, max }: { min: string; max: string }): string =>
    min === "" && max === "FF" ? texts.map.allHashes : texts.map.span(hashText(min, texts.map.first), hashText(max, texts.map.last));
const slotText = (grain: Grain, slot: number): string => clock(slot * STEP_S[grain], grain === "second");

function Bar({ value, of }: { value: number; of: number }) {
    return <span class="bar" aria-hidden="true"><span style={{ width: `${of > 0 ? Math.min(100, value / of * 100) : 0}%` }} /></span>;
}

/* ---- a cell ---- */

function cellText(record: PartitionRecord, grain: Grain, place: CellPlace): string {
    const band = bandOf(record, place.id);
    const cell = band === undefined ? null : record.cell(grain, band, place.slot);
    const at = slotText(grain, place.slot);
    return cell === null ? texts.map.cellUnknown(place.id, at) : texts.map.cell(place.id, at, decimal(percentOf(cell)), decimal(cell.ru), count(cell.requests), count(cell.throttled));
}

/* ---- the requests of a cell ---- */

// What the server has not told apart: it had no room for so many kinds, or it is too long ago.
function restOf(cell: Cell, operations: Operation[]): Operation {
    const rest = (what: "ru" | "requests" | "throttled"): number => Math.max(0, cell[what] - operations.reduce((all, one) => all + one[what], 0));
    return { kind: "", ru: rest("ru"), requests: rest("requests"), throttled: rest("throttled") };
}

function Operations({ cell, operations }: { cell: Cell; operations: Operation[] }) {
    const rest = restOf(cell, operations);
    const rows = [...operations].sort((a, b) => b.ru - a.ru || b.throttled - a.throttled).concat(rest.requests > 0 ? [rest] : []);
    return (
        <>
            <h3>{texts.map.operations}</h3>
            {rows.length === 0 ? <p>{texts.map.noOperations}</p> : (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.map.operations}>
                    <table>
                        <thead><tr><th scope="col">{texts.map.operation}</th><th scope="col" class="number">{texts.map.requests}</th><th scope="col" class="number">{texts.map.ru}</th><th scope="col" class="number">{texts.map.share}</th><th scope="col" class="number">{texts.map.throttled}</th></tr></thead>
                        <tbody>
                            {rows.map((row) => (
                                <tr key={row.kind}>
                                    <td>{texts.map.operationKinds[row.kind] ?? row.kind}</td><td class="number">{count(row.requests)}</td>
                                    <td class="number">{decimal(row.ru)}</td><td class="number">{cell.ru > 0 ? `${decimal(row.ru / cell.ru * 100)} %` : ""}</td>
                                    <td class={row.throttled > 0 ? "number problem" : "number"}>{count(row.throttled)}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </>
    );
}

/* ---- the keys of a cell ---- */

interface CellKeys {
    byRu: RangeKeys;
    byThrottled: RangeKeys;
}

function Keys({ keys }: { keys: CellKeys }) {
    const { byRu, byThrottled } = keys;
    const title = texts.map.topKeys(clock(byRu.from, false), clock(byRu.to, false));
    const throttled = new Map(byThrottled.rows.map((row) => [row.epk, row.amount] as const));
    // A key may have been refused so often that it used little.
    const refusedOnly = byThrottled.rows.filter(({ epk }) => !byRu.rows.some((row) => row.epk === epk));
    const rows = [...byRu.rows, ...refusedOnly].slice(0, KEYS_SHOWN);
    return (
        <>
            <h3>{title}</h3>
            {(byRu.missingRanges ?? []).length > 0 ? <p class="problem">{texts.map.silent}</p> : rows.length === 0 ? <p>{texts.map.noKeys}</p> : (
                <div class="scroll" tabIndex={0} role="region" aria-label={title}>
                    <table>
                        <thead><tr><th scope="col">{texts.map.key}</th><th scope="col" class="number">{texts.map.ru}</th><th scope="col" class="number">{texts.map.share}</th><th scope="col" class="number">{texts.map.throttled}</th></tr></thead>
                        <tbody>
                            {rows.map((row) => (
                                <tr key={row.epk}>
                                    <td class="key">{keyText(row)}</td>
                                    <td class="number">{refusedOnly.includes(row) ? "" : decimal(row.amount)}</td>
                                    <td class="number">{refusedOnly.includes(row) ? "" : `${decimal(row.share * 100)} %`}</td>
                                    <td class="number">{count(throttled.get(row.epk) ?? 0)}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </>
    );
}

/* ---- a cell's details ---- */

// The server has the minutes that have not ended so many minutes ago.
const hasKeysOf = (to: number, now: number): boolean => Math.floor((to - 1) / 60) >= Math.floor(now / 60) - TOP_MINUTES;

// 'now' is the server's time. Made anew for each cell.
function CellDetails({ db, container, record, grain, place, range, now, onClose }: PageProps & {
    record: PartitionRecord; grain: Grain; place: CellPlace; range: RangeLayout | undefined; now: number; onClose: () => void;
}) {
    const from = place.slot * STEP_S[grain];
    const to = from + STEP_S[grain];
    const hasKeys = hasKeysOf(to, now); // those of now would be wrong for an older cell
    const [keys, setKeys] = useState<CellKeys | null>(null);
    const [told, setTold] = useState<Operation[] | null>(null);
    const [queries, setQueries] = useState<RecordedQuery[] | null>(null);
    const band = bandOf(record, place.id);
    const cell = band === undefined ? null : record.cell(grain, band, place.slot);
    // What the page was not told with the numbers is asked for, unless the partition is gone.
    const isToAsk = cell !== null && cell.operations === null && range !== undefined;
    const details = useRepeated(async (signal) => {
        const read = (by: "ru" | "throttled", most: number): Promise<RangeKeys> => readKeys(db, container.id, by, most, place.id, from, to, signal);
        const [byRu, byThrottled, recorded, history] = await Promise.all([
            hasKeys ? read("ru", KEYS_SHOWN) : null, hasKeys ? read("throttled", REFUSED_KEYS) : null, readQueries(db, container.id, signal),
            isToAsk ? readSlot(db, container.id, grain, place.slot, place.id, signal) : null,
        ]);
        setKeys(byRu !== null && byThrottled !== null ? { byRu, byThrottled } : null);
        setQueries(recorded);
        if (history !== null)
            setTold(PartitionRecord.operationsOf(history));
    }, CELL_PERIOD_MS, hasKeys ? "top" : "old");
    if (band === undefined)
        return null;
    const operations = cell?.operations ?? told;
    return (
        <section class="cell" aria-label={texts.map.cellTitle(place.id, slotText(grain, place.slot))}>
            <div class="buttons">
                <h2>{texts.map.cellTitle(place.id, slotText(grain, place.slot))}</h2>
                <button onClick={onClose}>{texts.items.close}</button>
            </div>
            {cell === null ? <p>{texts.map.unknownLong}</p> : (
                <dl class="figures">
                    <div><dt>{texts.map.use}</dt><dd>{decimal(percentOf(cell))} %</dd></div>
                    <div><dt>{texts.map.ru}</dt><dd>{texts.map.of(decimal(cell.ru), count(cell.allotted))}</dd></div>
                    <div><dt>{texts.map.requests}</dt><dd>{count(cell.requests)}</dd></div>
                    <div><dt>{texts.map.throttled}</dt><dd class={cell.throttled > 0 ? "problem" : ""}>{count(cell.throttled)}</dd></div>
                    {range !== undefined && <div><dt>{texts.map.stored}</dt><dd>{texts.map.itemsAndBytes(count(range.items), bytes(range.bytes))}</dd></div>}
                </dl>
            )}
            <p class="hint">{spanText(band)}{band.ended < Infinity && `, ${texts.map.endedAt(clock(band.ended))}`}</p>
            <Halted {...details} isFirst={queries === null} />
            {cell !== null && operations !== null && <Operations cell={cell} operations={operations} />}
            {cell !== null && operations === null && !isToAsk && <p class="hint">{texts.map.operationsUnknown}</p>}
            {hasKeys && keys !== null && <Keys keys={keys} />}
            {!hasKeys && <p>{texts.map.keysTooOld}</p>}
            {queries !== null && <CellQueries queries={queries} from={from} to={to} />}
        </section>
    );
}

// The server counts queries by their text, not by partition and second: these were in use before that time, or at it, and
// at it or after it.
function CellQueries({ queries, from, to }: { queries: RecordedQuery[]; from: number; to: number }) {
    const rows = queries.filter((row) => row.first < to && row.last >= from).slice(0, QUERIES_SHOWN);
    return (
        <>
            <h3>{texts.map.queries}</h3>
            <p class="hint">{texts.map.queriesHint}</p>
            {rows.length === 0 ? <p>{texts.map.noQueries}</p> : (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.map.queries}>
                    <table>
                        <thead><tr><th scope="col">{texts.advice.query}</th><th scope="col" class="number">{texts.map.ru}</th><th scope="col" class="number">{texts.map.executions}</th><th scope="col" class="number">{texts.map.ruEach}</th><th scope="col" class="number">{texts.map.visitsEach}</th></tr></thead>
                        <tbody>
                            {rows.map((row) => (
                                <tr key={row.query}>
                                    <td class="key"><code>{row.query ?? texts.map.longQueries}</code></td>
                                    <td class="number">{decimal(row.ru)}</td>
                                    <td class="number">{count(row.executions)}</td>
                                    <td class="number">{row.executions > 0 ? decimal(row.ru / row.executions) : ""}</td>
                                    <td class="number">{row.executions > 0 ? decimal(row.partitionVisits / row.executions) : ""}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </>
    );
}

/* ---- what has happened ---- */

// Seconds one after the other become one line.
function spells(throttles: Throttle[]): { from: number; to: number; throttled: number }[] {
    const made: { from: number; to: number; throttled: number }[] = [];
    for (const { time, throttled } of throttles) { // the newest first
        const last = made[made.length - 1];
        if (last !== undefined && last.from - time <= 1) {
            last.from = time;
            last.throttled += throttled;
        } else {
            made.push({ from: time, to: time, throttled });
        }
    }
    return made;
}

const moveText = (move: Omit<Move, "database" | "container">): string =>
    texts.map.move(move.what, move.sources.join(", "), move.targets.join(", "), move.stage, move.reason)
    + (move.stage === "done" ? texts.map.moveDone(count(move.items), decimal(move.fenceMicroseconds / 1000)) : move.stage === "failed" ? `: ${move.message}` : ` (${move.percent} %)`);

function Happened({ moves, owners, throttles, move }: { moves: Move[]; owners: OwnerMark[]; throttles: Throttle[]; move: Layout["move"] }) {
    return (
        <section aria-label={texts.map.events} tabIndex={0}>
            <h2>{texts.map.events}</h2>
            {move !== null && <p class="under-way">{moveText(move)} <progress value={move.percent} max={100} aria-label={moveText(move)} /></p>}
            <div role="log" aria-label={texts.map.moves}>
                <ul>
                    {moves.filter(({ stage }) => stage === "done" || stage === "failed").slice(0, MOVES_SHOWN).map((one) => (
                        <li key={`${one.event} ${one.ended}`} class={one.stage === "failed" ? "problem" : ""}><time>{clock(one.ended)}</time> {moveText(one)}</li>
                    ))}
                </ul>
            </div>
            {isNode.value === true && (
                <div role="log" aria-label={texts.map.owners}>
                    <ul>
                        {owners.slice(0, MOVES_SHOWN).map((one) => (
                            <li key={`${one.id} ${one.epoch}`}><time>{clock(one.at)}</time> {texts.map.ownerChange(one.id, one.owner, one.reason)}</li>
                        ))}
                    </ul>
                </div>
            )}
            <ul>
                {spells(throttles).slice(0, SPELLS_SHOWN).map((spell) => (
                    <li key={spell.from} class="problem"><time>{clock(spell.from)}</time> {texts.map.spell(count(spell.throttled), spell.to - spell.from + 1)}</li>
                ))}
            </ul>
            {moves.length === 0 && owners.length === 0 && throttles.length === 0 && move === null && <p class="hint">{texts.map.noEvents}</p>}
        </section>
    );
}

/* ---- where the bytes are ---- */

const FIGURES = 8; // columns

function Figures({ range, largest }: { range: RangeLayout; largest: number }) {
    return (
        <>
            <td class="number">{count(range.items)}</td>
            <td class="number">{range.logicalPartitions === null ? "" : `${range.logicalPartitionsExact ? "" : "~"}${count(range.logicalPartitions)}`}</td>
            <td class="number">{bytes(range.bytes)}</td><td class="bar-cell"><Bar value={range.bytes} of={largest} /></td>
            <td class="number">{count(range.ru.allotted)}</td><td class="number">{decimal(range.ru.lastSecond)}</td>
            <td class="number">{decimal(range.normalizedConsumption)} %</td>
            <td class={range.throttled.lastMinute > 0 ? "number problem" : "number"}>{count(range.throttled.lastMinute)}</td>
        </>
    );
}

function Partitions({ layout, owners }: { layout: Layout; owners: ContainerOwners }) {
    const largest = Math.max(...layout.ranges.map((range) => range.bytes));
    return (
        <section>
            <h2>{texts.map.physical}</h2>
            <div class="scroll" tabIndex={0} role="region" aria-label={texts.map.physical}>
                <table>
                    <thead>
                        <tr>
                            <th scope="col">{texts.map.partition}</th>{owners.isKnown && <th scope="col">{texts.map.owner}</th>}<th scope="col">{texts.map.hashes}</th>
                            <th scope="col" class="number">{texts.overview.items}</th><th scope="col" class="number">{texts.map.keys}</th>
                            <th scope="col" class="number">{texts.overview.size}</th><th scope="col"><span class="visually-hidden">{texts.map.sizeBar}</span></th>
                            <th scope="col" class="number">{texts.map.allotted}</th><th scope="col" class="number">{texts.map.lastSecond}</th><th scope="col" class="number">{texts.map.peak}</th><th scope="col" class="number">{texts.overview.throttled}</th>
                        </tr>
                    </thead>
                    <tbody>
                        {layout.ranges.map((range) => (
                            <tr key={range.id}>
                                <td>{range.id}</td>{owners.isKnown && <td>{owners.ownerOf(range.space) ?? texts.map.unknown}</td>}<td class="key">{spanText(range)}</td>
                                {layout.missingRanges?.includes(range.id) ? <td colSpan={FIGURES} class="hint">{texts.map.silent}</td> : <Figures range={range} largest={largest} />}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </section>
    );
}

// 'round' changes when the page begins anew.
function Sizes({ db, container, layout, round }: PageProps & { layout: Layout; round: number }) {
    const [rows, setRows] = useState<TopRow[] | null>(null);
    const sizes = useRepeated(async (signal) => setRows(await readLargest(db, container.id, SIZES_SHOWN, signal)), SIZES_PERIOD_MS, `${layout.rid} ${round}`);
    const largest = rows?.[0]?.amount ?? 0;
    return (
        <section>
            <h2>{texts.map.logical}</h2>
            {isNode.value === true && <p class="hint">{texts.map.ownKeys}</p>}
            <Halted {...sizes} isFirst={rows === null} />
            {rows === null ? sizes.failure === null && sizes.trouble === null && <p>{texts.loading}</p> : rows.length === 0 ? <p class="hint">{texts.items.empty}</p> : (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.map.logical}>
                    <table>
                        <thead>
                            <tr>
                                <th scope="col">{texts.map.key}</th><th scope="col">{texts.map.partition}</th><th scope="col" class="number">{texts.overview.items}</th><th scope="col" class="number">{texts.overview.size}</th>
                                <th scope="col"><span class="visually-hidden">{texts.map.sizeBar}</span></th><th scope="col" class="number">{texts.map.share}</th>
                            </tr>
                        </thead>
                        <tbody>
                            {rows.map((row) => (
                                <tr key={row.epk}>
                                    <td class="key">{keyText(row)}</td><td>{layout.ranges.find((range) => row.epk >= range.min && row.epk < range.max)?.id}</td>
                                    <td class="number">{count(row.items ?? 0)}</td><td class="number">{bytes(row.amount)}</td>
                                    <td class="bar-cell"><Bar value={row.amount} of={largest} /></td><td class="number">{decimal(row.share * 100)} %</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </section>
    );
}

/* ---- the map for those who do not see it ---- */

function MapTable({ record, grain }: { record: PartitionRecord; grain: Grain }) {
    const to = record.to(grain);
    const bands = record.bandsIn(grain, to - TABLE_ROWS, to);
    return (
        <div class="scroll map-table" tabIndex={0} role="region" aria-label={texts.map.asTable}>
            <table>
                <thead><tr><th scope="col">{texts.map.time}</th>{bands.map((band) => <th scope="col" key={band.id} class="number">{texts.map.partition} {band.id}</th>)}</tr></thead>
                <tbody>
                    {Array.from({ length: TABLE_ROWS }, (_, i) => to - 1 - i).map((slot) => (
                        <tr key={slot}>
                            <td>{slotText(grain, slot)}</td>
                            {bands.map((band) => {
                                const cell = record.has(grain, band, slot) ? record.cell(grain, band, slot) : undefined;
                                return <td key={band.id} class="number">{cell === undefined ? "" : cell === null ? texts.map.unknown : texts.map.tableCell(decimal(percentOf(cell)), cell.throttled)}</td>;
                            })}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

/* ---- splits and merges on request; another key ---- */

function Trouble({ db, container, layout }: PageProps & { layout: Layout }) {
    const [isAllowed, setAllowed] = useState<boolean | null>(null);
    const [wanted, setWanted] = useState("");
    const ids = layout.ranges.map((range) => range.id);
    const chosen = ids.includes(wanted) ? wanted : ids[0]!;
    const next = ids[ids.indexOf(chosen) + 1];
    const ask = (work: () => Promise<void>): void => attempt(async () => { await work(); tell(texts.map.asked); });
    return (
        <details onToggle={(event) => { if (event.currentTarget.open && isAllowed === null) checkChaos().then(() => setAllowed(true), () => setAllowed(false)); }}>
            <summary>{texts.map.trouble}</summary>
            {isAllowed === false && <p>{texts.map.noTrouble}</p>}
            {isAllowed === true && (
                <div class="buttons">
                    <label>{texts.map.partition} <select value={chosen} onChange={(event) => setWanted(event.currentTarget.value)}>{ids.map((id) => <option key={id} value={id}>{id}</option>)}</select></label>
                    <button onClick={() => ask(() => askSplit(db, container.id, chosen))}>{texts.map.split}</button>
                    <button disabled={next === undefined} onClick={() => ask(() => askMerge(db, container.id, [chosen, next!]))}>{texts.map.merge}</button>
                </div>
            )}
        </details>
    );
}

/* ---- the page ---- */

interface Seen {
    layout: Layout;
    owners: OwnerMark[];
    tick: number;
}

// The changes of owner of one container's partitions, also of those that are gone.
class ContainerOwners {
    marks: OwnerMark[] = [];
    private status: ClusterStatus | null = null; // null: the server is alone, or could not tell yet
    private readonly record = new OwnerRecord();
    private readonly idOf = new Map<number, string>(); // by space

    // 'status' is null if the node could not tell it.
    take(layout: Layout, status: ClusterStatus | null): void {
        for (const { space, id } of layout.ranges)
            this.idOf.set(space, id);
        if (status === null)
            return;
        this.status = status;
        this.record.take(status, layout.time);
        this.marks = this.record.changes.flatMap(({ space, ...change }) => {
            const id = this.idOf.get(space);
            return id === undefined ? [] : [{ id, ...change }];
        });
    }

    get isKnown(): boolean {
        return this.status !== null;
    }

    ownerOf(space: number): string | undefined {
        return this.status?.spaces.find(({ id }) => id === space)?.owner;
    }
}

export function MapPage({ db, container }: PageProps) {
    const [grain, setGrain] = useState<Grain>("second");
    const [seen, setSeen] = useState<Seen | null>(null);
    const [chosen, setChosen] = useState<CellPlace | null>(null);
    const [isTableOpen, setTableOpen] = useState(false);
    const [columns, setColumns] = useState(0);
    const [round, setRound] = useState(0); // how often it was begun anew
    const record = useRef<PartitionRecord | null>(null);
    const owners = useRef(new ContainerOwners());
    const dayAt = useRef(-Infinity); // when the window of a day was last read

    async function readSlots(known: PartitionRecord, of: Grain, layout: Layout, signal: AbortSignal): Promise<void> {
        const from = known.askFrom(of, layout.time);
        const hasOperations = (layout.time - from) / STEP_S[of] * layout.ranges.length <= OPERATIONS_MAX;
        known.takeHistory(of, await readHistory(db, container.id, of, from, hasOperations, signal));
    }

    const live = useRepeated(async (signal) => {
        const layout = await readLayout(db, container.id, signal);
        if (record.current?.rid !== layout.rid) {
            record.current = new PartitionRecord(layout.rid);
            owners.current = new ContainerOwners();
            dayAt.current = -Infinity;
        }
        const known = record.current;
        known.takeLayout(layout);
        const isDayDue = grain === "5min" || performance.now() - dayAt.current > DAY_PERIOD_MS;
        const [events, status] = await Promise.all([
            readEvents(signal),
            // Without its engine a node cannot tell owners; the rest is shown all the same.
            isNode.value === true ? readCluster(signal).catch(() => null) : null,
        ]);
        known.takeMoves(events.moves.filter((row) => row.database === db && row.container === container.id));
        owners.current.take(layout, status);
        if (layout.hasStatistics) {
            // Seconds are always read: they tell what was refused lately.
            await Promise.all([readSlots(known, "second", layout, signal), isDayDue ? readSlots(known, "5min", layout, signal) : null]);
            if (isDayDue)
                dayAt.current = performance.now();
        }
        setSeen((before) => ({ layout, owners: owners.current.marks, tick: (before?.tick ?? 0) + 1 }));
    }, PERIOD_MS, grain);

    function again(): void {
        setRound(round + 1);
        setChosen(null);
        live.again();
    }

    if (seen === null || record.current === null)
        return live.failure === null && live.trouble === null ? <p>{texts.loading}</p> : <Halted {...live} again={again} isFirst />;
    const { layout, tick } = seen;
    const { moves } = record.current;
    const { throughput } = layout;
    const isShown = layout.hasStatistics && record.current.to(grain) > 0;
    return (
        <div class="partitions">
            <div class="buttons">
                <label>{texts.map.window} <select value={grain} onChange={(event) => { setChosen(null); setGrain(event.currentTarget.value as Grain); }}>
                    <option value="second">{texts.map.seconds}</option>
                    <option value="5min">{texts.map.day}</option>
                </select></label>
                <span class="hint">{texts.map.summary(layout.ranges.length, texts.map.throughput(throughput.mode, count(throughput.ru), count(throughput.current ?? 0), throughput.isShared))}</span>
            </div>
            <Halted {...live} again={again} isFirst={false} />
            {!layout.hasStatistics && <p>{texts.map.noStatistics}</p>}
            {isShown && (
                <>
                    <Legend hasOwners={isNode.value === true} />
                    <PartitionMap record={record.current} grain={grain} moves={moves} owners={seen.owners} chosen={chosen} onChoose={setChosen} onColumns={setColumns} tick={tick} />
                    <p class="hint" id="map-keys">{texts.map.keysHint}</p>
                    <p class="visually-hidden" role="status">{chosen === null ? "" : cellText(record.current, grain, chosen)}</p>
                    {chosen !== null && (
                        <CellDetails key={`${grain} ${chosen.id} ${chosen.slot}`} db={db} container={container} record={record.current} grain={grain} place={chosen}
                            range={layout.ranges.find(({ id }) => id === chosen.id)} now={layout.time} onClose={() => setChosen(null)} />
                    )}
                </>
            )}
            <div class="beside">
                {isShown && <section class="use"><h2>{texts.map.series}</h2><Series record={record.current} grain={grain} count={columns} tick={tick} /></section>}
                <Happened moves={moves} owners={seen.owners} throttles={record.current.throttles} move={layout.move} />
            </div>
            <Partitions layout={layout} owners={owners.current} />
            <Sizes db={db} container={container} layout={layout} round={round} />
            {isShown && (
                <details onToggle={(event) => setTableOpen(event.currentTarget.open)}>
                    <summary>{texts.map.asTable}</summary>
                    {isTableOpen && <MapTable record={record.current} grain={grain} />}
                </details>
            )}
            {mayChange.value && <Trouble db={db} container={container} layout={layout} />}
            <Advice db={db} container={container} />
        </div>
    );
}
