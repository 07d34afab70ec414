// triggers.tsx - the choice of triggers that run with a change of an item: none does unless the request names it.
import { listAll, type JsonObject } from "../api/client";
import { texts } from "../texts";
import { ChoiceField } from "./fields";

export interface Trigger extends JsonObject {
    id: string;
    triggerType: string;
    triggerOperation: string;
}

const TYPES = ["pre", "post"] as const;
export type ChosenTriggers = Record<(typeof TYPES)[number], string>; // "": none; the server runs one of each at most
export const NO_TRIGGERS: ChosenTriggers = { pre: "", post: "" };

// 'root' is the path of the container. A token for a part of it may not list them, nor use them.
export const readTriggers = (root: string): Promise<Trigger[]> => listAll<Trigger>(`${root}/triggers`).catch(() => []);

export const triggerHeaders = (chosen: ChosenTriggers): Record<string, string> =>
    Object.fromEntries(TYPES.filter((type) => chosen[type] !== "").map((type) => [`x-ms-documentdb-${type}-trigger-include`, chosen[type]]));

export function TriggerChoice({ triggers, chosen, onChange }: { triggers: Trigger[]; chosen: ChosenTriggers; onChange: (chosen: ChosenTriggers) => void }) {
    const of = (type: string): Trigger[] => triggers.filter(({ triggerType }) => triggerType.toLowerCase() === type);
    const shown = TYPES.filter((type) => of(type).length > 0);
    if (shown.length === 0)
        return null;
    return (
        <div class="pair">
            {shown.map((type) => (
                <ChoiceField key={type} label={texts.items.triggers[type]} value={chosen[type]} onChange={(id) => onChange({ ...chosen, [type]: id })}
                    choices={[["", texts.items.noTrigger], ...of(type).map(({ id, triggerOperation }) => [id, texts.items.trigger(id, triggerOperation)] as const)]} />
            ))}
        </div>
    );
}
