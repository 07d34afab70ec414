/* key_ring.c - see key_ring.h.
 *
 * The pattern is that of the catalogue's snapshots: a set is immutable and counts its references, a
 * reader compares the number of the newest set with its own, and takes the lock only if they
 * differ. The lock is held for a few instructions. Rotations have another one, which they keep
 * while they write to the disk.
 */
#include "api/core/key_ring.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/secret_mem.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct KeySet {
    _Atomic uint32_t references;
    AuthKeys *keys;
} KeySet;

struct KeyRing {
    /* Immutable after open. */
    KeyRingOptions options;
    Arena arena; /* for the texts of the options */

    /* Guarded by 'rotating', which is taken before 'lock'. */
    pthread_mutex_t rotating;
    StoredKeys *stored; /* in secret memory */
    StoredKeys *next;   /* likewise: what is being written */

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    KeySet *published;
    KeyInfo infos[KEY_SLOT_COUNT];

    /* Atomic: of the published set. */
    _Atomic uint64_t version;
};

static KeySet *set_ref(KeySet *set)
{
    (void)atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
    return set;
}

static void set_unref(KeySet *set)
{
    if (set == NULL || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
        return;
    auth_keys_close(set->keys);
    mem_free(set);
}

/* ---- where keys come from ---- */

static Slice given_text(const KeyRing *ring, KeySlot slot)
{
    const AuthKeyTexts *given = &ring->options.given;
    const Slice texts[KEY_SLOT_COUNT] = {
        [KEY_SLOT_PRIMARY] = given->primary,
        [KEY_SLOT_SECONDARY] = given->secondary,
        [KEY_SLOT_PRIMARY_READ_ONLY] = given->primary_read_only,
        [KEY_SLOT_SECONDARY_READ_ONLY] = given->secondary_read_only,
    };
    return texts[slot];
}

/* Room for the longest key as text. */
typedef struct KeyText {
    char bytes[BASE64_LEN(AUTH_KEY_BYTES_MAX)];
} KeyText;

/* By its bytes: one key can have several spellings in base64. */
static bool is_development_key(const uint8_t *bytes, size_t len)
{
    uint8_t known[AUTH_KEY_BYTES_MAX];
    size_t known_len = 0;
    bool good = base64_decode(BASE64_STANDARD, SLICE(AUTH_DEVELOPMENT_KEY), known, sizeof(known),
                              &known_len);
    ASSERT(good);
    return len == known_len && memcmp(bytes, known, len) == 0;
}

/* The key of a slot as text, in 'room' if it is stored, and all that may be said about it. */
static Slice choose(const KeyRing *ring, const StoredKeys *stored, KeySlot slot, KeyText *room,
                    KeyInfo *info)
{
    const StoredKey *kept = &stored->slots[slot];
    Slice given = given_text(ring, slot);
    *info = (KeyInfo){.source = KEY_SOURCE_NONE};
    Slice text = SLICE_EMPTY;
    if (given.len > 0) {
        info->source = KEY_SOURCE_OPTION;
        info->given_by = ring->options.given_by[slot];
        text = given;
    } else if (kept->len > 0) {
        info->source = KEY_SOURCE_STORED;
        info->made_at_s = kept->made_at_s;
        info->rotations = kept->rotations;
        base64_encode(BASE64_STANDARD, kept->bytes, kept->len, room->bytes);
        text = slice_make(room->bytes, BASE64_LEN((size_t)kept->len));
    } else if (slot == KEY_SLOT_PRIMARY) {
        info->source = KEY_SOURCE_DEVELOPMENT;
        text = SLICE(AUTH_DEVELOPMENT_KEY);
    }
    uint8_t bytes[AUTH_KEY_BYTES_MAX];
    size_t len = 0;
    if (base64_decode(BASE64_STANDARD, text, bytes, sizeof(bytes), &len)) {
        key_fingerprint(bytes, len, info->fingerprint);
        info->is_development_key = is_development_key(bytes, len);
    }
    secret_wipe(bytes, sizeof(bytes));
    return text;
}

/* The set of keys that the options and 'stored' make together. */
static Status make_set(const KeyRing *ring, const StoredKeys *stored, KeySet **out,
                       KeyInfo infos[KEY_SLOT_COUNT], Error *err)
{
    KeyText room[KEY_SLOT_COUNT];
    AuthKeyTexts texts = {
        .primary = choose(ring, stored, KEY_SLOT_PRIMARY, &room[0], &infos[0]),
        .secondary = choose(ring, stored, KEY_SLOT_SECONDARY, &room[1], &infos[1]),
        .primary_read_only = choose(ring, stored, KEY_SLOT_PRIMARY_READ_ONLY, &room[2], &infos[2]),
        .secondary_read_only =
            choose(ring, stored, KEY_SLOT_SECONDARY_READ_ONLY, &room[3], &infos[3]),
    };
    AuthKeys *keys = NULL;
    Status status = auth_keys_open(texts, &keys, err);
    secret_wipe(room, sizeof(room));
    TRY(status);
    KeySet *set = MEM_NEW(KeySet);
    atomic_init(&set->references, 1);
    set->keys = keys;
    *out = set;
    return STATUS_OK;
}

static void publish(KeyRing *ring, KeySet *set, const KeyInfo infos[KEY_SLOT_COUNT])
{
    (void)pthread_mutex_lock(&ring->lock);
    KeySet *old = ring->published;
    ring->published = set;
    memcpy(ring->infos, infos, sizeof(ring->infos));
    (void)atomic_fetch_add_explicit(&ring->version, 1, memory_order_release);
    (void)pthread_mutex_unlock(&ring->lock);
    set_unref(old);
}

/* ---- open and close ---- */

static void copy_options(KeyRing *ring, const KeyRingOptions *options)
{
    Arena *arena = &ring->arena;
    ring->options = *options;
    ring->options.given = (AuthKeyTexts){
        .primary = arena_copy(arena, options->given.primary),
        .secondary = arena_copy(arena, options->given.secondary),
        .primary_read_only = arena_copy(arena, options->given.primary_read_only),
        .secondary_read_only = arena_copy(arena, options->given.secondary_read_only),
    };
    const char *data = options->store.data;
    const char *seal = options->store.seal_key_file;
    ring->options.store = (KeyStoreOptions){
        .data = data == NULL ? NULL : arena_cstr(arena, slice_from_cstr(data)),
        .seal_key_file = seal == NULL ? NULL : arena_cstr(arena, slice_from_cstr(seal)),
    };
}

Status key_ring_open(const KeyRingOptions *options, KeyRing **out, Error *err)
{
    AUTO(key_ring_close) KeyRing *ring = MEM_NEW(KeyRing);
    int failed = pthread_mutex_init(&ring->rotating, NULL);
    ASSERT(failed == 0);
    failed = pthread_mutex_init(&ring->lock, NULL);
    ASSERT(failed == 0);
    arena_init(&ring->arena, 1024);
    copy_options(ring, options);
    ring->stored = secret_alloc(sizeof(*ring->stored));
    ring->next = secret_alloc(sizeof(*ring->next));
    bool found = false;
    if (options->store.data != NULL)
        TRY(key_store_read(&ring->options.store, ring->stored, &found, err));
    KeySet *set = NULL;
    KeyInfo infos[KEY_SLOT_COUNT];
    TRY(make_set(ring, ring->stored, &set, infos, err));
    publish(ring, set, infos);
    *out = TAKE(ring);
    return STATUS_OK;
}

static void wipe_text(Slice text)
{
    secret_wipe(UNCONST(char, text.ptr), text.len); /* the arena's */
}

void key_ring_close(KeyRing *ring)
{
    if (ring == NULL)
        return;
    set_unref(ring->published);
    for (int slot = 0; slot < KEY_SLOT_COUNT; slot++)
        wipe_text(given_text(ring, (KeySlot)slot));
    secret_free(ring->stored, sizeof(*ring->stored));
    secret_free(ring->next, sizeof(*ring->next));
    (void)pthread_mutex_destroy(&ring->lock);
    (void)pthread_mutex_destroy(&ring->rotating);
    arena_done(&ring->arena);
    mem_free(ring);
}

/* ---- readers ---- */

void key_reader_init(KeyReader *reader, KeyRing *ring)
{
    *reader = (KeyReader){.ring = ring};
}

void key_reader_done(KeyReader *reader)
{
    set_unref(TAKE(reader->set));
}

uint64_t key_ring_version(const KeyRing *ring)
{
    return atomic_load_explicit(&ring->version, memory_order_acquire);
}

const AuthKeys *key_read(KeyReader *reader)
{
    KeyRing *ring = reader->ring;
    if (LIKELY(key_ring_version(ring) == reader->version))
        return reader->set->keys;
    (void)pthread_mutex_lock(&ring->lock);
    KeySet *newest = set_ref(ring->published);
    reader->version = atomic_load_explicit(&ring->version, memory_order_relaxed);
    (void)pthread_mutex_unlock(&ring->lock);
    set_unref(reader->set);
    reader->set = newest;
    return newest->keys;
}

/* ---- showing and changing ---- */

const char *key_source_name(KeySource source)
{
    static const char *const NAMES[] = {
        [KEY_SOURCE_NONE] = "none",
        [KEY_SOURCE_OPTION] = "option",
        [KEY_SOURCE_STORED] = "stored",
        [KEY_SOURCE_DEVELOPMENT] = "development",
    };
    return NAMES[source];
}

void key_ring_list(KeyRing *ring, KeyInfo out[KEY_SLOT_COUNT])
{
    (void)pthread_mutex_lock(&ring->lock);
    memcpy(out, ring->infos, sizeof(ring->infos));
    (void)pthread_mutex_unlock(&ring->lock);
}

void key_ring_renew(StoredKey *key, int64_t now_s, char text[KEY_RING_TEXT_LEN])
{
    static_assert(BASE64_LEN(KEY_RING_KEY_BYTES) == KEY_RING_TEXT_LEN, "a key as text");
    uint32_t rotations = key->rotations;
    secret_wipe(key, sizeof(*key));
    key->len = KEY_RING_KEY_BYTES;
    random_secret(key->bytes, key->len);
    key->made_at_s = now_s;
    key->rotations = rotations < UINT32_MAX ? rotations + 1 : rotations;
    base64_encode(BASE64_STANDARD, key->bytes, key->len, text);
}

static Status check_rotation(KeyRing *ring, const KeyRotation *rotation, Error *err)
{
    const KeyInfo *info = &ring->infos[rotation->slot]; /* only changed under 'rotating' */
    Slice name = key_slot_name(rotation->slot);
    if (info->source == KEY_SOURCE_OPTION)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "The %.*s key is set by the option %s (command line, environment or "
                         "configuration file), so the next start would bring it back. Change it "
                         "there, or remove the option and rotate the key then.",
                         SLICE_ARG(name), info->given_by);
    if (ring->options.store.data == NULL)
        return error_set(err, STATUS_CONFLICT, SUB_NONE, "This server cannot store keys.");
    Slice has = info->source == KEY_SOURCE_NONE
                    ? SLICE("none")
                    : slice_make(info->fingerprint, KEY_FINGERPRINT_LEN);
    if (rotation->fingerprint.len > 0 && !slice_equal_nocase(rotation->fingerprint, has))
        return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                         "The %.*s key has the fingerprint %.*s now, not '%.*s': it was changed "
                         "meanwhile.",
                         SLICE_ARG(name), SLICE_ARG(has), SLICE_CUT(rotation->fingerprint, 40));
    if (rotation->version != 0 && rotation->version != key_ring_version(ring))
        return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                         "Another key was rotated meanwhile; nothing was changed by this request.");
    return STATUS_OK;
}

/* With 'rotating' taken. */
static Status rotate(KeyRing *ring, const KeyRotation *rotation, char text[KEY_RING_TEXT_LEN],
                     KeyInfo *info, Error *err)
{
    KeySet *set = NULL;
    KeyInfo infos[KEY_SLOT_COUNT];
    TRY(check_rotation(ring, rotation, err));
    *ring->next = *ring->stored;
    key_ring_renew(&ring->next->slots[rotation->slot], clock_wall_s(ring->options.clock), text);
    TRY(make_set(ring, ring->next, &set, infos, err));
    if (key_store_write(&ring->options.store, ring->next, err) != STATUS_OK) {
        set_unref(set);
        secret_wipe(text, KEY_RING_TEXT_LEN);
        return error_context(err, "The key was not changed");
    }
    *ring->stored = *ring->next;
    publish(ring, set, infos);
    *info = infos[rotation->slot];
    return STATUS_OK;
}

Status key_ring_rotate(KeyRing *ring, const KeyRotation *rotation, char text[KEY_RING_TEXT_LEN],
                       KeyInfo *info, Error *err)
{
    (void)pthread_mutex_lock(&ring->rotating);
    Status status = rotate(ring, rotation, text, info, err);
    secret_wipe(ring->next, sizeof(*ring->next));
    (void)pthread_mutex_unlock(&ring->rotating);
    return status;
}
