/* copy_swap.c - the copy takes the name of the source over; see copy_int.h.
 *
 * The server holds the writes of the source for some seconds (/_orrery/swap). The copy reads the
 * last changes, which are the last ones, and the server changes both names in one commit. A copy
 * that is killed meanwhile leaves nothing behind: the server lets the writes go on after that time.
 * One that is killed after the commit finds, when it is begun again, that the name is its own
 * already (copy_set_up).
 */
#include "base/clock.h"
#include "base/encoding.h"
#include "transfer/copy_int.h"

#include <stdio.h>
#include <time.h>

enum {
    CONFLICT_WAIT_MS = 100,
    CONFLICTS_MAX = 600,
    SETTLE_MS = 500, /* at most, if the copy is killed meanwhile */
    OTHER_SERVER_WAIT_MS = 3000,
    /* Containers up to this size are compared item by item while writes wait. */
    DIGEST_ITEMS_MAX = 20000,
};

static Status ask(Copy *copy, ClientMethod method, Slice path, Arena *arena, ClientCall *out,
                  Error *err)
{
    *out = (ClientCall){.method = method, .path = path, .arena = arena};
    return remote_ask(&copy->source.remote, out, err);
}

static void rest(uint32_t ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
                    NULL);
}

/* Waits for a move of the source, a deletion of a key, or the hold of a copy that was killed. */
static Status hold(Copy *copy, Arena *arena, uint32_t ms, bool has_copy, Slice *token, Error *err)
{
    const Slice keep = SLICE("-_.~");
    const Remote *source = &copy->source.remote;
    Slice path = arena_format(arena, "/_orrery/swap?database=%.*s&container=%.*s&milliseconds=%u",
                              SLICE_ARG(percent_encode(arena, source->database, keep)),
                              SLICE_ARG(percent_encode(arena, source->container, keep)), ms);
    if (has_copy)
        path = arena_format(arena, "%.*s&copy=%.*s", SLICE_ARG(path),
                            SLICE_ARG(percent_encode(arena, copy->target.remote.container, keep)));
    ClientCall call;
    for (int i = 0; i < CONFLICTS_MAX; i++) {
        TRY(ask(copy, CLIENT_POST, path, arena, &call, err));
        if (call.http_status != 409)
            break;
        rest(CONFLICT_WAIT_MS);
    }
    if (call.http_status != 201)
        return remote_refused(&call, err);
    Json answer;
    TRY(json_parse(arena, call.body, &answer, err));
    Json text = json_get(answer, SLICE("token"));
    if (!json_is(text, JSON_STRING))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server gave no token");
    *token = json_string(text);
    return STATUS_OK;
}

static void let_go(Copy *copy, Arena *arena, Slice token)
{
    ClientCall call;
    Error ignored;
    Slice path = arena_format(arena, "/_orrery/swap/%.*s", SLICE_ARG(token));
    /* If that fails, the server lets go by itself. */
    (void)!ask(copy, CLIENT_DELETE, path, arena, &call, &ignored);
}

/* A write that began before the source was told to keep all versions may end after that, and is not
 * kept. Other servers have no such request: they get some time instead. */
Status copy_settle(Copy *copy, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice token;
    Status status = hold(copy, &arena, SETTLE_MS, false, &token, err);
    if (status == STATUS_OK)
        let_go(copy, &arena, token);
    else if (status == STATUS_NOT_FOUND || status == STATUS_BAD_REQUEST ||
             status == STATUS_UNAUTHORIZED || status == STATUS_UNAVAILABLE)
        rest(OTHER_SERVER_WAIT_MS);
    else
        return status;
    return STATUS_OK;
}

/* Nothing changes any more: reads all that is left. */
static Status drain(Copy *copy, Error *err)
{
    for (size_t i = 0; i < copy->state.lane_count; i++)
        copy->state.lanes[i].is_level = false;
    while (!copy_is_level(copy)) {
        size_t count = 0;
        TRY(copy_round(copy, &count, err));
    }
    TRY(copy_retry_rejects(copy, err));
    if (copy->state.reject_count > 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "%zu items of the source cannot be in the copy, so it does not take the "
                         "name; the first: id '%.*s', key %.*s: %.*s",
                         copy->state.reject_count, SLICE_CUT(copy->state.rejects[0].id, 60),
                         SLICE_CUT(copy->state.rejects[0].key, 60),
                         SLICE_CUT(copy->state.rejects[0].reason, 120));
    return STATUS_OK;
}

static Status differ(uint64_t source, uint64_t target, Error *err)
{
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "the copy has %llu items and the source %llu, or they differ, although "
                     "nothing is left to copy; the name stays. Does something else write to the "
                     "copy, or do items expire?",
                     (unsigned long long)target, (unsigned long long)source);
}

static Status verify(Copy *copy, Error *err)
{
    uint64_t source = 0;
    uint64_t target = 0;
    bool is_known = false;
    bool is_known_too = false;
    if (copy->is_mortal) /* what has expired is still counted, and is not there any more */
        return STATUS_OK;
    TRY(copy_count(&copy->source, &source, &is_known, err));
    TRY(copy_count(&copy->target, &target, &is_known_too, err));
    if (is_known && is_known_too && source != target)
        return differ(source, target, err);
    if (!is_known || source > DIGEST_ITEMS_MAX)
        return STATUS_OK;
    CopySummary *s = &copy->summary;
    TRY(copy_digest(copy, &copy->source, &s->source, err));
    TRY(copy_digest(copy, &copy->target, &s->copy, err));
    s->has_digests = true;
    bool is_same = s->source.count == s->copy.count &&
                   memcmp(&s->source.sum, &s->copy.sum, sizeof(s->copy.sum)) == 0;
    return is_same ? STATUS_OK : differ(s->source.count, s->copy.count, err);
}

/* The name of the old container; the same each time the copy is resumed. */
static Status choose_name(Copy *copy, Error *err)
{
    CopyState *state = &copy->state;
    if (state->old_name.len > 0)
        return STATUS_OK;
    time_t now = (time_t)clock_wall_s(clock_real());
    struct tm utc;
    char text[32];
    if (gmtime_r(&now, &utc) == NULL || strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc) == 0)
        return error_set(err, STATUS_INTERNAL, SUB_NONE, "the clock shows no time");
    state->old_name = arena_format(&state->arena, "%.*s-before-%s",
                                   SLICE_CUT(copy->source.remote.container, 230), text);
    return copy_save(copy, err);
}

/* After an answer that was lost, the name itself tells. */
static Status has_name(Copy *copy, bool *out, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    Json container;
    Slice rid;
    bool found = false;
    TRY(copy_read_container(&copy->source, &arena, &container, &rid, &found, err));
    *out = found && slice_equal(rid, copy->state.copy);
    return STATUS_OK;
}

static Status commit(Copy *copy, Arena *arena, Slice token, bool *is_late, Error *err)
{
    ClientCall call;
    Slice path =
        arena_format(arena, "/_orrery/swap/%.*s?name=%.*s", SLICE_ARG(token),
                     SLICE_ARG(percent_encode(arena, copy->state.old_name, SLICE("-_.~"))));
    Status status = ask(copy, CLIENT_POST, path, arena, &call, err);
    if (status == STATUS_OK && call.http_status == 204)
        return STATUS_OK;
    if (status == STATUS_OK && call.http_status == 410) {
        *is_late = true;
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        return remote_refused(&call, err);
    bool is_done = false;
    Error ignored;
    if (has_name(copy, &is_done, &ignored) == STATUS_OK && is_done)
        return STATUS_OK;
    return status;
}

Status copy_swap(Copy *copy, bool *is_late, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    Slice token;
    *is_late = false;
    TRY(choose_name(copy, err));
    TRY(hold(copy, &arena, copy->options->hold_ms, true, &token, err));
    uint64_t held_us = clock_monotonic_us(clock_real());
    Status status = drain(copy, err);
    if (status == STATUS_OK)
        status = verify(copy, err);
    if (status != STATUS_OK) {
        let_go(copy, &arena, token);
        return status;
    }
    TRY(commit(copy, &arena, token, is_late, err));
    if (*is_late)
        return STATUS_OK;
    copy->summary.held_ms = (double)(clock_monotonic_us(clock_real()) - held_us) / 1000;
    copy->state.is_swapped = true;
    copy->state.set_retention = false; /* of a container that is not in use any more */
    copy->summary.is_swapped = true;
    return copy_save(copy, err);
}

Status copy_drop_old(Copy *copy, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    Remote old;
    remote_init(&old, &arena, copy->source.remote.client, copy->source.remote.stop_fd,
                copy->options->database, arena_cstr(&arena, copy->state.old_name));
    ClientCall call = remote_call(&old, REMOTE_CONTAINER, &arena);
    call.method = CLIENT_DELETE;
    TRY(remote_ask(&old, &call, err));
    return call.http_status == 204 || call.http_status == 404 ? STATUS_OK
                                                              : remote_refused(&call, err);
}
