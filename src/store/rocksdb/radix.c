/* radix.c - see radix_int.h.
 *
 * A link is 0, a node, or (with its lowest bit set) the newest entry of a key. A node stands at a
 * position in keys: what is below it has the same bytes up to there, as in one of them, its
 * 'sample', and goes on with one byte a child, or ends. Where a node begins is not written in it,
 * since that is where its parent ends: so a key that parts from others between two nodes gets a
 * node there, and those stay as they are.
 *
 * Every change becomes visible by one store-release: of the link to what is new, of the number of
 * children, or of the bit or place that tells of a child. A reader loads what it follows with
 * acquire, so it sees everything that the writer wrote before that store; and nothing that is not
 * atomic changes after it. So small nodes keep their children in the order of insertion. A link
 * never goes back to 0, and a byte once found in a node stays there.
 *
 * R9: what a reader must find was inserted before it began (RocksDB raises the sequence number it
 * reads as of by a store-release after the insert), so each cell it loads is at least as new as
 * that. A node is replaced by one that has all it had; a reader on the old one finds there all that
 * was inserted until it was replaced, which is after the reader began.
 *
 * README.md says what the worst keys cost: a client chooses keys, but each node on the way to a key
 * needs another key that is as long as the node is deep.
 */
#include "store/rocksdb/radix_int.h"

#include "base/slice.h"

#include <stdatomic.h>

typedef uintptr_t Link;
typedef _Atomic(uintptr_t) LinkCell;
typedef struct RadixNode Node;

/* One of several versions of a key. Most keys have only one, and none of these. */
typedef struct Version Version;
struct Version {
    uint64_t tag;
    RadixEntry *entry;
    _Atomic(Version *) newer;
    _Atomic(Version *) older;
    Version *jump; /* an older one, often much older: see version_new(); NULL if there is none */
    uint32_t height;
};

struct RadixEntry {
    _Atomic(Version *) version; /* NULL if it is the only one */
    char data[];
};

struct Radix {
    void *(*allocate)(void *ctx, size_t bytes);
    void *ctx;
    LinkCell root;
    char *node_room; /* the writer's memory for small nodes */
    size_t node_room_left;
};

/* Named for the number of children there is room for. Most nodes have two. A node that was outgrown
 * keeps its memory, so the sizes are chosen such that all that a node ever was takes at most 64
 * bytes a child. */
typedef enum NodeKind { NODE_2, NODE_5, NODE_16, NODE_48, NODE_256 } NodeKind;

enum { MEDIUM_MAX = 48, BYTES = 256, WORDS = BYTES / 64, TAG_BYTES = 8, NODE_ROOM_BYTES = 4096 };

struct RadixNode {
    const char *sample; /* a key below */
    uint32_t depth;     /* all keys below have this many of its bytes in common */
    uint8_t kind;
    _Atomic uint8_t count; /* of children; not used in a NODE_256 */
    uint8_t pair[2];       /* NODE_2: the bytes of its children */
    LinkCell end;          /* the key that ends here */
};

typedef struct SmallNode { /* up to NODE_16 */
    Node node;
    LinkCell children[]; /* then their bytes, if there is room for more than two */
} SmallNode;

typedef struct WideNode { /* the beginning of NODE_48 and NODE_256 */
    Node node;
    _Atomic uint64_t present[WORDS]; /* a bit for each byte that has a child */
} WideNode;

typedef struct MediumNode {
    WideNode wide;
    _Atomic uint8_t places[BYTES]; /* one more than the position; 0 if there is no child */
    LinkCell children[MEDIUM_MAX];
} MediumNode;

typedef struct LargeNode {
    WideNode wide;
    LinkCell children[BYTES];
} LargeNode;

static const struct {
    size_t bytes;
    unsigned children;
} KINDS[] = {
    [NODE_2] = {sizeof(SmallNode) + 2 * sizeof(LinkCell), 2},
    [NODE_5] = {sizeof(SmallNode) + 5 * (sizeof(LinkCell) + 1), 5},
    [NODE_16] = {sizeof(SmallNode) + 16 * (sizeof(LinkCell) + 1), 16},
    [NODE_48] = {sizeof(MediumNode), MEDIUM_MAX},
    [NODE_256] = {sizeof(LargeNode), BYTES},
};

/* ---- links ---- */

static bool is_entry(Link link)
{
    return (link & 1) != 0;
}

static RadixEntry *entry_of(Link link)
{
    return (RadixEntry *)(link - 1);
}

static Link link_to(const RadixEntry *entry)
{
    return (Link)entry | 1;
}

static Node *node_of(Link link)
{
    return (Node *)link;
}

static Link load(const LinkCell *cell)
{
    return atomic_load_explicit(cell, memory_order_acquire);
}

/* A reader that follows the link sees everything that was written before. */
static void publish(LinkCell *cell, Link link)
{
    atomic_store_explicit(cell, link, memory_order_release);
}

/* ---- children ---- */

static SmallNode *small(const Node *node)
{
    return (SmallNode *)UNCONST(Node, node);
}

static uint8_t *small_bytes(const Node *node)
{
    SmallNode *of = small(node);
    return node->kind == NODE_2 ? of->node.pair
                                : (uint8_t *)(of->children + KINDS[node->kind].children);
}

static WideNode *wide(const Node *node)
{
    return (WideNode *)UNCONST(Node, node);
}

static MediumNode *medium(const Node *node)
{
    return (MediumNode *)UNCONST(Node, node);
}

static LargeNode *large(const Node *node)
{
    return (LargeNode *)UNCONST(Node, node);
}

static bool is_small(const Node *node)
{
    return node->kind <= NODE_16;
}

static unsigned child_count(const Node *node)
{
    return atomic_load_explicit(&node->count, memory_order_acquire);
}

/* NULL if no child has this byte. */
static LinkCell *find_child(const Node *node, uint8_t byte)
{
    switch ((NodeKind)node->kind) {
    case NODE_2:
    case NODE_5:
    case NODE_16: {
        const uint8_t *bytes = small_bytes(node);
        unsigned count = child_count(node);
        for (unsigned i = 0; i < count; i++) {
            if (bytes[i] == byte)
                return &small(node)->children[i];
        }
        return NULL;
    }
    case NODE_48: {
        unsigned place = atomic_load_explicit(&medium(node)->places[byte], memory_order_acquire);
        return place > 0 ? &medium(node)->children[place - 1] : NULL;
    }
    case NODE_256: {
        LinkCell *cell = &large(node)->children[byte];
        return load(cell) != 0 ? cell : NULL;
    }
    }
    return NULL;
}

static int small_byte_beside(const Node *node, int byte, int step)
{
    const uint8_t *bytes = small_bytes(node);
    unsigned count = child_count(node);
    int best = -1;
    for (unsigned i = 0; i < count; i++) {
        int distance = (bytes[i] - byte) * step;
        if (distance > 0 && (best < 0 || distance < (best - byte) * step))
            best = bytes[i];
    }
    return best;
}

static int wide_byte_beside(const Node *node, int byte, int step)
{
    int first = byte + step;
    for (int word = first >> 6; first >= 0 && word >= 0 && word < WORDS; word += step) {
        uint64_t bits = atomic_load_explicit(&wide(node)->present[word], memory_order_acquire);
        if (word == first >> 6)
            bits &= step > 0 ? UINT64_MAX << (first & 63) : UINT64_MAX >> (63 - (first & 63));
        if (bits != 0)
            return word * 64 + (step > 0 ? __builtin_ctzll(bits) : 63 - __builtin_clzll(bits));
    }
    return -1;
}

/* If 'step' is 1, the lowest byte of a child above 'byte', which is -1 for the lowest of all. If
 * 'step' is -1, the highest below it, which is 256 for the highest of all. -1 if there is none. */
static int byte_beside(const Node *node, int byte, int step)
{
    return is_small(node) ? small_byte_beside(node, byte, step)
                          : wide_byte_beside(node, byte, step);
}

static Link child_beside(const Node *node, int byte, int step)
{
    int at = byte_beside(node, byte, step);
    return at < 0 ? 0 : load(find_child(node, (uint8_t)at));
}

/* ---- making nodes: the writer's ---- */

/* RocksDB's arena cuts pieces off a block, so those of whole words are aligned if all are. */
static void *allocate(Radix *radix, size_t bytes)
{
    const size_t unit = sizeof(void *);
    size_t rounded = (bytes + unit - 1) / unit * unit;
    uintptr_t at = (uintptr_t)radix->allocate(radix->ctx, rounded);
    if (at % unit != 0) {
        at = (uintptr_t)radix->allocate(radix->ctx, rounded + unit - 1);
        at = (at + unit - 1) / unit * unit;
    }
    return (void *)at;
}

/* Small nodes lie together, not each beside the key for which it was made: between long keys each
 * would be in a page of its own, and many in the same lines of the cache. */
static void *allocate_node(Radix *radix, size_t bytes)
{
    bytes = (bytes + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    if (bytes > NODE_ROOM_BYTES / 16)
        return allocate(radix, bytes);
    if (bytes > radix->node_room_left) {
        radix->node_room = allocate(radix, NODE_ROOM_BYTES);
        radix->node_room_left = NODE_ROOM_BYTES;
    }
    radix->node_room_left -= bytes;
    return radix->node_room + radix->node_room_left;
}

static Node *node_new(Radix *radix, NodeKind kind, const char *sample, size_t depth)
{
    Node *node = allocate_node(radix, KINDS[kind].bytes);
    memset(node, 0, KINDS[kind].bytes);
    node->kind = (uint8_t)kind;
    node->sample = sample;
    node->depth = (uint32_t)depth;
    return node;
}

static bool is_full(const Node *node)
{
    return node->kind != NODE_256 && child_count(node) == KINDS[node->kind].children;
}

static void mark_present(Node *node, uint8_t byte)
{
    _Atomic uint64_t *word = &wide(node)->present[byte / 64];
    uint64_t bits = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, bits | UINT64_C(1) << (byte % 64), memory_order_release);
}

static void add_child(Node *node, uint8_t byte, Link link)
{
    unsigned count = child_count(node);
    switch ((NodeKind)node->kind) {
    case NODE_2:
    case NODE_5:
    case NODE_16:
        small_bytes(node)[count] = byte;
        publish(&small(node)->children[count], link);
        break;
    case NODE_48:
        publish(&medium(node)->children[count], link);
        atomic_store_explicit(&medium(node)->places[byte], (uint8_t)(count + 1),
                              memory_order_release);
        mark_present(node, byte);
        break;
    case NODE_256:
        publish(&large(node)->children[byte], link);
        mark_present(node, byte);
        return;
    }
    atomic_store_explicit(&node->count, (uint8_t)(count + 1), memory_order_release);
}

/* The same node with room for more children. */
static Node *node_grown(Radix *radix, const Node *from)
{
    Node *node = node_new(radix, (NodeKind)(from->kind + 1), from->sample, from->depth);
    publish(&node->end, load(&from->end));
    for (int byte = byte_beside(from, -1, 1); byte >= 0; byte = byte_beside(from, byte, 1))
        add_child(node, (uint8_t)byte, load(find_child(from, (uint8_t)byte)));
    return node;
}

/* ---- entries ---- */

Radix *radix_new(void *(*allocate_some)(void *ctx, size_t bytes), void *ctx)
{
    Radix plain = {.allocate = allocate_some, .ctx = ctx};
    Radix *radix = allocate(&plain, sizeof(Radix));
    radix->allocate = allocate_some;
    radix->ctx = ctx;
    radix->node_room = NULL;
    radix->node_room_left = 0;
    atomic_init(&radix->root, 0);
    return radix;
}

RadixEntry *radix_entry_new(Radix *radix, size_t data_bytes)
{
    RadixEntry *entry = allocate(radix, offsetof(RadixEntry, data) + data_bytes);
    atomic_init(&entry->version, NULL);
    return entry;
}

char *radix_data(RadixEntry *entry)
{
    return entry->data;
}

const char *radix_read(const RadixEntry *entry)
{
    return entry->data;
}

/* | user key | tag |, which follow their length. */
static Slice key_and_tag(const RadixEntry *entry)
{
    uint32_t len = 0;
    uint32_t at = 0;
    uint8_t byte = 0;
    do {
        byte = (uint8_t)entry->data[at];
        len |= (uint32_t)(byte & 0x7F) << (7 * at);
        at++;
    } while ((byte & 0x80) != 0 && at < 5);
    return slice_make(entry->data + at, len);
}

static Slice without_tag(Slice target)
{
    ASSERT(target.len >= TAG_BYTES);
    return slice_first(target, target.len - TAG_BYTES);
}

/* Little-endian, like every machine we run on. */
static uint64_t only_tag(Slice target)
{
    uint64_t tag = 0;
    memcpy(&tag, target.ptr + target.len - TAG_BYTES, sizeof(tag));
    return tag;
}

static Slice key_of(const RadixEntry *entry)
{
    return without_tag(key_and_tag(entry));
}

static uint64_t tag_of(const RadixEntry *entry)
{
    return only_tag(key_and_tag(entry));
}

bool radix_is(const RadixEntry *entry, const char *target, size_t len)
{
    return slice_equal(key_and_tag(entry), slice_make(target, len));
}

/* ---- versions ---- */

static Version *follow(const _Atomic(Version *) *to)
{
    return atomic_load_explicit(to, memory_order_acquire);
}

/* From 'from', which has at least this tag, to older versions: the last one that has at least this
 * tag, and in '*next' the one after it, or NULL. */
static const Version *last_from(const Version *from, uint64_t tag, const Version **next)
{
    for (;;) {
        *next = follow(&from->older);
        if (from->jump != NULL && from->jump->tag >= tag)
            from = from->jump;
        else if (*next != NULL && (*next)->tag >= tag)
            from = *next;
        else
            return from;
    }
}

/* The newest that is at most as new as the tag, NULL if there is none. */
static const RadixEntry *version_at_most(const RadixEntry *newest, uint64_t tag)
{
    if (tag_of(newest) <= tag)
        return newest;
    const Version *version = follow(&newest->version);
    if (version == NULL)
        return NULL;
    const Version *found = NULL;
    (void)last_from(version, tag + 1, &found);
    return found != NULL ? found->entry : NULL;
}

/* The oldest that is at least as new as the tag, NULL if there is none. */
static const RadixEntry *version_at_least(const RadixEntry *newest, uint64_t tag)
{
    if (tag_of(newest) < tag)
        return NULL;
    const Version *version = follow(&newest->version);
    const Version *next = NULL;
    return version != NULL ? last_from(version, tag, &next)->entry : newest;
}

static Version *version_new(Radix *radix, RadixEntry *entry, Version *newer, Version *older)
{
    Version *version = allocate(radix, sizeof(Version));
    *version = (Version){.tag = tag_of(entry), .entry = entry, .jump = older};
    atomic_init(&version->newer, newer);
    atomic_init(&version->older, older);
    if (older == NULL)
        return version;
    /* Two jumps of the same length are joined into one of twice that length and one more: from any
     * version to any older one it then takes about 2 log n steps, where n is the number between. */
    const Version *jump = older->jump;
    if (jump != NULL && jump->jump != NULL &&
        older->height - jump->height == jump->height - jump->jump->height)
        version->jump = jump->jump;
    version->height = older->height + 1;
    return version;
}

/* Adds a version of the key to which the cell leads. Fast if versions come in the order of their
 * tags, as they usually do. */
static bool add_version(Radix *radix, LinkCell *cell, RadixEntry *entry)
{
    uint64_t tag = tag_of(entry);
    RadixEntry *newest = entry_of(load(cell));
    Version *older = follow(&newest->version);
    if (older == NULL) {
        older = version_new(radix, newest, NULL, NULL);
        atomic_store_explicit(&newest->version, older, memory_order_release);
    }
    Version *newer = NULL;
    while (older != NULL && older->tag > tag) {
        newer = older;
        older = follow(&older->older);
    }
    if (older != NULL && older->tag == tag)
        return false;
    Version *version = version_new(radix, entry, newer, older);
    atomic_store_explicit(&entry->version, version, memory_order_relaxed);
    if (newer != NULL)
        atomic_store_explicit(&newer->older, version, memory_order_release);
    else
        publish(cell, link_to(entry));
    if (older != NULL)
        atomic_store_explicit(&older->newer, version, memory_order_release);
    return true;
}

/* ---- inserting ---- */

/* The first position from 'at' on at which the bytes differ, at most 'end'. */
static size_t common_end(const char *a, const char *b, size_t at, size_t end)
{
    for (; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t)) {
        uint64_t left = 0;
        uint64_t right = 0;
        memcpy(&left, a + at, sizeof(left));
        memcpy(&right, b + at, sizeof(right));
        if (left != right)
            return at + (size_t)__builtin_ctzll(left ^ right) / 8;
    }
    while (at < end && a[at] == b[at])
        at++;
    return at;
}

/* Adds what follows the node in a key: a child by the first byte, or the end of the key. */
static void add_below(Node *node, Slice key, Link link)
{
    if (node->depth == key.len)
        publish(&node->end, link);
    else
        add_child(node, (uint8_t)key.ptr[node->depth], link);
}

/* Puts a node into the cell at 'depth', where 'key' differs from 'other', to which the cell led. */
static void part(Radix *radix, LinkCell *cell, Slice other, Slice key, size_t depth, Link link)
{
    Node *node = node_new(radix, NODE_2, other.ptr, depth);
    add_below(node, other, load(cell));
    add_below(node, key, link);
    publish(cell, (Link)node);
}

static void add_to_node(Radix *radix, LinkCell *cell, Slice key, Link link)
{
    Node *node = node_of(load(cell));
    if (!is_full(node)) {
        add_below(node, key, link);
        return;
    }
    Node *larger = node_grown(radix, node);
    add_below(larger, key, link);
    publish(cell, (Link)larger);
}

/* Follows the key as far as there are nodes for it, and returns the cell where it must be added.
 * '*depth' bytes of it have led there, or are common with all that is below. */
static LinkCell *descend(Radix *radix, Slice key, size_t *depth)
{
    LinkCell *cell = &radix->root;
    for (;;) {
        Link link = load(cell);
        if (link == 0 || is_entry(link))
            return cell;
        const Node *node = node_of(link);
        size_t end = node->depth < key.len ? node->depth : key.len;
        *depth = common_end(node->sample, key.ptr, *depth, end);
        if (*depth < node->depth || *depth == key.len)
            return cell;
        LinkCell *next = find_child(node, (uint8_t)key.ptr[*depth]);
        if (next == NULL)
            return cell;
        *depth += 1;
        cell = next;
    }
}

static bool insert_at_entry(Radix *radix, LinkCell *cell, Slice key, size_t depth,
                            RadixEntry *entry)
{
    Slice other = key_of(entry_of(load(cell)));
    size_t end = other.len < key.len ? other.len : key.len;
    depth = common_end(other.ptr, key.ptr, depth, end);
    if (depth == key.len && depth == other.len)
        return add_version(radix, cell, entry);
    part(radix, cell, other, key, depth, link_to(entry));
    return true;
}

bool radix_insert(Radix *radix, RadixEntry *entry)
{
    Slice key = key_of(entry);
    size_t depth = 0;
    LinkCell *cell = descend(radix, key, &depth);
    Link link = load(cell);
    if (link == 0) {
        publish(cell, link_to(entry));
        return true;
    }
    if (is_entry(link))
        return insert_at_entry(radix, cell, key, depth, entry);
    Node *node = node_of(link);
    if (depth < node->depth)
        part(radix, cell, slice_make(node->sample, node->depth), key, depth, link_to(entry));
    else if (depth < key.len)
        add_to_node(radix, cell, key, link_to(entry));
    else if (load(&node->end) != 0)
        return add_version(radix, &node->end, entry);
    else
        publish(&node->end, link_to(entry));
    return true;
}

/* ---- finding: 'step' is 1 towards higher keys, -1 towards lower ones ---- */

static void path_push(RadixPath *path, const Node *node)
{
    path->nodes[path->count++ % RADIX_PATH_NODES] = node;
    path->known += path->known < RADIX_PATH_NODES ? 1 : 0;
}

static void path_pop(RadixPath *path)
{
    path->count--;
    path->known--;
}

static void path_forget(RadixPath *path)
{
    path->count = 0;
    path->known = 0;
}

/* The key's first byte below a node, -1 if it ends there. */
static int byte_below(const Node *node, Slice key)
{
    return node->depth < key.len ? (uint8_t)key.ptr[node->depth] : -1;
}

/* The first key that a walk meets below a link. */
static const RadixEntry *nearest(Link link, int step, RadixPath *path)
{
    while (link != 0 && !is_entry(link)) {
        const Node *node = node_of(link);
        path_push(path, node);
        Link end = load(&node->end);
        Link child = step > 0 && end != 0 ? 0 : child_beside(node, step > 0 ? -1 : BYTES, step);
        link = child != 0 ? child : end;
    }
    return link != 0 ? entry_of(link) : NULL;
}

/* In a node on the way to the key, what comes next to that way; 0 if nothing does. */
static Link beside(const Node *node, Slice key, int step)
{
    int byte = byte_below(node, key);
    if (byte < 0 && step < 0)
        return 0;
    Link child = child_beside(node, byte, step);
    return child != 0 || step > 0 ? child : load(&node->end);
}

/* Compares all keys below a node with 'key', whose first 'depth' bytes have led there: -1 if they
 * are before it, 1 if they are after it, 0 if the key continues below or ends there. */
static int compare_below(const Node *node, Slice key, size_t depth)
{
    size_t end = node->depth < key.len ? node->depth : key.len;
    int order = end > depth ? memcmp(node->sample + depth, key.ptr + depth, end - depth) : 0;
    if (order == 0)
        return key.len < node->depth ? 1 : 0;
    return order < 0 ? -1 : 1;
}

/* Like step_from, but from the root: for ways that are too long for a path, which would have to be
 * filled again and again. */
static const RadixEntry *step_from_root(const Radix *radix, Slice key, int step, RadixPath *path)
{
    Link found = 0;
    size_t depth = 0;
    Link link = load(&radix->root);
    while (link != 0 && !is_entry(link) && compare_below(node_of(link), key, depth) == 0) {
        const Node *node = node_of(link);
        Link next = beside(node, key, step);
        found = next != 0 ? next : found;
        int byte = byte_below(node, key);
        const LinkCell *cell = byte >= 0 ? find_child(node, (uint8_t)byte) : NULL;
        link = cell != NULL ? load(cell) : 0;
        depth = (size_t)node->depth + 1;
    }
    const RadixEntry *entry = nearest(found, step, path);
    path_forget(path);
    return entry;
}

/* The key next to 'key', to which 'path' leads. 'key' itself need not be there. */
static const RadixEntry *step_from(const Radix *radix, Slice key, int step, RadixPath *path)
{
    for (; path->known > 0; path_pop(path)) {
        Link link = beside(path->nodes[(path->count - 1) % RADIX_PATH_NODES], key, step);
        if (link != 0)
            return nearest(link, step, path);
    }
    return path->count == 0 ? NULL : step_from_root(radix, key, step, path);
}

/* The key itself, or the one next to it. */
static const RadixEntry *seek(const Radix *radix, Slice key, int step, RadixPath *path,
                              bool *is_same)
{
    path_forget(path);
    *is_same = false;
    size_t depth = 0;
    Link link = load(&radix->root);
    while (link != 0) {
        const Node *node = is_entry(link) ? NULL : node_of(link);
        int order = node != NULL ? compare_below(node, key, depth)
                                 : slice_compare(slice_from(key_of(entry_of(link)), depth),
                                                 slice_from(key, depth));
        if (order != 0 && (order > 0) == (step > 0))
            return nearest(link, step, path);
        if (order != 0)
            break;
        int byte = -1;
        if (node != NULL) {
            path_push(path, node);
            byte = byte_below(node, key);
            link = byte < 0 ? load(&node->end) : link;
        }
        if (byte < 0) {
            *is_same = link != 0;
            break;
        }
        const LinkCell *cell = find_child(node, (uint8_t)byte);
        link = cell != NULL ? load(cell) : 0;
        depth = (size_t)node->depth + 1;
    }
    return *is_same ? entry_of(link) : step_from(radix, key, step, path);
}

/* Fills an empty path with the way to a key that is there. */
static void find_way(const Radix *radix, Slice key, RadixPath *path)
{
    Link link = load(&radix->root);
    while (link != 0 && !is_entry(link)) {
        const Node *node = node_of(link);
        path_push(path, node);
        int byte = byte_below(node, key);
        const LinkCell *cell = byte >= 0 ? find_child(node, (uint8_t)byte) : NULL;
        link = cell != NULL ? load(cell) : 0;
    }
}

static const RadixEntry *oldest(const RadixEntry *newest)
{
    return newest != NULL ? version_at_least(newest, 0) : NULL;
}

const RadixEntry *radix_first(const Radix *radix, RadixPath *path)
{
    path_forget(path);
    return nearest(load(&radix->root), 1, path);
}

const RadixEntry *radix_last(const Radix *radix, RadixPath *path)
{
    path_forget(path);
    return oldest(nearest(load(&radix->root), -1, path));
}

const RadixEntry *radix_at_or_after(const Radix *radix, const char *target, size_t len,
                                    RadixPath *path)
{
    Slice key = without_tag(slice_make(target, len));
    bool is_same = false;
    const RadixEntry *entry = seek(radix, key, 1, path, &is_same);
    if (!is_same)
        return entry;
    entry = version_at_most(entry, only_tag(slice_make(target, len)));
    return entry != NULL ? entry : step_from(radix, key, 1, path);
}

const RadixEntry *radix_at_or_before(const Radix *radix, const char *target, size_t len,
                                     RadixPath *path)
{
    Slice key = without_tag(slice_make(target, len));
    bool is_same = false;
    const RadixEntry *entry = seek(radix, key, -1, path, &is_same);
    if (!is_same)
        return oldest(entry);
    entry = version_at_least(entry, only_tag(slice_make(target, len)));
    return entry != NULL ? entry : oldest(step_from(radix, key, -1, path));
}

/* From the last of a key's versions in that direction to the next key. */
static const RadixEntry *leave_key(const Radix *radix, Slice key, int step, RadixPath *path)
{
    if (path->count == 0)
        find_way(radix, key, path);
    return step_from(radix, key, step, path);
}

const RadixEntry *radix_next(const Radix *radix, const RadixEntry *entry, RadixPath *path)
{
    const Version *version = follow(&entry->version);
    const Version *older = version != NULL ? follow(&version->older) : NULL;
    return older != NULL ? older->entry : leave_key(radix, key_of(entry), 1, path);
}

const RadixEntry *radix_prev(const Radix *radix, const RadixEntry *entry, RadixPath *path)
{
    const Version *version = follow(&entry->version);
    const Version *newer = version != NULL ? follow(&version->newer) : NULL;
    return newer != NULL ? newer->entry : oldest(leave_key(radix, key_of(entry), -1, path));
}
