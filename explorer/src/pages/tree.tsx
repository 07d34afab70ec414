// tree.tsx - databases and containers, beside the page.
import { containerLink, route } from "../route";
import { databases, readDatabases } from "../state";
import { attempt } from "../parts/notices";
import { texts } from "../texts";

function isCurrent(db: string, coll: string): boolean {
    const at = route.value;
    return at.page === "container" && at.db === db && at.coll === coll;
}

export function Tree() {
    return (
        <nav class="tree" aria-label={texts.tree.label}>
            <div class="buttons">
                <button onClick={() => attempt(readDatabases)}>{texts.tree.refresh}</button>
            </div>
            <p><a href="#/" aria-current={route.value.page === "overview" ? "page" : undefined}>{texts.overview.title}</a></p>
            {databases.value === null && <p>{texts.loading}</p>}
            {databases.value?.length === 0 && <p class="hint">{texts.tree.empty}</p>}
            <ul>
                {databases.value?.map((database) => (
                    <li key={database.id}>
                        <span class="database">{database.id}</span>
                        <ul>
                            {database.containers.map((container) => (
                                <li key={container.id}>
                                    <a href={containerLink(database.id, container.id)} aria-current={isCurrent(database.id, container.id) ? "page" : undefined}>
                                        {container.id}
                                    </a>
                                </li>
                            ))}
                        </ul>
                    </li>
                ))}
            </ul>
        </nav>
    );
}
