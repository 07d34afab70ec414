/* trie.c - see trie.h.
 *
 * A radix tree over the key's bits, five at a time from the top, with the levels left out on which
 * all keys agree. A leaf holds one key and its value; an inner node holds at least two children,
 * packed, with a bitmap that says which of the 32 are there:
 *
 *     inner, shift 5:   bits 63..10 of 'key' are shared by all below; bits 9..5 choose the child
 *
 * A node may be written only by a thread that holds the one reference on it and reached it through
 * nodes that it alone holds. own() makes that so: it copies a shared node, which puts a second
 * reference on each child and so makes them shared in turn.
 */
#include "base/trie.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

enum { BITS = 5, FANOUT = 1 << BITS, SHIFT_LEAF = 255 };

struct TrieNode {
    _Atomic uint32_t refs;
    uint8_t shift;   /* SHIFT_LEAF in a leaf */
    uint32_t bitmap; /* inner: which children there are */
    uint64_t key;    /* inner: only the bits above shift + BITS count */
    union {
        void *value;           /* leaf */
        TrieNode *children[0]; /* inner: child_count() of them, in order */
    };
};

static bool is_leaf(const TrieNode *node)
{
    return node->shift == SHIFT_LEAF;
}

static uint64_t above(uint64_t key, unsigned shift)
{
    return shift + BITS >= 64 ? 0 : key >> (shift + BITS);
}

static unsigned chunk(uint64_t key, unsigned shift)
{
    return (unsigned)(key >> shift) & (FANOUT - 1);
}

static unsigned position(const TrieNode *node, unsigned index)
{
    return (unsigned)__builtin_popcount(node->bitmap & ((1u << index) - 1));
}

static unsigned child_count(const TrieNode *node)
{
    return (unsigned)__builtin_popcount(node->bitmap);
}

static TrieNode *node_new(unsigned children)
{
    size_t size = offsetof(TrieNode, children) + sizeof(TrieNode *) * (children > 0 ? children : 1);
    TrieNode *node = mem_alloc(size < sizeof(TrieNode) ? sizeof(TrieNode) : size);
    atomic_init(&node->refs, 1);
    return node;
}

static TrieNode *leaf_new(uint64_t key, void *value)
{
    TrieNode *leaf = node_new(0);
    leaf->shift = SHIFT_LEAF;
    leaf->key = key;
    leaf->value = value;
    return leaf;
}

static TrieNode *node_ref(TrieNode *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

/* The depth is at most 13, so recursion is bounded. */
static void node_unref(TrieNode *node, TrieUnref unref)
{
    if (node == NULL || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (is_leaf(node)) {
        unref(node->value);
    } else {
        for (unsigned i = 0; i < child_count(node); i++)
            node_unref(node->children[i], unref);
    }
    mem_free(node);
}

/* Consumes a reference on the inner node 'node' and returns one that the caller alone holds: I8. */
static TrieNode *own(TrieNode *node, TrieUnref unref)
{
    if (atomic_load_explicit(&node->refs, memory_order_acquire) == 1)
        return node;
    unsigned count = child_count(node);
    TrieNode *copy = node_new(count);
    copy->shift = node->shift;
    copy->bitmap = node->bitmap;
    copy->key = node->key;
    for (unsigned i = 0; i < count; i++)
        copy->children[i] = node_ref(node->children[i]);
    node_unref(node, unref);
    return copy;
}

/* An inner node over two nodes that differ in the bits that both of them fix. */
static TrieNode *join(TrieNode *a, TrieNode *b)
{
    ASSERT(a->key != b->key);
    unsigned top = 63 - (unsigned)__builtin_clzll(a->key ^ b->key);
    unsigned shift = top / BITS * BITS;
    TrieNode *inner = node_new(2);
    bool a_first = chunk(a->key, shift) < chunk(b->key, shift);
    inner->shift = (uint8_t)shift;
    inner->key = a->key;
    inner->bitmap = 1u << chunk(a->key, shift) | 1u << chunk(b->key, shift);
    inner->children[0] = a_first ? a : b;
    inner->children[1] = a_first ? b : a;
    return inner;
}

/* Consumes 'node' (which the caller alone holds) and 'child'. */
static TrieNode *insert_child(TrieNode *node, unsigned index, TrieNode *child)
{
    unsigned count = child_count(node);
    unsigned at = position(node, index);
    size_t size = offsetof(TrieNode, children) + sizeof(TrieNode *) * (count + 1);
    node = mem_realloc(node, size < sizeof(TrieNode) ? sizeof(TrieNode) : size);
    memmove(&node->children[at + 1], &node->children[at], sizeof(TrieNode *) * (count - at));
    node->children[at] = child;
    node->bitmap |= 1u << index;
    return node;
}

/* Consumes references on 'node' and 'leaf', returns the new subtree. */
static TrieNode *put(TrieNode *node, TrieNode *leaf, TrieUnref unref, bool *added)
{
    *added = true;
    if (node == NULL)
        return leaf;
    if (is_leaf(node) && node->key == leaf->key) {
        *added = false;
        node_unref(node, unref);
        return leaf;
    }
    if (is_leaf(node) || above(node->key, node->shift) != above(leaf->key, node->shift))
        return join(node, leaf);
    node = own(node, unref);
    unsigned index = chunk(leaf->key, node->shift);
    if ((node->bitmap & (1u << index)) == 0)
        return insert_child(node, index, leaf);
    unsigned at = position(node, index);
    node->children[at] = put(node->children[at], leaf, unref, added);
    return node;
}

/* Consumes a reference on 'node', which holds 'key' somewhere below; returns what is left. */
static TrieNode *remove_key(TrieNode *node, uint64_t key, TrieUnref unref)
{
    if (is_leaf(node)) {
        node_unref(node, unref);
        return NULL;
    }
    node = own(node, unref);
    unsigned index = chunk(key, node->shift);
    unsigned at = position(node, index);
    ASSERT((node->bitmap & (1u << index)) != 0);
    node->children[at] = remove_key(node->children[at], key, unref);
    if (node->children[at] != NULL)
        return node;
    unsigned count = child_count(node);
    memmove(&node->children[at], &node->children[at + 1], sizeof(TrieNode *) * (count - at - 1));
    node->bitmap &= ~(1u << index);
    if (count > 2)
        return node;
    ASSERT(count == 2); /* an inner node never has fewer */
    TrieNode *last = node->children[0];
    mem_free(node);
    return last;
}

void trie_init(Trie *trie, TrieUnref unref)
{
    *trie = (Trie){.unref = unref};
}

void trie_done(Trie *trie)
{
    node_unref(trie->root, trie->unref);
    *trie = (Trie){.unref = trie->unref};
}

Trie trie_copy(const Trie *trie)
{
    Trie copy = *trie;
    if (copy.root != NULL)
        (void)node_ref(copy.root);
    return copy;
}

void *trie_get(const Trie *trie, uint64_t key)
{
    const TrieNode *node = trie->root;
    while (node != NULL && !is_leaf(node)) {
        unsigned index = chunk(key, node->shift);
        if (above(node->key, node->shift) != above(key, node->shift) ||
            (node->bitmap & (1u << index)) == 0)
            return NULL;
        node = node->children[position(node, index)];
    }
    return node != NULL && node->key == key ? node->value : NULL;
}

void trie_put(Trie *trie, uint64_t key, void *value)
{
    ASSERT(value != NULL);
    bool added = false;
    trie->root = put(trie->root, leaf_new(key, value), trie->unref, &added);
    trie->count += added ? 1 : 0;
}

bool trie_remove(Trie *trie, uint64_t key)
{
    if (trie_get(trie, key) == NULL)
        return false;
    ASSERT(trie->count > 0);
    trie->root = remove_key(trie->root, key, trie->unref);
    trie->count--;
    return true;
}

static const TrieNode *first_leaf(const TrieNode *node)
{
    while (!is_leaf(node))
        node = node->children[0];
    return node;
}

/* The leaf with the smallest key >= 'key' below 'node', or NULL. */
static const TrieNode *find_from(const TrieNode *node, uint64_t key)
{
    if (is_leaf(node))
        return node->key >= key ? node : NULL;
    uint64_t mine = above(node->key, node->shift);
    uint64_t wanted = above(key, node->shift);
    if (mine != wanted)
        return mine > wanted ? first_leaf(node) : NULL;
    unsigned index = chunk(key, node->shift);
    unsigned at = position(node, index);
    if ((node->bitmap & (1u << index)) != 0) {
        const TrieNode *leaf = find_from(node->children[at], key);
        if (leaf != NULL)
            return leaf;
        at++;
    }
    return at < child_count(node) ? first_leaf(node->children[at]) : NULL;
}

void *trie_next(const Trie *trie, uint64_t *key)
{
    const TrieNode *leaf = trie->root == NULL ? NULL : find_from(trie->root, *key);
    if (leaf == NULL)
        return NULL;
    *key = leaf->key;
    return leaf->value;
}
