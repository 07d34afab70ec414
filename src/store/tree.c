/* tree.c - see tree_int.h for what a tree is.
 *
 * Every change walks down from the root and calls own() on each node before it touches it. A node
 * with one reference is reachable only through its parent, and the parent has already been made
 * ours on the way down; that is why changing it in place cannot be seen by another tree.
 *
 * Depth is bounded: an AVL tree of 2^32 entries is less than 48 levels high, so recursion is safe.
 */
#include "store/tree_int.h"

#include "base/mem.h"

struct TreeNode {
    _Atomic uint32_t refs;
    int height; /* of a leaf: 1 */
    TreeNode *left;
    TreeNode *right;
    TreeEntry *entry;
};

static TreeEntry *entry_new(Slice key, Slice value, bool deleted);
static TreeNode *node_ref(TreeNode *node);
static void node_unref(TreeNode *node);
static TreeNode *own(TreeNode *node);
static TreeNode *insert(Tree *tree, TreeNode *node, TreeEntry *entry, TreeEntry **replaced);
static void put(Tree *tree, TreeEntry *entry);
static TreeNode *take_out(TreeNode *node, Slice key);
static TreeNode *take_first(TreeNode *node, TreeEntry **first);
static TreeNode *balance(TreeNode *node);
static void each(const TreeNode *node, void (*visit)(void *ctx, TreeEntry *entry), void *ctx);

static size_t entry_bytes(const TreeEntry *entry)
{
    return (size_t)entry->key_len + entry->value_len;
}

Tree tree_copy(const Tree *tree)
{
    (void)node_ref(tree->root);
    return *tree;
}

void tree_done(Tree *tree)
{
    node_unref(tree->root);
    *tree = (Tree){0};
}

void tree_put(Tree *tree, Slice key, Slice value)
{
    put(tree, entry_new(key, value, false));
}

void tree_mark_deleted(Tree *tree, Slice key)
{
    put(tree, entry_new(key, SLICE_EMPTY, true));
}

void tree_put_entry(Tree *tree, TreeEntry *entry)
{
    put(tree, tree_entry_ref(entry));
}

TreeEntry *tree_replace(Tree *tree, Slice key, const Slice *value, TreeEntry **replaced)
{
    TreeEntry *entry = entry_new(key, value != NULL ? *value : SLICE_EMPTY, value == NULL);
    *replaced = NULL;
    tree->root = insert(tree, tree->root, entry, replaced);
    return entry;
}

/* Consumes the reference. */
static void put(Tree *tree, TreeEntry *entry)
{
    TreeEntry *replaced = NULL;
    tree->root = insert(tree, tree->root, entry, &replaced);
    if (replaced != NULL)
        tree_entry_unref(replaced);
}

void tree_remove(Tree *tree, Slice key)
{
    /* Looking first keeps the removal of an absent key from copying a path for nothing. */
    const TreeEntry *entry = tree_find(tree, key);
    if (entry == NULL)
        return;
    ASSERT(tree->count > 0);
    ASSERT(tree->bytes >= entry_bytes(entry));
    tree->count--;
    tree->bytes -= entry_bytes(entry);
    tree->root = take_out(tree->root, key);
}

TreeEntry *tree_find(const Tree *tree, Slice key)
{
    const TreeNode *node = tree->root;
    while (node != NULL) {
        int order = slice_compare(key, tree_entry_key(node->entry));
        if (order == 0)
            return node->entry;
        node = order < 0 ? node->left : node->right;
    }
    return NULL;
}

TreeEntry *tree_at_or_after(const Tree *tree, Slice key)
{
    TreeEntry *best = NULL;
    for (const TreeNode *node = tree->root; node != NULL;) {
        bool left = slice_compare(key, tree_entry_key(node->entry)) <= 0;
        if (left)
            best = node->entry;
        node = left ? node->left : node->right;
    }
    return best;
}

TreeEntry *tree_after(const Tree *tree, Slice key)
{
    TreeEntry *best = NULL;
    for (const TreeNode *node = tree->root; node != NULL;) {
        bool left = slice_compare(key, tree_entry_key(node->entry)) < 0;
        if (left)
            best = node->entry;
        node = left ? node->left : node->right;
    }
    return best;
}

TreeEntry *tree_before(const Tree *tree, Slice key)
{
    TreeEntry *best = NULL;
    for (const TreeNode *node = tree->root; node != NULL;) {
        bool right = slice_compare(key, tree_entry_key(node->entry)) > 0;
        if (right)
            best = node->entry;
        node = right ? node->right : node->left;
    }
    return best;
}

void tree_each(const Tree *tree, void (*visit)(void *ctx, TreeEntry *entry), void *ctx)
{
    each(tree->root, visit, ctx);
}

static void each(const TreeNode *node, void (*visit)(void *ctx, TreeEntry *entry), void *ctx)
{
    if (node == NULL)
        return;
    each(node->left, visit, ctx);
    visit(ctx, node->entry);
    each(node->right, visit, ctx);
}

static TreeEntry *entry_new(Slice key, Slice value, bool deleted)
{
    ASSERT(key.len <= UINT32_MAX);
    ASSERT(value.len <= UINT32_MAX);
    /* Not mem_alloc: zeroing a large value that is overwritten at once is a pass too many. */
    TreeEntry *entry = mem_realloc(NULL, sizeof(TreeEntry) + key.len + value.len);
    atomic_init(&entry->refs, 1);
    entry->deleted = deleted;
    entry->key_len = (uint32_t)key.len;
    entry->value_len = (uint32_t)value.len;
    if (key.len > 0)
        memcpy(entry->bytes, key.ptr, key.len);
    if (value.len > 0)
        memcpy(entry->bytes + key.len, value.ptr, value.len);
    return entry;
}

TreeEntry *tree_entry_ref(TreeEntry *entry)
{
    atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

void tree_entry_unref(TreeEntry *entry)
{
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1)
        mem_free(entry);
}

static TreeNode *node_new(TreeNode *left, TreeNode *right, TreeEntry *entry, int height)
{
    TreeNode *node = mem_realloc(NULL, sizeof(TreeNode));
    atomic_init(&node->refs, 1);
    node->left = left;
    node->right = right;
    node->entry = entry;
    node->height = height;
    return node;
}

static TreeNode *node_ref(TreeNode *node)
{
    if (node != NULL)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

static void node_unref(TreeNode *node)
{
    if (node == NULL || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
        return;
    node_unref(node->left);
    node_unref(node->right);
    tree_entry_unref(node->entry);
    mem_free(node);
}

/* Exchanges a reference to 'node' for a node with the same content that no other tree shares. The
 * load is an acquire: the thread that dropped the last other reference has finished reading. */
static TreeNode *own(TreeNode *node)
{
    if (atomic_load_explicit(&node->refs, memory_order_acquire) == 1)
        return node;
    TreeNode *copy = node_new(node_ref(node->left), node_ref(node->right),
                              tree_entry_ref(node->entry), node->height);
    node_unref(node);
    return copy;
}

/* Consumes the references to 'node' and to 'entry', and hands out one to what it replaces. */
static TreeNode *insert(Tree *tree, TreeNode *node, TreeEntry *entry, TreeEntry **replaced)
{
    if (node == NULL) {
        tree->count++;
        tree->bytes += entry_bytes(entry);
        return node_new(NULL, NULL, entry, 1);
    }
    node = own(node);
    int order = slice_compare(tree_entry_key(entry), tree_entry_key(node->entry));
    if (order == 0) {
        tree->bytes += entry_bytes(entry);
        tree->bytes -= entry_bytes(node->entry);
        *replaced = node->entry;
        node->entry = entry;
        return node;
    }
    if (order < 0)
        node->left = insert(tree, node->left, entry, replaced);
    else
        node->right = insert(tree, node->right, entry, replaced);
    return balance(node);
}

/* Frees a node of ours, but not its children. */
static void drop_shell(TreeNode *node)
{
    tree_entry_unref(node->entry);
    mem_free(node);
}

/* Consumes the reference to 'node', below which 'key' is known to be. */
static TreeNode *take_out(TreeNode *node, Slice key)
{
    node = own(node);
    int order = slice_compare(key, tree_entry_key(node->entry));
    if (order < 0) {
        node->left = take_out(node->left, key);
        return balance(node);
    }
    if (order > 0) {
        node->right = take_out(node->right, key);
        return balance(node);
    }
    if (node->left == NULL || node->right == NULL) {
        TreeNode *child = node->left != NULL ? node->left : node->right;
        drop_shell(node);
        return child;
    }
    TreeEntry *next = NULL;
    node->right = take_first(node->right, &next);
    tree_entry_unref(node->entry);
    node->entry = next;
    return balance(node);
}

/* Consumes the reference to 'node' and hands out a reference to its first entry. */
static TreeNode *take_first(TreeNode *node, TreeEntry **first)
{
    node = own(node);
    if (node->left != NULL) {
        node->left = take_first(node->left, first);
        return balance(node);
    }
    *first = tree_entry_ref(node->entry);
    TreeNode *right = node->right;
    drop_shell(node);
    return right;
}

static int height(const TreeNode *node)
{
    return node == NULL ? 0 : node->height;
}

static void measure(TreeNode *node)
{
    int left = height(node->left), right = height(node->right);
    node->height = 1 + (left > right ? left : right);
}

static TreeNode *rotate_right(TreeNode *node)
{
    ASSERT(node->left != NULL);
    TreeNode *left = own(node->left);
    node->left = left->right;
    left->right = node;
    measure(node);
    measure(left);
    return left;
}

static TreeNode *rotate_left(TreeNode *node)
{
    ASSERT(node->right != NULL);
    TreeNode *right = own(node->right);
    node->right = right->left;
    right->left = node;
    measure(node);
    measure(right);
    return right;
}

/* 'node' is ours; its two sides differ in height by at most two. */
static TreeNode *balance(TreeNode *node)
{
    int lean = height(node->left) - height(node->right);
    ASSERT(lean >= -2);
    ASSERT(lean <= 2);
    if (lean > 1) {
        node->left = own(node->left);
        if (height(node->left->left) < height(node->left->right))
            node->left = rotate_left(node->left);
        return rotate_right(node);
    }
    if (lean < -1) {
        node->right = own(node->right);
        if (height(node->right->right) < height(node->right->left))
            node->right = rotate_right(node->right);
        return rotate_left(node);
    }
    measure(node);
    return node;
}
