/* patch_apply.c - applies a checked patch to a document: see patch.h.
 *
 * All operations work on one tree over the document (patch_tree_int.h), which is written out once
 * at the end. After each of them the tree is at most JSON_DEPTH_MAX levels deep, which bounds every
 * recursion over it: without that, moves could stack one deep branch on another.
 *
 * The texts of failures are the service's where it is known to have one.
 */
#include "partition/item.h"
#include "partition/patch_int.h"
#include "partition/patch_tree_int.h"

/* Where a path leads: a child of an array or object that exists. */
typedef struct Spot {
    TreeNode *parent;
    TreeNode *child; /* NULL if it does not exist yet */
    Slice segment;   /* the child's name or index */
    size_t index;    /* of an element, at most the number of elements */
    bool is_element;
    bool is_end; /* "-", after the last element */
} Spot;

static Status apply_operation(Arena *arena, const PatchOperation *op, TreeNode *root, Error *err);

Status patch_apply(const Patch *patch, Arena *arena, Json document, Json *out, Error *err)
{
    ASSERT(json_is(document, JSON_OBJECT));
    TreeNode root = patch_tree_plain(document);
    for (size_t i = 0; i < patch->count; i++) {
        if (apply_operation(arena, &patch->operations[i], &root, err) != STATUS_OK)
            return error_context(err, "For Operation(%zu)", i + 1);
    }
    JsonBuilder b;
    json_build(&b, arena);
    patch_tree_build(&b, &root);
    Json built = json_built(&b);
    if (json_is(built, JSON_UNDEFINED) || json_size(built) > patch->bytes_max)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         ITEM_TOO_LARGE "The patched document has more than %zu bytes.",
                         patch->bytes_max);
    if (json_depth(built) > JSON_DEPTH_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The patched document has %u levels, expected at most %d.",
                         json_depth(built), JSON_DEPTH_MAX);
    *out = built;
    return STATUS_OK;
}

/* Digits without leading zeros. An index beyond any array is as good as the largest number. */
static bool parse_index(Slice segment, size_t *out)
{
    if (segment.len == 0 || (segment.len > 1 && segment.ptr[0] == '0'))
        return false;
    for (size_t i = 0; i < segment.len; i++) {
        if (segment.ptr[i] < '0' || segment.ptr[i] > '9')
            return false;
    }
    uint64_t index;
    *out = slice_to_u64(segment, &index) ? index : SIZE_MAX;
    return true;
}

static TreeNode *find_child(Arena *arena, TreeNode *parent, Slice segment)
{
    size_t index;
    if (patch_tree_type(parent) != JSON_ARRAY)
        return patch_tree_member(arena, parent, segment);
    return parse_index(segment, &index) ? patch_tree_element(arena, parent, index) : NULL;
}

static Status out_of_bounds(const Spot *spot, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Index(%.*s) to operate on is out of array bounds.",
                     SLICE_CUT(spot->segment, PATCH_SEGMENT_SHOWN));
}

static Status absent(const PatchPointer *pointer, PatchKind kind, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "Node(%.*s) to be %s",
                     SLICE_CUT(pointer->text, PATCH_PATH_SHOWN),
                     kind == PATCH_REPLACE ? "replaced is absent."
                                           : "removed is absent. Note: it may also have been "
                                             "removed earlier in the transaction.");
}

/* 'segment' of the path does not lead to an array or object. */
static Status no_parent(const PatchPointer *pointer, PatchKind kind, Slice segment, Error *err)
{
    if (kind == PATCH_REMOVE)
        return absent(pointer, kind, err);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "%s Operation can only create a child object of an existing node(array or "
                     "object) and cannot create path recursively, no path found beyond: '%.*s'.",
                     kind == PATCH_ADD ? "Add" : "Given", SLICE_CUT(segment, PATCH_SEGMENT_SHOWN));
}

/* Looks the last segment of a path up in its parent. */
static Status find_in_parent(Arena *arena, Spot *spot, Error *err)
{
    spot->is_element = patch_tree_type(spot->parent) == JSON_ARRAY;
    if (!spot->is_element) {
        spot->child = patch_tree_member(arena, spot->parent, spot->segment);
        return STATUS_OK;
    }
    size_t count = patch_tree_count(spot->parent);
    spot->is_end = slice_equal(spot->segment, SLICE("-"));
    if (spot->is_end)
        spot->index = count;
    else if (!parse_index(spot->segment, &spot->index))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Index(%.*s) to operate on is not a position in an array.",
                         SLICE_CUT(spot->segment, PATCH_SEGMENT_SHOWN));
    if (spot->index > count)
        return out_of_bounds(spot, err);
    spot->child = patch_tree_element(arena, spot->parent, spot->index);
    return STATUS_OK;
}

static Status check_creatable(const Spot *spot, const PatchPointer *pointer, PatchKind kind,
                              Error *err)
{
    switch (kind) {
    case PATCH_ADD:
    case PATCH_MOVE:
        return STATUS_OK;
    case PATCH_SET:
        return spot->is_element && !spot->is_end ? out_of_bounds(spot, err) : STATUS_OK;
    case PATCH_INCR:
        return spot->is_element ? out_of_bounds(spot, err) : STATUS_OK;
    case PATCH_REPLACE:
    case PATCH_REMOVE:
        break;
    }
    return spot->is_element ? out_of_bounds(spot, err) : absent(pointer, kind, err);
}

/* Follows a path to its last segment, for an operation of 'kind': what it leads to exists, or that
 * operation can create it. */
static Status find_spot(Arena *arena, TreeNode *root, const PatchPointer *pointer, PatchKind kind,
                        Spot *out, Error *err)
{
    const Slice *segments = pointer->path.segments;
    size_t last = pointer->path.count - 1;
    Spot spot = {.parent = root, .segment = segments[last]};
    for (size_t i = 0; i < last; i++) {
        TreeNode *node = find_child(arena, spot.parent, segments[i]);
        if (node == NULL ||
            (patch_tree_type(node) != JSON_OBJECT && patch_tree_type(node) != JSON_ARRAY))
            return no_parent(pointer, kind, segments[i], err);
        spot.parent = node;
    }
    TRY(find_in_parent(arena, &spot, err));
    if (spot.child == NULL)
        TRY(check_creatable(&spot, pointer, kind, err));
    *out = spot;
    return STATUS_OK;
}

static Status check_depth(const PatchPointer *pointer, const TreeNode *value, Error *err)
{
    /* Each segment has a container that it is looked up in. */
    size_t levels = pointer->path.count + patch_tree_depth(value);
    if (levels > JSON_DEPTH_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The document would have %zu levels, expected at most %d.", levels,
                         JSON_DEPTH_MAX);
    return STATUS_OK;
}

static void create(Arena *arena, const Spot *spot, TreeNode value)
{
    if (spot->is_element)
        patch_tree_insert_element(arena, spot->parent, spot->index, value);
    else
        patch_tree_append_member(arena, spot->parent, spot->segment, value);
}

/* Replaces what is there, or creates it. */
static void put(Arena *arena, const Spot *spot, TreeNode value)
{
    if (spot->child != NULL)
        *spot->child = value;
    else
        create(arena, spot, value);
}

/* The same, but makes room among the elements of an array. */
static void add(Arena *arena, const Spot *spot, TreeNode value)
{
    if (spot->is_element)
        create(arena, spot, value);
    else
        put(arena, spot, value);
}

/* Integers stay exact as long as the sum is one of 64 bits. */
static Status add_numbers(Arena *arena, Json a, Json b, Json *out, Error *err)
{
    int64_t x, y, sum;
    JsonBuilder builder;
    json_build(&builder, arena);
    if (json_to_i64(a, &x) && json_to_i64(b, &y) && !__builtin_add_overflow(x, y, &sum)) {
        json_add_i64(&builder, sum);
    } else {
        double total = json_number(a) + json_number(b);
        if (!__builtin_isfinite(total))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The incremented number is out of range.");
        json_add_number(&builder, total);
    }
    *out = json_built(&builder);
    return STATUS_OK;
}

static Status increment(Arena *arena, const Spot *spot, const PatchOperation *op, Error *err)
{
    if (spot->child == NULL) {
        create(arena, spot, patch_tree_plain(op->value));
        return STATUS_OK;
    }
    if (patch_tree_type(spot->child) != JSON_NUMBER)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "Node(%.*s) is not a number.",
                         SLICE_CUT(op->path.text, PATCH_PATH_SHOWN));
    return add_numbers(arena, spot->child->plain, op->value, &spot->child->plain, err);
}

/* What 'from' leads to is removed first, so it does not count in the positions of 'path'. */
static Status move(Arena *arena, const PatchOperation *op, TreeNode *root, Error *err)
{
    Spot spot = {0};
    TRY(find_spot(arena, root, &op->from, PATCH_REMOVE, &spot, err));
    ASSERT(spot.child != NULL);
    TreeNode value = *spot.child;
    patch_tree_remove(spot.parent, spot.child);

    TRY(find_spot(arena, root, &op->path, PATCH_MOVE, &spot, err));
    TRY(check_depth(&op->path, &value, err));
    add(arena, &spot, value);
    return STATUS_OK;
}

static Status apply_operation(Arena *arena, const PatchOperation *op, TreeNode *root, Error *err)
{
    if (op->kind == PATCH_MOVE)
        return move(arena, op, root, err);
    Spot spot;
    TRY(find_spot(arena, root, &op->path, op->kind, &spot, err));
    if (op->kind == PATCH_REMOVE) {
        patch_tree_remove(spot.parent, spot.child);
        return STATUS_OK;
    }
    if (op->kind == PATCH_INCR)
        return increment(arena, &spot, op, err);

    TreeNode value = patch_tree_plain(op->value);
    TRY(check_depth(&op->path, &value, err));
    if (op->kind == PATCH_ADD)
        add(arena, &spot, value);
    else
        put(arena, &spot, value);
    return STATUS_OK;
}
