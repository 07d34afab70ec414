// throughput.tsx - the choice of throughput for something new.
import { startOf, type Mode, type Throughput } from "../api/offers";
import { ChoiceField, TextField } from "./fields";
import { texts } from "../texts";

export function ThroughputFields({ value, onChange, none, problem, hint }: {
    value: Throughput; onChange: (value: Throughput) => void;
    none?: string | undefined; // what it means to have none; undefined if that is no choice
    problem?: string | undefined; hint?: string | undefined;
}) {
    const choices: [Mode, string][] = [["manual", texts.throughput.manual], ["autoscale", texts.throughput.autoscale]];
    if (none !== undefined)
        choices.unshift(["none", none]);
    return (
        <>
            <ChoiceField label={texts.throughput.label} value={value.mode} choices={choices} onChange={(mode) => onChange(startOf(mode))}
                problem={value.mode === "none" ? problem : undefined} />
            {value.mode !== "none" && (
                <TextField label={value.mode === "manual" ? texts.throughput.ru : texts.throughput.maximum} type="number" min={0} step={1} isRequired
                    value={value.ru} onChange={(ru) => onChange({ ...value, ru })} problem={problem} hint={hint} />
            )}
        </>
    );
}
