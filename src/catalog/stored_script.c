/* stored_script.c - see stored_script.h. */
#include "catalog/stored_script.h"

#include "base/mem.h"
#include "catalog/resource_int.h"

enum { ARENA_BLOCK = 1024 };

StoredScriptGroup container_scripts(const Container *container, StoredScriptKind kind)
{
    return (StoredScriptGroup){
        .database = container->database,
        .container = container->info.number,
        .kind = kind,
    };
}

RidKind stored_script_rid_kind(StoredScriptKind kind)
{
    static const RidKind kinds[] = {
        [STORED_PROCEDURE] = RID_STORED_PROCEDURE,
        [STORED_TRIGGER] = RID_TRIGGER,
        [STORED_FUNCTION] = RID_USER_DEFINED_FUNCTION,
    };
    static_assert(ARRAY_COUNT(kinds) == STORED_SCRIPT_KINDS, "every kind has one");
    return kinds[kind];
}

static Status damaged(StoredScriptKind kind, const char *why, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "a stored %s %s", stored_script_noun(kind),
                     why);
}

Status stored_script_new(const StoredScriptRecord *record, StoredScript **out, Error *err)
{
    AUTO(stored_script_unref) StoredScript *script = MEM_NEW(StoredScript);
    atomic_init(&script->refs, 1);
    arena_init(&script->arena, ARENA_BLOCK);
    Arena *arena = &script->arena;
    StoredScriptGroup group = record->group;
    ASSERT(group.kind < STORED_SCRIPT_KINDS);
    if (json_size(record->definition) > DEFINITION_BYTES_MAX)
        return damaged(group.kind, "is too large", err);
    script->group = group;
    script->definition = json_trust(json_bytes(arena, record->definition));
    Json id = json_get(script->definition, SLICE("id"));
    Json body = json_get(script->definition, SLICE("body"));
    if (!json_is(id, JSON_STRING))
        return damaged(group.kind, "has no id", err);
    if (!json_is(body, JSON_STRING))
        return damaged(group.kind, "has no body", err);
    script->body = json_string(body);
    if (group.kind == STORED_TRIGGER)
        TRY(stored_script_trigger(script->definition, &script->trigger_type,
                                  &script->trigger_operation, err));
    char rid[RID_CHILD_LEN];
    rid_print_child(stored_script_rid_kind(group.kind), group.database, group.container,
                    record->number, rid);
    resource_fill_info(&script->info, arena, record->number, record->lsn, record->ts_s);
    script->info.id = json_string(id);
    script->info.rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
    *out = TAKE(script);
    return STATUS_OK;
}

StoredScript *stored_script_ref(const StoredScript *script)
{
    StoredScript *shared = UNCONST(StoredScript, script);
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void stored_script_unref(StoredScript *script)
{
    if (script == NULL || atomic_fetch_sub_explicit(&script->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_done(&script->arena);
    mem_free(script);
}

StoredScriptRecord stored_script_record(const StoredScript *script)
{
    return (StoredScriptRecord){
        .number = script->info.number,
        .group = script->group,
        .lsn = script->info.lsn,
        .ts_s = script->info.ts_s,
        .definition = script->definition,
    };
}
