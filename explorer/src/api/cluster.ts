// cluster.ts - what a node tells about its cluster: /_orrery/cluster, described in docs/cluster.md.
import { signal } from "@preact/signals";
import { request } from "./client";

export const CATALOG_SPACE = 1;

export interface ClusterNode {
    name: string;
    state: string; // live, draining, dead
    address: string; // for other nodes
    advertise: string; // for clients
    unreachable: string; // the nodes that it cannot reach
    renewalAgeMs: number;
    owned: number;
    followed: number;
    lag: number; // entries that its copies are behind in all
}

export interface Replica {
    node: string;
    state: string; // seeding, following, expelled
    applied: number;
}

export interface Space {
    id: number;
    owner: string;
    ownerLives: boolean;
    epoch: number; // grows with each change of owner
    tail: number;
    replicas: Replica[];
}

// A partition that the asked node gives away.
export interface HandOver {
    space: number;
    to: string;
    reason: string;
    stage: string;
}

// What the asked node has seen or done; others have others.
export interface ClusterEvent {
    number: number;
    atMs: number; // since 1970
    kind: string;
    space?: number;
    epoch?: number;
    node: string;
    reason: string;
}

export interface ClusterStatus {
    cluster: string;
    node: string; // the asked one
    leaseHolds: boolean;
    engine: string;
    journalBytes: number;
    replicasWanted: number;
    warnings: string[];
    nodes: ClusterNode[];
    spaceCount: number;
    spaces: Space[]; // the first thousand
    moves: HandOver[];
    events: ClusterEvent[]; // the newest first
}

// Whether the server is a node of a cluster; null as long as that is not known.
export const isNode = signal<boolean | null>(null);

// A server alone answers 404 to /_orrery/cluster, which browsers report as an error: its events say it, too.
export async function lookForCluster(): Promise<void> {
    const { body } = await request<{ cluster?: ClusterEvent[] }>("GET", "_orrery/events?count=1");
    isNode.value = body.cluster !== undefined;
}

export const readCluster = async (signal?: AbortSignal): Promise<ClusterStatus> =>
    (await request<ClusterStatus>("GET", "_orrery/cluster", { signal })).body;

// Gives everything that a node owns to the others; or lets it own partitions again.
export async function drain(node: string, isDraining: boolean): Promise<void> {
    await request(isDraining ? "POST" : "DELETE", `_orrery/cluster/drain?node=${encodeURIComponent(node)}`);
}
