// cluster_words.ts - events of a cluster as people read them.
import type { ClusterEvent } from "../api/cluster";
import { texts } from "../texts";

// 'partition' is what it is about, "" if it is about a node. A newer server may have kinds that this page does not know.
export function eventText(event: ClusterEvent, partition: string): string {
    const words = texts.cluster.kinds[event.kind]?.(partition, event.node) ?? texts.cluster.unknownKind(event.kind, partition, event.node);
    return event.reason === "" ? words : `${words}: ${event.reason}`;
}
