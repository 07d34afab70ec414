// advice.tsx - which partition key this container should have: the server's advice, with the keys ranked, and charts of those
// that are compared.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { readAdvice, type Advice as Answer, type AdvisedKey, type IndexPart } from "../api/advice";
import { LimitChart, StorageChart, timesText, VisitChart, WriteChart } from "../parts/advice_charts";
import { count, decimal, percent } from "../parts/numbers";
import type { ContainerDefinition } from "../state";
import { texts } from "../texts";

const SHOWN = 8; // keys, before all are asked for
const QUERIES_SHOWN = 20;

interface AdviceProps {
    db: string;
    container: ContainerDefinition;
}

// For a POSIX shell.
const quoted = (text: string): string => /^[\w./:-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;

const fullText = (key: AdvisedKey): string => key.fullOn === null ? "?" : key.fullOn === "never" ? texts.advice.never : key.fullOn;

function KeyRow({ advised, isChosen, onChoose }: { advised: AdvisedKey; isChosen: boolean; onChoose: () => void }) {
    return (
        <tr class={isChosen ? "chosen" : ""}>
            <td><button class="key" aria-pressed={isChosen} onClick={onChoose}>{advised.key}</button>{advised.current && <span class="hint"> {texts.advice.current}</span>}</td>
            <td class={advised.acceptable ? "" : "problem"}>{advised.acceptable ? texts.advice.yes : texts.advice.no}</td>
            <td class="number">{count(advised.score)}</td>
            <td class="number">{count(advised.values)}</td>
            <td class="number">{percent(advised.largestShare)}</td>
            <td class="number">{timesText(advised.kind === "hierarchical" ? advised.storageSkewAfterSplits : advised.storageSkew)}</td>
            <td class="number">{timesText(advised.writeSkew)}</td>
            <td class="number">{advised.queries === null ? "?" : percent(advised.queries.onePartitionShare)}</td>
            <td class="number">{fullText(advised)}</td>
        </tr>
    );
}

function Keys({ keys, chosen, onChoose }: { keys: AdvisedKey[]; chosen: string; onChoose: (key: string) => void }) {
    const [isAll, setAll] = useState(false);
    const shown = isAll ? keys : keys.filter((key, i) => i < SHOWN || key.current || key.key === chosen);
    const columns = texts.advice.columns;
    return (
        <>
            <div class="scroll" tabIndex={0} role="region" aria-label={texts.advice.keys}>
                <table>
                    <thead><tr>{columns.map((name, i) => <th key={name} class={i > 1 ? "number" : ""}>{name}</th>)}</tr></thead>
                    <tbody>{shown.map((key) => <KeyRow key={key.key} advised={key} isChosen={key.key === chosen} onChoose={() => onChoose(key.key)} />)}</tbody>
                </table>
            </div>
            {shown.length < keys.length && <p><button onClick={() => setAll(true)}>{texts.advice.showAll(keys.length)}</button></p>}
        </>
    );
}

function KeyCard({ advised, queries }: { advised: AdvisedKey; queries: Answer["queries"] }) {
    return (
        <section class="advised" aria-label={texts.advice.card(advised.key)}>
            <h3 class="key">{advised.key} {advised.current && <span class="hint">{texts.advice.current}</span>} {!advised.acceptable && <span class="problem">{texts.advice.notAcceptable}</span>}</h3>
            <StorageChart advised={advised} />
            <WriteChart advised={advised} />
            <VisitChart advised={advised} />
            <LimitChart advised={advised} />
            <ul class="findings">
                {advised.findings.map(({ code, level, text }) => (
                    <li key={code} class={level === "refusal" ? "problem" : ""}><strong>{texts.advice.levels[level]}</strong> {text}</li>
                ))}
                {advised.findings.length === 0 && <li>{texts.advice.nothing}</li>}
            </ul>
            {queries !== null && advised.queries !== null && (
                <details>
                    <summary>{texts.advice.queries}</summary>
                    <div class="scroll" tabIndex={0} role="region" aria-label={texts.advice.queriesOf(advised.key)}>
                        <table>
                            <thead><tr><th>{texts.advice.query}</th><th class="number">{texts.advice.visited}</th></tr></thead>
                            <tbody>
                                {queries.slice(0, QUERIES_SHOWN).map((row, i) => (
                                    <tr key={i}><td><code>{row.query}</code></td><td class="number">{decimal(advised.queries!.visits[i] ?? 0)}</td></tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                </details>
            )}
        </section>
    );
}

const partsText = (parts: IndexPart[]): string => `(${parts.map(({ path, order }) => `${path} ${order === "descending" ? "DESC" : "ASC"}`).join(", ")})`;

function Indexing({ indexing }: { indexing: NonNullable<Answer["indexing"]> }) {
    const lines = [
        ...indexing.composite.map((row) => row.required ? texts.advice.compositeNeeded(partsText(row.index)) : texts.advice.compositeHelps(partsText(row.index), decimal(row.savedRu), count(row.sparedItems))),
        ...indexing.unusedComposite.map((row) => texts.advice.compositeUnused(partsText(row.index), decimal(row.ru))),
        ...indexing.unused.map((row) => texts.advice.pathUnused(row.path, decimal(row.ru))),
    ];
    return (
        <>
            <h3>{texts.advice.indexing}</h3>
            <ul class="findings">{lines.length === 0 ? <li>{texts.advice.nothingToChange}</li> : lines.map((text) => <li key={text}>{text}</li>)}</ul>
        </>
    );
}

function Report({ answer }: { answer: Answer }) {
    const current = answer.keys.find((key) => key.current);
    const [wanted, setWanted] = useState("");
    const chosen = answer.keys.find((key) => key.key === wanted) ?? answer.keys[0];
    const compared = [...new Set([chosen, current])].filter((key) => key !== undefined);
    const { sample, recorded } = answer;
    return (
        <>
            <p role="status"><strong>{answer.conclusion}</strong></p>
            <p class="hint">
                {texts.advice.measured(count(sample.items), count(sample.population), answer.partitions)}
                {" "}{recorded !== null && texts.advice.recorded(count(recorded.executions))}
                {" "}{!answer.allKeys && texts.advice.cutShort}
            </p>
            {chosen !== undefined && (
                <>
                    <Keys keys={answer.keys} chosen={chosen.key} onChoose={setWanted} />
                    <p class="hint">{texts.advice.chooseHint}</p>
                    <div class="advised-keys">{compared.map((key) => <KeyCard key={key.key} advised={key} queries={answer.queries} />)}</div>
                </>
            )}
            {answer.indexing !== null && <Indexing indexing={answer.indexing} />}
        </>
    );
}

// Measures when it is opened, and again when it is asked to.
export function Advice({ db, container }: AdviceProps) {
    const [answer, setAnswer] = useState<Answer | null>(null);
    const [problem, setProblem] = useState("");
    const [growth, setGrowth] = useState("");
    const [running, setRunning] = useState<AbortController | null>(null);
    const begun = useRef(false);
    const latest = useRef<AbortController | null>(null);
    useEffect(() => () => latest.current?.abort(), []); // when the page is left

    async function measure(): Promise<void> {
        const mine = latest.current = new AbortController();
        setRunning(mine);
        setProblem("");
        try {
            setAnswer(await readAdvice(db, container.id, growth === "" ? null : Number(growth), mine.signal));
        } catch (error) {
            setProblem(mine.signal.aborted ? texts.advice.cancelled : error instanceof Error ? error.message : String(error));
        } finally {
            setRunning(null);
        }
    }
    function onToggle(isOpen: boolean): void {
        if (isOpen && !begun.current) {
            begun.current = true;
            void measure();
        }
    }
    // The map beside it is drawn again every second.
    const report = useMemo(() => answer !== null && <Report answer={answer} />, [answer]);
    const command = `orrery advise --endpoint ${quoted(location.origin)} --database ${quoted(db)} --container ${quoted(container.id)}`;
    return (
        <details class="advice" onToggle={(event) => onToggle(event.currentTarget.open)}>
            <summary>{texts.advice.title}</summary>
            <p>{texts.advice.hint(container.partitionKey.paths.join(", "))}</p>
            <form class="buttons" onSubmit={(event) => { event.preventDefault(); if (running === null) void measure(); }}>
                <label>{texts.advice.growth} <input type="number" min={1} max={1e12} step="any" size={10} value={growth} onInput={(event) => setGrowth(event.currentTarget.value)} /></label>
                <button class="primary" disabled={running !== null}>{answer === null ? texts.advice.measure : texts.advice.again}</button>
                {running !== null && (
                    <>
                        <progress aria-label={texts.advice.running} />
                        <button type="button" onClick={() => running.abort()}>{texts.dialog.cancel}</button>
                    </>
                )}
            </form>
            {problem !== "" && <p class="problem" role="alert">{problem}</p>}
            {report}
            <p class="hint">{texts.advice.commandHint}</p>
            <pre class="command" tabIndex={0} role="region" aria-label={texts.advice.command}>{command}</pre>
        </details>
    );
}
