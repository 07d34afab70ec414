/* cluster_adopt.h - `orrery cluster adopt`: the data folder of a server without a cluster becomes
 * that of the first node of a new one.
 *
 * The data stays as it is; the folder learns of which cluster it is, and the engine of which
 * partitions there are. It can be repeated after whatever has ended it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ClusterAdoptOptions {
    const char *data;
    const char *cluster; /* the engine's URL */
    const char *secret;  /* the file */
    const char *node;
    const char *advertise;
    bool allows_weak_engine;
    FILE *to; /* where progress is shown */
} ClusterAdoptOptions;

MUST_USE Status cluster_adopt(const ClusterAdoptOptions *options, Error *err);
