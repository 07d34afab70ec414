// theme.tsx - light or dark: as the system has it, or as the user has chosen.
import { computed, effect, signal } from "@preact/signals";
import { texts } from "../texts";
import { keep, readKept } from "./kept";

type Theme = "auto" | "light" | "dark";
const STORED = "orrery.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", () => { systemIsDark.value = system.matches; });

const stored = readKept(STORED);
const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");

export const isDark = computed(() => theme.value === "dark" || (theme.value === "auto" && systemIsDark.value));
effect(() => {
    document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
    keep(STORED, theme.value);
});

export function ThemeChoice() {
    return (
        <label class="theme">
            <span class="visually-hidden">{texts.theme.label}</span>
            <select value={theme.value} onChange={(event) => { theme.value = event.currentTarget.value as Theme; }}>
                <option value="auto">{texts.theme.auto}</option>
                <option value="light">{texts.theme.light}</option>
                <option value="dark">{texts.theme.dark}</option>
            </select>
        </label>
    );
}
