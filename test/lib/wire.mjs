// wire.mjs - requests by hand, for what the SDK cannot send.
import { createHmac, randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";

/** What a client sends as `sig`: the five lines of the protocol, signed with the account's key. */
export function signature({ key, method, type, link, date, plainDate = "" }) {
    const lower = (text) => text.toLowerCase();
    const payload = `${lower(method)}\n${lower(type)}\n${link}\n${lower(date)}\n${lower(plainDate)}\n`;
    return createHmac("sha256", Buffer.from(key, "base64")).update(payload).digest("base64");
}

export function authorization(options) {
    return encodeURIComponent(`type=master&ver=1.0&sig=${signature(options)}`);
}

// Which type and link a path has to be signed with: (type, id) pairs, and a lone type for a feed.
function target(path) {
    const parts = path.split("?")[0].split("/").filter(Boolean).map(decodeURIComponent);
    const isFeed = parts.length % 2 === 1;
    return {
        type: parts.length === 0 ? "" : parts[isFeed ? parts.length - 1 : parts.length - 2],
        link: (isFeed ? parts.slice(0, -1) : parts).join("/"),
    };
}

/** Headers that authorise a request; `type` and `link` follow from the path unless they are given. */
export function signed({ key, method = "GET", path, type, link, date = new Date().toUTCString() }) {
    const covered = type === undefined || link === undefined ? target(path) : {};
    return {
        authorization: authorization({
            key,
            method,
            type: type ?? covered.type,
            link: link ?? covered.link,
            date,
        }),
        "x-ms-date": date,
        "x-ms-version": "2020-07-15",
    };
}

/** Sends one request as it stands, and reads the whole answer. */
export function send(endpoint, { method = "GET", path = "/", headers = {}, body, agent, ca, localAddress } = {}) {
    const url = new URL(endpoint);
    const request = url.protocol === "https:" ? httpsRequest : httpRequest;
    const options = {
        hostname: url.hostname,
        port: url.port,
        method,
        path,
        headers,
        agent,
        ca,
        localAddress,
        rejectUnauthorized: ca !== undefined,
    };
    return new Promise((resolve, reject) => {
        const outgoing = request(options, (incoming) => {
            const pieces = [];
            incoming.on("data", (piece) => pieces.push(piece));
            incoming.on("error", reject);
            incoming.on("end", () => {
                const bytes = Buffer.concat(pieces);
                resolve(new Answer(incoming.statusCode, incoming.headers, bytes));
            });
        });
        outgoing.on("error", reject);
        outgoing.end(body);
    });
}

class Answer {
    constructor(status, headers, bytes) {
        this.status = status;
        this.headers = headers;
        this.bytes = bytes;
    }

    get text() {
        return this.bytes.toString("utf8");
    }

    get json() {
        return JSON.parse(this.text);
    }
}

/** Sends one authorised request; a plain object as body goes as JSON, text and bytes as they are. */
export function call(server, { method = "GET", path, type, link, headers = {}, body, ...rest }) {
    const asIs = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
    return send(server.endpoint, {
        method,
        path,
        headers: { ...signed({ key: server.key, method, path, type, link }), ...headers },
        body: asIs ? body : JSON.stringify(body),
        ...rest,
    });
}

/** The same with a token, or another text as authorization, and no date; undefined sends none. */
export function callWith(server, token, { method = "GET", path, headers = {}, body, isEncoded = true, ...rest }) {
    const asIs = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
    const authorization = isEncoded && token !== undefined ? encodeURIComponent(token) : token;
    return send(server.endpoint, {
        method,
        path,
        headers: { "x-ms-version": "2020-07-15", ...(token === undefined ? {} : { authorization }), ...headers },
        body: asIs ? body : JSON.stringify(body),
        ...rest,
    });
}

/** What the server has counted under a name. */
export async function metric(server, name) {
    const { text } = await send(server.endpoint, { path: "/metrics" });
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    if (line === undefined) throw new Error(`there is no metric ${name}`);
    return Number(line.slice(name.length));
}

/** An authorised query of a feed. */
export function query(server, path, text, { parameters = [], headers = {} } = {}) {
    return call(server, {
        method: "POST",
        path,
        headers: {
            "content-type": "application/query+json",
            "x-ms-documentdb-isquery": "True",
            ...headers,
        },
        body: { query: text, parameters },
    });
}

/** A connection that sends bytes as they are and remembers all that came back. */
export class Line {
    #waiting = [];
    received = "";
    ended = false;

    static open(port, host = "127.0.0.1") {
        return new Promise((resolve, reject) => {
            const socket = connect({ port, host, allowHalfOpen: true });
            socket.once("error", reject);
            socket.once("connect", () => {
                socket.off("error", reject);
                resolve(new Line(socket));
            });
        });
    }

    constructor(socket) {
        this.socket = socket;
        socket.setEncoding("latin1");
        socket.on("data", (text) => {
            this.received += text;
            this.#wake();
        });
        const end = () => {
            this.ended = true;
            this.#wake();
        };
        socket.on("end", end);
        socket.on("close", end);
        socket.on("error", end);
    }

    #wake() {
        this.#waiting = this.#waiting.filter(({ condition, resolve }) => {
            if (!condition() && !this.ended) return true;
            resolve();
            return false;
        });
    }

    send(text) {
        this.socket.write(text, "latin1");
    }

    /** Waits until the pattern has come, or the other side has nothing more to say. */
    async until(pattern) {
        const condition = () => pattern.test(this.received);
        if (!condition() && !this.ended)
            await new Promise((resolve) => this.#waiting.push({ condition, resolve }));
        if (!condition())
            throw new Error(`expected ${pattern}, the connection ended after: ${this.received}`);
        return this.received;
    }

    /** Waits until the other side has closed. */
    async end() {
        if (!this.ended)
            await new Promise((resolve) => this.#waiting.push({ condition: () => false, resolve }));
        return this.received;
    }

    close() {
        this.socket.destroy();
    }
}

/** The answers in a connection's bytes, one after the other; all have a content-length. */
export function answers(text) {
    const list = [];
    while (text.length > 0) {
        const end = text.indexOf("\r\n\r\n");
        if (end < 0) throw new Error(`half an answer: ${text}`);
        const [line, ...rows] = text.slice(0, end).split("\r\n");
        const headers = Object.fromEntries(
            rows.map((row) => [row.split(":")[0].toLowerCase(), row.replace(/^[^:]*: ?/, "")]),
        );
        const length = Number(headers["content-length"] ?? 0);
        const body = text.slice(end + 4, end + 4 + length);
        list.push({ status: Number(line.split(" ")[1]), headers, body });
        text = text.slice(end + 4 + length);
    }
    return list;
}

/** The bytes of a request without a body. */
export function requestText(path, { method = "GET", host = "localhost", headers = {} } = {}) {
    const rows = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    return `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${rows.join("")}\r\n`;
}

export const unique = (prefix) => `${prefix}-${randomUUID().slice(0, 8)}`;
