// sign_in.tsx - asks for a key, unless the well-known one of development is accepted here.
import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../api/client";
import { DEVELOPMENT_KEY, forgetCredential, keepCredential, parseCredential, storedCredential, type Credential } from "../api/session";
import { canSign } from "../api/sign";
import { tell, wordsOf } from "../parts/notices";
import { texts } from "../texts";

// The credential with what the server tells of it; null if it is refused. Every key and every token that is good may read
// the account.
async function accepted(given: Credential): Promise<Credential | null> {
    try {
        const { headers } = await request("GET", "", { as: given });
        const access = headers.get("x-orrery-access");
        return given.kind === "token" || access === null ? given : { kind: "key", key: given.key, onlyReads: access === "read" };
    } catch (error) {
        if (error instanceof ApiError && error.status === 401)
            return null;
        throw error;
    }
}

const isLoopback = (): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

// With what this tab has kept, otherwise with the development key. Whoever had another credential is asked, and does not
// become somebody else.
async function signInByItself(): Promise<"signed in" | "refused" | "nobody"> {
    const stored = storedCredential();
    if (stored !== null) {
        const again = await accepted(stored);
        if (again === null)
            forgetCredential();
        else
            keepCredential(again);
        return again === null ? "refused" : "signed in";
    }
    const development = isLoopback() ? await accepted({ kind: "key", key: DEVELOPMENT_KEY }) : null;
    if (development === null)
        return "nobody";
    keepCredential(development);
    tell(texts.signIn.development);
    return "signed in";
}

export function SignIn({ isAutomatic }: { isAutomatic: boolean }) {
    const [isTrying, setTrying] = useState(isAutomatic && canSign());
    const [text, setText] = useState("");
    const [problem, setProblem] = useState("");

    useEffect(() => {
        if (!isTrying)
            return;
        signInByItself().then((how) => {
            if (how === "refused")
                setProblem(texts.signIn.keptRefused);
            setTrying(how === "signed in");
        }, (error) => { setProblem(wordsOf(error)); setTrying(false); });
    }, []);

    async function submit(): Promise<void> {
        const given = parseCredential(text);
        if (given === null)
            return setProblem(texts.signIn.notOne);
        try {
            const good = await accepted(given);
            if (good !== null)
                return keepCredential(good);
            setProblem(`${texts.signIn.refused}401`);
        } catch (error) {
            setProblem(texts.signIn.refused + wordsOf(error));
        }
    }

    if (isTrying)
        return <main class="sign-in" id="content"><p>{texts.loading}</p></main>;
    return (
        <main class="sign-in" id="content">
            <h1>{texts.title}</h1>
            {canSign() ? (
                <form onSubmit={(event) => { event.preventDefault(); void submit(); }}>
                    <label>
                        {texts.signIn.label}
                        <input type="password" autocomplete="off" required value={text} aria-describedby="sign-in-hint"
                            onInput={(event) => setText(event.currentTarget.value)} />
                    </label>
                    <p id="sign-in-hint" class="hint">{texts.signIn.hint}</p>
                    {problem !== "" && <p role="alert" class="problem">{problem}</p>}
                    <button type="submit" class="primary">{texts.signIn.submit}</button>
                </form>
            ) : <p role="alert" class="problem">{texts.signIn.noCrypto}</p>}
        </main>
    );
}
