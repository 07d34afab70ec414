/** A seed file as an object; docs/seed.md describes it. */
export interface SeedFile {
    databases: Array<{ id: string; [member: string]: unknown }>;
}

export interface OrreryOptions {
    /** The program; otherwise that of ORRERY in the environment, or `orrery` on the PATH. */
    binary?: string;
    /** What the server has when it is ready: the path of a seed file, or its content. */
    seed?: string | SeedFile;
    /** More options of `orrery serve`. */
    args?: string[];
    /** The master key; the well-known one of emulators if none is given. */
    key?: string;
    /** Whether requests are throttled by the throughput of containers. */
    isThrottled?: boolean;
    timeoutMs?: number;
}

export interface Orrery {
    readonly endpoint: string;
    readonly key: string;
    readonly connectionString: string;
    readonly pid: number;
    /** The last lines of the server's log. */
    readonly log: string;
    seed(file: string | SeedFile, options?: { folder?: string }): Promise<string>;
    snapshot(database: string, name?: string): Promise<unknown>;
    restore(database: string, name?: string): Promise<unknown>;
    dropSnapshot(database: string, name?: string): Promise<unknown>;
    snapshots(): Promise<unknown>;
    stop(): Promise<void>;
}

export function startOrrery(options?: OrreryOptions): Promise<Orrery>;
export function seed(orrery: Orrery, file: string | SeedFile, options?: { folder?: string }): Promise<string>;
export function snapshot(orrery: Orrery, database: string, name?: string): Promise<unknown>;
export function restore(orrery: Orrery, database: string, name?: string): Promise<unknown>;
