// container.tsx - one container: its tabs, each a page of its own.
import type { ComponentType } from "preact";
import { credential } from "../api/session";
import { containerLink, TABS, type Tab } from "../route";
import { databases, findContainer, type ContainerDefinition } from "../state";
import { texts } from "../texts";
import { Feed } from "./feed";
import { Items } from "./items";
import { MapPage } from "./map";
import { Query } from "./query";
import { Scripts } from "./scripts";
import { Settings } from "./settings";

type TabPage = ComponentType<{ db: string; container: ContainerDefinition }>;

const PAGES: Partial<Record<Tab, TabPage>> = {
    items: Items,
    query: Query,
    scripts: Scripts,
    settings: Settings,
    map: MapPage,
    feed: Feed,
};

export function Container({ db, coll, tab }: { db: string; coll: string; tab: Tab }) {
    const container = findContainer(db, coll);
    if (databases.value === null)
        return <p>{texts.loading}</p>;
    const Page = PAGES[tab];
    if (container === undefined || Page === undefined)
        return <p>{texts.notFound}</p>;
    const isToken = credential.value?.kind === "token"; // no permission is for what the map shows
    return (
        <section class="container">
            <h1>{db} / {coll}</h1>
            <nav class="tabs" aria-label={`${db} / ${coll}`}>
                {TABS.filter((name) => PAGES[name] !== undefined && !(isToken && name === "map")).map((name) => (
                    <a key={name} href={containerLink(db, coll, name)} aria-current={name === tab ? "page" : undefined}>{texts.tabs[name]}</a>
                ))}
            </nav>
            {isToken && tab === "map" ? <p>{texts.map.token}</p> : <Page key={`${db}/${coll}/${tab}`} db={db} container={container} />}
        </section>
    );
}
