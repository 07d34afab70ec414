// The pages of docs/ hang together: links lead somewhere, the index has every page, docs/differences.md names tests that
// exist, and docs/benchmarks.md names commands that exist.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import test from "node:test";

import { filesOf } from "./lib/folder.mjs";
import { pageText } from "./lib/pages.mjs";
import { ROOT } from "./lib/server.mjs";

const pages = filesOf(join(ROOT, "docs"))
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path));
const everything = ["README.md", ...pages];

/** A page without its blocks of code. */
const proseOf = (path) => pageText(path).replace(/^```.*?^```$/gms, "");

/** Links of a page to files of the repository: the path from its root, and the place in it. */
function linksOf(path) {
    return [...proseOf(path).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target]) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .map((target) => {
            const [file, place] = target.split("#");
            return { file: file === "" ? path : normalize(join(dirname(path), file)), place };
        });
}

/** The places of a page that a link can name, as the usual sites for repositories make them. */
function placesOf(path) {
    const headings = [...proseOf(path).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading);
    return headings.map((heading) =>
        heading
            .toLowerCase()
            .replace(/[^\p{L}\p{N}\s_-]/gu, "")
            .replaceAll(" ", "-"),
    );
}

for (const path of everything)
    test(`links of ${path} lead to files and headings that exist`, () => {
        for (const { file, place } of linksOf(path)) {
            assert.ok(existsSync(join(ROOT, file)), `${path}: there is no ${file}`);
            if (place === undefined) continue;
            assert.ok(file.endsWith(".md") && placesOf(file).includes(place), `${path}: ${file} has no heading ${place}`);
        }
    });

test("the index of docs/ has every page", () => {
    const linked = new Set(linksOf("docs/README.md").map(({ file }) => file));
    const missing = pages.filter((path) => path !== "docs/README.md" && !linked.has(path));
    assert.deepEqual(missing, []);
});

/** Files that can hold a test, by their names. */
const testFiles = new Map([
    ...readdirSync(join(ROOT, "test"))
        .filter((name) => name.endsWith(".test.mjs"))
        .map((name) => [name, [join("test", name)]]),
]);
for (const path of filesOf(join(ROOT, "src")).filter((one) => one.endsWith("_test.c"))) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    testFiles.set(name, [...(testFiles.get(name) ?? []), join("src", path)]);
}

/** Whether the file has a test of that name: as text after a quote, or as a function. */
function hasTest(path, name) {
    const text = readFileSync(join(ROOT, path), "utf8");
    if (path.endsWith(".c")) return text.includes(`static void ${name}(void **state)`);
    return ['"', "`"].some((quote) => text.includes(`(${quote}${name}${quote}`));
}

test("every row of docs/differences.md names a test that exists", () => {
    const tables = pageText("docs/differences.md").split(/\n\n/).filter((part) => /^\|.*\| test \|$/m.test(part));
    assert.ok(tables.length >= 7);
    for (const table of tables)
        for (const row of table.trim().split("\n").slice(2)) {
            const [, file, name] = /\| `([^`]+)`: ([^|]+) \|$/.exec(row) ?? [];
            assert.ok(file, `no test in ${row}`);
            const found = (testFiles.get(file) ?? []).some((path) => hasTest(path, name));
            assert.ok(found, `there is no test "${name}" in ${file}`);
        }
});

test("commands of docs/benchmarks.md are those that make bench knows", () => {
    const known = readFileSync(join(ROOT, "bench/README.md"), "utf8");
    const used = [...pageText("docs/benchmarks.md").matchAll(/make bench ARGS=(--[a-z]+)/g)].map(([, option]) => option);
    assert.ok(used.length > 1);
    for (const option of used) assert.ok(known.includes(`| \`${option}\` |`), option);
});

test("figures that docs/benchmarks.md takes from other pages are there", () => {
    for (const [path, ...figures] of [
        ["src/transfer/README.md", "52,600", "36,700", "0.92"],
        ["src/http/README.md", "5.1, 6.3, 5.9", "12.0, 15.0, 13.8", "20.2, 22.7, 24.0", "14.5 KB"],
        ["src/json/README.md", "1480 ns", "790 ns", "12 to 18 ns"],
        ["docs/security.md", "410 MB at most"],
        ["docs/seeing.md", "0.15 microseconds"],
    ]) {
        const text = pageText(path);
        for (const figure of figures) assert.ok(text.includes(figure), `${path} no longer says ${figure}`);
    }
});

test("pictures are whole", () => {
    for (const name of readdirSync(join(ROOT, "docs/pictures")).filter((file) => file.endsWith(".svg"))) {
        const text = pageText(`docs/pictures/${name}`);
        assert.match(text, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /);
        assert.match(text, /<title>.{20,}<\/title>/);
        assert.ok(text.endsWith("</svg>\n"));
        // Every element is closed, in order.
        const open = [];
        for (const [, end, tag, isEmpty] of text.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g))
            if (end) assert.equal(open.pop(), tag);
            else if (!isEmpty) open.push(tag);
        assert.deepEqual(open, []);
    }
});
