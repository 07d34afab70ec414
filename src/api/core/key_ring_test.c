/* key_ring_test.c - which keys are good, and changing them under the readers' hands. */
#include "api/core/key_ring.h"

#include "base/arena.h"
#include "base/date.h"
#include "base/encoding.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define OPTION_KEY "b3B0aW9u"
#define NOW_S      1700000000

typedef struct Place {
    char data[64];
    FakeClock clock;
} Place;

static void place_open(Place *place)
{
    *place = (Place){.data = "/tmp/orrery-key-ring-XXXXXX"};
    assert_non_null(mkdtemp(place->data));
    fake_clock_init(&place->clock, UINT64_C(1000000) * NOW_S);
}

static void place_close(Place *place)
{
    static const char *const names[] = {"keys", "seal.key"};
    char path[128];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", place->data, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(place->data), 0);
}
DEFINE_AUTO_VALUE(Place, place_close)

static KeyRing *ring_of(const Place *place, AuthKeyTexts given)
{
    KeyRingOptions options = {
        .given = given,
        .given_by = {"--key-file", "--secondary-key", "--read-only-key",
                     "--secondary-read-only-key"},
        .store.data = place->data,
        .clock = &place->clock.clock,
    };
    KeyRing *ring = NULL;
    Error err = {0};
    if (key_ring_open(&options, &ring, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return ring;
}

/* Whether a request that is signed with 'key' is let in. */
static bool is_good(const AuthKeys *keys, Slice key)
{
    char token[100];
    Error err;
    Principal principal;
    int len = snprintf(token, sizeof(token), "Bearer %.*s", SLICE_ARG(key));
    return auth_check_bearer(keys, slice_make(token, (size_t)len), &principal, &err) == STATUS_OK;
}

static bool ring_takes(KeyRing *ring, Slice key)
{
    KeyReader reader;
    key_reader_init(&reader, ring);
    bool good = is_good(key_read(&reader), key);
    key_reader_done(&reader);
    return good;
}

static void rotate(KeyRing *ring, KeySlot slot, char text[KEY_RING_TEXT_LEN])
{
    KeyInfo info;
    Error err = {0};
    if (key_ring_rotate(ring, &(KeyRotation){.slot = slot}, text, &info, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_int_equal(info.source, KEY_SOURCE_STORED);
}

#define TEXT(array) slice_make(array, sizeof(array))

static void options_win_over_stored_keys_and_these_over_the_known_one(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyInfo infos[KEY_SLOT_COUNT];
    char stored[KEY_RING_TEXT_LEN];

    KeyRing *ring = ring_of(&place, (AuthKeyTexts){0});
    key_ring_list(ring, infos);
    assert_int_equal(infos[KEY_SLOT_PRIMARY].source, KEY_SOURCE_DEVELOPMENT);
    assert_true(infos[KEY_SLOT_PRIMARY].is_development_key);
    assert_int_equal(infos[KEY_SLOT_SECONDARY].source, KEY_SOURCE_NONE);
    assert_true(ring_takes(ring, SLICE(AUTH_DEVELOPMENT_KEY)));
    rotate(ring, KEY_SLOT_PRIMARY, stored);
    assert_false(ring_takes(ring, SLICE(AUTH_DEVELOPMENT_KEY)));
    assert_true(ring_takes(ring, TEXT(stored)));
    key_ring_close(ring);

    ring = ring_of(&place, (AuthKeyTexts){.secondary = SLICE(AUTH_DEVELOPMENT_KEY)});
    key_ring_list(ring, infos);
    assert_int_equal(infos[KEY_SLOT_PRIMARY].source, KEY_SOURCE_STORED);
    assert_int_equal(infos[KEY_SLOT_PRIMARY].made_at_s, NOW_S);
    assert_int_equal(infos[KEY_SLOT_PRIMARY].rotations, 1);
    assert_false(infos[KEY_SLOT_PRIMARY].is_development_key);
    assert_true(infos[KEY_SLOT_SECONDARY].is_development_key);
    assert_true(ring_takes(ring, TEXT(stored)));
    key_ring_close(ring);

    ring = ring_of(&place, (AuthKeyTexts){.primary = SLICE(OPTION_KEY)});
    key_ring_list(ring, infos);
    assert_int_equal(infos[KEY_SLOT_PRIMARY].source, KEY_SOURCE_OPTION);
    assert_string_equal(infos[KEY_SLOT_PRIMARY].given_by, "--key-file");
    assert_true(ring_takes(ring, SLICE(OPTION_KEY)));
    assert_false(ring_takes(ring, TEXT(stored)));
    key_ring_close(ring);
}

static void each_slot_is_rotated_alone_and_survives(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyRing *ring = ring_of(&place, (AuthKeyTexts){0});
    char texts[KEY_SLOT_COUNT][KEY_RING_TEXT_LEN];
    for (int round = 0; round < 2; round++) {
        for (int slot = 0; slot < KEY_SLOT_COUNT; slot++)
            rotate(ring, (KeySlot)slot, texts[slot]);
    }
    for (int round = 0; round < 2; round++) {
        KeyInfo infos[KEY_SLOT_COUNT];
        key_ring_list(ring, infos);
        for (int slot = 0; slot < KEY_SLOT_COUNT; slot++) {
            assert_true(ring_takes(ring, TEXT(texts[slot])));
            assert_int_equal(infos[slot].rotations, 2);
        }
        key_ring_close(ring);
        ring = ring_of(&place, (AuthKeyTexts){0});
    }
    key_ring_close(ring);
}

static void expect_refused(KeyRing *ring, const KeyRotation *rotation, Status status,
                           const char *words)
{
    char text[KEY_RING_TEXT_LEN];
    KeyInfo info;
    Error err = {0};
    uint64_t version = key_ring_version(ring);
    assert_int_equal(key_ring_rotate(ring, rotation, text, &info, &err), status);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.message);
    assert_int_equal(key_ring_version(ring), version);
}

static void a_rotation_that_is_refused_changes_nothing(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    AUTO(key_ring_close)
    KeyRing *ring = ring_of(&place, (AuthKeyTexts){.primary = SLICE(OPTION_KEY)});
    uint64_t before = key_ring_version(ring);
    char text[KEY_RING_TEXT_LEN];
    KeyInfo infos[KEY_SLOT_COUNT];
    expect_refused(ring, &(KeyRotation){.slot = KEY_SLOT_PRIMARY}, STATUS_CONFLICT, "--key-file");
    KeyRotation rotation = {.slot = KEY_SLOT_SECONDARY, .fingerprint = SLICE("0123456789ABCDEF")};
    expect_refused(ring, &rotation, STATUS_PRECONDITION_FAILED, "fingerprint none now");
    rotation.fingerprint = SLICE("none");
    rotation.version = before;
    assert_int_equal(key_ring_rotate(ring, &rotation, text, &infos[0], &(Error){0}), STATUS_OK);
    /* The same again, as somebody who has recorded it would send it. */
    expect_refused(ring, &rotation, STATUS_PRECONDITION_FAILED, "changed meanwhile");
    rotation.fingerprint = SLICE_EMPTY;
    expect_refused(ring, &rotation, STATUS_PRECONDITION_FAILED, "Another key");
    key_ring_list(ring, infos);
    rotation = (KeyRotation){.slot = KEY_SLOT_SECONDARY,
                             .fingerprint = TEXT(infos[KEY_SLOT_SECONDARY].fingerprint)};
    assert_int_equal(key_ring_rotate(ring, &rotation, text, &infos[0], &(Error){0}), STATUS_OK);
    assert_true(ring_takes(ring, TEXT(text)));
}

static void a_ring_without_a_folder_cannot_rotate(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, 0);
    KeyRingOptions options = {.clock = &clock.clock};
    AUTO(key_ring_close) KeyRing *ring = NULL;
    Error err;
    assert_int_equal(key_ring_open(&options, &ring, &err), STATUS_OK);
    expect_refused(ring, &(KeyRotation){0}, STATUS_CONFLICT, "cannot store");
}

static void what_cannot_be_stored_is_not_good(void **state)
{
    (void)state;
    Place place;
    place_open(&place);
    AUTO(key_ring_close) KeyRing *ring = ring_of(&place, (AuthKeyTexts){0});
    place_close(&place); /* the folder is gone */
    expect_refused(ring, &(KeyRotation){0}, STATUS_IO, "The key was not changed");
    assert_true(ring_takes(ring, SLICE(AUTH_DEVELOPMENT_KEY)));
}

static void a_wrong_key_of_an_option_is_named(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    KeyRingOptions options = {.given.primary = SLICE("not base64!"),
                              .store.data = place.data,
                              .clock = &place.clock.clock};
    KeyRing *ring = NULL;
    Error err = {0};
    assert_int_equal(key_ring_open(&options, &ring, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "primary"));
    assert_null(strstr(err.message, "not base64!"));
}

static void a_reader_keeps_its_set_until_it_reads_again(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    AUTO(key_ring_close) KeyRing *ring = ring_of(&place, (AuthKeyTexts){0});
    KeyReader reader;
    char text[KEY_RING_TEXT_LEN];
    key_reader_init(&reader, ring);
    const AuthKeys *old = key_read(&reader);
    rotate(ring, KEY_SLOT_PRIMARY, text);
    assert_true(is_good(old, SLICE(AUTH_DEVELOPMENT_KEY))); /* the address sanitizer looks on */
    assert_int_not_equal(reader.version, key_ring_version(ring));
    assert_false(is_good(key_read(&reader), SLICE(AUTH_DEVELOPMENT_KEY)));
    assert_int_equal(reader.version, key_ring_version(ring));
    key_reader_done(&reader);
}

/* ---- threads ---- */

enum { READERS = 4, ROTATORS = 2, ROTATIONS = 50 };

typedef struct Shared {
    KeyRing *ring;
    pthread_mutex_t lock;
    char newest[KEY_RING_TEXT_LEN]; /* guarded by 'lock', which a rotation holds to its end */
    char replaced[KEY_RING_TEXT_LEN];
    _Atomic uint32_t running;
} Shared;

/* With the lock, the newest key is good and the one before it is not, whatever set was read
 * before. */
static void *read_keys(void *arg)
{
    Shared *shared = arg;
    KeyReader reader;
    key_reader_init(&reader, shared->ring);
    while (atomic_load(&shared->running) > 0) {
        (void)is_good(key_read(&reader), SLICE("AAAA"));
        (void)pthread_mutex_lock(&shared->lock);
        const AuthKeys *keys = key_read(&reader);
        bool good = is_good(keys, TEXT(shared->newest)) && !is_good(keys, TEXT(shared->replaced));
        (void)pthread_mutex_unlock(&shared->lock);
        ASSERT(good);
    }
    key_reader_done(&reader);
    return NULL;
}

static void *rotate_keys(void *arg)
{
    Shared *shared = arg;
    KeyInfo info;
    Error err;
    for (int i = 0; i < ROTATIONS; i++) {
        char text[KEY_RING_TEXT_LEN];
        (void)pthread_mutex_lock(&shared->lock);
        memcpy(shared->replaced, shared->newest, sizeof(text));
        Status status = key_ring_rotate(shared->ring, &(KeyRotation){0}, text, &info, &err);
        ASSERT(status == STATUS_OK);
        memcpy(shared->newest, text, sizeof(text));
        (void)pthread_mutex_unlock(&shared->lock);
        /* Another slot, without the lock: both rotators meet here. */
        status = key_ring_rotate(shared->ring, &(KeyRotation){.slot = KEY_SLOT_SECONDARY}, text,
                                 &info, &err);
        ASSERT(status == STATUS_OK);
    }
    (void)atomic_fetch_sub(&shared->running, 1);
    return NULL;
}

static void readers_on_other_threads_see_a_rotation_at_once(void **state)
{
    (void)state;
    AUTO(place_close) Place place;
    place_open(&place);
    static Shared shared;
    shared.ring = ring_of(&place, (AuthKeyTexts){0});
    atomic_store(&shared.running, ROTATORS);
    assert_int_equal(pthread_mutex_init(&shared.lock, NULL), 0);
    rotate(shared.ring, KEY_SLOT_PRIMARY, shared.replaced);
    rotate(shared.ring, KEY_SLOT_PRIMARY, shared.newest);
    pthread_t threads[READERS + ROTATORS];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < READERS ? read_keys : rotate_keys, &shared), 0);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    KeyInfo infos[KEY_SLOT_COUNT];
    key_ring_list(shared.ring, infos);
    assert_int_equal(infos[KEY_SLOT_PRIMARY].rotations, 2 + ROTATORS * ROTATIONS);
    assert_int_equal(infos[KEY_SLOT_SECONDARY].rotations, ROTATORS * ROTATIONS);
    assert_int_equal(pthread_mutex_destroy(&shared.lock), 0);
    key_ring_close(shared.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_win_over_stored_keys_and_these_over_the_known_one),
        cmocka_unit_test(each_slot_is_rotated_alone_and_survives),
        cmocka_unit_test(a_rotation_that_is_refused_changes_nothing),
        cmocka_unit_test(a_ring_without_a_folder_cannot_rotate),
        cmocka_unit_test(what_cannot_be_stored_is_not_good),
        cmocka_unit_test(a_wrong_key_of_an_option_is_named),
        cmocka_unit_test(a_reader_keeps_its_set_until_it_reads_again),
        cmocka_unit_test(readers_on_other_threads_see_a_rotation_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
