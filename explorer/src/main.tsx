// main.tsx - the page: who is signed in, the tree, and what the address names.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isNode, lookForCluster } from "./api/cluster";
import { credential, forgetCredential } from "./api/session";
import { Cluster } from "./pages/cluster";
import { Container } from "./pages/container";
import { Overview } from "./pages/overview";
import { QUERIES_KEPT } from "./pages/query";
import { SignIn } from "./pages/sign_in";
import { Tree } from "./pages/tree";
import { Users } from "./pages/users";
import { attempt, Notices } from "./parts/notices";
import { forgetKept } from "./parts/kept";
import { ThemeChoice } from "./parts/theme";
import { mayDiscard, UnsavedQuestion } from "./parts/unsaved";
import { route } from "./route";
import { databases, readDatabases } from "./state";
import { texts } from "./texts";

let hasSignedOut = false;

// Queries may hold what only the one who was signed in may know, so they go, too.
async function signOut(): Promise<void> {
    if (!await mayDiscard())
        return;
    hasSignedOut = true;
    forgetCredential();
    forgetKept(QUERIES_KEPT);
    databases.value = null;
    isNode.value = null;
}

function Page() {
    const at = route.value;
    switch (at.page) {
    case "overview":
        return <Overview />;
    case "cluster":
        return <Cluster />;
    case "container":
        return <Container db={at.db} coll={at.coll} tab={at.tab} />;
    case "users":
        return <Users key={at.db} db={at.db} />;
    default:
        return <p>{texts.notFound}</p>;
    }
}

// What the credential is for, as far as it is known.
function Rights() {
    const who = credential.value;
    const words = who?.kind === "token" ? texts.signIn.token : who?.onlyReads === true ? texts.signIn.onlyReads : "";
    return <p class="rights" role="status">{words}</p>;
}

// Another page begins at its top for those who use the keyboard or a screen reader, not where the last one had a link.
function useFocusOnPage(): void {
    const shown = useRef(route.value);
    useEffect(() => {
        if (shown.current === route.value)
            return;
        shown.current = route.value;
        document.getElementById("content")?.focus();
    }, [route.value]);
}

function Signed() {
    useFocusOnPage();
    useEffect(() => {
        attempt(readDatabases);
        if (credential.value?.kind === "key") // a token may not see it
            attempt(lookForCluster);
    }, []);
    return (
        <>
            <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>{texts.skip}</a>
            <header>
                <a class="brand" href="#/">{texts.title}</a>
                <span class="hint">{location.host}</span>
                <ThemeChoice />
                <button onClick={() => attempt(signOut)}>{texts.signIn.signOut}</button>
            </header>
            <Rights />
            <div class="columns">
                <Tree />
                <main id="content" tabIndex={-1}><Page /></main>
            </div>
        </>
    );
}

function App() {
    return (
        <>
            {credential.value === null ? <SignIn isAutomatic={!hasSignedOut} /> : <Signed />}
            <Notices />
            <UnsavedQuestion />
        </>
    );
}

render(<App />, document.getElementById("app")!);
