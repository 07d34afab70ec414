/* patch_tree_int.h - a document under change: what changes is a tree, the rest stays as it was.
 *
 * A node is a value that is not copied until the end: either a plain value, somewhere in the old
 * document or in the patch, or an opened array or object whose members can be changed. Only what
 * stands on the path to a change is opened. The design is at the top of patch_tree.c.
 *
 * Ownership  Everything lives in the arena passed in. The tree borrows from all plain values.
 * Threads    A tree belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "json/json.h"

typedef struct TreeLevel TreeLevel;

/* Exactly one of the two is set. A copy of a node is the same value: keep only one. */
typedef struct TreeNode {
    Json plain;
    TreeLevel *opened;
} TreeNode;

static inline TreeNode patch_tree_plain(Json value)
{
    return (TreeNode){.plain = value};
}

JsonType patch_tree_type(const TreeNode *node);

/* The levels of arrays and objects in the value. */
uint32_t patch_tree_depth(const TreeNode *node);

/* Elements of an array. */
size_t patch_tree_count(const TreeNode *array);

/* The member called 'name', or NULL; also NULL if 'object' is not an object. To assign to it is to
 * replace the member's value. It stays where it is until it is removed. */
TreeNode *patch_tree_member(Arena *arena, TreeNode *object, Slice name);

/* The same for an element. */
TreeNode *patch_tree_element(Arena *arena, TreeNode *array, size_t index);

/* Adds a member after all others; 'object' is an object and has none of that name. */
void patch_tree_append_member(Arena *arena, TreeNode *object, Slice name, TreeNode value);

/* Inserts an element before the one at 'index', or after the last. */
void patch_tree_insert_element(Arena *arena, TreeNode *array, size_t index, TreeNode value);

/* Removes what patch_tree_member or patch_tree_element returned for this container. */
void patch_tree_remove(TreeNode *container, const TreeNode *child);

/* Writes the value. Recursion goes as deep as opened containers are nested. */
void patch_tree_build(JsonBuilder *b, const TreeNode *node);
