// settings.tsx - the definition of a container, and its throughput.
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { linter } from "@codemirror/lint";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, pathOf, request, type Json, type JsonObject } from "../api/client";
import { credential, mayChange } from "../api/session";
import { changeOffer, findOffer, throughputOf, type OfferState, type Throughput } from "../api/offers";
import { Difference } from "../parts/difference";
import { Editor } from "../parts/editor";
import { ChangeFields, Group } from "../parts/fields";
import { attempt, tell, tellFailure, useAttempt, wordsOf } from "../parts/notices";
import { count } from "../parts/numbers";
import { ThroughputFields } from "../parts/throughput";
import { timeToLiveBody, TimeToLiveFields, timeToLiveOf } from "../parts/time_to_live";
import { useUnsaved } from "../parts/unsaved";
import { databases, readDatabases, type ContainerDefinition } from "../state";
import { texts } from "../texts";
import { BadPolicy, parsePolicy, refusalOf, type FieldName, type Refusal } from "./new_resource";

const PROGRESS_PERIOD_MS = 1000;

/* ---- the parts of a definition ---- */

// What has fields of its own, what is fixed, and what the server adds. The rest is edited as JSON.
const OWN = ["id", "indexingPolicy", "defaultTtl"];
const FIXED = ["partitionKey", "uniqueKeyPolicy", "conflictResolutionPolicy", "clientEncryptionPolicy"];
const isSystem = (name: string): boolean => name.startsWith("_");

const pick = (from: JsonObject, wanted: (name: string) => boolean): JsonObject =>
    Object.fromEntries(Object.entries(from).filter(([name]) => wanted(name)));
const pretty = (value: Json | undefined): string => JSON.stringify(value ?? {}, null, 2);
const restOf = (definition: JsonObject): JsonObject => pick(definition, (name) => !isSystem(name) && !OWN.includes(name) && !FIXED.includes(name));
const withoutSystem = (definition: JsonObject): JsonObject => pick(definition, (name) => !isSystem(name));

/* ---- the definition ---- */

function DefinitionForm({ path, stored, onStored }: { path: string; stored: ContainerDefinition; onStored: (now: ContainerDefinition) => void }) {
    const [timeToLive, setTimeToLive] = useState(timeToLiveOf(stored["defaultTtl"]));
    const [policy, setPolicy] = useState(pretty(stored["indexingPolicy"]));
    const [rest, setRest] = useState(pretty(restOf(stored)));
    const [refusal, setRefusal] = useState<Refusal | null>(null);
    const [theirs, setTheirs] = useState<ContainerDefinition | null>(null); // another version, found by a conflict
    const [mine, setMine] = useState("");
    const submit = useAttempt();
    const now = JSON.stringify([timeToLive, policy, rest]);
    const [first] = useState(now);
    useUnsaved(now === first && theirs === null ? null : texts.unsaved.settings);
    const lint = useMemo(() => linter(jsonParseLinter()), []);

    // All of it, because what is left out returns to its default.
    function wanted(): JsonObject {
        return {
            ...parsePolicy(rest), ...pick(stored, (name) => name === "id" || FIXED.includes(name)),
            indexingPolicy: parsePolicy(policy), ...timeToLiveBody(timeToLive),
        };
    }

    async function put(body: JsonObject, etag: string): Promise<void> {
        try {
            const answer = await request<ContainerDefinition>("PUT", path, { body, headers: { "if-match": etag } });
            tell(texts.settings.saved);
            onStored(answer.body);
            await readDatabases();
        } catch (error) {
            if (!(error instanceof ApiError) || error.status !== 412)
                return setRefusal(refusalOf(error));
            const now = await request<ContainerDefinition>("GET", path);
            setMine(pretty(body));
            setTheirs(now.body);
        }
    }

    async function save(): Promise<void> {
        if (credential.value?.kind === "token" || !mayChange.value) // Enter in a field sends a form without a button
            return;
        setRefusal(null);
        let body: JsonObject;
        try {
            body = wanted();
        } catch (error) {
            return setRefusal({ field: error instanceof BadPolicy ? "policy" : "form", words: wordsOf(error) });
        }
        await put(body, stored._etag);
    }

    const at = (field: FieldName): string => refusal?.field === field ? refusal.words : "";
    const elsewhere = refusal !== null && !["ttl", "policy"].includes(refusal.field) ? refusal.words : "";
    if (theirs !== null)
        return (
            <>
                <p role="alert" class="problem">{texts.settings.conflict}</p>
                <div class="buttons">
                    <button onClick={() => submit(() => put(parsePolicy(mine), theirs._etag))}>{texts.items.overwrite}</button>
                    <button onClick={() => onStored(theirs)}>{texts.items.takeTheirs}</button>
                </div>
                {refusal !== null && <p role="alert" class="problem">{refusal.words}</p>}
                <Difference key={theirs._etag} before={pretty(withoutSystem(theirs))} after={mine} onChange={setMine} />
            </>
        );
    return (
        <form class="form" aria-label={texts.settings.definition} onSubmit={(event) => { event.preventDefault(); submit(save); }}>
            {credential.value?.kind === "token" ? <p class="hint">{texts.settings.tokenReads}</p> : !mayChange.value ? <p class="hint">{texts.settings.onlyReads}</p>
                : <div class="buttons"><button type="submit" class="primary">{texts.items.save}</button></div>}
            <ChangeFields><TimeToLiveFields value={timeToLive} onChange={setTimeToLive} problem={at("ttl")} /></ChangeFields>
            <Group label={texts.definition.policy} problem={at("policy")}>
                <Editor initial={policy} label={texts.definition.policy} language={json()} more={lint} isTabFree isReadOnly={!mayChange.value} onChange={setPolicy} />
            </Group>
            <Group label={texts.settings.rest} hint={texts.settings.restHint} problem={elsewhere}>
                <Editor class="small" initial={rest} label={texts.settings.rest} language={json()} more={lint} isTabFree isReadOnly={!mayChange.value} onChange={setRest} />
            </Group>
            <Group label={texts.settings.fixed}>
                <Editor class="small" initial={pretty(pick(stored, (name) => FIXED.includes(name)))} label={texts.settings.fixed} language={json()} isReadOnly isTabFree />
            </Group>
        </form>
    );
}

// How far the index has been changed to a new policy, while it is.
function Progress({ path, begun }: { path: string; begun: string }) {
    const [percent, setPercent] = useState<number | null>(null); // null: not known
    useEffect(() => {
        let isOver = false;
        let timer = 0;
        const look = (): void => {
            request("GET", path, { headers: { "x-ms-documentdb-populatequotainfo": "true" } }).then(({ headers }) => {
                const now = Number(headers.get("x-ms-documentdb-collection-index-transformation-progress") ?? 100);
                if (isOver)
                    return;
                setPercent(now);
                if (now < 100)
                    timer = setTimeout(look, PROGRESS_PERIOD_MS);
            }, () => undefined);
        };
        look();
        return () => { isOver = true; clearTimeout(timer); };
    }, [path, begun]);
    return (
        <p role="status">
            {percent === null ? "" : percent < 100 ? <>{texts.settings.progress(percent)} <progress aria-label={texts.settings.progress(percent)} max={100} value={percent} /></> : texts.settings.indexReady}
        </p>
    );
}

/* ---- throughput ---- */

interface Owned extends OfferState { isShared: boolean }

async function readThroughput(db: string, container: ContainerDefinition): Promise<Owned | null> {
    const own = await findOffer(container._rid);
    if (own !== null)
        return { ...own, isShared: false };
    const rid = databases.value?.find(({ id }) => id === db)?._rid ?? "";
    const shared = await findOffer(rid);
    return shared === null ? null : { ...shared, isShared: true };
}

function ThroughputForm({ owned, onChanged }: { owned: Owned; onChanged: () => Promise<void> }) {
    const [wanted, setWanted] = useState<Throughput>(throughputOf(owned.offer));
    const [problem, setProblem] = useState("");
    const offer = useRef(owned.offer);
    const submit = useAttempt();
    async function save(): Promise<void> {
        if (!mayChange.value)
            return;
        try {
            await changeOffer(offer.current, wanted);
        } catch (error) {
            setProblem(wordsOf(error));
            // It may have got another version: by somebody else, or by the first of two requests.
            const now = await findOffer(offer.current.offerResourceId);
            offer.current = now?.offer ?? offer.current;
            return;
        }
        await onChanged();
        tell(texts.settings.throughputSaved); // when the form has what is stored
    }
    return (
        <form class="form" aria-label={texts.settings.throughput} onSubmit={(event) => { event.preventDefault(); submit(save); }}>
            {owned.isShared && <p>{texts.settings.shared}</p>}
            {owned.isPending && <p role="status">{texts.settings.pending}</p>}
            <ChangeFields><ThroughputFields value={wanted} onChange={setWanted} problem={problem} hint={texts.settings.minimum(count(owned.minimum))} /></ChangeFields>
            {mayChange.value && <button type="submit" class="primary">{texts.settings.saveThroughput}</button>}
        </form>
    );
}

function ThroughputSection({ db, container }: { db: string; container: ContainerDefinition }) {
    const [owned, setOwned] = useState<Owned | null | undefined>(undefined); // undefined: not read yet; null: there is none
    const [problem, setProblem] = useState("");
    async function read(): Promise<void> {
        try {
            setOwned(await readThroughput(db, container));
        } catch (error) {
            setProblem(wordsOf(error));
        }
    }
    const isToken = credential.value?.kind === "token";
    useEffect(() => { if (!isToken) attempt(read); }, []);
    if (isToken)
        return <p class="hint">{texts.settings.throughputRefused}</p>;
    if (problem !== "")
        return <p class="problem">{problem}</p>;
    if (owned === undefined)
        return <p>{texts.loading}</p>;
    return owned === null ? <p>{texts.settings.noThroughput}</p> : <ThroughputForm key={owned.offer._etag} owned={owned} onChanged={read} />;
}

/* ---- the page ---- */

export function Settings({ db, container }: { db: string; container: ContainerDefinition }) {
    const path = pathOf("dbs", db, "colls", container.id);
    const [stored, setStored] = useState<ContainerDefinition | null>(null);
    // What the tree has may be old.
    useEffect(() => {
        let isOver = false;
        request<ContainerDefinition>("GET", path).then(
            ({ body }) => { if (!isOver) setStored(body); },
            (error) => { if (!isOver) { setStored(container); tellFailure(error); } });
        return () => { isOver = true; };
    }, [path]);
    if (stored === null)
        return <p>{texts.loading}</p>;
    const keys = container.partitionKey?.paths ?? [];
    return (
        <div class="settings">
            <section>
                <h2>{texts.settings.definition}</h2>
                <p>{texts.key.label}: <code>{keys.join(", ")}</code></p>
                <Progress path={path} begun={stored._etag} />
                <DefinitionForm key={stored._etag} path={path} stored={stored} onStored={setStored} />
            </section>
            <section>
                <h2>{texts.settings.throughput}</h2>
                <ThroughputSection db={db} container={container} />
            </section>
        </div>
    );
}
