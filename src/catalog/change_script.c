/* change_script.c - changes of stored procedures, triggers and user-defined functions. */
#include "catalog/change_int.h"

static StoredScriptGroup group_of(const CatalogChange *change)
{
    return (StoredScriptGroup){
        .database = change->database,
        .container = change->container,
        .kind = change->script_kind,
    };
}

static Slice definition_id(const CatalogChange *change)
{
    return json_string(json_get(change->definition, SLICE("id")));
}

static Status check_owner(const Work *work, const CatalogChange *change, Error *err)
{
    if (snapshot_container(work->snapshot, change->database, change->container) != NULL)
        return STATUS_OK;
    return change_owner_not_found(err, "container");
}

/* Makes the script that 'record' and the change's definition describe, and puts it. */
static Status put_script(Work *work, CatalogChange *change, StoredScriptRecord *record, Error *err)
{
    record->lsn = ++work->counters->lsn;
    record->ts_s = work->now_s;
    record->definition = change->definition;
    AUTO(stored_script_unref) StoredScript *script = NULL;
    TRY(stored_script_new(record, &script, err));
    if (!snapshot_put_script(work->snapshot, stored_script_ref(script)))
        return change_name_collision(err);
    record_put_script(work->txn, record);
    change->script_count = snapshot_script_count(work->snapshot, record->group);
    change->result_script = TAKE(script);
    return STATUS_OK;
}

Status change_create_script(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_owner(work, change, err));
    StoredScriptGroup group = group_of(change);
    const StoredScript *same = snapshot_script_by_id(work->snapshot, group, definition_id(change));
    const char *noun = stored_script_noun(group.kind);
    if (same != NULL && !change->is_upsert)
        return change_id_exists(err, noun, same->info.id);
    if (same != NULL) {
        TRY(catalog_check_etag(change->if_match, same->info.etag, err));
        change->has_replaced = true;
        StoredScriptRecord replaced = stored_script_record(same);
        return put_script(work, change, &replaced, err);
    }
    size_t max = stored_script_count_max(group.kind);
    if (snapshot_script_count(work->snapshot, group) >= max)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "The container has %zu resources of type %s, which is the most there can "
                         "be.",
                         max, noun);
    StoredScriptRecord record = {.group = group};
    TRY(change_take_number(&work->counters->script_next, RID_SCRIPT_MAX, &record.number, err));
    return put_script(work, change, &record, err);
}

Status change_replace_script(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_owner(work, change, err));
    StoredScriptGroup group = group_of(change);
    const StoredScript *old = snapshot_script(work->snapshot, group, change->script);
    const char *noun = stored_script_noun(group.kind);
    if (old == NULL)
        return change_not_found(err, noun);
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    const StoredScript *same = snapshot_script_by_id(work->snapshot, group, definition_id(change));
    if (same != NULL && same != old)
        return change_id_exists(err, noun, same->info.id);
    StoredScriptRecord record = stored_script_record(old);
    return put_script(work, change, &record, err);
}

Status change_delete_script(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_owner(work, change, err));
    StoredScriptGroup group = group_of(change);
    const StoredScript *old = snapshot_script(work->snapshot, group, change->script);
    if (old == NULL)
        return change_not_found(err, stored_script_noun(group.kind));
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    work->counters->lsn++;
    record_delete_script(work->txn, group, change->script);
    snapshot_remove_script(work->snapshot, group, change->script);
    change->script_count = snapshot_script_count(work->snapshot, group);
    return STATUS_OK;
}

void change_drop_scripts(Work *work, const Container *container)
{
    for (int kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        StoredScriptGroup group = container_scripts(container, (StoredScriptKind)kind);
        const StoredScript *script;
        for (uint32_t from = 0;
             (script = snapshot_next_script(work->snapshot, group, from)) != NULL;
             from = script->info.number + 1)
            record_delete_script(work->txn, group, script->info.number);
    }
}
