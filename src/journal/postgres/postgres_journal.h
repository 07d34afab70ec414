/* postgres_journal.h - a journal kept by PostgreSQL 15 or newer, with a synchronous standby.
 *
 * Everything is in the schema "orrery" of the database that the URL names. A pooler between
 * this program and PostgreSQL must keep sessions whole. libpq is loaded when a journal is opened.
 *
 * Ownership  Closed with journal_close. The options are copied; log and clock outlive the journal.
 * Threads    As in journal.h.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "journal/journal.h"

/* A table of entries that has grown to this is not written to any more: see journal_rotate. */
#define POSTGRES_JOURNAL_ROTATE_BYTES ((uint64_t)256 << 20)

typedef struct PostgresJournalOptions {
    /* postgresql://USER@HOST:PORT,HOST:PORT/DATABASE?sslmode=verify-full&passfile=... or libpq's
     * other form. It may name several hosts, of which the one that takes writes is used. */
    const char *url;
    uint8_t secret[JOURNAL_SECRET_BYTES]; /* the cluster's; never sent */

    /* Off loopback a connection is TLS with a verified host name (sslmode=verify-full), and its
     * password proves that there is nobody in between (channel_binding=require, unless the URL
     * has a client's certificate). True allows less, if the URL asks for it. */
    bool allow_insecure;

    uint64_t rotate_bytes; /* 0 for POSTGRES_JOURNAL_ROTATE_BYTES */
    uint32_t format;       /* the newest that the journal reads; 0 for JOURNAL_FORMAT */
    const Log *log;        /* NULL for none */
    const Clock *clock;    /* NULL for the real one; sockets wait by the real one always */
} PostgresJournalOptions;

/* Does not connect yet. STATUS_BAD_REQUEST if the URL is wrong or asks for less than is allowed,
 * STATUS_UNAVAILABLE if there is no libpq. */
MUST_USE Status postgres_journal_open(const PostgresJournalOptions *options, Journal **out,
                                      Error *err);
