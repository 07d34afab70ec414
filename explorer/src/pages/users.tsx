// users.tsx - the users of a database, their permissions, and the tokens of these.
import { useEffect, useState } from "preact/hooks";
import { listAll, pathOf, request, type Json, type JsonObject } from "../api/client";
import { Dialog } from "../parts/dialog";
import { ChoiceField, TextField } from "../parts/fields";
import { attempt, tell, wordsOf } from "../parts/notices";
import { databases, parseKey } from "../state";
import { texts } from "../texts";

interface User extends JsonObject { id: string; _rid: string }

interface Permission extends JsonObject {
    id: string;
    _rid: string;
    permissionMode: string;
    resource: string;
    _token: string;
}

const RESOURCES = ["colls", "docs", "sprocs", "triggers", "udfs"] as const;
type ResourceKind = (typeof RESOURCES)[number];

const FIRST_SECONDS = "3600";
const expiryHeader = (seconds: string): Record<string, string> => ({ "x-ms-documentdb-expiry-seconds": seconds });

/* ---- dialogs ---- */

function NewUser({ path, onClose, onMade }: { path: string; onClose: () => void; onMade: (user: User) => void }) {
    const [id, setId] = useState("");
    const [problem, setProblem] = useState("");
    async function create(): Promise<void> {
        try {
            onMade((await request<User>("POST", path, { body: { id } })).body);
        } catch (error) {
            setProblem(wordsOf(error));
        }
    }
    return (
        <Dialog title={texts.users.newUser} submit={texts.dialog.create} onSubmit={create} onClose={onClose}>
            <TextField label={texts.definition.name} value={id} onChange={setId} isRequired problem={problem} />
        </Dialog>
    );
}

function NewPermission({ db, path, onClose, onMade }: { db: string; path: string; onClose: () => void; onMade: (permission: Permission) => void }) {
    const names = databases.value?.find((database) => database.id === db)?.containers.map((container) => container.id) ?? [];
    const [id, setId] = useState("");
    const [mode, setMode] = useState<"Read" | "All">("Read");
    const [coll, setColl] = useState(names[0] ?? "");
    const [kind, setKind] = useState<ResourceKind>("colls");
    const [inner, setInner] = useState("");
    const [key, setKey] = useState("");
    const [seconds, setSeconds] = useState(FIRST_SECONDS);
    const [problem, setProblem] = useState("");

    async function create(): Promise<void> {
        try {
            const resource = kind === "colls" ? pathOf("dbs", db, "colls", coll) : pathOf("dbs", db, "colls", coll, kind, inner);
            const body: JsonObject = { id, permissionMode: mode, resource, ...(key.trim() === "" ? {} : { resourcePartitionKey: parseKey(key) as Json }) };
            onMade((await request<Permission>("POST", path, { body, headers: expiryHeader(seconds) })).body);
        } catch (error) {
            setProblem(wordsOf(error));
        }
    }

    return (
        <Dialog title={texts.users.newPermission} submit={texts.dialog.create} problem={problem} canSubmit={coll !== ""} onSubmit={create} onClose={onClose}>
            {names.length === 0 && <p class="problem">{texts.users.noContainers}</p>}
            <TextField label={texts.definition.name} value={id} onChange={setId} isRequired />
            <ChoiceField label={texts.users.mode} value={mode} choices={[["Read", texts.users.read], ["All", texts.users.all]]} onChange={setMode} />
            <ChoiceField label={texts.overview.container} value={coll} choices={names.map((name) => [name, name] as const)} onChange={setColl} />
            <ChoiceField label={texts.users.on} value={kind} choices={RESOURCES.map((name) => [name, texts.users.resources[name]] as const)} onChange={setKind} />
            {kind !== "colls" && <TextField label={texts.users.inner[kind]} value={inner} onChange={setInner} isRequired />}
            <TextField label={texts.key.label} hint={texts.users.keyHint} value={key} onChange={setKey} />
            <TextField label={texts.users.seconds} type="number" min={10} max={86_400} isRequired value={seconds} onChange={setSeconds} />
        </Dialog>
    );
}

// A token is made anew by every reading of its permission, and good for as long as that asks.
function TokenDialog({ path, first, onClose }: { path: string; first: Permission; onClose: () => void }) {
    const [permission, setPermission] = useState(first);
    const [seconds, setSeconds] = useState(FIRST_SECONDS);
    const [problem, setProblem] = useState("");
    const [isCopied, setCopied] = useState(false);
    async function renew(): Promise<void> {
        try {
            setPermission((await request<Permission>("GET", `${path}/${encodeURIComponent(first.id)}`, { headers: expiryHeader(seconds) })).body);
            setCopied(false);
            setProblem("");
        } catch (error) {
            setProblem(wordsOf(error));
        }
    }
    async function copy(): Promise<void> {
        try {
            await navigator.clipboard.writeText(permission._token);
            setCopied(true);
        } catch {
            setProblem(texts.users.notCopied);
        }
    }
    return (
        <Dialog title={texts.users.tokenOf(first.id)} submit={texts.users.close} isAnswer problem={problem} onSubmit={onClose} onClose={onClose}>
            <TextField label={texts.users.token} hint={texts.users.tokenHint} lines={4} isReadOnly value={permission._token} onChange={() => undefined} />
            <p class="buttons left">
                <button type="button" onClick={() => attempt(copy)}>{texts.users.copy}</button>
                <span role="status">{isCopied ? texts.users.copied : ""}</span>
            </p>
            <TextField label={texts.users.seconds} type="number" min={10} max={86_400} value={seconds} onChange={setSeconds} />
            <p class="buttons left"><button type="button" onClick={() => attempt(renew)}>{texts.users.renew}</button></p>
        </Dialog>
    );
}

/* ---- permissions of a user ---- */

type Shown = { kind: "new" } | { kind: "token"; permission: Permission } | { kind: "delete"; permission: Permission };

function Permissions({ db, user }: { db: string; user: User }) {
    const path = pathOf("dbs", db, "users", user.id, "permissions");
    const [permissions, setPermissions] = useState<Permission[] | null>(null);
    const [shown, setShown] = useState<Shown | null>(null);
    const close = (): void => setShown(null);

    async function read(): Promise<void> {
        try {
            setPermissions(await listAll<Permission>(path));
        } catch (error) {
            setPermissions([]);
            throw error;
        }
    }
    useEffect(() => attempt(read), []);

    async function remove(permission: Permission): Promise<void> {
        close();
        await request("DELETE", `${path}/${encodeURIComponent(permission.id)}`);
        tell(texts.tree.deleted(permission.id));
        await read();
    }

    if (permissions === null)
        return <p>{texts.loading}</p>;
    return (
        <section class="item" aria-label={texts.users.permissionsOf(user.id)}>
            <h2>{texts.users.permissionsOf(user.id)}</h2>
            <div class="buttons"><button onClick={() => setShown({ kind: "new" })}>{texts.users.newPermission}</button></div>
            {permissions.length === 0 ? <p class="hint">{texts.users.noPermissions}</p> : (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.users.permissions}>
                    <table>
                        <thead>
                            <tr><th>{texts.definition.name}</th><th>{texts.users.mode}</th><th>{texts.users.on}</th><th>{texts.key.label}</th><th>{texts.users.actions}</th></tr>
                        </thead>
                        <tbody>
                            {permissions.map((permission) => (
                                <tr key={permission._rid}>
                                    <td>{permission.id}</td><td>{permission.permissionMode}</td><td>{permission.resource}</td>
                                    <td>{permission["resourcePartitionKey"] === undefined ? "" : JSON.stringify(permission["resourcePartitionKey"])}</td>
                                    <td><div class="buttons">
                                        <button aria-label={texts.users.tokenOf(permission.id)} onClick={() => setShown({ kind: "token", permission })}>{texts.users.token}</button>
                                        <button class="danger" aria-label={texts.users.deleteNamed(permission.id)} onClick={() => setShown({ kind: "delete", permission })}>{texts.dialog.delete}</button>
                                    </div></td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            {shown?.kind === "new" && <NewPermission db={db} path={path} onClose={close} onMade={(permission) => { setShown({ kind: "token", permission }); attempt(read); }} />}
            {shown?.kind === "token" && <TokenDialog key={shown.permission._rid} path={path} first={shown.permission} onClose={close} />}
            {shown?.kind === "delete" && (
                <Dialog title={texts.users.surePermission(shown.permission.id)} submit={texts.dialog.delete} isDangerous
                    onSubmit={() => remove(shown.permission)} onClose={close} />
            )}
        </section>
    );
}

/* ---- the page ---- */

export function Users({ db }: { db: string }) {
    const path = pathOf("dbs", db, "users");
    const [users, setUsers] = useState<User[] | null>(null);
    const [open, setOpen] = useState<User | null>(null);
    const [isMaking, setMaking] = useState(false);
    const [isDeleting, setDeleting] = useState(false);

    async function read(): Promise<void> {
        try {
            setUsers(await listAll<User>(path));
        } catch (error) {
            setUsers([]);
            throw error;
        }
    }
    useEffect(() => attempt(read), []);

    async function remove(user: User): Promise<void> {
        setDeleting(false);
        await request("DELETE", `${path}/${encodeURIComponent(user.id)}`);
        tell(texts.tree.deleted(user.id));
        setOpen(null);
        await read();
    }

    if (users === null)
        return <p>{texts.loading}</p>;
    return (
        <section class="container">
            <h1>{texts.users.title(db)}</h1>
            <p class="hint">{texts.users.what}</p>
            <div class="items">
                <div class="items-list">
                    <div class="buttons">
                        <button onClick={() => setMaking(true)}>{texts.users.newUser}</button>
                        {open !== null && <button class="danger" onClick={() => setDeleting(true)}>{texts.users.deleteUser}</button>}
                    </div>
                    {users.length === 0 && <p class="hint">{texts.users.none}</p>}
                    <ul class="scroll">
                        {users.map((user) => (
                            <li key={user._rid}>
                                <button class={open?._rid === user._rid ? "row chosen" : "row"} aria-pressed={open?._rid === user._rid} onClick={() => setOpen(user)}>{user.id}</button>
                            </li>
                        ))}
                    </ul>
                </div>
                {open === null ? <p class="hint item">{texts.users.choose}</p> : <Permissions key={open._rid} db={db} user={open} />}
            </div>
            {isMaking && <NewUser path={path} onClose={() => setMaking(false)} onMade={(user) => { setMaking(false); setOpen(user); attempt(read); }} />}
            {isDeleting && open !== null && (
                <Dialog title={texts.users.sureUser(open.id)} submit={texts.dialog.delete} isDangerous
                    onSubmit={() => remove(open)} onClose={() => setDeleting(false)} />
            )}
        </section>
    );
}
