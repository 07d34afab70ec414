// property_names.ts - the names of properties that queries can use, as a tree, and which of them can follow a text.
//
// The names come from the index of the container, so that one which a single item has is there. What the index does not
// cover, because the policy excludes it, is taken from a sample of the items.
import type { Json } from "../api/client";

export interface NameNode {
    names: Map<string, NameNode>;
    element: NameNode | null; // of an array
    isIndexed: boolean;
}

const newNode = (isIndexed: boolean): NameNode => ({ names: new Map(), element: null, isIndexed });

export const newNames = (): NameNode => newNode(true);

function below(node: NameNode, name: string | null, isIndexed: boolean): NameNode {
    if (name === null)
        return node.element ??= newNode(isIndexed);
    let found = node.names.get(name);
    if (found === undefined)
        node.names.set(name, found = newNode(isIndexed));
    return found;
}

// A path of an indexing policy, /tags/[]/"first name", as its steps; null is any element of an array.
export function stepsOf(path: string): (string | null)[] {
    const steps: (string | null)[] = [];
    for (const [, quoted, plain] of path.matchAll(/\/(?:"((?:[^"\\]|\\.)*)"|([^/]*))/gs))
        steps.push(quoted !== undefined ? quoted.replace(/\\(.)/gs, "$1") : plain === "[]" ? null : plain!);
    return steps;
}

export function addPath(root: NameNode, path: string): void {
    stepsOf(path).reduce((node, step) => below(node, step, true), root);
}

// What an item has and the index has not.
export function addSample(node: NameNode, value: Json): void {
    if (Array.isArray(value)) {
        for (const element of value)
            addSample(below(node, null, false), element);
    } else if (value !== null && typeof value === "object") {
        for (const [name, inner] of Object.entries(value))
            addSample(below(node, name, false), inner);
    }
}

/* ---- texts of queries ---- */

const STEP = String.raw`\s*\.\s*\w+|\s*\[\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d+)\s*\]`;
const PATH = String.raw`[A-Za-z_]\w*(?:${STEP})*`;

// "c.tags[0]" as its first name and the steps after it.
function partsOf(path: string): { alias: string; steps: (string | null)[] } {
    const alias = /^\w+/.exec(path)![0];
    const steps = [...path.slice(alias.length).matchAll(new RegExp(STEP, "gs"))].map(([step]) => {
        const text = step.trim();
        if (text.startsWith("."))
            return text.slice(1).trim();
        const inner = text.slice(1, -1).trim();
        return /^\d/.test(inner) ? null : inner.slice(1, -1).replace(/\\(.)/gs, "$1");
    });
    return { alias, steps };
}

// The names that a query gives to what it walks over: FROM t IN c.tags, JOIN n IN t.names. All others are items.
export function aliasesOf(query: string): Map<string, string | null> {
    const found = new Map<string, string | null>();
    for (const [, , alias, path] of query.matchAll(new RegExp(String.raw`\b(FROM|JOIN)\s+([A-Za-z_]\w*)(?:\s+IN\s+(${PATH}))?`, "gis")))
        found.set(alias!, path ?? null);
    return found;
}

function follow(root: NameNode, path: string, aliases: Map<string, string | null>, depth = 0): NameNode | null {
    const { alias, steps } = partsOf(path);
    const source = aliases.get(alias);
    let at: NameNode | null = root;
    if (typeof source === "string")
        at = depth > aliases.size ? null : follow(root, source, aliases, depth + 1)?.element ?? null;
    for (const step of steps)
        at = (step === null ? at?.element : at?.names.get(step)) ?? null;
    return at;
}

export interface Started {
    path: string; // what comes before: c.address
    opening: string; // the dot, or the bracket with its quote
    typed: string; // the beginning of the name
}

// What is being typed at the end of a text: the name after a dot, or between brackets.
export function startedName(before: string): Started | null {
    const found = new RegExp(String.raw`(?<![\w.\]@])(${PATH})(?:(\.)(\w*)|(\[\s*["'])([^"'\\]*))$`, "s").exec(before);
    return found === null ? null : { path: found[1]!, opening: found[2] ?? found[4]!, typed: found[3] ?? found[5]! };
}

// Names that can stand there.
export function namesAt(root: NameNode, query: string, path: string): Map<string, NameNode> {
    return follow(root, path, aliasesOf(query))?.names ?? new Map();
}

// How a name is written after what it belongs to: .name, or ["first name"].
export function asStep(name: string, keywords: ReadonlySet<string>): string {
    return /^[A-Za-z_]\w*$/.test(name) && !keywords.has(name.toUpperCase()) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
