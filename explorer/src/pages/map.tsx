// map.tsx - the physical partitions of a container, live: the map, what is in a cell, the use of the whole container,
// what has happened, and where the bytes are.
import { useRef, useState } from "preact/hooks";
import { isNode, readCluster, type ClusterStatus } from "../api/cluster";
import {
    askMerge, askSplit, checkChaos, keyText, readEvents, readHistory, readLayout, readQueries, readTop, STEP_S, TOP_S,
    type Grain, type Layout, type Move, type RangeLayout, type RecordedQuery, type Throttle, type TopRow,
} from "../api/orrery";
import { percentOf } from "../parts/heat";
import { attempt, tell } from "../parts/notices";
import { bytes, clock, count, decimal } from "../parts/numbers";
import { OwnerRecord } from "../parts/owner_record";
import { bandOf, Legend, PartitionMap, type CellPlace, type OwnerMark } from "../parts/partition_map";
import { PartitionRecord, type Band } from "../parts/partition_record";
import { useRepeated } from "../parts/repeat";
import { Series } from "../parts/series";
import type { ContainerDefinition } from "../state";
import { texts } from "../texts";
import { Advice } from "./advice";

const PERIOD_MS = 1000;
const OTHER_PERIOD_MS = 60_000; // of the window that is not shown, so that a split does not take it away
const TOP_PERIOD_MS = 5000;
const SIZES_PERIOD_MS = 15_000;
const TOP_KEYS = 100; // of the container, to find those of one partition
const KEYS_SHOWN = 10;
const QUERIES_SHOWN = 10;
const SIZES_SHOWN = 15;
const MOVES_SHOWN = 30;
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

const within = (row: TopRow, band: Band): boolean => row.epk >= band.min && row.epk < band.max;

// 'now' is the server's time.
function CellDetails({ db, container, record, grain, place, range, now, onClose }: PageProps & {
    record: PartitionRecord; grain: Grain; place: CellPlace; range: RangeLayout | undefined; now: number; onClose: () => void;
}) {
    const from = place.slot * STEP_S[grain];
    const to = from + STEP_S[grain];
    const hasKeys = to > now - TOP_S; // those of now would be wrong for an older cell
    const [keys, setKeys] = useState<{ byRu: TopRow[]; byThrottled: TopRow[] } | null>(null);
    const [queries, setQueries] = useState<RecordedQuery[] | null>(null);
    useRepeated(async (signal) => {
        const top = (by: "ru" | "throttled"): Promise<TopRow[]> => hasKeys ? readTop(db, container.id, by, TOP_KEYS, signal) : Promise.resolve([]);
        const [byRu, byThrottled, recorded] = await Promise.all([top("ru"), top("throttled"), readQueries(db, container.id, signal)]);
        setKeys({ byRu, byThrottled });
        setQueries(recorded);
    }, TOP_PERIOD_MS, hasKeys ? "top" : "old");
    const band = bandOf(record, place.id);
    if (band === undefined)
        return null;
    const cell = record.cell(grain, band, place.slot);
    const throttled = new Map(keys?.byThrottled.map((row) => [row.epk, row.amount] as const));
    const rows = hasKeys ? keys?.byRu.filter((row) => within(row, band)) ?? [] : [];
    // A key may have been refused so often that it used little.
    const refusedOnly = hasKeys ? keys?.byThrottled.filter((row) => within(row, band) && !rows.some(({ epk }) => epk === row.epk)) ?? [] : [];
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
            <h3>{texts.map.topKeys}</h3>
            {hasKeys && isNode.value === true && <p class="hint">{texts.map.ownKeys}</p>}
            {!hasKeys && <p>{texts.map.keysTooOld}</p>}
            {hasKeys && keys !== null && rows.length + refusedOnly.length === 0 && <p>{texts.map.noKeys}</p>}
            {rows.length + refusedOnly.length > 0 && (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.map.topKeys}>
                    <table>
                        <thead><tr><th scope="col">{texts.map.key}</th><th scope="col" class="number">{texts.map.ru}</th><th scope="col" class="number">{texts.map.share}</th><th scope="col" class="number">{texts.map.throttled}</th></tr></thead>
                        <tbody>
                            {[...rows, ...refusedOnly].slice(0, KEYS_SHOWN).map((row) => (
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
        <section aria-label={texts.map.events}>
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
                {spells(throttles).map((spell) => (
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

function Sizes({ db, container, layout }: PageProps & { layout: Layout }) {
    const [rows, setRows] = useState<TopRow[] | null>(null);
    useRepeated(async (signal) => setRows(await readTop(db, container.id, "size", SIZES_SHOWN, signal)), SIZES_PERIOD_MS, "sizes");
    const largest = rows?.[0]?.amount ?? 0;
    return (
        <section>
            <h2>{texts.map.logical}</h2>
            {isNode.value === true && <p class="hint">{texts.map.ownKeys}</p>}
            {rows === null ? <p>{texts.loading}</p> : rows.length === 0 ? <p class="hint">{texts.items.empty}</p> : (
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
    moves: Move[];
    owners: OwnerMark[];
    throttles: Throttle[];
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
    const record = useRef<PartitionRecord | null>(null);
    const owners = useRef(new ContainerOwners());
    const otherAt = useRef(-Infinity); // when the other window was last read

    const { failure, again } = useRepeated(async (signal) => {
        const layout = await readLayout(db, container.id, signal);
        if (record.current?.rid !== layout.rid) {
            record.current = new PartitionRecord(layout.rid);
            owners.current = new ContainerOwners();
            otherAt.current = -Infinity;
        }
        const known = record.current;
        known.takeLayout(layout);
        const [events, history, status] = await Promise.all([
            readEvents(signal),
            layout.hasStatistics ? readHistory(db, container.id, grain, known.askFrom(grain, layout.time), signal) : null,
            // Without its engine a node cannot tell owners; the rest is shown all the same.
            isNode.value === true ? readCluster(signal).catch(() => null) : null,
        ]);
        const isHere = (row: { database: string; container: string }): boolean => row.database === db && row.container === container.id;
        const moves = events.moves.filter(isHere);
        known.takeMoves(moves);
        owners.current.take(layout, status);
        if (history !== null)
            known.takeHistory(grain, history);
        if (layout.hasStatistics && performance.now() - otherAt.current > OTHER_PERIOD_MS) {
            otherAt.current = performance.now();
            const other = grain === "second" ? "5min" : "second";
            known.takeHistory(other, await readHistory(db, container.id, other, known.askFrom(other, layout.time), signal));
        }
        setSeen((before) => ({ layout, moves, owners: owners.current.marks, throttles: events.throttles.filter(isHere), tick: (before?.tick ?? 0) + 1 }));
    }, PERIOD_MS, grain);

    if (seen === null || record.current === null)
        return failure === null ? <p>{texts.loading}</p> : <p class="problem">{failure} <button onClick={again}>{texts.map.again}</button></p>;
    const { layout, moves, throttles, tick } = seen;
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
                {failure !== null && <span class="problem" role="alert">{texts.map.stopped} <button onClick={again}>{texts.map.again}</button></span>}
            </div>
            {!layout.hasStatistics && <p>{texts.map.noStatistics}</p>}
            {isShown && (
                <>
                    <Legend hasOwners={isNode.value === true} />
                    <PartitionMap record={record.current} grain={grain} moves={moves} owners={seen.owners} chosen={chosen} onChoose={setChosen} onColumns={setColumns} tick={tick} />
                    <p class="hint" id="map-keys">{texts.map.keysHint}</p>
                    <p class="visually-hidden" role="status">{chosen === null ? "" : cellText(record.current, grain, chosen)}</p>
                    {chosen !== null && (
                        <CellDetails db={db} container={container} record={record.current} grain={grain} place={chosen}
                            range={layout.ranges.find(({ id }) => id === chosen.id)} now={layout.time} onClose={() => setChosen(null)} />
                    )}
                </>
            )}
            <div class="beside">
                {isShown && <section class="use"><h2>{texts.map.series}</h2><Series record={record.current} grain={grain} count={columns} tick={tick} /></section>}
                <Happened moves={moves} owners={seen.owners} throttles={throttles} move={layout.move} />
            </div>
            <Partitions layout={layout} owners={owners.current} />
            <Sizes db={db} container={container} layout={layout} />
            {isShown && (
                <details onToggle={(event) => setTableOpen(event.currentTarget.open)}>
                    <summary>{texts.map.asTable}</summary>
                    {isTableOpen && <MapTable record={record.current} grain={grain} />}
                </details>
            )}
            <Trouble db={db} container={container} layout={layout} />
            <Advice db={db} container={container} />
        </div>
    );
}
