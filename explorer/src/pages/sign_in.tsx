// sign_in.tsx - asks for a key, unless the well-known one of development is accepted here.
import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../api/client";
import { DEVELOPMENT_KEY, keepCredential, parseCredential, storedCredential, type Credential } from "../api/session";
import { canSign } from "../api/sign";
import { tell, wordsOf } from "../parts/notices";
import { texts } from "../texts";

// Every key and every token that is good may read the account.
async function isAccepted(given: Credential): Promise<boolean> {
    try {
        await request("GET", "", { as: given });
        return true;
    } catch (error) {
        if (error instanceof ApiError && error.status === 401)
            return false;
        throw error;
    }
}

const isLoopback = (): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

async function signInByItself(): Promise<boolean> {
    const stored = storedCredential();
    if (stored !== null && await isAccepted(stored)) {
        keepCredential(stored);
        return true;
    }
    const development: Credential = { kind: "key", key: DEVELOPMENT_KEY };
    if (!isLoopback() || !await isAccepted(development))
        return false;
    keepCredential(development);
    tell(texts.signIn.development);
    return true;
}

export function SignIn({ isAutomatic }: { isAutomatic: boolean }) {
    const [isTrying, setTrying] = useState(isAutomatic && canSign());
    const [text, setText] = useState("");
    const [problem, setProblem] = useState("");

    useEffect(() => {
        if (!isTrying)
            return;
        signInByItself().then((done) => setTrying(done), (error) => { setProblem(wordsOf(error)); setTrying(false); });
    }, []);

    async function submit(): Promise<void> {
        const given = parseCredential(text);
        if (given === null)
            return setProblem(texts.signIn.notOne);
        try {
            if (await isAccepted(given))
                return keepCredential(given);
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
