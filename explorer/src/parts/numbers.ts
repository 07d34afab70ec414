// numbers.ts - numbers as people read them.
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

export const count = (value: number): string => whole.format(value);
export const decimal = (value: number): string => short.format(value);

// A share of all, 0.25, as "25%".
export const percent = (share: number): string => `${share > 0 && share < 0.1 ? (share * 100).toFixed(share < 0.001 ? 2 : 1) : whole.format(share * 100)}%`;

export function bytes(value: number): string {
    let unit = 0;
    while (value >= 1000 && unit < UNITS.length - 1) {
        value /= 1000;
        unit++;
    }
    return `${value >= 100 || unit === 0 ? whole.format(value) : short.format(Math.round(value * 10) / 10)} ${UNITS[unit]}`;
}

// A time of day here, from seconds since 1970.
export function clock(seconds: number, hasSeconds = true): string {
    const time = new Date(seconds * 1000);
    const two = (value: number): string => String(value).padStart(2, "0");
    return `${two(time.getHours())}:${two(time.getMinutes())}${hasSeconds ? `:${two(time.getSeconds())}` : ""}`;
}
