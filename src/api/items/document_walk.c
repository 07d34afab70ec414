/* document_walk.c - see document_walk_int.h. */
#include "api/items/document_walk_int.h"

#include "api/items/document_token_int.h"
#include "catalog/epk_range.h"

static Slice print_walk(Arena *arena, Slice token, Slice from, Slice to)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    json_begin_object(&b);
    json_key(&b, SLICE("token"));
    if (token.len > 0)
        json_add_string(&b, token);
    else
        json_add_null(&b);
    json_key(&b, SLICE("range"));
    json_begin_object(&b);
    json_key(&b, SLICE("min"));
    json_add_string(&b, epk_text(arena, from));
    json_key(&b, SLICE("max"));
    json_add_string(&b, epk_text(arena, to));
    json_end(&b);
    json_end(&b);
    json_end(&b);
    return json_print_arena(arena, json_built(&b));
}

static Slice text_member(Json object, Slice name)
{
    Json text = json_get(object, name);
    return json_is(text, JSON_STRING) ? json_string(text) : SLICE_EMPTY;
}

/* Finds the first range after 'from' that the query needs; false if there is none. */
static bool find_next(const DocumentQuery *q, const Container *container, Slice from, Slice *begin,
                      Slice *end)
{
    DocumentExtent rest = {
        .route = q->page.extent.route, .epk_from = from, .epk_to = SLICE("\xFF")};
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (!document_extent_needs(&rest, range))
            continue;
        *begin = slice_compare(range->min_bytes, from) > 0 ? range->min_bytes : from;
        *end = range->max_bytes;
        return true;
    }
    return false;
}

/* Reads the outer part of a token, which names the page's range; what is left is the inner token.
 */
static Status read_walk(DocumentQuery *q, Error *err)
{
    Arena *arena = q->page.request->arena;
    Json list = JSON_NONE;
    Error ignored;
    if (json_parse(arena, q->token, &list, &ignored) != STATUS_OK || !json_is(list, JSON_ARRAY) ||
        json_count(list) != 1)
        return document_token_refuse(q->token, err);
    Json first = json_at(list, 0);
    Json range = json_get(first, SLICE("range"));
    Slice min = text_member(range, SLICE("min"));
    Slice max = text_member(range, SLICE("max"));
    if (max.len == 0 ||
        key_header_parse_epk(arena, max, &q->page.extent.epk_to, &ignored) != STATUS_OK ||
        (min.len > 0 &&
         key_header_parse_epk(arena, min, &q->page.extent.epk_from, &ignored) != STATUS_OK))
        return document_token_refuse(q->token, err);
    q->token = arena_copy(arena, text_member(first, SLICE("token")));
    return STATUS_OK;
}

Status document_walk_begin(DocumentQuery *q, const Container *container, Error *err)
{
    if (q->token.len > 0 && q->token.ptr[0] == '[')
        return read_walk(q, err);
    if (q->token.len == 0)
        (void)find_next(q, container, SLICE_EMPTY, &q->page.extent.epk_from,
                        &q->page.extent.epk_to);
    return STATUS_OK;
}

Slice document_walk_next(const DocumentQuery *q, Slice inner)
{
    Arena *arena = q->page.request->arena;
    if (inner.len > 0)
        return print_walk(arena, inner, q->page.extent.epk_from, q->page.extent.epk_to);
    Slice from;
    Slice to;
    if (!find_next(q, q->page.container, q->page.extent.epk_to, &from, &to))
        return SLICE_EMPTY;
    return print_walk(arena, SLICE_EMPTY, from, to);
}
