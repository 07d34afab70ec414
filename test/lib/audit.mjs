// audit.mjs - reading the file that --audit writes.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { temporaryFolder } from "./server.mjs";
import { until } from "./items.mjs";

export const auditFile = () => join(temporaryFolder(), "audit.log");

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** The lines of the file, parsed; whatever was sent, each is a line of ASCII that parses. */
export function auditLines(file) {
    const text = existsSync(file) ? readFileSync(file, "latin1") : "";
    assert.match(text, /^([ -~]+\n)*$/, "whole lines of printable ASCII");
    const lines = text.split("\n").slice(0, -1);
    return lines.map((line) => {
        assert.ok(line.length < 8192, "a bounded line");
        const record = JSON.parse(line);
        assert.match(record.time, TIME);
        return record;
    });
}

/** Waits until the file has a line about this request: it is written shortly after the answer. */
export function auditLine(file, activityId) {
    return until(() => auditLines(file).find((line) => line.activityId === activityId));
}
