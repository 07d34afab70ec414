/* container_usage_int.h - what the partitions of a container hold, those of other nodes included.
 *
 * The owner of a partition is asked by the client's own request with the range that is meant
 * (NODE_HEADER_RANGE), and answers in a header. Threads: the request's loop. */
#pragma once

#include "api/core/quota_int.h"

typedef struct ContainerUsage {
    QuotaUsage held;
    unsigned progress; /* of the index of the slowest partition, in percent */
} ContainerUsage;

/* Answers another node that asks about one range. STATUS_NOT_OWNER if it is not served here. */
MUST_USE Status container_usage_answer(ApiRequest *r, const PartitionRange *range, Error *err);

/* 'done' answers the request, which has its snapshot, database and container then: before this
 * returns if all partitions are this node's. */
typedef void (*ContainerUsageDone)(ApiRequest *r, const ContainerUsage *usage);
void container_usage_find(ApiRequest *r, ContainerUsageDone done);
