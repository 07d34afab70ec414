// cluster.tsx - the cluster that the server is a node of: nodes, who owns what, how far copies are behind, and what
// has happened.
import { useRef, useState } from "preact/hooks";
import { drain, isNode, readCluster, CATALOG_SPACE, type ClusterNode, type ClusterStatus, type Space } from "../api/cluster";
import { ApiError, request } from "../api/client";
import { readLayout } from "../api/orrery";
import { credential, mayChange } from "../api/session";
import { eventText } from "../parts/cluster_words";
import { Dialog } from "../parts/dialog";
import { Halted } from "../parts/halted";
import { tell, wordsOf } from "../parts/notices";
import { bytes, clock, count, decimal } from "../parts/numbers";
import { OwnerRecord, type OwnerChange } from "../parts/owner_record";
import { useRepeated } from "../parts/repeat";
import { containerLink } from "../route";
import { texts } from "../texts";

const PERIOD_MS = 1000;
const NAMES_PERIOD_MS = 10_000; // how often it is asked again whose partition an unknown space is
const NAMED_CONTAINERS_MAX = 100; // the busiest
const SPACES_SHOWN = 300;
const EVENTS_SHOWN = 100;

interface SpaceName {
    db: string;
    coll: string;
    range: string;
}
type Names = Map<number, SpaceName>;

async function readNames(signal: AbortSignal): Promise<Names> {
    const { body } = await request<{ containers: { database: string; container: string }[] }>("GET", `_orrery/containers?count=${NAMED_CONTAINERS_MAX}`, { signal });
    const names: Names = new Map();
    for (const { database, container } of body.containers) {
        try {
            for (const range of (await readLayout(database, container, signal)).ranges)
                names.set(range.space, { db: database, coll: container, range: range.id });
        } catch (error) {
            if (!(error instanceof ApiError)) // it may have been deleted meanwhile
                throw error;
        }
    }
    return names;
}

function nameOf(names: Names, space: number): string {
    const name = names.get(space);
    return space === CATALOG_SPACE ? texts.cluster.catalogue : name === undefined ? texts.cluster.space(space) : texts.cluster.partition(name.db, name.coll, name.range);
}

/* ---- nodes ---- */

function DrainDialog({ node, isDraining, onClose }: { node: string; isDraining: boolean; onClose: () => void }) {
    const [problem, setProblem] = useState("");
    async function order(): Promise<void> {
        try {
            await drain(node, isDraining);
        } catch (error) {
            return setProblem(wordsOf(error));
        }
        onClose();
        tell(isDraining ? texts.cluster.drained(node) : texts.cluster.undrained(node));
    }
    return (
        <Dialog title={isDraining ? texts.cluster.drainNode(node) : texts.cluster.undrainNode(node)} submit={isDraining ? texts.cluster.drain : texts.cluster.undrain}
            problem={problem} onSubmit={order} onClose={onClose}>
            <p>{isDraining ? texts.cluster.sureDrain(node) : texts.cluster.sureUndrain(node)}</p>
        </Dialog>
    );
}

function Nodes({ status, onDrain }: { status: ClusterStatus; onDrain: (node: ClusterNode) => void }) {
    return (
        <section>
            <h2>{texts.cluster.nodes}</h2>
            <div class="scroll" tabIndex={0} role="region" aria-label={texts.cluster.nodes}>
                <table>
                    <thead>
                        <tr>
                            <th scope="col">{texts.cluster.node}</th><th scope="col">{texts.cluster.state}</th><th scope="col" class="number">{texts.cluster.owned}</th>
                            <th scope="col" class="number">{texts.cluster.copies}</th><th scope="col" class="number">{texts.cluster.behind}</th>
                            <th scope="col" class="number">{texts.cluster.renewed}</th><th scope="col">{texts.cluster.address}</th><th scope="col"><span class="visually-hidden">{texts.cluster.orders}</span></th>
                        </tr>
                    </thead>
                    <tbody>
                        {status.nodes.map((node) => (
                            <tr key={node.name}>
                                <th scope="row">{node.name}{node.name === status.node && <span class="hint"> {texts.cluster.asked}</span>}</th>
                                <td class={node.state === "dead" ? "problem" : ""}>
                                    {texts.cluster.states[node.state] ?? node.state}{node.unreachable !== "" && <span class="problem"> {texts.cluster.cannotReach(node.unreachable)}</span>}
                                </td>
                                <td class="number">{count(node.owned)}</td><td class="number">{count(node.followed)}</td><td class="number">{count(node.lag)}</td>
                                <td class="number">{texts.cluster.ago(decimal(Math.round(node.renewalAgeMs / 100) / 10))}</td>
                                <td class="key">{node.advertise}</td>
                                <td>
                                    {mayChange.value && node.state === "live" && <button aria-label={texts.cluster.drainNode(node.name)} onClick={() => onDrain(node)}>{texts.cluster.drain}</button>}
                                    {mayChange.value && node.state === "draining" && <button aria-label={texts.cluster.undrainNode(node.name)} onClick={() => onDrain(node)}>{texts.cluster.undrain}</button>}
                                </td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </section>
    );
}

/* ---- partitions ---- */

function Copies({ space }: { space: Space }) {
    const copies = space.replicas.filter(({ node }) => node !== space.owner);
    if (copies.length === 0)
        return <span class="problem">{texts.cluster.noCopies}</span>;
    return (
        <ul class="copies">
            {copies.map(({ node, state, applied }) => (
                <li key={node} class={state === "expelled" ? "problem" : ""}>
                    {state === "following" ? texts.cluster.copy(node, count(Math.max(0, space.tail - applied))) : texts.cluster.copyState(node, texts.cluster.copyStates[state] ?? state)}
                </li>
            ))}
        </ul>
    );
}

function Partitions({ status, names }: { status: ClusterStatus; names: Names }) {
    // Those that need somebody come first.
    const rows = [...status.spaces].sort((a, b) => Number(a.ownerLives) - Number(b.ownerLives) || a.id - b.id).slice(0, SPACES_SHOWN);
    return (
        <section>
            <h2>{texts.cluster.partitions}</h2>
            <div class="scroll" tabIndex={0} role="region" aria-label={texts.cluster.partitions}>
                <table>
                    <thead>
                        <tr>
                            <th scope="col">{texts.cluster.partitionOf}</th><th scope="col" class="number">{texts.cluster.number}</th><th scope="col">{texts.cluster.owner}</th>
                            <th scope="col" class="number">{texts.cluster.epoch}</th><th scope="col" class="number">{texts.cluster.tail}</th><th scope="col">{texts.cluster.copiesBehind}</th>
                        </tr>
                    </thead>
                    <tbody>
                        {rows.map((space) => {
                            const name = names.get(space.id);
                            return (
                                <tr key={space.id}>
                                    <td class="key">{name === undefined ? nameOf(names, space.id) : <a href={containerLink(name.db, name.coll, "map")}>{nameOf(names, space.id)}</a>}</td>
                                    <td class="number">{space.id}</td>
                                    <td class={space.ownerLives ? "" : "problem"}>{space.ownerLives ? space.owner : texts.cluster.noOwner(space.owner)}</td>
                                    <td class="number">{space.epoch}</td><td class="number">{count(space.tail)}</td><td><Copies space={space} /></td>
                                </tr>
                            );
                        })}
                    </tbody>
                </table>
            </div>
            {status.spaceCount > rows.length && <p class="hint">{texts.cluster.shown(rows.length, count(status.spaceCount))}</p>}
        </section>
    );
}

/* ---- partitions that are given away ---- */

function Moves({ status, names }: { status: ClusterStatus; names: Names }) {
    return (
        <section aria-label={texts.cluster.moves}>
            <h2>{texts.cluster.moves}</h2>
            <p class="hint">{texts.cluster.movesHint(status.node)}</p>
            {status.moves.length === 0 ? <p>{texts.cluster.noMoves}</p> : (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.cluster.moves}>
                    <table>
                        <thead><tr><th scope="col">{texts.cluster.partitionOf}</th><th scope="col">{texts.cluster.moveTo}</th><th scope="col">{texts.cluster.moveStage}</th><th scope="col">{texts.cluster.moveReason}</th></tr></thead>
                        <tbody>
                            {status.moves.map((move) => (
                                <tr key={move.space}>
                                    <td class="key">{nameOf(names, move.space)}</td><td>{move.to}</td>
                                    <td>{texts.cluster.moveStages[move.stage] ?? move.stage}</td><td>{move.reason}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </section>
    );
}

/* ---- what has happened ---- */

interface Line {
    key: string;
    at: number;
    text: string;
    isProblem: boolean;
}

const PROBLEMS = new Set(["nodeDead", "declaredDead", "cutOff", "clockWrong", "engineLost", "takeFailed", "moveFailed", "seedFailed", "lost", "expelled"]);

// Events of the asked node, and the changes of owners that it had no part in.
function linesOf(status: ClusterStatus, changes: OwnerChange[], names: Names): Line[] {
    const told = status.events.map((event) => ({
        key: `e${event.number}`, at: event.atMs / 1000, isProblem: PROBLEMS.has(event.kind),
        text: eventText(event, event.space === undefined ? "" : nameOf(names, event.space)),
    }));
    const seen = changes.filter(({ reason }) => reason === "").map(({ space, epoch, owner, at }) => ({
        key: `s${space} ${epoch}`, at, isProblem: false, text: texts.cluster.seen(nameOf(names, space), owner),
    }));
    return [...told, ...seen].sort((a, b) => b.at - a.at).slice(0, EVENTS_SHOWN);
}

function Events({ lines, node }: { lines: Line[]; node: string }) {
    return (
        <section>
            <h2>{texts.cluster.events}</h2>
            <p class="hint">{texts.cluster.eventsHint(node)}</p>
            <div class="events" role="log" aria-label={texts.cluster.events} tabIndex={0}>
                <ul>{lines.map((line) => <li key={line.key} class={line.isProblem ? "problem" : ""}><time>{clock(line.at)}</time> {line.text}</li>)}</ul>
            </div>
        </section>
    );
}

/* ---- the page ---- */

interface Seen {
    status: ClusterStatus;
    changes: OwnerChange[];
}

function Status() {
    const [seen, setSeen] = useState<Seen | null>(null);
    const [names, setNames] = useState<Names>(new Map());
    const [asked, setAsked] = useState<ClusterNode | null>(null);
    const record = useRef(new OwnerRecord());
    const namedAt = useRef(-Infinity);
    const state = useRepeated(async (signal) => {
        const status = await readCluster(signal);
        record.current.take(status, Date.now() / 1000);
        setSeen({ status, changes: record.current.changes });
        if (status.spaces.some(({ id }) => id !== CATALOG_SPACE && !names.has(id)) && performance.now() - namedAt.current > NAMES_PERIOD_MS) {
            namedAt.current = performance.now();
            const found = await readNames(signal);
            setNames((before) => new Map([...before, ...found])); // names of what is gone stand in events
        }
    }, PERIOD_MS, "cluster");

    if (seen === null)
        return state.failure === null && state.trouble === null ? <p>{texts.loading}</p> : <Halted {...state} isFirst />;
    const { status, changes } = seen;
    return (
        <>
            <Halted {...state} isFirst={false} />
            <dl class="figures">
                <div><dt>{texts.cluster.engine}</dt><dd>{status.engine === "" ? texts.cluster.engineUnknown : status.engine}</dd></div>
                <div><dt>{texts.cluster.journal}</dt><dd>{bytes(status.journalBytes)}</dd></div>
                <div><dt>{texts.cluster.replicas}</dt><dd>{status.replicasWanted}</dd></div>
                <div><dt>{texts.cluster.lease}</dt><dd class={status.leaseHolds ? "" : "problem"}>{status.leaseHolds ? texts.cluster.holds : texts.cluster.holdsNot}</dd></div>
            </dl>
            <div role="status" aria-label={texts.cluster.warnings}>
                {status.warnings.map((warning) => <p key={warning} class="problem">{texts.cluster.warning(warning)}</p>)}
            </div>
            <Nodes status={status} onDrain={setAsked} />
            <Partitions status={status} names={names} />
            <Moves status={status} names={names} />
            <Events lines={linesOf(status, changes, names)} node={status.node} />
            {asked !== null && <DrainDialog node={asked.name} isDraining={asked.state === "live"} onClose={() => setAsked(null)} />}
        </>
    );
}

export function Cluster() {
    const isToken = credential.value?.kind === "token";
    return (
        <section class="cluster">
            <h1>{texts.cluster.title}</h1>
            {isToken ? <p>{texts.cluster.token}</p> : isNode.value === null ? <p>{texts.loading}</p> : isNode.value ? <Status /> : <p>{texts.cluster.alone}</p>}
        </section>
    );
}
