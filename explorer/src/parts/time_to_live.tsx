// time_to_live.tsx - defaultTtl of a container: absent, -1, or a number of seconds.
import { ChoiceField, TextField } from "./fields";
import { texts } from "../texts";

export interface TimeToLive {
    mode: "off" | "item" | "seconds";
    seconds: string;
}

export function timeToLiveOf(value: unknown): TimeToLive {
    if (typeof value !== "number")
        return { mode: "off", seconds: "3600" };
    return value === -1 ? { mode: "item", seconds: "3600" } : { mode: "seconds", seconds: String(value) };
}

// What the body of a container has; the server refuses what is no number of seconds.
export function timeToLiveBody({ mode, seconds }: TimeToLive): { defaultTtl?: number } {
    return mode === "off" ? {} : { defaultTtl: mode === "item" ? -1 : Number(seconds) };
}

export function TimeToLiveFields({ value, onChange, problem }: { value: TimeToLive; onChange: (value: TimeToLive) => void; problem?: string | undefined }) {
    return (
        <>
            <ChoiceField label={texts.timeToLive.label} value={value.mode} onChange={(mode) => onChange({ ...value, mode })}
                choices={[["off", texts.timeToLive.off], ["item", texts.timeToLive.item], ["seconds", texts.timeToLive.after]]}
                problem={value.mode === "seconds" ? undefined : problem} />
            {value.mode === "seconds" && (
                <TextField label={texts.timeToLive.seconds} type="number" step={1} isRequired value={value.seconds}
                    onChange={(seconds) => onChange({ ...value, seconds })} problem={problem} />
            )}
        </>
    );
}
