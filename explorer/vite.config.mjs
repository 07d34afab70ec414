import { defineConfig } from "vite";

export default defineConfig({
    base: "/_explorer/",
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
