/* definition_encryption.c - clientEncryptionPolicy: which properties clients encrypt, and how.
 *
 * The server never sees a key. What it must refuse is a policy that would make items impossible to
 * find again: an id or a partition key that is encrypted differently each time.
 */
#include "catalog/definition_int.h"

enum { TYPE_DETERMINISTIC, TYPE_RANDOMIZED };
static const Slice TYPES[] = {SLICE_INIT("Deterministic"), SLICE_INIT("Randomized")};
static const Slice ALGORITHMS[] = {SLICE_INIT("AEAD_AES_256_CBC_HMAC_SHA256")};

/* Version 1 had no way to encrypt an id or a partition key. */
enum { FORMAT_VERSION_MAX = 2, FORMAT_VERSION_KEYS = 2 };

static Status included_path(const EntryList *list, Json in, PropertyPath *path, Error *err);
static bool is_key(Arena *arena, Json normal, Slice name);

Status definition_check_client_encryption(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_object(in, "clientEncryptionPolicy", err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    int64_t version = 1;
    bool found;
    TRY(body_read_whole(in, SLICE("policyFormatVersion"), "clientEncryptionPolicy", 1,
                        FORMAT_VERSION_MAX, &version, &found, err));
    Json entries = body_member(in, SLICE("includedPaths"));
    TRY(body_want_array(entries, "'includedPaths' of clientEncryptionPolicy", POLICY_PATHS_MAX,
                        err));

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("includedPaths"));
    TRY(body_add_entries(arena, &b, entries, included_path, "clientEncryptionPolicy", err));
    json_key(&b, SLICE("policyFormatVersion"));
    json_add_i64(&b, version);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

static Status included_path(const EntryList *list, Json in, PropertyPath *path, Error *err)
{
    const char *what = "an included path of clientEncryptionPolicy";
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "'includedPaths' of clientEncryptionPolicy must hold objects; found %s.",
                      body_type_phrase(in));
    Slice text, key;
    size_t type, algorithm;
    TRY(body_read_path(list->arena, in, SLICE("path"), what, &text, path, err));
    if (path->count != 1)
        return REFUSE(err,
                      "The path '%.*s' of clientEncryptionPolicy must name a property of the item "
                      "itself; only whole top-level properties are encrypted.",
                      SHOWN(text));
    TRY(body_read_text(in, SLICE("clientEncryptionKeyId"), what, SLICE_EMPTY, &key, err));
    if (key.len == 0)
        return REFUSE(err, "'clientEncryptionKeyId' of the path '%.*s' is missing.", SHOWN(text));
    TRY(body_read_word(in, SLICE("encryptionType"), what, WORDS(TYPES), WORD_REQUIRED, &type, err));
    TRY(body_read_word(in, SLICE("encryptionAlgorithm"), what, WORDS(ALGORITHMS), WORD_REQUIRED,
                       &algorithm, err));
    json_begin_object(list->builder);
    body_add_text(list->builder, SLICE("path"), text);
    body_add_text(list->builder, SLICE("clientEncryptionKeyId"), key);
    body_add_text(list->builder, SLICE("encryptionType"), TYPES[type]);
    body_add_text(list->builder, SLICE("encryptionAlgorithm"), ALGORITHMS[algorithm]);
    json_end(list->builder);
    return STATUS_OK;
}

Status definition_cross_check_encryption(Arena *arena, Json normal, Error *err)
{
    Json policy = json_get(normal, SLICE("clientEncryptionPolicy"));
    int64_t version = 0;
    (void)json_to_i64(json_get(policy, SLICE("policyFormatVersion")), &version);
    JsonIter it = json_iter(json_get(policy, SLICE("includedPaths")));
    while (json_next(&it)) {
        Slice text = json_string(json_get(it.value, SLICE("path")));
        PropertyPath path;
        size_t position;
        if (!property_path_parse(arena, text, &path, &position) ||
            !is_key(arena, normal, path.segments[0]))
            continue;
        if (version < FORMAT_VERSION_KEYS)
            return REFUSE(err,
                          "The path '%.*s', which is the id or part of the partition key, can only "
                          "be encrypted with policyFormatVersion %d; found %lld.",
                          SHOWN(text), FORMAT_VERSION_KEYS, (long long)version);
        if (!slice_equal(json_string(json_get(it.value, SLICE("encryptionType"))),
                         TYPES[TYPE_DETERMINISTIC]))
            return REFUSE(
                err,
                "The path '%.*s', which is the id or part of the partition key, must have "
                "the encryptionType 'Deterministic', so that equal values stay equal.",
                SHOWN(text));
    }
    return STATUS_OK;
}

/* Whether the top-level property 'name' is the id, or holds a part of the partition key. */
static bool is_key(Arena *arena, Json normal, Slice name)
{
    if (slice_equal(name, SLICE("id")))
        return true;
    JsonIter it = json_iter(json_get(json_get(normal, SLICE("partitionKey")), SLICE("paths")));
    while (json_next(&it)) {
        PropertyPath path;
        size_t position;
        if (property_path_parse(arena, json_string(it.value), &path, &position) &&
            slice_equal(path.segments[0], name))
            return true;
    }
    return false;
}
