// terminal-picture.mjs - what a program has drawn on a terminal, as a picture (SVG).
//
// A Screen follows the few escape sequences that our programs use: cursor home, erase to the end of the line or the
// screen, and colours (SGR 0, 1, 30-37, 90-97, 38;5 and 48;5). Others are skipped.

const COLUMN = 8.4; // pixels of a character, for the font below
const LINE = 18;
const MARGIN = 16;
const BAR = 34; // the bar of the window
const COLOURS = { paper: "#11151c", bar: "#1c222c", ink: "#d5dae3", dim: "#8b95a5" };
const BASIC = ["#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5"];
const BRIGHT = ["#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"];

/** A colour of the 256 that terminals have. */
function colourOf(index) {
    if (index < 8) return BASIC[index];
    if (index < 16) return BRIGHT[index - 8];
    const hex = (...parts) => `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    if (index >= 232) return hex(...Array(3).fill(8 + 10 * (index - 232)));
    const level = (n) => (n === 0 ? 0 : 55 + 40 * n);
    return hex(...[36, 6, 1].map((step) => level(Math.floor((index - 16) / step) % 6)));
}

export class Screen {
    #style = {};
    #row = 0;
    #column = 0;

    constructor(columns, rows) {
        this.columns = columns;
        this.rows = rows;
        this.cells = Array.from({ length: rows }, () => []);
    }

    write(text) {
        const token = /\x1b\[([?0-9;]*)([A-Za-z])|\x1b.|[^\x1b]/gsu;
        for (const [whole, parameters, command] of text.matchAll(token))
            if (command !== undefined) this.#control(parameters, command);
            else if (!whole.startsWith("\x1b")) this.#put(whole);
    }

    #put(character) {
        if (character === "\r") this.#column = 0;
        else if (character === "\n") this.#row++;
        else if (this.#row < this.rows && this.#column < this.columns)
            this.cells[this.#row][this.#column++] = { character, ...this.#style };
    }

    #control(parameters, command) {
        if (command === "H") [this.#row, this.#column] = [0, 0];
        else if (command === "K") this.cells[this.#row]?.splice(this.#column);
        else if (command === "J") {
            if (parameters === "2") this.cells = this.cells.map(() => []);
            this.cells[this.#row]?.splice(this.#column);
            for (let i = this.#row + 1; i < this.rows; i++) this.cells[i] = [];
        } else if (command === "m") this.#select(parameters.split(";").map(Number));
    }

    #select(numbers) {
        for (let i = 0; i < numbers.length; i++) {
            const n = numbers[i];
            if (n === 0) this.#style = {};
            else if (n === 1) this.#style = { ...this.#style, isBold: true };
            else if (n >= 30 && n < 38) this.#style = { ...this.#style, ink: BASIC[n - 30] };
            else if (n >= 90 && n < 98) this.#style = { ...this.#style, ink: BRIGHT[n - 90] };
            else if ((n === 38 || n === 48) && numbers[i + 1] === 5) {
                this.#style = { ...this.#style, [n === 38 ? "ink" : "paper"]: colourOf(numbers[i + 2]) };
                i += 2;
            }
        }
    }

    /** Lines without the empty ones at the end. */
    get lines() {
        const last = this.cells.reduce((found, row, i) => (row.length > 0 ? i : found), -1);
        return this.cells.slice(0, last + 1).map((row) => Array.from(row, (cell) => cell ?? { character: " " }));
    }
}

const escape = (text) => text.replace(/[&<>]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[one]);
const px = (number) => String(Math.round(number * 10) / 10);

/** Neighbours of a line that look the same. */
function runsOf(line) {
    const runs = [];
    for (const [column, { character, ink, paper, isBold }] of line.entries()) {
        const run = runs.at(-1);
        const isSame = run && run.ink === ink && run.paper === paper && run.isBold === isBold;
        if (isSame) run.text += character;
        else runs.push({ column, text: character, ink, paper, isBold });
    }
    return runs;
}

function drawRun({ column, text, ink, paper, isBold }, row) {
    const x = MARGIN + column * COLUMN;
    const y = BAR + MARGIN + row * LINE;
    const width = [...text].length * COLUMN;
    const parts = [];
    if (paper) parts.push(`<rect x="${px(x)}" y="${px(y)}" width="${px(width + 0.3)}" height="${LINE}" fill="${paper}"/>`);
    if (text.trim() !== "") {
        const looks = `${ink ? ` fill="${ink}"` : ""}${isBold ? ' font-weight="bold"' : ""}`;
        // textLength keeps columns together whatever font the reader has.
        parts.push(`<text x="${px(x)}" y="${px(y + 13.5)}" textLength="${px(width)}"${looks}>${escape(text)}</text>`);
    }
    return parts.join("\n");
}

/** The screen in a window with a title. `note` is what people hear who cannot see it. */
export function pictureOf(screen, { title, note }) {
    const { lines } = screen;
    const width = px(2 * MARGIN + screen.columns * COLUMN);
    const height = px(BAR + 2 * MARGIN + lines.length * LINE);
    const drawn = lines.flatMap((line, row) => runsOf(line).map((run) => drawRun(run, row)));
    const dots = ["#f14c4c", "#e5a510", "#23d18b"].map((fill, i) => `<circle cx="${20 + i * 20}" cy="17" r="6" fill="${fill}"/>`);
    return [
        `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
        `<title>${escape(note)}</title>`,
        `<rect width="${width}" height="${height}" rx="8" fill="${COLOURS.paper}"/>`,
        `<path d="M0 8a8 8 0 0 1 8-8H${px(width - 8)}a8 8 0 0 1 8 8V${BAR}H0z" fill="${COLOURS.bar}"/>`,
        ...dots,
        `<text x="${px(width / 2)}" y="22" text-anchor="middle" fill="${COLOURS.dim}" font-family="sans-serif" font-size="13">${escape(title)}</text>`,
        `<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" fill="${COLOURS.ink}" xml:space="preserve">`,
        ...drawn.filter((part) => part !== ""),
        "</g>",
        "</svg>",
        "",
    ].join("\n");
}
