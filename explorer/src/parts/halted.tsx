// halted.tsx - says that what is asked again and again has stopped, or is tried again, and why.
import { texts } from "../texts";

interface HaltedProps {
    failure: string | null;
    trouble: string | null;
    again: () => void;
    isFirst: boolean; // there is nothing to show yet
}

// Nothing if all goes well.
export function Halted({ failure, trouble, again, isFirst }: HaltedProps) {
    if (failure !== null)
        return <p class="problem" role="alert">{isFirst ? failure : texts.repeat.stopped(failure)} <button onClick={again}>{texts.map.again}</button></p>;
    return trouble === null ? null : <p class="problem" role="alert">{texts.repeat.trouble(trouble)}</p>;
}
