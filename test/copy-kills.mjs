// copy-kills.mjs - `orrery copy --swap` under eight writing clients, killed (-9) at random moments and begun again, for
// ROUNDS rounds (30). Nothing may be lost or be there twice, and the name must lead to a container all the time.
import { after, test } from "node:test";

import { campaign } from "./lib/copies.mjs";
import { Random, chooseSeed } from "./lib/random.mjs";
import { startServer } from "./lib/server.mjs";

const ROUNDS = Number(process.env.ROUNDS ?? 30);

test(`${ROUNDS} rounds`, { timeout: 3_600_000 }, async (t) => {
    const server = await startServer(t, { args: ["--durability", process.env.DURABILITY ?? "relaxed"] });
    const random = new Random(chooseSeed());
    const sum = { rounds: 0, operations: 0, probes: 0, killed: 0, refreshed: 0 };
    after(() => console.log(JSON.stringify(sum)));
    for (let round = 0; round < ROUNDS; round++) {
        const result = await campaign({
            server,
            random,
            kills: 1 + random.below(6),
            kill_ms_max: random.pick([60, 250, 1300, 2500]),
            items: random.pick([0, 200, 3000, 12000]),
            throughput: random.pick([400, 30_000]) === 400 ? 1000 : 30_000,
        });
        sum.rounds++;
        for (const name of ["operations", "probes", "killed", "refreshed"]) sum[name] += result[name];
        console.log(JSON.stringify({ round, ...result }));
    }
});
