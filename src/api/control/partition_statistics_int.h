/* partition_statistics_int.h - what each physical partition of a container holds, in the body of
 * the container, for clients that ask for it:
 *
 *     ..."_conflicts":"conflicts/","statistics":[
 *         {"id":"0","sizeInKB":12,"documentCount":200,"sampledDistinctPartitionKeyCount":20,
 *          "partitionKeys":[{"partitionKey":["x"],"sizeInKB":3}]}]}
 *
 * A partition lists its largest logical partitions: at most STATISTICS_KEYS_MAX of them, each of
 * which holds at least one part in STATISTICS_SHARE of the bytes. To find them the sizes of all
 * logical partitions are read, which may be millions: on a worker, within bounds. What was not
 * reached is not listed, and the number of keys is then an estimate.
 *
 * In a cluster the node that was asked asks the owner of each other range for its row, with the
 * client's own request, NODE_HEADER_RANGE and NODE_HEADER_PART, before it looks at its own; the
 * answer to that is the row. An owner that is none any more lets the request begin again.
 *
 * Threads    Called on the request's loop, which asks and sends the answer; a worker looks.
 */
#pragma once

#include "api/core/response_int.h"

#define STATISTICS_KEYS_MAX 10
#define STATISTICS_SHARE    100

/* Answers with 'response', whose body is to be 'body' with the statistics of the request's
 * container. The request's snapshot is held until then, so that both may point into it. */
MUST_USE Status statistics_respond(ApiRequest *r, const Response *response, Slice body, Error *err);

/* Whether another node asks for a row, and the answer to that. */
bool statistics_are_asked(const ApiRequest *r);
MUST_USE Status statistics_answer(ApiRequest *r, const PartitionRange *range, Error *err);
