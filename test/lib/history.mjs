// history.mjs - what concurrent sessions and followers of the change feed did and saw, in one list.
//
// Everything happens in one process, so one counter orders it: a request has a number from before it was sent
// (`invoked`) and one from after its answer came (`completed`). If one request was completed before another was
// invoked, their order is known; otherwise they ran at the same time. Events are listed as they were completed.
//
//     write    session, key, how ("single", "batch", "procedure"), ops, outcome, status, range, lsn, results
//              ops: { kind, id, v, body, ifMatch }; each has a text `v` of its own, by which its version is known
//              outcome: "done", "refused" (nothing was written), "unknown" (the connection broke); isOpen: and may still
//              be done after that
//              results: for each op { status, item }
//     read     session, key, id, sent, status, item (null if there is none), range, lsn, isCurrent (it must show everything
//              that was acknowledged or seen before, whoever wrote or saw it)
//     look     the same for all items of some keys: how, keys, items, isSnapshot (all in one page)
//     handover from, to: the second session goes on with the tokens of both
//     page     of a change feed: follower, mode ("latest", "all"), scope { key } or { range, min, max }, size, from
//              (an LSN, 0 for the beginning, "*" for now), sent, isCurrent, status, etag, range, lsn, lsnHeader, count,
//              entries
//     drained  follower: has read everything that there is
//     ranges   the list of partition key ranges at some time
//     note     text: something that happened to the server
//
// `sent` is the session token of the request, as pairs of range and LSN; `range` and `lsn` are the answer's.

export class History {
    events = [];
    keys = new Map(); // partition key -> its hash
    #clock = 0;
    #known = new Map();

    now() {
        return ++this.#clock;
    }

    add(event) {
        event.completed ??= this.now();
        event.invoked ??= event.completed;
        this.events.push(event);
        return event;
    }

    note(text) {
        this.add({ type: "note", text });
    }

    /** The same object for the same content: followers are shown the same entries again and again. */
    intern(value) {
        const text = JSON.stringify(value);
        if (!this.#known.has(text)) this.#known.set(text, value);
        return this.#known.get(text);
    }

    /** Which keys are in [min, max) of the hashes. */
    keysIn({ key, min, max }) {
        if (key !== undefined) return [key];
        return [...this.keys].filter(([, epk]) => min <= epk && epk < max).map(([name]) => name);
    }

    /** What happened to a key, or one item of it, around an event, one line each. */
    slice(key, middle, id, { before = 16, after = 4 } = {}) {
        const isTaken = ({ type, to }) => type === "handover" && to === middle.session;
        const chosen = this.events.filter((event) => isAbout(event, key, id) || isTaken(event) || event === middle);
        const at = chosen.indexOf(middle);
        return chosen
            .slice(Math.max(0, at - before), at + 1 + after)
            .map((event) => `    ${event === middle ? ">" : " "} ${describe(event, key, id)}`)
            .join("\n");
    }
}

/** A session token as pairs of range and LSN. */
export function parseToken(text) {
    if (!text) return [];
    return text.split(",").map((entry) => {
        const parts = /^(\d+):-1#(\d+)$/.exec(entry);
        if (!parts) throw new Error(`not a session token: '${text}'`);
        return [parts[1], Number(parts[2])];
    });
}

export const tokenText = (pairs) => pairs.map(([range, lsn]) => `${range}:-1#${lsn}`).join(",");

// --- Entries of a change feed, whatever their form

export const lsnOf = (entry) => entry.metadata?.lsn ?? entry._lsn;
export const isDelete = (entry) => entry.metadata?.operationType === "delete";

/** The item as the entry shows it, without what only a feed adds; {} for a delete. */
export function itemOf(entry) {
    if (entry.metadata) return entry.current;
    const { _lsn, _metadata, ...item } = entry;
    return item;
}

export const keyOf = (entry) => (isDelete(entry) ? entry.metadata.partitionKey?.pk : itemOf(entry)?.pk);
export const idOf = (entry) => (isDelete(entry) ? entry.metadata.id : itemOf(entry)?.id);

// --- Lines

const isEntryOf = (entry, key, id) => keyOf(entry) === key && (id === undefined || idOf(entry) === id);

function isAbout(event, key, id) {
    if (event.type === "note") return true;
    if (event.type === "look") return event.keys.includes(key);
    if (event.type === "page") return event.entries.some((entry) => isEntryOf(entry, key, id));
    if (event.type === "write" && event.key === key) return id === undefined || event.ops.some((op) => op.id === id);
    return event.key === key && (id === undefined || event.id === id);
}

const describeOp = ({ kind, id, v, ifMatch }) => `${kind} ${id} '${v}'${ifMatch ? ` if ${ifMatch}` : ""}`;
const describeItem = (item) => `${item.id} '${item.v}'`;

export function describeEntry(entry) {
    const what = entry.metadata?.operationType ?? "";
    const item = isDelete(entry) ? `${idOf(entry)}` : describeItem(itemOf(entry));
    return `${what} ${item} @${lsnOf(entry)}`.trim();
}

/** The token for the range that answered, and how many more there are. */
function describeSent({ sent = [], range }) {
    if (sent.length === 0) return "";
    const own = sent.filter(([id]) => id === range);
    const others = own.length < sent.length ? `${sent.length - own.length} others` : "";
    return ` with ${[tokenText(own), others].filter(Boolean).join(" and ")}`;
}

/** One line; of a page or a look over several keys only what is about `key`, or one item of it. */
export function describe(event, key = event.key, id = undefined) {
    const when = `${event.invoked}-${event.completed}`;
    const sent = describeSent(event);
    const token = event.lsn === undefined ? "" : `, token ${event.range}:${event.lsn}`;
    if (event.type === "write") {
        const ops = event.ops.map(describeOp).join(", ");
        return `${when} ${event.session} ${event.how} write of '${key}': ${ops}: ${event.outcome} ${event.status ?? ""}${token}`;
    }
    if (event.type === "read") {
        const seen = event.item ? describeItem(event.item) : "nothing";
        return `${when} ${event.session} reads '${key}' ${event.id}${sent}: ${event.status} ${seen}${token}`;
    }
    if (event.type === "look") {
        const seen = event.items.filter((item) => item.pk === key && (id ?? item.id) === item.id).map(describeItem);
        return `${when} ${event.session} ${event.how} of '${key}'${sent}: ${seen.join(", ") || "nothing"}${token}`;
    }
    if (event.type === "page") {
        const scope = event.scope.key ?? `range ${event.scope.range} [${event.scope.min}, ${event.scope.max})`;
        const seen = event.entries.filter((entry) => isEntryOf(entry, key, id)).map(describeEntry);
        const told = `${event.status} up to ${event.etag}${token}: ${seen.join(", ")}`;
        return `${when} ${event.follower} ${event.mode} of ${scope} after ${event.from}${sent}: ${told}`;
    }
    if (event.type === "handover") return `${when} ${event.to} takes over the tokens of ${event.from}`;
    return `${when} ${event.text}`;
}
