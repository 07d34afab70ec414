// users.tsx - the users of a database, their permissions, and the tokens of these.
import { useEffect, useState } from "preact/hooks";
import { listAll, pathOf, request, type Json, type JsonObject } from "../api/client";
import { mayChange } from "../api/session";
import { Dialog } from "../parts/dialog";
import { ChoiceField, TextField } from "../parts/fields";
import { attempt, tell, wordsOf } from "../parts/notices";
import { databases, parseKey } from "../state";
import { texts } from "../texts";

interface User extends JsonObject { id: string; _rid: string; _etag: string }

interface Permission extends JsonObject {
    id: string;
    _rid: string;
    _etag: string;
    permissionMode: string;
    resource: string;
    _token: string;
}

const RESOURCES = ["colls", "docs", "sprocs", "triggers", "udfs"] as const;
type ResourceKind = (typeof RESOURCES)[number];

const FIRST_SECONDS = "3600";
const expiryHeader = (seconds: string): Record<string, string> => ({ "x-ms-documentdb-expiry-seconds": seconds });

/* ---- dialogs ---- */

// Makes or replaces what a dialog is about; a change of somebody else in between is refused.
async function store<T>(path: string, first: { id: string; _etag: string } | null, body: JsonObject, headers: Record<string, string> = {}): Promise<T> {
    const { body: stored } = first === null ? await request<T>("POST", path, { body, headers })
        : await request<T>("PUT", `${path}/${encodeURIComponent(first.id)}`, { body, headers: { ...headers, "if-match": first._etag } });
    return stored;
}

function UserDialog({ path, first, onClose, onStored }: { path: string; first: User | null; onClose: () => void; onStored: (user: User) => void }) {
    const [id, setId] = useState(first?.id ?? "");
    const [problem, setProblem] = useState("");
    async function save(): Promise<void> {
        try {
            onStored(await store<User>(path, first, { id }));
        } catch (error) {
            setProblem(wordsOf(error));
        }
    }
    return (
        <Dialog title={first === null ? texts.users.newUser : texts.users.renameUser} submit={first === null ? texts.dialog.create : texts.dialog.save} onSubmit={save} onClose={onClose}>
            <TextField label={texts.definition.name} value={id} onChange={setId} isRequired problem={problem} />
        </Dialog>
    );
}

// What a permission opens, as the fields of its dialog have it.
interface Target { coll: string; kind: ResourceKind; inner: string }

const resourceOf = (db: string, { coll, kind, inner }: Target): string =>
    kind === "colls" ? pathOf("dbs", db, "colls", coll) : pathOf("dbs", db, "colls", coll, kind, inner);

function targetOf(resource: string): Target {
    const [, , , coll, kind, inner] = resource.replace(/^\//, "").split("/").map((part) => decodedPart(part));
    return { coll: coll ?? "", kind: RESOURCES.find((known) => known === kind) ?? "colls", inner: inner ?? "" };
}

function decodedPart(part: string): string {
    try {
        return decodeURIComponent(part);
    } catch {
        return part; // made by a program that does not encode
    }
}

function PermissionDialog({ db, path, first, onClose, onStored }: {
    db: string; path: string; first: Permission | null; onClose: () => void; onStored: (permission: Permission) => void;
}) {
    const names = databases.value?.find((database) => database.id === db)?.containers.map((container) => container.id) ?? [];
    const before: Target = first === null ? { coll: names[0] ?? "", kind: "colls", inner: "" } : targetOf(first.resource);
    const [id, setId] = useState(first?.id ?? "");
    const [mode, setMode] = useState<string>(first?.permissionMode ?? "Read");
    const [coll, setColl] = useState(before.coll);
    const [kind, setKind] = useState<ResourceKind>(before.kind);
    const [inner, setInner] = useState(before.inner);
    const [key, setKey] = useState(first?.["resourcePartitionKey"] === undefined ? "" : JSON.stringify(first["resourcePartitionKey"]));
    const [seconds, setSeconds] = useState(FIRST_SECONDS);
    const [problem, setProblem] = useState("");

    async function save(): Promise<void> {
        try {
            const wanted = resourceOf(db, { coll, kind, inner });
            const resource = first !== null && wanted === resourceOf(db, before) ? first.resource : wanted; // which may be one of resource ids
            const body: JsonObject = { id, permissionMode: mode, resource, ...(key.trim() === "" ? {} : { resourcePartitionKey: parseKey(key) as Json }) };
            onStored(await store<Permission>(path, first, body, expiryHeader(seconds)));
        } catch (error) {
            setProblem(wordsOf(error));
        }
    }

    return (
        <Dialog title={first === null ? texts.users.newPermission : texts.users.editNamed(first.id)} submit={first === null ? texts.dialog.create : texts.dialog.save}
            problem={problem} canSubmit={coll !== ""} onSubmit={save} onClose={onClose}>
            {coll === "" && <p class="problem">{texts.users.noContainers}</p>}
            <TextField label={texts.definition.name} value={id} onChange={setId} isRequired />
            <ChoiceField label={texts.users.mode} value={mode} choices={[["Read", texts.users.read], ["All", texts.users.all]] as const} onChange={setMode} />
            <ChoiceField label={texts.overview.container} value={coll} choices={[...new Set([...names, ...coll === "" ? [] : [coll]])].map((name) => [name, name] as const)} onChange={setColl} />
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

type Shown = { kind: "new" } | { kind: "edit"; permission: Permission } | { kind: "token"; permission: Permission } | { kind: "delete"; permission: Permission };

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
    useEffect(() => { if (mayChange.value) attempt(read); }, []);

    async function remove(permission: Permission): Promise<void> {
        close();
        await request("DELETE", `${path}/${encodeURIComponent(permission.id)}`);
        tell(texts.tree.deleted(permission.id));
        await read();
    }

    if (!mayChange.value)
        return <p class="item hint">{texts.users.notShown}</p>;
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
                                        <button aria-label={texts.users.editNamed(permission.id)} onClick={() => setShown({ kind: "edit", permission })}>{texts.users.edit}</button>
                                        <button class="danger" aria-label={texts.users.deleteNamed(permission.id)} onClick={() => setShown({ kind: "delete", permission })}>{texts.dialog.delete}</button>
                                    </div></td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            {shown?.kind === "new" && <PermissionDialog db={db} path={path} first={null} onClose={close} onStored={(permission) => { setShown({ kind: "token", permission }); attempt(read); }} />}
            {shown?.kind === "edit" && (
                <PermissionDialog key={shown.permission._rid} db={db} path={path} first={shown.permission}
                    onClose={() => { close(); attempt(read); }} // somebody else may have changed it
                    onStored={({ id }) => { close(); tell(texts.users.changed(id)); attempt(read); }} />
            )}
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
    const [edited, setEdited] = useState<User | "new" | null>(null);
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

    function stored(user: User): void {
        if (edited !== "new")
            tell(texts.users.renamed(user.id));
        setEdited(null);
        setOpen(user);
        attempt(read);
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
                        {mayChange.value && <button onClick={() => setEdited("new")}>{texts.users.newUser}</button>}
                        {mayChange.value && open !== null && <button onClick={() => setEdited(open)}>{texts.users.renameUser}</button>}
                        {mayChange.value && open !== null && <button class="danger" onClick={() => setDeleting(true)}>{texts.users.deleteUser}</button>}
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
                {open === null ? <p class="hint item">{texts.users.choose}</p> : <Permissions key={`${open._rid}/${open.id}`} db={db} user={open} />}
            </div>
            {edited !== null && <UserDialog path={path} first={edited === "new" ? null : edited} onClose={() => { setEdited(null); attempt(read); }} onStored={stored} />}
            {isDeleting && open !== null && (
                <Dialog title={texts.users.sureUser(open.id)} submit={texts.dialog.delete} isDangerous
                    onSubmit={() => remove(open)} onClose={() => setDeleting(false)} />
            )}
        </section>
    );
}
