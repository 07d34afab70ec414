/* stored_script.h - stored procedures, triggers and user-defined functions of a container, as they
 * stand at one moment.
 *
 * A request finds one in its snapshot without a lock (snapshot.h):
 *
 *     StoredScriptGroup group = container_scripts(container, STORED_TRIGGER);
 *     const StoredScript *script = snapshot_script_by_id(snapshot, group, id);
 *
 * and keeps it with stored_script_ref() if it needs it for longer than the snapshot. A replacement
 * makes a new object. 'info.lsn' tells versions apart: no two versions of any scripts in a data
 * folder have the same one, before or after a restart.
 *
 * A body may have megabytes, so it is kept once: snapshots share the object, and what is shown to
 * clients is made for each request.
 *
 * Ownership  Reference counted; a Snapshot holds references on all it shows.
 * Threads    Immutable after they are made; any thread may read and release them.
 */
#pragma once

#include "catalog/resource.h"

/* The scripts of one kind that a container has. */
typedef struct StoredScriptGroup {
    uint32_t database;
    uint32_t container;
    StoredScriptKind kind;
} StoredScriptGroup;

typedef struct StoredScript {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info; /* no view is kept with it */
    StoredScriptGroup group;
    Json definition; /* normal form, see definition.h */
    Slice body;      /* of the definition */

    /* Of a trigger. */
    TriggerType trigger_type;
    TriggerOperation trigger_operation;
} StoredScript;

/* A plain description, which is stored, and from which the object is made. */
typedef struct StoredScriptRecord {
    uint32_t number;
    StoredScriptGroup group;
    uint64_t lsn;
    int64_t ts_s;
    Json definition;
} StoredScriptRecord;

StoredScriptGroup container_scripts(const Container *container, StoredScriptKind kind);

/* Everything is copied. STATUS_CORRUPT on a definition that is not a normal form. */
MUST_USE Status stored_script_new(const StoredScriptRecord *record, StoredScript **out, Error *err);

StoredScript *stored_script_ref(const StoredScript *script);
void stored_script_unref(StoredScript *script); /* accepts NULL */
DEFINE_AUTO(StoredScript *, stored_script_unref)

/* What it was made from; the definition is borrowed from it. */
StoredScriptRecord stored_script_record(const StoredScript *script);

/* What the resource id of a script of this kind says. */
RidKind stored_script_rid_kind(StoredScriptKind kind);
