/* rid_test.c - resource ids against those that the protocol's documents show. */
#include "base/rid.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define DATABASE  0x00AA01F3u /* bytes F3 01 AA 00 */
#define CONTAINER 0x12345607u /* bytes 92 34 56 07 with the container's bit */

static size_t print(const Rid *rid, char out[RID_CHILD_LEN])
{
    switch (rid->kind) {
    case RID_OFFER:
        rid_print_offer(rid->offer, out);
        return RID_OFFER_LEN;
    case RID_DATABASE:
        rid_print_database(rid->database, out);
        return RID_DATABASE_LEN;
    case RID_CONTAINER:
        rid_print_container(rid->database, rid->container, out);
        return RID_CONTAINER_LEN;
    case RID_CLIENT_ENCRYPTION_KEY:
        rid_print_key(rid->database, (uint32_t)rid->child, out);
        return RID_CHILD_LEN;
    case RID_USER:
        rid_print_user(rid->database, rid->user, out);
        return RID_USER_LEN;
    case RID_PERMISSION:
        rid_print_permission(rid->database, rid->user, rid->child, out);
        return RID_CHILD_LEN;
    case RID_DOCUMENT:
    case RID_STORED_PROCEDURE:
    case RID_TRIGGER:
    case RID_USER_DEFINED_FUNCTION:
    case RID_CONFLICT:
    case RID_PARTITION_KEY_RANGE:
        break;
    }
    rid_print_child(rid->kind, rid->database, rid->container, rid->child, out);
    return RID_CHILD_LEN;
}

static void assert_rid_equal(const Rid *a, const Rid *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->offer, b->offer);
    assert_int_equal(a->database, b->database);
    assert_int_equal(a->container, b->container);
    assert_true(a->child == b->child);
    assert_int_equal(a->user, b->user);
}

static void ids_are_printed_and_parsed_as_the_protocol_shows_them(void **state)
{
    (void)state;
    static const struct {
        Rid rid;
        const char *text;
    } rows[] = {
        {{RID_OFFER, .offer = 0xADEF1E}, "Hu+t"},
        {{RID_OFFER, .offer = 0}, "AAAA"},
        {{RID_OFFER, .offer = RID_OFFER_MAX}, "----"},
        {{RID_DATABASE, .database = DATABASE}, "8wGqAA=="},
        {{RID_DATABASE, .database = UINT32_MAX}, "-----w=="},
        {{RID_CONTAINER, .database = DATABASE, .container = CONTAINER}, "8wGqAJI0Vgc="},
        {{RID_CONTAINER, .database = 0, .container = 0}, "AAAAAIAAAAA="},
        {{RID_USER, .database = DATABASE, .user = CONTAINER}, "8wGqABI0Vgc="},
        {{RID_USER, .database = 0, .user = RID_USER_MAX}, "AAAAAH----8="},
        {{RID_PERMISSION, .database = DATABASE, .user = CONTAINER, .child = 5},
         "8wGqABI0VgcFAAAAAAAAAA=="},
        {{RID_PERMISSION, .database = DATABASE, .user = 1, .child = UINT64_MAX},
         "8wGqAAAAAAH----------w=="},
        {{RID_DOCUMENT, 0, DATABASE, CONTAINER, 1, 0}, "8wGqAJI0VgcBAAAAAAAAAA=="},
        {{RID_STORED_PROCEDURE, 0, DATABASE, CONTAINER, 1, 0}, "8wGqAJI0VgcBAAAAAAAAgA=="},
        {{RID_TRIGGER, 0, DATABASE, CONTAINER, 1, 0}, "8wGqAJI0VgcBAAAAAAAAcA=="},
        {{RID_USER_DEFINED_FUNCTION, 0, DATABASE, CONTAINER, 1, 0}, "8wGqAJI0VgcBAAAAAAAAYA=="},
        {{RID_CONFLICT, 0, DATABASE, CONTAINER, 1, 0}, "8wGqAJI0VgcBAAAAAAAAQA=="},
        {{RID_PARTITION_KEY_RANGE, 0, DATABASE, CONTAINER, 1, 0}, "8wGqAJI0VgcBAAAAAAAAUA=="},
        {{RID_PARTITION_KEY_RANGE, 0, DATABASE, CONTAINER, 2, 0}, "8wGqAJI0VgcCAAAAAAAAUA=="},
        /* As the service has printed it. */
        {{RID_CLIENT_ENCRYPTION_KEY, .database = 0x00266AEA, .child = 0x672A7CBB},
         "6momAAAAAAC7fCpnAgAAAA=="},
        {{RID_DOCUMENT, 0, DATABASE, CONTAINER, (UINT64_C(1) << 60) - 1, 0},
         "8wGqAJI0Vgf---------Dw=="},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[RID_CHILD_LEN + 1] = "";
        text[print(&rows[i].rid, text)] = '\0';
        assert_string_equal(text, rows[i].text);
        Rid rid;
        assert_true(rid_parse(slice_from_cstr(rows[i].text), &rid));
        assert_rid_equal(&rid, &rows[i].rid);
    }
}

static void other_texts_are_no_ids(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "A",
        "AA",
        "AAA",
        "AAAAA",
        "8wGqAA",                       /* without its padding */
        "8wGqAA=",                      /* half of it */
        "8wGqAB==",                     /* bits that no byte takes */
        "8w/qAA==",                     /* '/' is written '-' */
        "8wGq AA=",                     /* a space */
        "8wGqAAA=",                     /* five bytes */
        "8wGqAAAA",                     /* six: a role's */
        "8wGqAAAAAAA=",                 /* a user without a number */
        "8wGqAAAAAAAFAAAAAAAAAA==",     /* a permission without a user's */
        "8wGqAJI0VgcBAAAAAAAAkA==",     /* a schema, of which there are none here */
        "8wGqAJI0VgcBAAAAAAAA0A==",     /* a system document */
        "8wGqAJI0VgcBAAAAAAAAAAEAAAA=", /* an attachment: longer than any */
        "----------------------------------------------------------------",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Rid rid = {.database = 77};
        if (rid_parse(slice_from_cstr(rows[i]), &rid))
            fail_msg("'%s' was taken for an id", rows[i]);
        assert_int_equal(rid.database, 77); /* not written */
    }
}

static void every_id_comes_back_from_its_text(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int i = 0; i < 20000; i++) {
        Rid rid = {.kind = (RidKind)random_below(&random, RID_PARTITION_KEY_RANGE + 1)};
        if (random_below(&random, 6) == 0) {
            rid.kind = random_below(&random, 2) == 0 ? RID_USER : RID_PERMISSION;
            rid.database = (uint32_t)random_u64(&random);
            rid.user = 1 + (uint32_t)random_below(&random, RID_USER_MAX);
            if (rid.kind == RID_PERMISSION)
                rid.child = random_u64(&random);
        } else if (rid.kind == RID_OFFER) {
            rid.offer = (uint32_t)random_below(&random, RID_OFFER_MAX + UINT64_C(1));
        } else {
            rid.database = (uint32_t)random_u64(&random);
            if (rid.kind >= RID_CONTAINER)
                rid.container = (uint32_t)random_below(&random, RID_CONTAINER_MAX + UINT64_C(1));
            if (rid.kind > RID_CONTAINER)
                rid.child = random_u64(&random) >> 4;
        }
        char text[RID_CHILD_LEN];
        Rid back;
        assert_true(rid_parse(slice_make(text, print(&rid, text)), &back));
        assert_rid_equal(&back, &rid);
    }
}

/* SDKs compare documents by the eight bytes after the container's, read little-endian. */
static void a_child_begins_with_its_container_and_a_container_with_its_database(void **state)
{
    (void)state;
    char database[RID_DATABASE_LEN];
    char container[RID_CONTAINER_LEN];
    char child[RID_CHILD_LEN];
    rid_print_database(DATABASE, database);
    rid_print_container(DATABASE, CONTAINER, container);
    rid_print_child(RID_DOCUMENT, DATABASE, CONTAINER, 5, child);
    /* Whole characters only: six bits each, of 32 and 64. */
    assert_memory_equal(database, container, 5);
    assert_memory_equal(container, child, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_printed_and_parsed_as_the_protocol_shows_them),
        cmocka_unit_test(other_texts_are_no_ids),
        cmocka_unit_test(every_id_comes_back_from_its_text),
        cmocka_unit_test(a_child_begins_with_its_container_and_a_container_with_its_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
