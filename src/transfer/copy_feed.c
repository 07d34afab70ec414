/* copy_feed.c - the lanes of a copy; see copy_int.h.
 *
 * A lane reads the feed of the latest versions from its beginning. Where the source keeps all
 * versions, it changes to that feed when it has passed the place at which the copy began
 * (CopyLane.base), and goes on from that place: what was changed or deleted meanwhile comes again,
 * in order.
 */
#include "transfer/copy_int.h"

enum { LANES_AT_ONCE = 16 };

static Slice max_of(Slice a, Slice b)
{
    return slice_compare(a, b) > 0 ? a : b;
}

static Slice min_of(Slice a, Slice b)
{
    return slice_compare(a, b) < 0 ? a : b;
}

/* Makes lanes that lie in one range each. They go on at the same positions. */
static Status cut_lanes(Copy *copy, Error *err)
{
    CopyState *state = &copy->state;
    size_t count = state->lane_count;
    for (size_t i = 0; i < count; i++) {
        CopyLane lane = state->lanes[i];
        bool is_first = true;
        for (size_t j = 0; j < copy->source.map.count; j++) {
            const MapRange *range = &copy->source.map.ranges[j];
            Slice from = max_of(lane.min, range->min);
            Slice to = min_of(lane.max, range->max);
            if (slice_compare(from, to) >= 0)
                continue;
            if (state->lane_count == COPY_LANES_MAX)
                return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                                 "the source was split into more than %d ranges", COPY_LANES_MAX);
            if (!is_first)
                copy_state_add_lane(state, from, to, &lane);
            else
                state->lanes[i].max = arena_copy(&state->arena, to);
            is_first = false;
        }
    }
    return STATUS_OK;
}

static void add_scope(const Copy *copy, const CopyLane *lane, CopyCall *call)
{
    const MapRange *range = container_map_find(&copy->source.map, lane->min);
    copy_call_header(call, "x-ms-documentdb-partitionkeyrangeid", range->id);
    if (slice_equal(lane->min, range->min) && slice_equal(lane->max, range->max))
        return;
    copy_call_header(call, "x-ms-read-key-type", SLICE("EffectivePartitionKeyRange"));
    copy_call_header(call, "x-ms-start-epk", lane->min);
    copy_call_header(call, "x-ms-end-epk", lane->max);
}

static void fill_call(const Copy *copy, const CopyLane *lane, bool all_versions, Slice position,
                      Arena *arena, CopyCall *call)
{
    copy_call_init(call, &copy->source, REMOTE_ITEMS, arena);
    copy_call_header(call, "a-im",
                     all_versions ? SLICE("Full-Fidelity Feed") : SLICE("Incremental Feed"));
    copy_call_header(call, "x-ms-cosmos-changefeed-wire-format-version", SLICE("2021-09-15"));
    copy_call_header(call, "x-ms-max-item-count", arena_format(arena, "%d", COPY_PAGE_ITEMS));
    if (position.len > 0)
        copy_call_header(call, "if-none-match", position);
    add_scope(copy, lane, call);
}

/* Where the feed of each lane is now. With all versions it is asked from there at once, which a
 * partition refuses that has not begun to keep them. */
static Status read_bases(Copy *copy, bool *is_refused, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    *is_refused = false;
    for (size_t i = 0; i < copy->state.lane_count; i++) {
        CopyLane *lane = &copy->state.lanes[i];
        CopyCall call;
        fill_call(copy, lane, copy->state.has_versions, SLICE("*"), &arena, &call);
        TRY(copy_calls_run(&copy->source, &call, 1, err));
        int status = call.wave.call.http_status;
        *is_refused = status == 400;
        if (*is_refused && copy->state.has_versions)
            return STATUS_OK;
        if (status != 304 && status != 200)
            return remote_refused(&call.wave.call, err);
        if (!copy_position_set(lane->base, client_header(&call.wave.call, SLICE("etag"))))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the feed has no good ETag");
        if (!copy->state.has_versions)
            continue;
        fill_call(copy, lane, true, slice_from_cstr(lane->base), &arena, &call);
        TRY(copy_calls_run(&copy->source, &call, 1, err));
        status = call.wave.call.http_status;
        *is_refused = status != 304 && status != 200;
        if (*is_refused)
            return STATUS_OK;
        arena_reset(&arena);
    }
    return STATUS_OK;
}

Status copy_open_lanes(Copy *copy, Error *err)
{
    enum { TRIES_MAX = 20 };
    CopyState *state = &copy->state;
    TRY(copy_read_map(&copy->source, err));
    TRY(copy_read_map(&copy->target, err));
    if (state->lane_count > 0)
        return cut_lanes(copy, err);
    for (int i = 0; i < TRIES_MAX; i++) {
        bool is_refused = false;
        state->lane_count = 0;
        copy_state_add_lane(state, SLICE(""), SLICE("FF"), NULL);
        TRY(cut_lanes(copy, err));
        TRY(read_bases(copy, &is_refused, err));
        if (!is_refused)
            return STATUS_OK;
    }
    state->has_versions = false; /* deletes are looked for at the end */
    bool is_refused = false;
    return read_bases(copy, &is_refused, err);
}

/* ---- pages ---- */

static bool is_past_base(const CopyLane *lane)
{
    uint64_t at = 0;
    uint64_t base = 0;
    return !copy_position_lsn(lane->position, &at) || !copy_position_lsn(lane->base, &base) ||
           at >= base;
}

static Status take_page(Copy *copy, CopyLane *lane, const ClientCall *call, Arena *arena,
                        size_t *count, Error *err)
{
    CopyChange *changes = NULL;
    size_t found = 0;
    Json page;
    Slice etag = client_header(call, SLICE("etag"));
    if (json_parse(arena, call->body, &page, err) != STATUS_OK)
        return error_context(err, "a page of the change feed");
    TRY(copy_changes_parse(arena, page, &copy->keys, &changes, &found, err));
    /* What is older than the beginning of the copy is seen for the first time. */
    bool looks_up = lane->follows || (lane->position[0] != '\0' && is_past_base(lane));
    uint64_t at = 0;
    uint64_t base = 0;
    CopyLane next = *lane;
    if (!copy_position_set(next.position, etag) || etag.len == 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "a page of the feed has no good ETag");
    if (!lane->follows && (!copy_position_lsn(next.position, &at) ||
                           !copy_position_lsn(lane->base, &base) || at > base))
        looks_up = true;
    TRY(copy_apply(copy, arena, changes, found, looks_up, err));
    memcpy(lane->position, next.position, sizeof(lane->position));
    *count += found;
    return STATUS_OK;
}

/* The source does not keep all versions since the copy was last level. The positions are good in
 * the other feed as well; what was deleted is found by comparing. */
static Status leave_versions(Copy *copy, Error *err)
{
    if (copy->options->swaps)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the source does not keep its versions since the copy stood still; delete "
                         "the copy and the file of --resume, and begin anew");
    copy->state.has_versions = false;
    for (size_t i = 0; i < copy->state.lane_count; i++) {
        copy->state.lanes[i].follows = false;
        copy->state.lanes[i].is_level = false;
    }
    return STATUS_OK;
}

static Status take_answer(Copy *copy, CopyLane *lane, const ClientCall *call, Arena *arena,
                          size_t *count, Error *err)
{
    switch (call->http_status) {
    case 200:
        lane->is_level = false;
        TRY(take_page(copy, lane, call, arena, count, err));
        break;
    case 304:
        lane->is_level = true;
        (void)copy_position_set(lane->position, client_header(call, SLICE("etag")));
        break;
    case 410:
        copy->needs_map = true;
        lane->is_level = false;
        return STATUS_OK;
    default:
        if (call->http_status == 400 && lane->follows)
            return leave_versions(copy, err);
        return remote_refused(call, err);
    }
    if (!lane->follows && copy->state.has_versions && (lane->is_level || is_past_base(lane))) {
        lane->follows = true;
        lane->is_level = false;
        memcpy(lane->position, lane->base, sizeof(lane->position));
    }
    return STATUS_OK;
}

/* A split or a merge: it takes a moment until the map is whole. */
static Status refresh_map(Copy *copy, Error *err)
{
    Status status = copy_read_map(&copy->source, err);
    if (status == STATUS_UNAVAILABLE || status == STATUS_GONE)
        return STATUS_OK;
    TRY(status);
    copy->needs_map = false;
    return cut_lanes(copy, err);
}

Status copy_round(Copy *copy, size_t *count, Error *err)
{
    *count = 0;
    if (copy->needs_map)
        TRY(refresh_map(copy, err));
    for (size_t from = 0; from < copy->state.lane_count; from += LANES_AT_ONCE) {
        size_t left = copy->state.lane_count - from;
        size_t some = left < LANES_AT_ONCE ? left : LANES_AT_ONCE;
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 256 << 10);
        CopyCall *calls = ARENA_NEW_ARRAY(&arena, CopyCall, some);
        bool has_versions = copy->state.has_versions;
        for (size_t i = 0; i < some; i++) {
            const CopyLane *lane = &copy->state.lanes[from + i];
            fill_call(copy, lane, lane->follows, slice_from_cstr(lane->position), &arena,
                      &calls[i]);
        }
        TRY(copy_calls_run(&copy->source, calls, some, err));
        /* One lane may have ended the following of all: the other answers are not needed then. */
        for (size_t i = 0; i < some && copy->state.has_versions == has_versions; i++)
            TRY(take_answer(copy, &copy->state.lanes[from + i], &calls[i].wave.call, &arena, count,
                            err));
        TRY(copy_save(copy, err));
    }
    return STATUS_OK;
}

bool copy_is_level(const Copy *copy)
{
    for (size_t i = 0; i < copy->state.lane_count; i++) {
        const CopyLane *lane = &copy->state.lanes[i];
        if (!lane->is_level || (copy->state.has_versions && !lane->follows))
            return false;
    }
    return !copy->needs_map;
}
