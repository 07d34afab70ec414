// sdk.mjs - the official client, as its users have it.
import { CosmosClient } from "@azure/cosmos";
import { Agent } from "node:https";
import { setLogLevel } from "@azure/logger";

setLogLevel(undefined);

/** A client of the server. It re-reads the account only when it must, so that tests end. */
export function clientOf(server, { endpoint = server.endpoint, key = server.key, ca, ...rest } = {}) {
    // A client over HTTP must not be given an agent; one over HTTPS trusts `ca`, or any certificate.
    const agent = endpoint.startsWith("https:")
        ? new Agent({ keepAlive: true, ca, rejectUnauthorized: ca !== undefined })
        : undefined;
    return new CosmosClient({
        endpoint,
        key,
        agent,
        connectionPolicy: { enableBackgroundEndpointRefreshing: false },
        ...rest,
    });
}

/** A client without a key: `options` say what it has instead (resourceTokens, permissionFeed, tokenProvider). */
export function clientWith(server, options) {
    return new CosmosClient({
        endpoint: server.endpoint,
        connectionPolicy: { enableBackgroundEndpointRefreshing: false },
        ...options,
    });
}
