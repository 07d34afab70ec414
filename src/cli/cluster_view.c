/* cluster_view.c - see cluster_view.h. What a server sent is made harmless before it is shown. */
#include "cli/cluster_view.h"

#include "base/buf.h"
#include "cli/connection.h"
#include "json/json.h"

static Slice text_of(Arena *arena, Json object, const char *name)
{
    return connection_safe_text(arena, json_get(object, slice_from_cstr(name)));
}

static long long number_of(Json object, const char *name)
{
    int64_t value = 0;
    (void)json_to_i64(json_get(object, slice_from_cstr(name)), &value); /* 0 if it is none */
    return value;
}

static void print_nodes(Arena *arena, Json answer, FILE *to)
{
    (void)fprintf(to, "%-16s %-9s %6s %7s %8s %9s  %s\n", "NODE", "STATE", "OWNS", "COPIES",
                  "BEHIND", "RENEWED", "ADDRESS");
    for (JsonIter it = json_iter(json_get(answer, SLICE("nodes"))); json_next(&it);) {
        Slice name = text_of(arena, it.value, "name");
        Slice state = text_of(arena, it.value, "state");
        Slice advertise = text_of(arena, it.value, "advertise");
        (void)fprintf(to, "%-16.*s %-9.*s %6lld %7lld %8lld %7.1f s  %.*s\n", SLICE_ARG(name),
                      SLICE_ARG(state), number_of(it.value, "owned"),
                      number_of(it.value, "followed"), number_of(it.value, "lag"),
                      (double)number_of(it.value, "renewalAgeMs") / 1000, SLICE_ARG(advertise));
    }
}

/* "b +0, c +12": the other nodes that have a copy, and how many entries it lacks. */
static Slice print_copies(Arena *arena, Json space, Slice owner)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (JsonIter it = json_iter(json_get(space, SLICE("replicas"))); json_next(&it);) {
        Slice node = text_of(arena, it.value, "node");
        Slice state = text_of(arena, it.value, "state");
        long long lag = number_of(space, "tail") - number_of(it.value, "applied");
        if (slice_equal(node, owner))
            continue;
        buf_format(&text, "%s%.*s ", text.len == 0 ? "" : ", ", SLICE_ARG(node));
        if (slice_equal(state, SLICE("following")))
            buf_format(&text, "+%lld", lag > 0 ? lag : 0);
        else
            buf_slice(&text, state);
    }
    return arena_copy(arena, buf_view(&text));
}

static void print_spaces(Arena *arena, Json answer, FILE *to)
{
    (void)fprintf(to, "\n%-20s %-16s %7s %10s  %s\n", "SPACE", "OWNER", "EPOCH", "ENTRIES",
                  "COPIES");
    long long left = number_of(answer, "spaceCount");
    for (JsonIter it = json_iter(json_get(answer, SLICE("spaces"))); json_next(&it); left--) {
        Slice owner = text_of(arena, it.value, "owner");
        Slice copies = print_copies(arena, it.value, owner);
        long long id = number_of(it.value, "id");
        char space[32];
        (void)snprintf(space, sizeof(space), id == 1 ? "%lld (catalogue)" : "%lld", id);
        (void)fprintf(to, "%-20s %-16.*s %7lld %10lld  %.*s\n", space, SLICE_ARG(owner),
                      number_of(it.value, "epoch"), number_of(it.value, "tail"), SLICE_ARG(copies));
    }
    if (left > 0)
        (void)fprintf(to, "... and %lld more that are not listed\n", left);
}

static void print_moves(Arena *arena, Json answer, FILE *to)
{
    Json moves = json_get(answer, SLICE("moves"));
    if (json_is(moves, JSON_ARRAY) && json_count(moves) > 0)
        (void)fprintf(to, "\n%-20s %-16s %-16s %-13s %s\n", "MOVING", "FROM", "TO", "STAGE",
                      "REASON");
    for (JsonIter it = json_iter(moves); json_next(&it);) {
        Slice from = text_of(arena, it.value, "from");
        Slice node = text_of(arena, it.value, "to");
        Slice stage = text_of(arena, it.value, "stage");
        Slice reason = text_of(arena, it.value, "reason");
        (void)fprintf(to, "%-20lld %-16.*s %-16.*s %-13.*s %.*s\n", number_of(it.value, "space"),
                      SLICE_ARG(from), SLICE_ARG(node), SLICE_ARG(stage), SLICE_ARG(reason));
    }
    for (JsonIter it = json_iter(json_get(answer, SLICE("movesMissing"))); json_next(&it);) {
        Slice node = connection_safe_text(arena, it.value);
        (void)fprintf(to, "\nNode '%.*s' did not say what it gives away.\n", SLICE_ARG(node));
    }
}

Status cluster_view_print(Arena *arena, Slice json, FILE *to, Error *err)
{
    Json answer;
    TRY(json_parse(arena, json, &answer, err));
    Slice engine = text_of(arena, answer, "engine");
    (void)fprintf(to, "Journal: %.*s, format %lld\n", SLICE_ARG(engine),
                  number_of(answer, "format"));
    for (JsonIter it = json_iter(json_get(answer, SLICE("warnings"))); json_next(&it);) {
        Slice warning = connection_safe_text(arena, it.value);
        (void)fprintf(to, "WARNING: %.*s\n", SLICE_ARG(warning));
    }
    (void)fprintf(to, "\n");
    print_nodes(arena, answer, to);
    print_spaces(arena, answer, to);
    print_moves(arena, answer, to);
    return STATUS_OK;
}

Status cluster_view_owned(Arena *arena, Slice json, Slice node, long long *owned, Error *err)
{
    Json answer;
    TRY(json_parse(arena, json, &answer, err));
    *owned = 0; /* also if it is gone */
    for (JsonIter it = json_iter(json_get(answer, SLICE("nodes"))); json_next(&it);) {
        Json name = json_get(it.value, SLICE("name"));
        if (json_is(name, JSON_STRING) && slice_equal(json_string(name), node))
            *owned = number_of(it.value, "owned");
    }
    return STATUS_OK;
}

Status cluster_view_print_move(Arena *arena, Slice json, FILE *to, Error *err)
{
    Json answer;
    TRY(json_parse(arena, json, &answer, err));
    Slice node = text_of(arena, answer, "node");
    Json spaces = json_get(answer, SLICE("spaces"));
    size_t count = json_count(spaces);
    size_t at = 0;
    (void)fputs(count == 1 ? "Space" : "Spaces", to);
    for (JsonIter it = json_iter(spaces); json_next(&it); at++) {
        int64_t space = 0;
        (void)json_to_i64(it.value, &space); /* 0 if it is none */
        (void)fprintf(to, "%s%lld",
                      at == 0           ? " "
                      : at + 1 == count ? " and "
                                        : ", ",
                      (long long)space);
    }
    if (count == 1)
        (void)fprintf(to, " belongs to node '%.*s'.\n", SLICE_ARG(node));
    else
        (void)fprintf(to, " belong to node '%.*s'. They share throughput, so they move together.\n",
                      SLICE_ARG(node));
    return STATUS_OK;
}

Status cluster_view_print_upgrade(Arena *arena, Slice json, FILE *to, Error *err)
{
    Json answer;
    TRY(json_parse(arena, json, &answer, err));
    long long format = number_of(answer, "format");
    long long before = number_of(answer, "before");
    if (format > before)
        (void)fprintf(to, "The cluster writes format %lld now, instead of %lld.\n", format, before);
    else
        (void)fprintf(to, "The cluster writes format %lld, the newest that its nodes know.\n",
                      format);
    return STATUS_OK;
}
