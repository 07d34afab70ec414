/* identity_source.c - see identity_source.h.
 *
 * Sets of keys are published as key_ring.c publishes its own. What was verified is remembered per
 * loop, in a table without chains: the SHA-256 of a token says where its entry is, and a newer
 * token takes the place of an older one. An entry counts only with the versions of all keys with
 * which it was made.
 */
#include "api/core/identity_source.h"

#include "base/cond.h"
#include "base/mem.h"
#include "base/thread.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdatomic.h>

typedef struct IdentitySet {
    _Atomic uint32_t references;
    IdentityKeys *keys; /* NULL if none could be read yet */
} IdentitySet;

typedef struct IdentityEntry {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    uint64_t version; /* of the issuer's keys; 0 if the entry is free */
    uint64_t account_version;
    int64_t from_s;
    int64_t to_s;
    IdentityRole role;
    uint8_t oid_len;
    char oid[IDENTITY_OID_BYTES_MAX];
} IdentityEntry;
static_assert(IDENTITY_OID_BYTES_MAX <= UINT8_MAX, "its length is stored in a byte");

struct IdentitySource {
    /* Immutable after open. */
    IdentitySourceOptions options;
    Arena arena;
    pthread_t thread; /* if there is an issuer */

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    IdentitySet *published;
    bool is_wanted; /* another reading */
    bool is_closing;
    bool has_thread;

    /* Atomic: of the published set. */
    _Atomic uint64_t version;
};

static void set_unref(IdentitySet *set)
{
    if (set == NULL || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
        return;
    identity_keys_close(set->keys);
    mem_free(set);
}

static void publish(IdentitySource *source, IdentityKeys *keys)
{
    IdentitySet *set = MEM_NEW(IdentitySet);
    atomic_init(&set->references, 1);
    set->keys = keys;
    (void)pthread_mutex_lock(&source->lock);
    IdentitySet *old = source->published;
    source->published = set;
    (void)atomic_fetch_add_explicit(&source->version, 1, memory_order_release);
    (void)pthread_mutex_unlock(&source->lock);
    set_unref(old);
}

/* ---- reading the issuer's keys ---- */

static Status read_keys(IdentitySource *source, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice text;
    IdentityKeys *keys = NULL;
    TRY(source->options.load(source->options.ctx, &arena, &text, err));
    if (identity_keys_parse(text, &keys, err) != STATUS_OK)
        return error_context(err, "--identity-keys");
    LOG_INFO(source->options.log, "identity.keys", "count=%zu", identity_keys_count(keys));
    publish(source, keys);
    return STATUS_OK;
}

static void read_keys_again(IdentitySource *source)
{
    Error err;
    if (read_keys(source, &err) != STATUS_OK)
        LOG_WARN(source->options.log, "identity.keys_refused", "reason=\"%s\" (the old ones stay)",
                 err.message);
}

static void *run_thread(void *ctx)
{
    IdentitySource *source = ctx;
    uint64_t next_us = cond_after_ms(source->options.reload_ms_min);
    (void)pthread_mutex_lock(&source->lock);
    while (!source->is_closing) {
        if (!source->is_wanted) {
            (void)pthread_cond_wait(&source->woken, &source->lock);
        } else if (cond_now_us() < next_us) {
            (void)cond_wait_until(&source->woken, &source->lock, next_us);
        } else {
            source->is_wanted = false;
            (void)pthread_mutex_unlock(&source->lock);
            read_keys_again(source);
            next_us = cond_after_ms(source->options.reload_ms_min);
            (void)pthread_mutex_lock(&source->lock);
        }
    }
    (void)pthread_mutex_unlock(&source->lock);
    return NULL;
}

/* From any thread. */
static void want_keys(IdentitySource *source)
{
    (void)pthread_mutex_lock(&source->lock);
    source->is_wanted = true;
    (void)pthread_cond_signal(&source->woken);
    (void)pthread_mutex_unlock(&source->lock);
}

/* ---- open and close ---- */

static void copy_options(IdentitySource *source, const IdentitySourceOptions *options)
{
    Arena *arena = &source->arena;
    source->options = *options;
    source->options.rules = (IdentityRules){
        .issuer = arena_copy(arena, options->rules.issuer),
        .audiences = arena_copy(arena, options->rules.audiences),
        .readers = arena_copy(arena, options->rules.readers),
        .contributors = arena_copy(arena, options->rules.contributors),
    };
}

Status identity_source_open(const IdentitySourceOptions *options, IdentitySource **out, Error *err)
{
    AUTO(identity_source_close) IdentitySource *source = MEM_NEW(IdentitySource);
    int failed = pthread_mutex_init(&source->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&source->woken, NULL);
    ASSERT(failed == 0);
    arena_init(&source->arena, 1024);
    copy_options(source, options);
    publish(source, NULL);
    if (options->rules.issuer.len > 0) {
        Status status = read_keys(source, err);
        if (status == STATUS_UNAVAILABLE)
            LOG_WARN(options->log, "identity.no_keys",
                     "reason=\"%s\" (it is tried again when a token comes)", err->message);
        else
            TRY(status);
        TRY(thread_start(&source->thread, "orrery-identity", run_thread, source, err));
        source->has_thread = true;
    }
    *out = TAKE(source);
    return STATUS_OK;
}

void identity_source_close(IdentitySource *source)
{
    if (source == NULL)
        return;
    (void)pthread_mutex_lock(&source->lock);
    source->is_closing = true;
    (void)pthread_cond_signal(&source->woken);
    (void)pthread_mutex_unlock(&source->lock);
    if (source->has_thread)
        (void)pthread_join(source->thread, NULL);
    set_unref(source->published);
    (void)pthread_cond_destroy(&source->woken);
    (void)pthread_mutex_destroy(&source->lock);
    arena_done(&source->arena);
    mem_free(source);
}

Status identity_source_reload(IdentitySource *source, Error *err)
{
    return source->options.rules.issuer.len == 0 ? STATUS_OK : read_keys(source, err);
}

/* ---- readers ---- */

void identity_reader_init(IdentityReader *reader, IdentitySource *source)
{
    *reader = (IdentityReader){.source = source};
}

void identity_reader_done(IdentityReader *reader)
{
    set_unref(TAKE(reader->set));
    mem_free(TAKE(reader->cache));
}

static const IdentityKeys *newest_keys(IdentityReader *reader)
{
    IdentitySource *source = reader->source;
    if (atomic_load_explicit(&source->version, memory_order_acquire) == reader->version)
        return reader->set->keys;
    (void)pthread_mutex_lock(&source->lock);
    IdentitySet *newest = source->published;
    (void)atomic_fetch_add_explicit(&newest->references, 1, memory_order_relaxed);
    reader->version = atomic_load_explicit(&source->version, memory_order_relaxed);
    (void)pthread_mutex_unlock(&source->lock);
    set_unref(reader->set);
    reader->set = newest;
    return newest->keys;
}

/* The place of a token that has this digest. */
static IdentityEntry *place_of(IdentityReader *reader, const uint8_t digest[SHA256_DIGEST_LENGTH])
{
    static_assert(IDENTITY_CACHE_COUNT == 256, "a byte of the digest is a place");
    if (reader->cache == NULL)
        reader->cache = MEM_NEW_ARRAY(IdentityEntry, IDENTITY_CACHE_COUNT);
    return &reader->cache[digest[0]];
}

static void set_principal(Principal *out, Slice oid, IdentityRole role)
{
    *out = (Principal){.kind = PRINCIPAL_IDENTITY, .name = oid, .oid = oid, .role = role};
}

Status identity_read(IdentityReader *reader, const AuthKeys *account_keys, uint64_t account_version,
                     Slice token, int64_t now_s, Arena *arena, Principal *out, Error *err)
{
    const IdentityKeys *keys = newest_keys(reader);
    uint8_t digest[SHA256_DIGEST_LENGTH];
    (void)SHA256((const uint8_t *)token.ptr, token.len, digest);
    IdentityEntry *entry = place_of(reader, digest);
    if (entry->version == reader->version && entry->account_version == account_version &&
        CRYPTO_memcmp(entry->digest, digest, sizeof(digest)) == 0 &&
        identity_is_current(entry->from_s, entry->to_s, now_s)) {
        set_principal(out, arena_copy(arena, slice_make(entry->oid, entry->oid_len)), entry->role);
        return STATUS_OK;
    }
    IdentityCheck check = {.rules = &reader->source->options.rules,
                           .keys = keys,
                           .account_keys = account_keys,
                           .now_s = now_s};
    IdentityClaims claims;
    Status status = identity_token_check(&check, token, arena, &claims, err);
    if (status != STATUS_OK) {
        if (err->sub == SUB_IDENTITY_UNKNOWN_KEY)
            want_keys(reader->source);
        return status;
    }
    *entry = (IdentityEntry){.version = reader->version,
                             .account_version = account_version,
                             .from_s = claims.from_s,
                             .to_s = claims.to_s,
                             .role = claims.role,
                             .oid_len = (uint8_t)claims.oid.len};
    memcpy(entry->digest, digest, sizeof(digest));
    memcpy(entry->oid, claims.oid.ptr, claims.oid.len);
    set_principal(out, claims.oid, claims.role);
    return STATUS_OK;
}
