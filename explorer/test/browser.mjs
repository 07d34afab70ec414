// browser.mjs - a real server and a real browser for a test, and what every test of the page checks: no error in
// the console, nothing asked of another host, nothing that a screen reader cannot use.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const DEVELOPMENT_KEY =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// A server on a free port, stopped at the end of the test.
export async function startServer(t, args = []) {
    const data = mkdtempSync(join(tmpdir(), "orrery-explorer-"));
    const child = spawn(process.env.ORRERY, ["serve", "--data", data, "--port", "0", "--durability", "relaxed", ...args]);
    const closing = []; // browsers, which go before the server that they ask
    t.after(async () => {
        for (const close of closing)
            await close();
        child.kill();
        await new Promise((resolve) => child.once("exit", resolve));
        rmSync(data, { recursive: true, force: true });
    });
    let text = "";
    const port = await new Promise((resolve, reject) => {
        child.once("exit", () => reject(new Error(`the server did not start: ${text}`)));
        for (const stream of [child.stdout, child.stderr]) {
            stream.on("data", (piece) => {
                text += piece;
                const found = /https?:\/\/[^\s:]+:(\d+)/.exec(text);
                if (found !== null)
                    resolve(found[1]);
            });
        }
    });
    return { endpoint: `http://localhost:${port}`, port, closing };
}

// The headers that sign a request.
export function signed(method, path, key = DEVELOPMENT_KEY) {
    const date = new Date().toUTCString();
    const parts = path.split("?")[0].split("/").map(decodeURIComponent);
    const isList = parts.length % 2 === 1;
    let type = parts[isList ? parts.length - 1 : parts.length - 2] ?? "";
    let link = (isList ? parts.slice(0, -1) : parts).join("/");
    if (parts[0] === "_orrery") {
        const dbs = parts.indexOf("dbs");
        const isOfContainer = parts[dbs + 2] === "colls";
        type = isOfContainer ? "colls" : "";
        link = isOfContainer ? parts.slice(dbs, dbs + 4).join("/") : "";
    }
    const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
    const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
    return { authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`), "x-ms-date": date, "x-ms-version": "2020-07-15" };
}

// A signed request from outside the browser, to prepare and to check.
export async function call(server, method, path, { body, headers = {}, key = DEVELOPMENT_KEY } = {}) {
    const answer = await fetch(`${server.endpoint}/${path}`, {
        method,
        headers: { ...signed(method, path, key), "content-type": "application/json", ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
    });
    const answered = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${answered}`);
    return answered === "" ? null : JSON.parse(answered);
}

// A database "shop" with a container "orders", which has so many items.
export async function makeOrders(server, count, { ru = 400, more = {} } = {}) {
    await call(server, "POST", "dbs", { body: { id: "shop" } });
    await call(server, "POST", "dbs/shop/colls", {
        body: { id: "orders", partitionKey: { paths: ["/customer"], kind: "Hash", version: 2 }, ...more },
        headers: { "x-ms-offer-throughput": String(ru) },
    });
    for (let i = 0; i < count; i++) {
        const item = { id: String(i), customer: `c${i % 7}`, total: i * 1.5, status: ["open", "paid", "sent"][i % 3] };
        await call(server, "POST", "dbs/shop/colls/orders/docs", {
            body: item, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([item.customer]) },
        });
    }
}

// A page of the browser, which fails the test at the end if something went wrong unseen.
export async function openPage(t, server, { path = "/_explorer/", allowErrors = [], allowHosts = false, args = [], ...options } = {}) {
    const browser = await chromium.launch({
        executablePath: BROWSER,
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", ...args],
    });
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    const problems = [];
    page.on("console", (message) => {
        if (message.type() === "error" && !allowErrors.some((allowed) => allowed.test(message.text())))
            problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("request", (request) => {
        if (!allowHosts && !request.url().startsWith(server.endpoint) && !/^(data|blob):/.test(request.url()))
            problems.push(`asked for ${request.url()}`);
    });
    server.closing.push(() => browser.close());
    t.after(() => assert.deepEqual(problems, []));
    await page.goto(server.endpoint + path);
    return page;
}

// What axe finds that is serious, on the page as it is now. Run in the page's own world, past its policy.
export async function seriousFindings(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("Page.setBypassCSP", { enabled: true });
    await page.evaluate(AXE);
    const found = await page.evaluate(() => globalThis.axe.run());
    return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

export async function expectAccessible(page) {
    assert.deepEqual(await seriousFindings(page), []);
}

// Replaces what an editor has, as a user does with Ctrl+A and Ctrl+V. (Playwright's fill makes the browser itself edit
// the page, with styles that the policy refuses.)
export async function write(editor, text) {
    await editor.press("Control+a");
    await editor.evaluate((element, pasted) => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", pasted);
        element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, text);
}

// Presses Tab, or Shift+Tab, until something has the focus, as those do who have no mouse.
export async function tabTo(page, locator, key = "Tab") {
    const isFocused = () => locator.evaluateAll((found) => found.some((element) => element.getRootNode().activeElement === element));
    for (let i = 0; i < 80 && !await isFocused(); i++)
        await page.keyboard.press(key);
    assert.ok(await isFocused(), `${key} reaches ${locator}`);
}

export const fitsWidth = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

// Pictures for docs/, made with SCREENSHOTS=folder.
export async function picture(page, name) {
    if (process.env.SCREENSHOTS !== undefined)
        await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
}

// Answers the question that comes before unsaved text is given up.
export async function answerUnsaved(page, button) {
    const dialog = page.getByRole("dialog", { name: "Discard what is not saved?" });
    await dialog.getByRole("button", { name: button }).click();
    await dialog.waitFor({ state: "detached" });
}
