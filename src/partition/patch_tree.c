/* patch_tree.c - see patch_tree_int.h.
 *
 * An opened container is a list of pieces. A piece is either one member that was changed, with a
 * node of its own, or a run: a number of members that still stand side by side in the source.
 *
 *     source   [ a  b  c  d  e  f ]       remove 1, replace 3 by X, append Y:
 *     pieces   run(a) run(c) X run(e f) Y
 *
 * A run is an iterator that stands before its first member, and a count. So opening a container of
 * any size costs one piece, each change at most three more, and the memory of a patch follows from
 * its operations and the depth of their paths, not from the size of the document. Runs stay in the
 * order of their source. A table of all members would be simpler, but forty bytes for each element
 * of an array of small numbers is many times the document.
 */
#include "partition/patch_tree_int.h"

typedef struct Piece Piece;
struct Piece {
    Piece *next;
    size_t count; /* of members; 1 for a changed one */
    bool is_run;
    JsonIter run;  /* of a run */
    Slice name;    /* of a changed member of an object */
    TreeNode node; /* of a changed member */
};

struct TreeLevel {
    Json source;
    bool is_object;
    size_t count; /* of members in all pieces */
    Piece *first;
};

/* The opened form of an array or object of type 'type'; NULL if the value is none. */
static TreeLevel *open_level(Arena *arena, TreeNode *node, JsonType type)
{
    if (patch_tree_type(node) != type)
        return NULL;
    if (node->opened != NULL)
        return node->opened;

    TreeLevel *level = ARENA_NEW(arena, TreeLevel);
    level->source = node->plain;
    level->is_object = type == JSON_OBJECT;
    level->count = json_count(node->plain);
    if (level->count > 0) {
        level->first = ARENA_NEW(arena, Piece);
        *level->first =
            (Piece){.count = level->count, .is_run = true, .run = json_iter(node->plain)};
    }
    *node = (TreeNode){.opened = level};
    return level;
}

/* Makes a piece begin 'at' members into the one at 'link' and returns the link to it. */
static Piece **cut(Arena *arena, Piece **link, size_t at)
{
    Piece *piece = *link;
    if (at == 0)
        return link;
    ASSERT(piece != NULL);
    if (at < piece->count) {
        Piece *rest = ARENA_NEW(arena, Piece);
        *rest = *piece;
        rest->count -= at;
        for (size_t i = 0; i < at; i++)
            (void)json_next(&rest->run); /* the run has more */
        piece->count = at;
        piece->next = rest;
    }
    return &piece->next;
}

/* Gives the first member of the piece at 'link' a node of its own. */
static TreeNode *isolate(Arena *arena, Piece **link)
{
    Piece *piece = *link;
    if (piece->is_run) {
        (void)cut(arena, link, 1);
        (void)json_next(&piece->run);
        piece->is_run = false;
        piece->name = piece->run.name;
        piece->node = patch_tree_plain(piece->run.value);
    }
    return &piece->node;
}

/* Where 'value', a member's in the source, stands in the run; the run's count if it does not. */
static size_t find_in_run(const Piece *run, Json value)
{
    JsonIter it = run->run;
    size_t at = 0;
    while (at < run->count && json_next(&it) && it.value.at != value.at)
        at++;
    return at;
}

JsonType patch_tree_type(const TreeNode *node)
{
    if (node->opened == NULL)
        return json_type(node->plain);
    return node->opened->is_object ? JSON_OBJECT : JSON_ARRAY;
}

uint32_t patch_tree_depth(const TreeNode *node)
{
    if (node->opened == NULL)
        return json_depth(node->plain);
    uint32_t deepest = 0;
    for (const Piece *piece = node->opened->first; piece != NULL; piece = piece->next) {
        uint32_t depth = piece->is_run ? 0 : patch_tree_depth(&piece->node);
        JsonIter it = piece->run;
        for (size_t i = 0; piece->is_run && i < piece->count && json_next(&it); i++)
            depth = json_depth(it.value) > depth ? json_depth(it.value) : depth;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

size_t patch_tree_count(const TreeNode *array)
{
    return array->opened != NULL ? array->opened->count : json_count(array->plain);
}

TreeNode *patch_tree_member(Arena *arena, TreeNode *object, Slice name)
{
    TreeLevel *level = open_level(arena, object, JSON_OBJECT);
    if (level == NULL)
        return NULL;
    Json source = json_get(level->source, name);
    for (Piece **link = &level->first; *link != NULL; link = &(*link)->next) {
        Piece *piece = *link;
        if (!piece->is_run) {
            if (slice_equal(piece->name, name))
                return &piece->node;
        } else if (source.at != NULL) {
            size_t at = find_in_run(piece, source);
            if (at < piece->count)
                return isolate(arena, cut(arena, link, at));
        }
    }
    return NULL;
}

/* The link to the piece that begins with element 'index', or to the end of the list. */
static Piece **seek(Arena *arena, TreeLevel *level, size_t index)
{
    Piece **link = &level->first;
    while (*link != NULL && index >= (*link)->count) {
        index -= (*link)->count;
        link = &(*link)->next;
    }
    return cut(arena, link, index);
}

TreeNode *patch_tree_element(Arena *arena, TreeNode *array, size_t index)
{
    TreeLevel *level = open_level(arena, array, JSON_ARRAY);
    if (level == NULL || index >= level->count)
        return NULL;
    return isolate(arena, seek(arena, level, index));
}

static void insert(Arena *arena, TreeLevel *level, size_t index, Slice name, TreeNode value)
{
    ASSERT(index <= level->count);
    Piece **link = seek(arena, level, index);
    Piece *piece = ARENA_NEW(arena, Piece);
    *piece = (Piece){.next = *link, .count = 1, .name = name, .node = value};
    *link = piece;
    level->count++;
}

void patch_tree_append_member(Arena *arena, TreeNode *object, Slice name, TreeNode value)
{
    TreeLevel *level = open_level(arena, object, JSON_OBJECT);
    ASSERT(level != NULL);
    insert(arena, level, level->count, name, value);
}

void patch_tree_insert_element(Arena *arena, TreeNode *array, size_t index, TreeNode value)
{
    TreeLevel *level = open_level(arena, array, JSON_ARRAY);
    ASSERT(level != NULL);
    insert(arena, level, index, SLICE_EMPTY, value);
}

void patch_tree_remove(TreeNode *container, const TreeNode *child)
{
    TreeLevel *level = container->opened;
    ASSERT(level != NULL);
    Piece **link = &level->first;
    while (*link != NULL && &(*link)->node != child)
        link = &(*link)->next;
    ASSERT(*link != NULL);
    *link = (*link)->next;
    level->count--;
}

static void build_run(JsonBuilder *b, const Piece *run)
{
    JsonIter it = run->run;
    for (size_t i = 0; i < run->count && json_next(&it); i++) {
        if (it.is_object)
            json_key(b, it.name);
        json_add(b, it.value);
    }
}

void patch_tree_build(JsonBuilder *b, const TreeNode *node)
{
    const TreeLevel *level = node->opened;
    if (level == NULL) {
        json_add(b, node->plain);
        return;
    }
    if (level->is_object)
        json_begin_object(b);
    else
        json_begin_array(b);
    for (const Piece *piece = level->first; piece != NULL; piece = piece->next) {
        if (piece->is_run) {
            build_run(b, piece);
            continue;
        }
        if (level->is_object)
            json_key(b, piece->name);
        patch_tree_build(b, &piece->node);
    }
    json_end(b);
}
