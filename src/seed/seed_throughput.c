/* seed_throughput.c - the reserved throughput of databases and containers that exist: offers.
 *
 * A change from manual to autoscale or back is asked for by a header. The server then chooses the
 * number, so the offer is read again after it, and replaced again if the number is another one.
 */
#include "base/encoding.h"
#include "seed/seed_int.h"

enum { STEPS_MAX = 4 }; /* migrate, replace, and one look more than needed */

/* What a resource asks for, or has. */
typedef struct Throughput {
    bool is_autoscale;
    int64_t ru;
} Throughput;

static bool read_wanted(Json resource, Throughput *out)
{
    Throughput t = {0};
    if (json_to_i64(json_get(resource, SLICE("maxThroughput")), &t.ru))
        t.is_autoscale = true;
    else if (!json_to_i64(json_get(resource, SLICE("throughput")), &t.ru))
        return false;
    *out = t;
    return true;
}

ClientHeader seed_throughput_header(Arena *arena, Json resource)
{
    Throughput wanted;
    if (!read_wanted(resource, &wanted))
        return (ClientHeader){0};
    if (wanted.is_autoscale)
        return (ClientHeader){
            "x-ms-cosmos-offer-autopilot-settings",
            arena_format(arena, "{\"maxThroughput\":%lld}", (long long)wanted.ru)};
    return (ClientHeader){"x-ms-offer-throughput",
                          arena_format(arena, "%lld", (long long)wanted.ru)};
}

static bool read_found(Json offer, Throughput *out)
{
    Json content = json_get(offer, SLICE("content"));
    Json settings = json_get(content, SLICE("offerAutopilotSettings"));
    Throughput t = {.is_autoscale = json_is(settings, JSON_OBJECT)};
    bool is_good = t.is_autoscale ? json_to_i64(json_get(settings, SLICE("maxThroughput")), &t.ru)
                                  : json_to_i64(json_get(content, SLICE("offerThroughput")), &t.ru);
    if (is_good)
        *out = t;
    return is_good;
}

/* The offer of the resource with that rid; undefined if it has none. */
static Status find_offer(SeedRun *run, Slice rid, Json *out, Error *err)
{
    JsonBuilder b;
    json_build(&b, run->arena);
    json_begin_object(&b);
    json_key(&b, SLICE("query"));
    json_add_string(&b, SLICE("SELECT * FROM root WHERE root.offerResourceId = @rid"));
    json_key(&b, SLICE("parameters"));
    json_begin_array(&b);
    json_begin_object(&b);
    json_key(&b, SLICE("name"));
    json_add_string(&b, SLICE("@rid"));
    json_key(&b, SLICE("value"));
    json_add_string(&b, rid);
    json_end(&b);
    json_end(&b);
    json_end(&b);
    SeedRequest request = {
        .method = CLIENT_POST,
        .path = SLICE("/offers"),
        .type = SLICE("offers"),
        .body = json_built(&b),
        .headers = {{"content-type", SLICE("application/query+json")},
                    {"x-ms-documentdb-isquery", SLICE("True")}},
    };
    ClientCall call;
    Json answer;
    TRY(seed_ask(run, &request, &call, err));
    if (call.http_status != 200)
        return remote_refused(&call, err);
    TRY(seed_answer(run, &call, &answer, err));
    *out = json_at(json_get(answer, SLICE("Offers")), 0);
    return STATUS_OK;
}

/* The offer with other contents. */
static Json new_offer(Arena *arena, Json offer, const Throughput *wanted)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (JsonIter it = json_iter(offer); json_next(&it);) {
        if (slice_equal(it.name, SLICE("content")))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_key(&b, SLICE("content"));
    json_begin_object(&b);
    if (wanted->is_autoscale) {
        json_key(&b, SLICE("offerAutopilotSettings"));
        json_begin_object(&b);
        json_key(&b, SLICE("maxThroughput"));
        json_add_i64(&b, wanted->ru);
        json_end(&b);
    } else {
        json_key(&b, SLICE("offerThroughput"));
        json_add_i64(&b, wanted->ru);
    }
    json_end(&b);
    json_end(&b);
    return json_built(&b);
}

static Slice lower(Arena *arena, Slice text)
{
    char *out = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++)
        out[i] = (char)(out[i] >= 'A' && out[i] <= 'Z' ? out[i] + ('a' - 'A') : out[i]);
    return slice_make(out, text.len);
}

static Status replace_offer(SeedRun *run, Json offer, const Throughput *found,
                            const Throughput *wanted, Error *err)
{
    Json rid = json_get(offer, SLICE("_rid"));
    if (!json_is(rid, JSON_STRING))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server's offer has no _rid");
    SeedRequest request = {
        .method = CLIENT_PUT,
        .path = arena_format(run->arena, "/offers/%.*s", SLICE_ARG(json_string(rid))),
        .type = SLICE("offers"),
        .link = lower(run->arena, json_string(rid)), /* an offer has no name, so this is signed */
        .body = new_offer(run->arena, offer, wanted),
        .headers = {{"content-type", SLICE("application/json")}},
    };
    if (found->is_autoscale != wanted->is_autoscale)
        request.headers[1] =
            (ClientHeader){wanted->is_autoscale ? "x-ms-cosmos-migrate-offer-to-autopilot"
                                                : "x-ms-cosmos-migrate-offer-to-manual-throughput",
                           SLICE("true")};
    ClientCall call;
    TRY(seed_ask(run, &request, &call, err));
    return call.http_status == 200 ? STATUS_OK : remote_refused(&call, err);
}

Status seed_throughput_apply(SeedRun *run, Json resource, Slice rid, bool *is_changed, Error *err)
{
    Throughput wanted, found;
    *is_changed = false;
    if (!read_wanted(resource, &wanted))
        return STATUS_OK;
    for (int i = 0; i < STEPS_MAX; i++) {
        Json offer = JSON_NONE;
        TRY(find_offer(run, rid, &offer, err));
        if (json_is(offer, JSON_UNDEFINED))
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "it exists without throughput of its own, which cannot be added "
                             "later: it shares that of its database, or the account is serverless");
        if (!read_found(offer, &found))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "the server's offer has no throughput");
        if (found.is_autoscale == wanted.is_autoscale && found.ru == wanted.ru)
            return STATUS_OK;
        TRY(replace_offer(run, offer, &found, &wanted, err));
        *is_changed = true;
    }
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the server accepts the throughput but does not show it");
}
