/* definition_encryption_key.c - the bodies of client encryption keys: see definition.h.
 *
 * Only clients know what the parts mean. What is checked is that they are there and can be given
 * back as they were sent.
 */
#include "base/encoding.h"
#include "catalog/definition_int.h"

static Status read_part(Json body, Slice name, Slice *out, Error *err)
{
    const char *what = "a client encryption key";
    TRY(body_read_text(body, name, what, SLICE_EMPTY, out, err));
    if (out->len > 0)
        return STATUS_OK;
    return REFUSE(err, "The body of a client encryption key must have '%.*s', a string.",
                  SLICE_ARG(name));
}

Status encryption_key_definition_create(Arena *arena, Json body, Json *normal, Error *err)
{
    Slice id, algorithm, wrapped;
    TRY(body_read_id(body, "client encryption key", &id, err));
    TRY(read_part(body, SLICE("encryptionAlgorithm"), &algorithm, err));
    TRY(read_part(body, SLICE("wrappedDataEncryptionKey"), &wrapped, err));
    uint8_t *bytes = arena_alloc(arena, wrapped.len);
    size_t len = 0;
    if (!base64_decode(BASE64_STANDARD, wrapped, bytes, wrapped.len, &len))
        return REFUSE(err, "'wrappedDataEncryptionKey' of a client encryption key must be base64.");
    Json metadata = json_get(body, SLICE("keyWrapMetadata"));
    if (!json_is(metadata, JSON_OBJECT))
        return REFUSE(err,
                      "The body of a client encryption key must have 'keyWrapMetadata', an object; "
                      "found %s.",
                      body_type_phrase(metadata));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("id"), id);
    body_add_text(&b, SLICE("encryptionAlgorithm"), algorithm);
    body_add_text(&b, SLICE("wrappedDataEncryptionKey"), wrapped);
    body_add_member(&b, SLICE("keyWrapMetadata"), metadata);
    json_end(&b);
    *normal = json_built(&b);
    return STATUS_OK;
}
