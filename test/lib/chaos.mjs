// chaos.mjs - asking a server that was started with --enable-chaos for trouble.
import assert from "node:assert/strict";

import { pathOf, until } from "./items.mjs";
import { call } from "./wire.mjs";

export const CHAOS = ["--durability", "relaxed", "--enable-chaos", "--merge", "always"];

/** A request under /_orrery/chaos, signed as what it is about. */
export function askChaos(server, container, what, body, { method = "POST", ...rest } = {}) {
    const path = container === undefined ? "" : `${pathOf(container)}/${what}`;
    return call(server, {
        method,
        path: `/_orrery/chaos${path}`,
        type: container === undefined ? "" : "colls",
        link: container === undefined ? "" : pathOf(container).slice(1),
        body,
        ...rest,
    });
}

/** Arms a rule, or orders a split or a merge; what the server says to it. */
export async function cause(server, container, what, body) {
    const answer = await askChaos(server, container, what, body);
    assert.ok(answer.status === 201 || answer.status === 202, answer.text);
    return answer.json;
}

export const clearChaos = (server) => askChaos(server, undefined, "", undefined, { method: "DELETE" });

export async function eventsOf(server) {
    const answer = await call(server, { path: "/_orrery/events", type: "", link: "" });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

/** Waits until the move with this number is over; it must have ended well. */
export function moved(server, event) {
    return until(
        async () => {
            const { moves } = await eventsOf(server);
            const move = moves.find((one) => one.event === event);
            assert.notEqual(move?.stage, "failed", move?.message);
            return move?.stage === "done" && move; // of several nodes one knows of it
        },
        { timeout_ms: 60_000 },
    );
}
