/* definition_lifetime.c - how long items and changes are kept: defaultTtl, analyticalStorageTtl,
 * changeFeedPolicy. */
#include "catalog/definition_int.h"

static Status check_ttl(Arena *arena, Json in, const char *name, bool zero_is_off, Json *out,
                        Error *err);

Status definition_check_default_ttl(Arena *arena, Json in, Json *out, Error *err)
{
    return check_ttl(arena, in, "defaultTtl", false, out, err);
}

Status definition_check_analytical_ttl(Arena *arena, Json in, Json *out, Error *err)
{
    return check_ttl(arena, in, "analyticalStorageTtl", true, out, err);
}

static Status check_ttl(Arena *arena, Json in, const char *name, bool zero_is_off, Json *out,
                        Error *err)
{
    *out = JSON_NONE;
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    int64_t ttl_s;
    if (!json_is(in, JSON_NUMBER))
        return REFUSE(err, "%s must be a whole number of seconds; found %s.", name,
                      body_type_phrase(in));
    if (!json_to_i64(in, &ttl_s) || ttl_s < -1 || ttl_s > TTL_S_MAX || (ttl_s == 0 && !zero_is_off))
        return REFUSE(err,
                      "%s must be -1, which is for ever, or a whole number of seconds from %d to "
                      "%d; found %.17g.",
                      name, zero_is_off ? 0 : 1, TTL_S_MAX, json_number(in));
    if (ttl_s == 0)
        return STATUS_OK;
    JsonBuilder b;
    json_build(&b, arena);
    json_add_i64(&b, ttl_s);
    *out = json_built(&b);
    return STATUS_OK;
}

Status definition_check_change_feed(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_object(in, "changeFeedPolicy", err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    int64_t minutes = 0;
    bool found;
    TRY(body_read_whole(in, SLICE("retentionDuration"), "changeFeedPolicy", 0,
                        CHANGE_FEED_RETENTION_MIN_MAX, &minutes, &found, err));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("retentionDuration"));
    json_add_i64(&b, minutes);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}
