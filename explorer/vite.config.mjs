import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The words of the query language, from the tables of the server itself.
function languageWords() {
    const table = (name) => readFileSync(new URL(`../src/query/sql/${name}`, import.meta.url), "utf8");
    const words = (text, macro) => [...text.matchAll(new RegExp(`^${macro}\\((\\w+)`, "gm"))].map(([, word]) => word).filter((word) => !word.startsWith("_"));
    return {
        name: "language-words",
        resolveId: (id) => (id === "virtual:language" ? `\0${id}` : null),
        load: (id) => (id !== "\0virtual:language" ? null
            : `export const functions = ${JSON.stringify(words(table("functions.def"), "FUNCTION"))};
               export const keywords = ${JSON.stringify(words(table("keywords.def"), "KEYWORD"))};`),
    };
}

export default defineConfig({
    base: "/_explorer/",
    plugins: [languageWords()],
    esbuild: { jsx: "automatic", jsxImportSource: "preact" },
    build: {
        outDir: "dist/page",
        target: "es2021",
        assetsInlineLimit: 0, // the content security policy allows no data: scripts or styles
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
    },
    server: { proxy: Object.fromEntries(["/dbs", "/offers", "/_orrery", "/healthz"].map((path) => [path, "http://localhost:8081"])) },
});
