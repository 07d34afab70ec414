/* partition_handle_int.h - what a handle is made of, for the catalogue, which makes them. */
#pragma once

#include "catalog/partition_handle.h"
#include "catalog/reported_usage_int.h"

struct PartitionHandle {
    const PartitionRange *range; /* of the container that owns the handle */
    Partition *partition;        /* these four are references; NULL if it is served elsewhere */
    Budget *budget;
    History *history;
    ReportedUsage *reported;
    uint32_t generation; /* of the container, see partition/write_hold.h */
};
