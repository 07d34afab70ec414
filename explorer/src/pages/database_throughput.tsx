// database_throughput.tsx - the throughput that the containers of a database share, whether it has any or not.
import { useEffect, useState } from "preact/hooks";
import { changeOffer, findOffer, startOf, throughputOf, type OfferState, type Throughput } from "../api/offers";
import { mayChange } from "../api/session";
import { Dialog } from "../parts/dialog";
import { ChangeFields } from "../parts/fields";
import { tell, wordsOf } from "../parts/notices";
import { count } from "../parts/numbers";
import { ThroughputFields } from "../parts/throughput";
import { texts } from "../texts";

export function DatabaseThroughput({ db, rid, onClose }: { db: string; rid: string; onClose: () => void }) {
    const [state, setState] = useState<OfferState | null | undefined>(undefined); // undefined: not read yet; null: there is none
    const [wanted, setWanted] = useState<Throughput>(startOf("manual"));
    const [problem, setProblem] = useState("");
    useEffect(() => {
        findOffer(rid).then((found) => {
            setState(found);
            if (found !== null)
                setWanted(throughputOf(found.offer));
        }, (error) => setProblem(wordsOf(error)));
    }, []);

    async function save(): Promise<void> {
        try {
            await changeOffer(state!.offer, wanted);
        } catch (error) {
            setProblem(wordsOf(error));
            setState(await findOffer(rid)); // it may have got another version: by somebody else, or by the first of two requests
            return;
        }
        tell(texts.settings.throughputSaved);
        onClose();
    }

    const title = texts.tree.throughputOf(db);
    if (state === undefined || state === null)
        return (
            <Dialog title={title} submit={texts.dialog.ok} isAnswer problem={problem} onSubmit={onClose} onClose={onClose}>
                {problem === "" && <p>{state === null ? texts.tree.noShared : texts.loading}</p>}
            </Dialog>
        );
    return (
        <Dialog key="form" title={title} submit={mayChange.value ? texts.dialog.save : texts.dialog.ok} isAnswer={!mayChange.value}
            onSubmit={mayChange.value ? save : onClose} onClose={onClose}>
            <p>{texts.tree.sharedBy}</p>
            {state.isPending && <p role="status">{texts.settings.pending}</p>}
            <ChangeFields><ThroughputFields value={wanted} onChange={setWanted} problem={problem} hint={texts.settings.minimum(count(state.minimum))} /></ChangeFields>
        </Dialog>
    );
}
