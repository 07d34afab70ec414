// embed.mjs - the built page as C: dist/include/api/core/explorer_assets.inc, which the server is compiled with.
//
// Each file is there compressed, once. Names of files carry a hash of their contents, except index.html's.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const PAGE = new URL("dist/page", import.meta.url).pathname;
const BYTES_MAX = 500_000; // of the whole page, compressed
const TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
};

function* filesBelow(folder) {
    for (const name of readdirSync(folder).sort()) {
        const path = join(folder, name);
        if (statSync(path).isDirectory())
            yield* filesBelow(path);
        else
            yield path;
    }
}

let total = 0;
let arrays = "";
let rows = "";
for (const [i, file] of [...filesBelow(PAGE)].entries()) {
    const bytes = gzipSync(readFileSync(file), { level: 9 });
    bytes[9] = 255; // the system that made it: the same page is the same bytes everywhere
    const name = relative(PAGE, file).replace("index.html", "");
    const type = TYPES[extname(file)];
    if (type === undefined)
        throw new Error(`embed.mjs has no type for ${file}`);
    const etag = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
    total += bytes.length;
    arrays += `static const unsigned char asset_${i}[] = {${[...bytes].join(",")}};\n`;
    rows += `    {SLICE_INIT("/_explorer/${name}"), SLICE_INIT("${type}"), SLICE_INIT("\\"${etag}\\""), ` +
        `{(const char *)asset_${i}, sizeof(asset_${i})}},\n`;
}
if (total > BYTES_MAX)
    throw new Error(`the page takes ${total} bytes, more than ${BYTES_MAX}`);
mkdirSync(new URL("dist/include/api/core", import.meta.url), { recursive: true });
writeFileSync(new URL("dist/include/api/core/explorer_assets.inc", import.meta.url), `${arrays}\nstatic const ExplorerAsset ASSETS[] = {\n${rows}};\n`);
console.log(`${total} bytes, compressed`);
