// fields.tsx - fields of forms, each with its name, a hint, and what was wrong with it.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { mayChange } from "../api/session";

interface Shared {
    label: string;
    hint?: string | undefined;
    problem?: string | undefined; // of the last attempt; "" and undefined: none
}

function Notes({ id, hint, problem }: { id: string; hint?: string | undefined; problem?: string | undefined }) {
    return (
        <span id={id}>
            {hint !== undefined && hint !== "" && <span class="hint">{hint}</span>}
            {problem !== undefined && problem !== "" && <span class="problem" role="alert">{problem}</span>}
        </span>
    );
}

interface TextFieldProps extends Shared {
    value: string;
    onChange: (value: string) => void;
    type?: "text" | "number";
    min?: number;
    max?: number;
    step?: number;
    isRequired?: boolean;
    isReadOnly?: boolean;
    lines?: number; // more than one makes it a text area
}

export function TextField({ label, hint, problem, value, onChange, type, min, max, step, isRequired, isReadOnly, lines }: TextFieldProps) {
    const id = useId();
    const shared = {
        id, value, required: isRequired === true, readOnly: isReadOnly === true, autocomplete: "off", spellcheck: false,
        "aria-describedby": `${id}-notes`, "aria-invalid": problem !== undefined && problem !== "",
    };
    return (
        <div class="field">
            <label for={id}>{label}</label>
            {lines !== undefined
                ? <textarea {...shared} rows={lines} onInput={(event) => onChange(event.currentTarget.value)} />
                : <input {...shared} type={type ?? "text"} min={min} max={max} step={step} onInput={(event) => onChange(event.currentTarget.value)} />}
            <Notes id={`${id}-notes`} hint={hint} problem={problem} />
        </div>
    );
}

interface ChoiceFieldProps<T extends string> extends Shared {
    value: T;
    choices: readonly (readonly [T, string])[]; // value, text
    onChange: (value: T) => void;
}

export function ChoiceField<T extends string>({ label, hint, problem, value, choices, onChange }: ChoiceFieldProps<T>) {
    const id = useId();
    return (
        <div class="field">
            <label for={id}>{label}</label>
            <select id={id} value={value} aria-describedby={`${id}-notes`} onChange={(event) => onChange(event.currentTarget.value as T)}>
                {choices.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
            </select>
            <Notes id={`${id}-notes`} hint={hint} problem={problem} />
        </div>
    );
}

// Something with a name of its own, such as an editor.
export function Group({ label, hint, problem, children }: Shared & { children: ComponentChildren }) {
    const id = useId();
    return (
        <div class="field" role="group" aria-labelledby={id}>
            <span class="label" id={id}>{label}</span>
            {children}
            <Notes id={`${id}-notes`} hint={hint} problem={problem} />
        </div>
    );
}

// Fields that show something, and change it if the key may: they cannot be used with a read-only one.
export function ChangeFields({ children }: { children: ComponentChildren }) {
    return <fieldset class="plain" disabled={!mayChange.value}>{children}</fieldset>;
}
