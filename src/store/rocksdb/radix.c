/* radix.c - see radix_int.h.
 *
 * A link is NULL, a node, or (with its lowest bit set) the newest entry of a key. Every change
 * becomes visible by one store: of the link to what is new, or of the number of children. So small
 * nodes keep their children in the order in which they came.
 */
#include "store/rocksdb/radix_int.h"

#include "base/slice.h"

#include <stdatomic.h>

typedef uintptr_t Link;
typedef _Atomic(uintptr_t) LinkCell;

struct RadixEntry {
    _Atomic(RadixEntry *) newer; /* versions of the same key */
    _Atomic(RadixEntry *) older;
    uint32_t key_at; /* in 'data' */
    uint32_t key_len;
    char data[];
};

struct Radix {
    void *(*allocate)(void *ctx, size_t bytes);
    void *ctx;
    LinkCell root;
};

typedef enum NodeKind { NODE_4, NODE_16, NODE_48, NODE_256 } NodeKind;

enum { SMALL_MAX = 16, MEDIUM_MAX = 48, BYTES = 256, TAG_BYTES = 8 };

/* What all keys below have in common is 'prefix', which points into one of them, behind what led
 * here; then one byte tells which child is meant. */
typedef struct Node {
    const char *prefix;
    uint32_t prefix_len;
    uint8_t kind;
    _Atomic uint16_t count; /* of children */
    LinkCell end;           /* the key that ends here */
} Node;

typedef struct SmallNode { /* NODE_4 and NODE_16 */
    Node node;
    uint8_t bytes[SMALL_MAX];
    LinkCell children[]; /* 4 or 16 */
} SmallNode;

typedef struct MediumNode {
    Node node;
    _Atomic uint8_t places[BYTES]; /* one more than the position; 0: none */
    LinkCell children[MEDIUM_MAX];
} MediumNode;

typedef struct LargeNode {
    Node node;
    LinkCell children[BYTES];
} LargeNode;

static const struct {
    size_t bytes;
    unsigned children;
} KINDS[] = {
    [NODE_4] = {sizeof(SmallNode) + 4 * sizeof(LinkCell), 4},
    [NODE_16] = {sizeof(SmallNode) + 16 * sizeof(LinkCell), 16},
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

/* Everything that was written before is seen by who follows the link. */
static void publish(LinkCell *cell, Link link)
{
    atomic_store_explicit(cell, link, memory_order_release);
}

/* ---- children ---- */

static SmallNode *small(const Node *node)
{
    return (SmallNode *)(uintptr_t)node;
}

static MediumNode *medium(const Node *node)
{
    return (MediumNode *)(uintptr_t)node;
}

static LargeNode *large(const Node *node)
{
    return (LargeNode *)(uintptr_t)node;
}

static unsigned child_count(const Node *node)
{
    return atomic_load_explicit(&node->count, memory_order_acquire);
}

/* NULL: no child has this byte. */
static LinkCell *find_child(const Node *node, uint8_t byte)
{
    switch ((NodeKind)node->kind) {
    case NODE_4:
    case NODE_16: {
        SmallNode *of = small(node);
        unsigned count = child_count(node);
        for (unsigned i = 0; i < count; i++) {
            if (of->bytes[i] == byte)
                return &of->children[i];
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

/* The child with the lowest byte above 'byte' (-1: of all), or with the highest below it (256: of
 * all); 0 if there is none. */
static Link small_neighbour(const Node *node, int byte, int step)
{
    const SmallNode *of = small(node);
    unsigned count = child_count(node);
    int best = -1;
    for (unsigned i = 0; i < count; i++) {
        int distance = (of->bytes[i] - byte) * step;
        if (distance > 0 && (best < 0 || distance < (of->bytes[best] - byte) * step))
            best = (int)i;
    }
    return best < 0 ? 0 : load(&of->children[best]);
}

static Link neighbour(const Node *node, int byte, int step)
{
    if (node->kind == NODE_4 || node->kind == NODE_16)
        return small_neighbour(node, byte, step);
    for (int at = byte + step; at >= 0 && at < BYTES; at += step) {
        const LinkCell *cell = find_child(node, (uint8_t)at);
        if (cell != NULL)
            return load(cell);
    }
    return 0;
}

static Link child_after(const Node *node, int byte)
{
    return neighbour(node, byte, 1);
}

static Link child_before(const Node *node, int byte)
{
    return neighbour(node, byte, -1);
}

/* ---- making nodes: the writer's ---- */

static void *allocate(Radix *radix, size_t bytes)
{
    const size_t unit = sizeof(void *);
    uintptr_t at = (uintptr_t)radix->allocate(radix->ctx, bytes + unit - 1);
    return (void *)((at + unit - 1) / unit * unit);
}

static Node *node_new(Radix *radix, NodeKind kind, const char *prefix, size_t prefix_len)
{
    Node *node = allocate(radix, KINDS[kind].bytes);
    memset(node, 0, KINDS[kind].bytes);
    node->kind = (uint8_t)kind;
    node->prefix = prefix;
    node->prefix_len = (uint32_t)prefix_len;
    return node;
}

static bool is_full(const Node *node)
{
    return child_count(node) == KINDS[node->kind].children;
}

static void add_child(Node *node, uint8_t byte, Link link)
{
    unsigned count = child_count(node);
    switch ((NodeKind)node->kind) {
    case NODE_4:
    case NODE_16:
        small(node)->bytes[count] = byte;
        publish(&small(node)->children[count], link);
        break;
    case NODE_48:
        publish(&medium(node)->children[count], link);
        atomic_store_explicit(&medium(node)->places[byte], (uint8_t)(count + 1),
                              memory_order_release);
        break;
    case NODE_256:
        publish(&large(node)->children[byte], link);
        break;
    }
    atomic_store_explicit(&node->count, (uint16_t)(count + 1), memory_order_release);
}

/* A node of this kind with the same children, the first 'skipped' bytes of whose prefix have gone
 * to a node above it. */
static Node *node_copy(Radix *radix, const Node *from, NodeKind kind, size_t skipped)
{
    Node *node = node_new(radix, kind, from->prefix + skipped, from->prefix_len - skipped);
    publish(&node->end, load(&from->end));
    for (int byte = 0; byte < BYTES; byte++) {
        const LinkCell *cell = find_child(from, (uint8_t)byte);
        if (cell != NULL)
            add_child(node, (uint8_t)byte, load(cell));
    }
    return node;
}

/* ---- inserting ---- */

Radix *radix_new(void *(*allocate_some)(void *ctx, size_t bytes), void *ctx)
{
    Radix plain = {.allocate = allocate_some, .ctx = ctx};
    Radix *radix = allocate(&plain, sizeof(Radix));
    radix->allocate = allocate_some;
    radix->ctx = ctx;
    atomic_init(&radix->root, 0);
    return radix;
}

/* Where the user key stands: | length varint | user key | tag |. */
static void decode_key(RadixEntry *entry)
{
    uint32_t len = 0;
    uint32_t at = 0;
    uint8_t byte = 0;
    do {
        byte = (uint8_t)entry->data[at];
        len |= (uint32_t)(byte & 0x7F) << (7 * at);
        at++;
    } while ((byte & 0x80) != 0 && at < 5);
    ASSERT(len >= TAG_BYTES);
    entry->key_at = at;
    entry->key_len = len - TAG_BYTES;
}

static Slice key_of(const RadixEntry *entry)
{
    return slice_make(entry->data + entry->key_at, entry->key_len);
}

/* Little-endian, like every machine we run on. */
static uint64_t read_tag(const char *bytes)
{
    uint64_t tag = 0;
    memcpy(&tag, bytes, sizeof(tag));
    return tag;
}

static uint64_t tag_of(const RadixEntry *entry)
{
    return read_tag(entry->data + entry->key_at + entry->key_len);
}

RadixEntry *radix_entry_new(Radix *radix, size_t data_bytes)
{
    RadixEntry *entry = allocate(radix, sizeof(RadixEntry) + data_bytes);
    atomic_init(&entry->newer, NULL);
    atomic_init(&entry->older, NULL);
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

static RadixEntry *older_of(const RadixEntry *entry)
{
    return atomic_load_explicit(&entry->older, memory_order_acquire);
}

/* Another version of the key to which the cell leads. They come in order, but for what RocksDB may
 * think of. */
static bool add_version(LinkCell *cell, RadixEntry *entry)
{
    uint64_t tag = tag_of(entry);
    RadixEntry *newer = NULL;
    RadixEntry *older = entry_of(load(cell));
    while (older != NULL && tag_of(older) > tag) {
        newer = older;
        older = older_of(older);
    }
    if (older != NULL && tag_of(older) == tag)
        return false;
    atomic_store_explicit(&entry->newer, newer, memory_order_relaxed);
    atomic_store_explicit(&entry->older, older, memory_order_relaxed);
    if (newer != NULL)
        atomic_store_explicit(&newer->older, entry, memory_order_release);
    else
        publish(cell, link_to(entry));
    if (older != NULL)
        atomic_store_explicit(&older->newer, entry, memory_order_release);
    return true;
}

static size_t common_len(Slice a, Slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    size_t at = 0;
    while (at < len && a.ptr[at] == b.ptr[at])
        at++;
    return at;
}

/* What is left of a key behind 'depth' leads on by its first byte, or ends. */
static void add_below(Node *node, Slice key, size_t depth, Link link)
{
    if (depth == key.len)
        publish(&node->end, link);
    else
        add_child(node, (uint8_t)key.ptr[depth], link);
}

/* Two keys that part behind 'depth'. */
static void part_entries(Radix *radix, LinkCell *cell, Slice key, size_t depth, Link link)
{
    Slice other = key_of(entry_of(load(cell)));
    size_t common = common_len(slice_from(key, depth), slice_from(other, depth));
    Node *node = node_new(radix, NODE_4, key.ptr + depth, common);
    add_below(node, other, depth + common, load(cell));
    add_below(node, key, depth + common, link);
    publish(cell, (Link)node);
}

/* A key that parts from all below a node within its prefix. */
static void part_prefix(Radix *radix, LinkCell *cell, Slice key, size_t depth, size_t common,
                        Link link)
{
    const Node *old = node_of(load(cell));
    Node *below = node_copy(radix, old, (NodeKind)old->kind, common + 1);
    Node *node = node_new(radix, NODE_4, old->prefix, common);
    add_child(node, (uint8_t)old->prefix[common], (Link)below);
    add_below(node, key, depth + common, link);
    publish(cell, (Link)node);
}

static void add_to_node(Radix *radix, LinkCell *cell, uint8_t byte, Link link)
{
    Node *node = node_of(load(cell));
    if (!is_full(node)) {
        add_child(node, byte, link);
        return;
    }
    Node *larger = node_copy(radix, node, (NodeKind)(node->kind + 1), 0);
    add_child(larger, byte, link);
    publish(cell, (Link)larger);
}

/* Follows the key as far as it goes: the cell at which it ends or goes on anew. */
static LinkCell *descend(Radix *radix, Slice key, size_t *depth, size_t *common)
{
    LinkCell *cell = &radix->root;
    for (;;) {
        Link link = load(cell);
        if (link == 0 || is_entry(link))
            return cell;
        Node *node = node_of(link);
        *common = common_len(slice_make(node->prefix, node->prefix_len), slice_from(key, *depth));
        if (*common < node->prefix_len)
            return cell;
        LinkCell *next = *depth + *common == key.len
                             ? NULL
                             : find_child(node, (uint8_t)key.ptr[*depth + *common]);
        if (next == NULL)
            return cell;
        *depth += *common + 1;
        cell = next;
    }
}

bool radix_insert(Radix *radix, RadixEntry *entry)
{
    decode_key(entry);
    Slice key = key_of(entry);
    size_t depth = 0;
    size_t common = 0;
    LinkCell *cell = descend(radix, key, &depth, &common);
    Link link = load(cell);
    if (link == 0) {
        publish(cell, link_to(entry));
        return true;
    }
    if (is_entry(link)) {
        if (slice_equal(key_of(entry_of(link)), key))
            return add_version(cell, entry);
        part_entries(radix, cell, key, depth, link_to(entry));
        return true;
    }
    Node *node = node_of(link);
    if (common < node->prefix_len) {
        part_prefix(radix, cell, key, depth, common, link_to(entry));
    } else if (depth + common < key.len) {
        add_to_node(radix, cell, (uint8_t)key.ptr[depth + common], link_to(entry));
    } else {
        if (load(&node->end) != 0)
            return add_version(&node->end, entry);
        publish(&node->end, link_to(entry));
    }
    return true;
}

/* ---- finding ---- */

static Link leftmost(Link link)
{
    while (link != 0 && !is_entry(link)) {
        const Node *node = node_of(link);
        Link end = load(&node->end);
        link = end != 0 ? end : child_after(node, -1);
    }
    return link;
}

static Link rightmost(Link link)
{
    while (link != 0 && !is_entry(link)) {
        const Node *node = node_of(link);
        Link last = child_before(node, BYTES);
        link = last != 0 ? last : load(&node->end);
    }
    return link;
}

/* How all keys below a node lie to 'key', whose first 'depth' bytes have led there: before it (-1),
 * behind it (1), or 0: the key goes on below, or ends there. */
static int compare_prefix(const Node *node, Slice key, size_t depth)
{
    size_t left = key.len - depth;
    size_t len = left < node->prefix_len ? left : node->prefix_len;
    int order = len > 0 ? memcmp(node->prefix, key.ptr + depth, len) : 0;
    if (order == 0 && left < node->prefix_len)
        return 1;
    return order < 0 ? -1 : order > 0;
}

/* The first key behind 'key', or that itself. */
static const RadixEntry *find_after(const Radix *radix, Slice key, bool or_equal)
{
    Link behind = 0; /* everything there is behind the key, and nearer than what is not */
    size_t depth = 0;
    Link link = load(&radix->root);
    while (link != 0) {
        if (is_entry(link)) {
            int order = slice_compare(key_of(entry_of(link)), key);
            behind = order > 0 || (order == 0 && or_equal) ? link : behind;
            break;
        }
        const Node *node = node_of(link);
        int order = compare_prefix(node, key, depth);
        if (order != 0) {
            behind = order > 0 ? link : behind;
            break;
        }
        depth += node->prefix_len;
        if (depth == key.len) {
            Link end = or_equal ? load(&node->end) : 0;
            behind = end != 0 ? end : child_after(node, -1);
            break;
        }
        uint8_t byte = (uint8_t)key.ptr[depth++];
        Link next = child_after(node, byte);
        behind = next != 0 ? next : behind;
        const LinkCell *cell = find_child(node, byte);
        link = cell != NULL ? load(cell) : 0;
    }
    behind = leftmost(behind);
    return behind != 0 ? entry_of(behind) : NULL;
}

/* The last key before 'key', or that itself. */
static const RadixEntry *find_before(const Radix *radix, Slice key, bool or_equal)
{
    Link before = 0;
    size_t depth = 0;
    Link link = load(&radix->root);
    while (link != 0) {
        if (is_entry(link)) {
            int order = slice_compare(key_of(entry_of(link)), key);
            before = order < 0 || (order == 0 && or_equal) ? link : before;
            break;
        }
        const Node *node = node_of(link);
        int order = compare_prefix(node, key, depth);
        if (order != 0) {
            before = order < 0 ? link : before;
            break;
        }
        depth += node->prefix_len;
        Link end = load(&node->end);
        if (depth == key.len) {
            before = or_equal && end != 0 ? end : before;
            break;
        }
        uint8_t byte = (uint8_t)key.ptr[depth++];
        Link last = child_before(node, byte);
        before = last != 0 ? last : end != 0 ? end : before;
        const LinkCell *cell = find_child(node, byte);
        link = cell != NULL ? load(cell) : 0;
    }
    before = rightmost(before);
    return before != 0 ? entry_of(before) : NULL;
}

static const RadixEntry *oldest(const RadixEntry *entry)
{
    while (entry != NULL && older_of(entry) != NULL)
        entry = older_of(entry);
    return entry;
}

const RadixEntry *radix_first(const Radix *radix)
{
    Link link = leftmost(load(&radix->root));
    return link != 0 ? entry_of(link) : NULL;
}

const RadixEntry *radix_last(const Radix *radix)
{
    Link link = rightmost(load(&radix->root));
    return link != 0 ? oldest(entry_of(link)) : NULL;
}

static Slice target_key(const char *target, size_t len)
{
    ASSERT(len >= TAG_BYTES);
    return slice_make(target, len - TAG_BYTES);
}

bool radix_is(const RadixEntry *entry, const char *target, size_t len)
{
    return slice_equal(slice_make(entry->data + entry->key_at, entry->key_len + TAG_BYTES),
                       slice_make(target, len));
}

const RadixEntry *radix_at_or_after(const Radix *radix, const char *target, size_t len)
{
    Slice key = target_key(target, len);
    uint64_t tag = read_tag(target + key.len);
    const RadixEntry *entry = find_after(radix, key, true);
    if (entry == NULL || !slice_equal(key_of(entry), key))
        return entry;
    while (entry != NULL && tag_of(entry) > tag)
        entry = older_of(entry);
    return entry != NULL ? entry : find_after(radix, key, false);
}

const RadixEntry *radix_at_or_before(const Radix *radix, const char *target, size_t len)
{
    Slice key = target_key(target, len);
    uint64_t tag = read_tag(target + key.len);
    const RadixEntry *entry = find_before(radix, key, true);
    if (entry == NULL || !slice_equal(key_of(entry), key))
        return oldest(entry);
    const RadixEntry *found = NULL;
    for (; entry != NULL && tag_of(entry) >= tag; entry = older_of(entry))
        found = entry;
    return found != NULL ? found : oldest(find_before(radix, key, false));
}

const RadixEntry *radix_next(const Radix *radix, const RadixEntry *entry)
{
    const RadixEntry *older = older_of(entry);
    return older != NULL ? older : find_after(radix, key_of(entry), false);
}

const RadixEntry *radix_prev(const Radix *radix, const RadixEntry *entry)
{
    const RadixEntry *newer = atomic_load_explicit(&entry->newer, memory_order_acquire);
    return newer != NULL ? newer : oldest(find_before(radix, key_of(entry), false));
}
