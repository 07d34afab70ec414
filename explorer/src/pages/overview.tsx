// overview.tsx - all containers with what they hold and use, the busiest first.
import { useState } from "preact/hooks";
import { request } from "../api/client";
import { credential } from "../api/session";
import { bytes, count } from "../parts/numbers";
import { wordsOf } from "../parts/notices";
import { useRepeated } from "../parts/repeat";
import { containerLink } from "../route";
import { texts } from "../texts";

const PERIOD_MS = 2000;

interface ContainerRow {
    database: string;
    container: string;
    physicalPartitions: number;
    items: number;
    bytes: number;
    ru: { lastMinute: number };
    throttled: { lastMinute: number };
}

export function Overview() {
    const [rows, setRows] = useState<ContainerRow[] | null>(null);
    const [trouble, setTrouble] = useState(""); // of the last time
    const isToken = credential.value?.kind === "token";
    useRepeated(async (signal) => {
        try {
            const { body } = await request<{ containers: ContainerRow[] }>("GET", "_orrery/containers", { signal });
            setRows(body.containers);
            setTrouble("");
        } catch (error) {
            setTrouble(wordsOf(error)); // the server may come back
        }
    }, PERIOD_MS, "", !isToken);

    if (isToken)
        return <section><h1>{texts.overview.title}</h1><p>{texts.tokenOverview}</p></section>;
    return (
        <section>
            <h1>{texts.overview.title}</h1>
            {trouble !== "" && <p role="alert" class="problem">{texts.overview.trouble(trouble)}</p>}
            {rows === null && trouble === "" && <p>{texts.loading}</p>}
            {rows?.length === 0 && <p>{texts.overview.none}</p>}
            {rows !== null && rows.length > 0 && (
                <div class="scroll" tabIndex={0} role="region" aria-label={texts.overview.containers}>
                    <table>
                        <thead>
                            <tr>
                                <th>{texts.overview.database}</th><th>{texts.overview.container}</th>
                                <th class="number">{texts.overview.items}</th><th class="number">{texts.overview.size}</th>
                                <th class="number">{texts.overview.partitions}</th><th class="number">{texts.overview.used}</th>
                                <th class="number">{texts.overview.throttled}</th>
                            </tr>
                        </thead>
                        <tbody>
                            {rows.map((row) => (
                                <tr key={`${row.database}/${row.container}`}>
                                    <td>{row.database}</td>
                                    <td><a href={containerLink(row.database, row.container)}>{row.container}</a></td>
                                    <td class="number">{count(row.items)}</td><td class="number">{bytes(row.bytes)}</td>
                                    <td class="number">{count(row.physicalPartitions)}</td><td class="number">{count(row.ru.lastMinute)}</td>
                                    <td class={row.throttled.lastMinute > 0 ? "number problem" : "number"}>{count(row.throttled.lastMinute)}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </section>
    );
}
