/* copy_state.c - see copy_state.h. */
#include "transfer/copy_state.h"

#include "base/array.h"
#include "base/mem.h"
#include "json/json.h"

void copy_state_init(CopyState *state)
{
    *state = (CopyState){0};
    arena_init(&state->arena, 16 << 10);
}

void copy_state_done(CopyState *state)
{
    mem_free(state->lanes);
    mem_free(state->rejects);
    arena_done(&state->arena);
}

void copy_state_add_lane(CopyState *state, Slice min, Slice max, const CopyLane *like)
{
    CopyLane lane = like == NULL ? (CopyLane){0} : *like;
    lane.min = arena_copy(&state->arena, min);
    lane.max = arena_copy(&state->arena, max);
    ARRAY_GROW(state->lanes, state->lane_count, state->lane_capacity, 16);
    state->lanes[state->lane_count++] = lane;
}

static CopyReject *find_reject(const CopyState *state, Slice id, Slice key)
{
    for (size_t i = 0; i < state->reject_count; i++) {
        if (slice_equal(state->rejects[i].id, id) && slice_equal(state->rejects[i].key, key))
            return &state->rejects[i];
    }
    return NULL;
}

Status copy_state_reject(CopyState *state, Slice id, Slice key, Slice reason, Error *err)
{
    CopyReject *found = find_reject(state, id, key);
    if (found == NULL && state->reject_count == COPY_REJECTS_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "more than %d items cannot be copied; the last one: %.*s",
                         COPY_REJECTS_MAX, SLICE_CUT(reason, 300));
    if (found == NULL) {
        ARRAY_GROW(state->rejects, state->reject_count, state->reject_capacity, 16);
        found = &state->rejects[state->reject_count++];
        *found = (CopyReject){.id = arena_copy(&state->arena, id),
                              .key = arena_copy(&state->arena, key)};
    }
    if (!slice_equal(found->reason, reason))
        found->reason = arena_copy(&state->arena, reason);
    return STATUS_OK;
}

void copy_state_forget(CopyState *state, Slice id, Slice key)
{
    CopyReject *found = find_reject(state, id, key);
    if (found != NULL)
        *found = state->rejects[--state->reject_count];
}

bool copy_position_set(char out[COPY_POSITION_LEN_MAX], Slice etag)
{
    if (etag.len >= COPY_POSITION_LEN_MAX)
        return false;
    for (size_t i = 0; i < etag.len; i++) {
        if (etag.ptr[i] < ' ' || etag.ptr[i] > '~')
            return false;
    }
    if (etag.len > 0)
        memcpy(out, etag.ptr, etag.len);
    out[etag.len] = '\0';
    return true;
}

bool copy_position_lsn(const char *position, uint64_t *out)
{
    Slice text = slice_from_cstr(position);
    if (slice_starts_with(text, SLICE("\"")) && slice_ends_with(text, SLICE("\"")) && text.len > 2)
        text = slice_make(text.ptr + 1, text.len - 2);
    return slice_to_u64(text, out);
}

/* ---- reading ---- */

static Status bad(const char *what, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the file to resume from has no good '%s'",
                     what);
}

static Slice text_of(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    return json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
}

static bool flag_of(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    return json_is(value, JSON_BOOL) && json_bool(value);
}

static bool is_bound(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

static Status parse_lanes(CopyState *state, Json list, Error *err)
{
    if (!json_is(list, JSON_ARRAY) || json_count(list) > COPY_LANES_MAX)
        return bad("lanes", err);
    for (JsonIter it = json_iter(list); json_next(&it);) {
        Slice min = text_of(it.value, "min");
        Slice max = text_of(it.value, "max");
        CopyLane lane = {.follows = flag_of(it.value, "follows")};
        if (!is_bound(min) || !is_bound(max) || slice_compare(min, max) >= 0 ||
            !copy_position_set(lane.position, text_of(it.value, "position")) ||
            !copy_position_set(lane.base, text_of(it.value, "base")))
            return bad("lanes", err);
        copy_state_add_lane(state, min, max, &lane);
    }
    return STATUS_OK;
}

static Status parse_rejects(CopyState *state, Json list, Error *err)
{
    if (!json_is(list, JSON_ARRAY) || json_count(list) > COPY_REJECTS_MAX)
        return bad("rejects", err);
    for (JsonIter it = json_iter(list); json_next(&it);)
        TRY(copy_state_reject(state, text_of(it.value, "id"), text_of(it.value, "key"),
                              text_of(it.value, "reason"), err));
    return STATUS_OK;
}

Status copy_state_parse(CopyState *state, Slice text, Slice job, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Json object;
    int64_t copied = 0;
    if (json_parse(&arena, text, &object, err) != STATUS_OK)
        return error_context(err, "the file to resume from");
    if (!slice_equal(text_of(object, "orrery"), SLICE("copy")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from is not of a copy");
    if (!slice_equal(text_of(object, "job"), job))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from is of a copy with other options; give the same "
                         "ones again, or remove it and the copy to begin anew");
    if (!json_to_i64(json_get(object, SLICE("copied")), &copied) || copied < 0)
        return bad("copied", err);
    state->copied = (uint64_t)copied;
    state->source = arena_copy(&state->arena, text_of(object, "source"));
    state->copy = arena_copy(&state->arena, text_of(object, "copy"));
    state->old_name = arena_copy(&state->arena, text_of(object, "oldName"));
    state->has_versions = flag_of(object, "versions");
    state->set_retention = flag_of(object, "retention");
    state->is_swapped = flag_of(object, "swapped");
    state->is_clean = flag_of(object, "clean");
    TRY(parse_lanes(state, json_get(object, SLICE("lanes")), err));
    return parse_rejects(state, json_get(object, SLICE("rejects")), err);
}

/* ---- printing ---- */

static void put_text(Buf *out, const char *name, Slice text)
{
    buf_format(out, "\"%s\":", name);
    json_print_string(text, out);
}

static void put_flag(Buf *out, const char *name, bool value)
{
    buf_format(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static void put_lane(Buf *out, const CopyLane *lane)
{
    buf_byte(out, '{');
    put_text(out, "min", lane->min);
    buf_byte(out, ',');
    put_text(out, "max", lane->max);
    buf_byte(out, ',');
    put_text(out, "position", slice_from_cstr(lane->position));
    buf_byte(out, ',');
    put_text(out, "base", slice_from_cstr(lane->base));
    put_flag(out, "follows", lane->follows);
    buf_byte(out, '}');
}

static void put_reject(Buf *out, const CopyReject *reject)
{
    buf_byte(out, '{');
    put_text(out, "id", reject->id);
    buf_byte(out, ',');
    put_text(out, "key", reject->key);
    buf_byte(out, ',');
    put_text(out, "reason", reject->reason);
    buf_byte(out, '}');
}

void copy_state_print(const CopyState *state, Slice job, Buf *out)
{
    buf_slice(out, SLICE("{\"orrery\":\"copy\","));
    put_text(out, "job", job);
    buf_byte(out, ',');
    put_text(out, "source", state->source);
    buf_byte(out, ',');
    put_text(out, "copy", state->copy);
    buf_byte(out, ',');
    put_text(out, "oldName", state->old_name);
    buf_slice(out, SLICE(",\"copied\":"));
    buf_u64(out, state->copied);
    put_flag(out, "versions", state->has_versions);
    put_flag(out, "retention", state->set_retention);
    put_flag(out, "swapped", state->is_swapped);
    put_flag(out, "clean", state->is_clean);
    buf_slice(out, SLICE(",\"lanes\":["));
    for (size_t i = 0; i < state->lane_count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        put_lane(out, &state->lanes[i]);
    }
    buf_slice(out, SLICE("],\"rejects\":["));
    for (size_t i = 0; i < state->reject_count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        put_reject(out, &state->rejects[i]);
    }
    buf_slice(out, SLICE("]}\n"));
}
