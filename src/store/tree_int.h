/* tree_int.h - an ordered map of keys to values whose copies are references.
 *
 * It is an AVL tree with reference-counted nodes. Copying a tree takes one reference; a change
 * copies the nodes on its path that another tree still shares, and changes in place those that it
 * has alone. So a snapshot costs nothing to take, and a tree that was never copied costs no more
 * than an ordinary one. An entry may be a deletion mark: the tree of a transaction
 * lies over the store's state, where a key that is only missing above would not hide the one below.
 *
 * Ownership  A Tree is released with tree_done. An entry that a look-up returns lives as long as
 *            the tree is not changed; tree_entry_ref keeps it longer.
 * Threads    A Tree belongs to one thread at a time. Two trees that share nodes may be used,
 *            changed and released by two threads.
 */
#pragma once

#include "base/defs.h"
#include "base/slice.h"

#include <stdatomic.h>

typedef struct TreeEntry {
    _Atomic uint32_t refs;
    bool deleted;
    uint32_t key_len;
    uint32_t value_len;
    char bytes[]; /* the key, then the value */
} TreeEntry;

typedef struct TreeNode TreeNode;

typedef struct Tree {
    TreeNode *root; /* NULL when it is empty, so that a zeroed Tree is a valid one */
    size_t count;
    size_t bytes; /* of keys and values */
} Tree;

Tree tree_copy(const Tree *tree);
void tree_done(Tree *tree); /* leaves an empty one */
DEFINE_AUTO_VALUE(Tree, tree_done)

void tree_put(Tree *tree, Slice key, Slice value); /* replaces what is there */
void tree_mark_deleted(Tree *tree, Slice key);     /* replaces it by a deletion mark */
void tree_remove(Tree *tree, Slice key);           /* takes it out; it need not be there */
void tree_put_entry(Tree *tree, TreeEntry *entry); /* shares an entry of another tree */

/* As tree_put, or as tree_mark_deleted if 'value' is NULL. Returns the new entry, which lives as
 * long as it is in the tree, and hands out a reference to the one that it replaces, or NULL. */
TreeEntry *tree_replace(Tree *tree, Slice key, const Slice *value, TreeEntry **replaced);

/* NULL if there is none. Deletion marks are found like any other entry. */
TreeEntry *tree_find(const Tree *tree, Slice key);
TreeEntry *tree_at_or_after(const Tree *tree, Slice key); /* the first with its key >= 'key' */
TreeEntry *tree_after(const Tree *tree, Slice key);       /* the first with its key > 'key' */
TreeEntry *tree_before(const Tree *tree, Slice key);      /* the last with its key < 'key' */

/* Calls 'visit' for every entry in the order of the keys. */
void tree_each(const Tree *tree, void (*visit)(void *ctx, TreeEntry *entry), void *ctx);

TreeEntry *tree_entry_ref(TreeEntry *entry);
void tree_entry_unref(TreeEntry *entry);

static inline Slice tree_entry_key(const TreeEntry *entry)
{
    return slice_make(entry->bytes, entry->key_len);
}

static inline Slice tree_entry_value(const TreeEntry *entry)
{
    return slice_make(entry->bytes + entry->key_len, entry->value_len);
}
