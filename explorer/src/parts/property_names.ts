// property_names.ts - the names of properties that queries can use, as a tree, and which of them can follow a text.
//
// The names come from the index of the container, so that one which a single item has is there. What the index does not
// cover, because the policy excludes it, is taken from a sample of the items.
import type { Json } from "../api/client";

export interface NameNode {
    names: Map<string, NameNode>;
    element: NameNode | null; // of an array
    isIndexed: boolean; // false only if it is known that the index has not got it
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

// What an item has and the tree has not. The index lacks it only if all paths of the index are in the tree.
export function addSample(node: NameNode, value: Json, isIndexKnown: boolean): void {
    if (Array.isArray(value)) {
        for (const element of value)
            addSample(below(node, null, !isIndexKnown), element, isIndexKnown);
    } else if (value !== null && typeof value === "object") {
        for (const [name, inner] of Object.entries(value))
            addSample(below(node, name, !isIndexKnown), inner, isIndexKnown);
    }
}

/* ---- texts of queries ---- */

// Letters of all scripts, as the server's lexer has it; digits are ASCII.
const LETTER = String.raw`[\p{L}_]`;
const INNER = String.raw`[\p{L}_0-9]`;
const NAME = `${LETTER}${INNER}*`;
const STEP = String.raw`\s*\.\s*${INNER}+|\s*\[\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d+)\s*\]`;
const PATH = `${NAME}(?:${STEP})*`;

// "c.tags[0]" as its first name and the steps after it.
function partsOf(path: string): { alias: string; steps: (string | null)[] } {
    const alias = new RegExp(`^${NAME}`, "u").exec(path)![0];
    const steps = [...path.slice(alias.length).matchAll(new RegExp(STEP, "gsu"))].map(([step]) => {
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
    for (const [, , alias, path] of query.matchAll(new RegExp(String.raw`(?<!${INNER})(FROM|JOIN)\s+(${NAME})(?:\s+IN\s+(${PATH}))?`, "gisu")))
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
    const found = new RegExp(String.raw`(?<![\p{L}\w.\]@])(${PATH})(?:(\.)(${INNER}*)|(\[\s*["'])([^"'\\]*))$`, "su").exec(before);
    return found === null ? null : { path: found[1]!, opening: found[2] ?? found[4]!, typed: found[3] ?? found[5]! };
}

// Names that can stand there.
export function namesAt(root: NameNode, query: string, path: string): Map<string, NameNode> {
    return follow(root, path, aliasesOf(query))?.names ?? new Map();
}

// What can be written without quotes, and what may still become it.
const PLAIN_NAME = new RegExp(`^${NAME}$`, "u");
export const NAME_BEGINNING = new RegExp(`^${INNER}*$`, "u");
export const WORD = new RegExp(`${INNER}+`, "u");

// How a name is written after what it belongs to: .name, or ["first name"].
export function asStep(name: string, keywords: ReadonlySet<string>): string {
    return PLAIN_NAME.test(name) && !keywords.has(name.toUpperCase()) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
