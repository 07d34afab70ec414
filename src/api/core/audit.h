/* audit.h - a file with one line of JSON for each change of the control plane and each refused
 * authorisation.
 *
 * A line is printed by the thread that answers the request and handed to a thread that writes it,
 * with one write(2) to a file that is opened with O_APPEND. So a slow disk holds no request up. The
 * queue between the two is bounded; a line for which there is no room, or that the disk does not
 * take, is dropped and counted. The next line that is written says how many are missing.
 *
 * Ownership  The caller closes the Audit after the last thread that posts has ended.
 * Threads    Any thread posts and asks for a reopening. A thread of its own writes.
 * Format     docs/security.md. Every line is ASCII, whatever ids and paths hold.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/slice.h"

#include <sys/types.h>

#define AUDIT_LINE_BYTES_MAX ((size_t)8 << 10) /* with its line break */

/* Of lines that wait to be written. Refusals may take half of it, so that a client without a key
 * cannot crowd out the changes. */
#define AUDIT_QUEUE_BYTES_MAX ((size_t)16 << 20)

typedef enum AuditEvent {
    AUDIT_CHANGE,  /* a request for a change, with its result */
    AUDIT_REFUSAL, /* a request that was not authorised */
} AuditEvent;

/* What a line says. Slices that are empty are left out; those that are long are cut. */
typedef struct AuditRecord {
    AuditEvent event;
    Slice activity_id;
    Slice client;         /* address and port */
    Slice principal_kind; /* of credential: "key"; "none" or "unknown" if it was refused */
    Slice principal_name; /* which one; never a secret */
    Slice method;
    Slice path; /* without parameters */
    Slice operation;
    Slice resource_type;
    Slice id;
    Slice rid;
    int status;
    uint32_t sub_status;
} AuditRecord;

typedef struct AuditOptions {
    const char *path;
    const Clock *clock; /* these outlive the Audit */
    const Log *log;
    MetricsShard *metrics; /* of the thread that writes */
    size_t queue_bytes_max;
    ssize_t (*write)(int fd, const void *bytes, size_t len); /* NULL for the system's */
} AuditOptions;

typedef struct Audit Audit;

/* Opens the file, or makes it with mode 0600, and starts the thread. */
MUST_USE Status audit_open(const AuditOptions *options, Audit **out, Error *err);

/* Hands a line over. False if there was no room for it: it is counted as dropped. */
bool audit_post(Audit *audit, const AuditRecord *record);

/* Opens the path again after the lines that were posted before this call, which go to the file that
 * is open now. If that fails, this file stays in use. */
void audit_reopen(Audit *audit);

/* Writes what is queued, then ends the thread. Accepts NULL. */
void audit_close(Audit *audit);
DEFINE_AUTO(Audit *, audit_close)
