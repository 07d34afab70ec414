/* cluster_settings.h - what `orrery serve` is told of the cluster that it is a node of. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_SECRET_BYTES      32
#define CLUSTER_REPLICAS_MAX      7
#define CLUSTER_KEEP_S_MAX        86400
#define CLUSTER_JOURNAL_BYTES_MIN ((uint64_t)256 << 20)

/* As given; the texts of options that were not are empty. */
typedef struct ClusterTexts {
    const char *cluster;
    const char *secret;
    const char *node;
    const char *advertise;
    const char *peer;
} ClusterTexts;

typedef struct ClusterSettings {
    const char *engine; /* its URL; NULL if the server is no node of a cluster */
    const char *secret_file;
    const char *node;
    const char *advertise; /* URL for clients */
    const char *peer_host; /* for the other nodes */
    uint16_t peer_port;    /* 0 for any free one */
    uint32_t replicas;
    uint32_t keep_s;        /* a replica that is further behind is expelled */
    uint64_t journal_bytes; /* with more in the journal, writes are refused */
    bool allows_weak_engine;
} ClusterSettings;

/* Checks that all that a node needs was given, or nothing. Fills in the texts only. */
MUST_USE Status cluster_settings_read(Arena *arena, const ClusterTexts *texts, ClusterSettings *out,
                                      Error *err);

/* With how many bytes a table of the journal is full. It is emptied only after that, and only as a
 * whole; so the one that is being written and those before it, whose entries are not needed any
 * more, must stay far below the quarter of 'journal_bytes' from which on dead nodes are not waited
 * for. 0 for the journal's own choice, which is right for large ones. */
uint64_t cluster_settings_rotate_bytes(const ClusterSettings *settings);

/* The secret that `orrery cluster secret` has printed into the file. */
MUST_USE Status cluster_secret_read(const char *path, uint8_t out[CLUSTER_SECRET_BYTES],
                                    Error *err);

/* A secret for one use, made of that of the cluster, so that no use tells anything of another. */
void cluster_secret_derive(const uint8_t secret[CLUSTER_SECRET_BYTES], const char *use,
                           uint8_t out[CLUSTER_SECRET_BYTES]);
