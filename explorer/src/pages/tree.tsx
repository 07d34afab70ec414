// tree.tsx - databases and containers, beside the page, and what makes and deletes them.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isNode } from "../api/cluster";
import { pathOf, request } from "../api/client";
import { credential, mayChange } from "../api/session";
import { Dialog } from "../parts/dialog";
import { TextField } from "../parts/fields";
import { attempt, tell, wordsOf } from "../parts/notices";
import { bytes, count } from "../parts/numbers";
import { useRepeated } from "../parts/repeat";
import { CLUSTER_LINK, containerLink, go, route, usersLink } from "../route";
import { databases, keyValuesHeader, openContainer, parseKey, readDatabases, type Database } from "../state";
import { texts } from "../texts";
import { DatabaseThroughput } from "./database_throughput";
import { NewContainer, NewDatabase } from "./new_resource";

const SIZES_PERIOD_MS = 15_000;

interface Sizes { database: string; container: string; items: number; bytes: number }
type SizesByName = Map<string, Sizes>; // by "database/container"; neither has a slash

function isCurrent(db: string, coll: string): boolean {
    const at = route.value;
    return at.page === "container" && at.db === db && at.coll === coll;
}

// What the containers hold, looked up now and then; without it the tree shows names only.
function useSizes(): SizesByName {
    const [sizes, setSizes] = useState<SizesByName>(new Map());
    const names = (databases.value ?? []).flatMap(({ id, containers }) => containers.map((container) => `${id}/${container.id}`));
    useRepeated(async (signal) => {
        const answer = await request<{ containers: Sizes[] }>("GET", "_orrery/containers", { signal }).catch(() => null); // next time
        if (answer !== null)
            setSizes(new Map(answer.body.containers.map((row) => [`${row.database}/${row.container}`, row])));
    }, SIZES_PERIOD_MS, names.join("\n"), credential.value?.kind !== "token");
    return sizes;
}

// How many containers a database has, and how large they are together if that is known of all.
function totalWords({ id, containers }: Database, sizes: SizesByName): string {
    const found = containers.flatMap((container) => sizes.get(`${id}/${container.id}`) ?? []);
    const sum = found.reduce((all, size) => all + size.bytes, 0);
    return texts.tree.total(containers.length, found.length < containers.length || found.length === 0 ? "" : bytes(sum));
}

// The name must be typed: what is deleted here is gone with everything in it.
function DeleteDialog({ db, coll, onClose }: { db: string; coll: string | null; onClose: () => void }) {
    const [typed, setTyped] = useState("");
    const [problem, setProblem] = useState("");
    const name = coll ?? db;
    async function remove(): Promise<void> {
        try {
            await request("DELETE", coll === null ? pathOf("dbs", db) : pathOf("dbs", db, "colls", coll));
        } catch (error) {
            return setProblem(wordsOf(error));
        }
        onClose();
        tell(texts.tree.deleted(name));
        const at = route.value;
        if ((at.page === "users" || at.page === "container") && at.db === db && (coll === null || (at.page === "container" && at.coll === coll)))
            go("#/");
        attempt(readDatabases);
    }
    return (
        <Dialog title={coll === null ? texts.tree.deleteDatabase : texts.tree.deleteContainer} submit={texts.dialog.delete} isDangerous
            canSubmit={typed === name} problem={problem} onSubmit={remove} onClose={onClose}>
            <p>{coll === null ? texts.tree.sureDatabase(db) : texts.tree.sureContainer(coll)}</p>
            <TextField label={texts.tree.typeName(name)} value={typed} onChange={setTyped} />
        </Dialog>
    );
}

// What a token is for is not in it, so its user says it.
function OpenContainer() {
    const [db, setDb] = useState("");
    const [coll, setColl] = useState("");
    const [key, setKey] = useState("");
    async function open(): Promise<void> {
        await openContainer({ db, coll, key: key.trim() === "" ? "" : keyValuesHeader(parseKey(key))["x-ms-documentdb-partitionkey"]! });
        go(containerLink(db, coll));
    }
    return (
        <form class="form" aria-label={texts.tree.open} onSubmit={(event) => { event.preventDefault(); attempt(open); }}>
            <p class="hint">{texts.tree.openHint}</p>
            <TextField label={texts.overview.database} value={db} onChange={setDb} isRequired />
            <TextField label={texts.overview.container} value={coll} onChange={setColl} isRequired />
            <TextField label={texts.key.label} hint={texts.tree.openKeyHint} value={key} onChange={setKey} />
            <button type="submit" class="primary">{texts.tree.open}</button>
        </form>
    );
}

function More({ label, children }: { label: string; children: ComponentChildren }) {
    return (
        <details class="more">
            <summary aria-label={label} title={label}>...</summary>
            {children}
        </details>
    );
}

type Shown = { kind: "throughput"; db: string; rid: string } | { kind: "database" } | { kind: "container" } | { kind: "delete"; db: string; coll: string | null };

export function Tree() {
    const sizes = useSizes();
    const [shown, setShown] = useState<Shown | null>(null);
    const close = (): void => setShown(null);
    const isToken = credential.value?.kind === "token";
    const isOffered = !isToken && mayChange.value; // to make and to delete
    return (
        <nav class="tree" aria-label={texts.tree.label}>
            <div class="buttons">
                {isOffered && <button onClick={() => setShown({ kind: "database" })}>{texts.tree.newDatabase}</button>}
                {isOffered && (databases.value ?? []).length > 0 && <button onClick={() => setShown({ kind: "container" })}>{texts.tree.newContainer}</button>}
                <button onClick={() => attempt(readDatabases)}>{texts.tree.refresh}</button>
            </div>
            <p><a href="#/" aria-current={route.value.page === "overview" ? "page" : undefined}>{texts.overview.title}</a></p>
            {isNode.value === true && <p><a href={CLUSTER_LINK} aria-current={route.value.page === "cluster" ? "page" : undefined}>{texts.cluster.title}</a></p>}
            {isToken && ((databases.value ?? []).length === 0 ? <OpenContainer /> : <details><summary>{texts.tree.openAnother}</summary><OpenContainer /></details>)}
            {databases.value === null && <p>{texts.loading}</p>}
            {databases.value?.length === 0 && !isToken && <p class="hint">{texts.tree.empty}</p>}
            <ul>
                {databases.value?.map((database) => (
                    <li key={database.id}>
                        <div class="line">
                            <span class="database">{database.id}</span>
                            {!isToken && (
                                <More label={texts.tree.more(database.id)}>
                                    <button onClick={() => setShown({ kind: "throughput", db: database.id, rid: database._rid })}>{texts.tree.throughput}</button>
                                    {isOffered && <button class="danger" onClick={() => setShown({ kind: "delete", db: database.id, coll: null })}>{texts.tree.deleteDatabase}</button>}
                                </More>
                            )}
                        </div>
                        {!isToken && <div class="hint size">{totalWords(database, sizes)}</div>}
                        <ul>
                            {database.containers.map((container) => {
                                const size = sizes.get(`${database.id}/${container.id}`);
                                return (
                                    <li key={container.id}>
                                        <div class="line">
                                            <a href={containerLink(database.id, container.id)} aria-current={isCurrent(database.id, container.id) ? "page" : undefined}>
                                                {container.id}
                                            </a>
                                            {isOffered && (
                                                <More label={texts.tree.more(container.id)}>
                                                    <button class="danger" onClick={() => setShown({ kind: "delete", db: database.id, coll: container.id })}>{texts.tree.deleteContainer}</button>
                                                </More>
                                            )}
                                        </div>
                                        {size !== undefined && <div class="hint size">{texts.tree.size(count(size.items), bytes(size.bytes), size.items)}</div>}
                                    </li>
                                );
                            })}
                            {!isToken && (
                                <li>
                                    <a class="hint" href={usersLink(database.id)} aria-current={route.value.page === "users" && route.value.db === database.id ? "page" : undefined}
                                        aria-label={texts.tree.usersOf(database.id)}>{texts.tree.users}</a>
                                </li>
                            )}
                        </ul>
                    </li>
                ))}
            </ul>
            {shown?.kind === "database" && <NewDatabase onClose={close} />}
            {shown?.kind === "container" && <NewContainer onClose={close} />}
            {shown?.kind === "throughput" && <DatabaseThroughput db={shown.db} rid={shown.rid} onClose={close} />}
            {shown?.kind === "delete" && <DeleteDialog db={shown.db} coll={shown.coll} onClose={close} />}
        </nav>
    );
}
