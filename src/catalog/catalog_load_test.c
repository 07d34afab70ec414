/* catalog_load_test.c - damaged catalogues are refused, and none does harm (I3, I4, I15). */
#include "catalog/testing_int.h"

#include "base/random.h"
#include "base/test_seed.h"

#define NONE MANUAL(0)

/* A small catalogue with one of everything, closed, its store open. */
typedef struct Base {
    TestCatalog t;
    uint32_t database, other, shared, own;
    uint32_t database_offer, own_offer, script, user, permission;
    CatalogCounters counters;
} Base;

static StoredScriptGroup scripts_of(const Base *b)
{
    return (StoredScriptGroup){b->database, b->shared, STORED_TRIGGER};
}

static void base_open(Base *b)
{
    test_open(&b->t, TEST_MEMORY);
    b->database = make_database(&b->t, "db", MANUAL(400));
    b->other = make_database(&b->t, "other", NONE);
    b->shared = make_container(&b->t, b->database, "shared", NONE);
    b->own = make_container(&b->t, b->database, "own", MANUAL(12000));
    move_ranges(&b->t, b->database, b->own, 1, 1, "30");
    b->script = make_script(&b->t, scripts_of(b), "p");
    b->user = make_user(&b->t, b->database, "u");
    b->permission =
        make_permission(&b->t, (UserKey){b->database, b->user}, "p", "'resource':'dbs/d/colls/c'");
    begin_move(&b->t, b->database, b->own, 2, 2, "28"); /* and the process ends */
    const Snapshot *snapshot = test_read(&b->t);
    b->database_offer = snapshot_database(snapshot, b->database)->offer;
    b->own_offer = snapshot_container(snapshot, b->database, b->own)->offer;
    b->counters = (CatalogCounters){.lsn = 100,
                                    .database_next = b->other + 1,
                                    .container_next = b->own + 1,
                                    .offer_next = b->own_offer + 1,
                                    .script_next = b->script + 1,
                                    .user_next = b->user + 1,
                                    .permission_next = b->permission + 1,
                                    .space_next = SPACE_PARTITION_FIRST + 7};
    test_close_catalog(&b->t);
}

static void base_close(Base *b)
{
    if (b->t.catalog == NULL)
        assert_ok(test_try_open(&b->t, err));
    test_close(&b->t);
}

/* Each makes one promise untrue. */
static void no_counters(Base *b, StoreTxn *txn)
{
    (void)b;
    store_txn_delete(txn, SPACE_CATALOG, SLICE("\x01"));
}

static void a_database_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.database_next = b->other;
    record_put_counters(txn, &counters);
}

static void a_container_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.container_next = b->own;
    record_put_counters(txn, &counters);
}

static void an_offer_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.offer_next = b->own_offer;
    record_put_counters(txn, &counters);
}

static void a_space_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.space_next = SPACE_PARTITION_FIRST + 4;
    record_put_counters(txn, &counters);
}

static void a_move_to_a_space_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.space_next = SPACE_PARTITION_FIRST + 6;
    record_put_counters(txn, &counters);
}

static void a_change_that_never_was(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.lsn = 1;
    record_put_counters(txn, &counters);
}

static void two_databases_of_one_name(Base *b, StoreTxn *txn)
{
    record_put_database(txn, &(DatabaseRecord){.number = b->other, .id = SLICE("db"), .lsn = 1});
}

static void two_containers_of_one_name(Base *b, StoreTxn *txn)
{
    static const PartitionRange ranges[] = {
        {.max = SLICE_INIT("FF"), .space = SPACE_PARTITION_FIRST, .lsn = 1}};
    record_put_container(txn,
                         &(ContainerRecord){.number = b->shared - 1,
                                            .database = b->database,
                                            .lsn = 1,
                                            .definition = row_definition(&b->t.arena, "shared", ""),
                                            .ranges = ranges,
                                            .range_count = 1,
                                            .range_next = 1,
                                            .ranges_lsn = 1});
}

static void a_container_without_its_database(Base *b, StoreTxn *txn)
{
    record_delete_database(txn, b->database);
}

static void a_database_without_its_offer(Base *b, StoreTxn *txn)
{
    record_delete_offer(txn, b->database_offer);
}

static void a_container_without_its_offer(Base *b, StoreTxn *txn)
{
    record_delete_offer(txn, b->own_offer);
}

static void an_offer_without_its_owner(Base *b, StoreTxn *txn)
{
    record_delete_container(txn, b->database, b->own);
}

static void an_offer_of_another_owner(Base *b, StoreTxn *txn)
{
    record_put_offer(txn, &(OfferRecord){.number = b->own_offer,
                                         .database = b->database,
                                         .container = b->shared,
                                         .lsn = 1,
                                         .provision = MANUAL(400),
                                         .ru_ever = 400});
}

static void an_offer_of_no_database(Base *b, StoreTxn *txn)
{
    record_put_offer(txn, &(OfferRecord){.number = b->database_offer,
                                         .database = b->other + 5,
                                         .lsn = 1,
                                         .provision = MANUAL(400),
                                         .ru_ever = 400});
}

static void a_definition_that_is_no_normal_form(Base *b, StoreTxn *txn)
{
    static const PartitionRange ranges[] = {
        {.max = SLICE_INIT("FF"), .space = SPACE_PARTITION_FIRST, .lsn = 1}};
    record_put_container(
        txn, &(ContainerRecord){.number = b->shared,
                                .database = b->database,
                                .lsn = 1,
                                .definition = row_json(&b->t.arena, "{'id':'x','partitionKey':7}"),
                                .ranges = ranges,
                                .range_count = 1,
                                .range_next = 1,
                                .ranges_lsn = 1});
}

static void put_damaged_script(Base *b, StoreTxn *txn, StoredScriptGroup group, uint32_t number,
                               uint64_t lsn, const char *row)
{
    CatalogCounters counters = b->counters;
    counters.script_next = b->script + 2;
    record_put_counters(txn, &counters);
    record_put_script(txn, &(StoredScriptRecord){.number = number,
                                                 .group = group,
                                                 .lsn = lsn,
                                                 .definition = row_json(&b->t.arena, row)});
}

static void a_script_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.script_next = b->script;
    record_put_counters(txn, &counters);
}

static void a_script_without_its_container(Base *b, StoreTxn *txn)
{
    StoredScriptGroup group = {b->database, b->own + 1, STORED_PROCEDURE};
    put_damaged_script(b, txn, group, b->script + 1, 1, "{'id':'q','body':''}");
}

static void a_script_of_a_later_change(Base *b, StoreTxn *txn)
{
    StoredScriptGroup group = {b->database, b->own, STORED_PROCEDURE};
    put_damaged_script(b, txn, group, b->script + 1, 1000, "{'id':'q','body':''}");
}

static void two_scripts_of_one_name(Base *b, StoreTxn *txn)
{
    put_damaged_script(b, txn, scripts_of(b), b->script + 1, 1,
                       "{'id':'p','body':'','triggerType':'Pre','triggerOperation':'All'}");
}

static void a_script_without_a_body(Base *b, StoreTxn *txn)
{
    put_damaged_script(b, txn, scripts_of(b), b->script, 1,
                       "{'id':'p','triggerType':'Pre','triggerOperation':'All'}");
}

static void a_trigger_of_an_unknown_type(Base *b, StoreTxn *txn)
{
    put_damaged_script(b, txn, scripts_of(b), b->script, 1,
                       "{'id':'p','body':'','triggerType':'During','triggerOperation':'All'}");
}

static void a_user_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.user_next = b->user;
    record_put_counters(txn, &counters);
}

static void put_damaged_user(Base *b, StoreTxn *txn, uint32_t database, uint64_t lsn,
                             const char *id)
{
    CatalogCounters counters = b->counters;
    counters.user_next = b->user + 2;
    record_put_counters(txn, &counters);
    record_put_user(txn, &(UserRecord){.number = b->user + 1,
                                       .database = database,
                                       .lsn = lsn,
                                       .id = slice_from_cstr(id)});
}

static void a_user_without_its_database(Base *b, StoreTxn *txn)
{
    put_damaged_user(b, txn, b->other + 1, 1, "v");
}

static void a_user_of_a_later_change(Base *b, StoreTxn *txn)
{
    put_damaged_user(b, txn, b->database, 1000, "v");
}

static void two_users_of_one_name(Base *b, StoreTxn *txn)
{
    put_damaged_user(b, txn, b->database, 1, "u");
}

static void put_damaged_permission(Base *b, StoreTxn *txn, uint32_t user, uint32_t number,
                                   uint64_t lsn, const char *row)
{
    CatalogCounters counters = b->counters;
    counters.permission_next = b->permission + 2;
    record_put_counters(txn, &counters);
    record_put_permission(txn, &(PermissionRecord){.number = number,
                                                   .owner = {b->database, user},
                                                   .lsn = lsn,
                                                   .granted_lsn = lsn > 1 ? 1 : 0,
                                                   .definition = row_json(&b->t.arena, row)});
}

#define OTHER_PERMISSION "{'id':'q','permissionMode':'All','resource':'dbs/d/colls/e'}"

static void a_permission_never_given_out(Base *b, StoreTxn *txn)
{
    CatalogCounters counters = b->counters;
    counters.permission_next = b->permission;
    record_put_counters(txn, &counters);
}

static void a_permission_without_its_user(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user + 1, b->permission + 1, 2, OTHER_PERMISSION);
}

static void a_permission_of_a_later_change(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission + 1, 1000, OTHER_PERMISSION);
}

static void a_permission_that_was_not_granted(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission + 1, 1, OTHER_PERMISSION);
}

static void two_permissions_of_one_name(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission + 1, 2,
                           "{'id':'p','permissionMode':'All','resource':'dbs/d/colls/e'}");
}

static void two_permissions_for_the_same(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission + 1, 2,
                           "{'id':'q','permissionMode':'All','resource':'/dbs/d/colls/c/'}");
}

static void a_permission_without_a_mode(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission, 2,
                           "{'id':'p','resource':'dbs/d/colls/c'}");
}

static void a_permission_for_nothing(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission, 2,
                           "{'id':'p','permissionMode':'All','resource':'dbs/d'}");
}

static void a_permission_for_an_impossible_key(Base *b, StoreTxn *txn)
{
    put_damaged_permission(b, txn, b->user, b->permission, 2,
                           "{'id':'p','permissionMode':'All','resource':'dbs/d/colls/c',"
                           "'resourcePartitionKey':'x'}");
}

static void garbage_beyond_all_spaces(Base *b, StoreTxn *txn)
{
    (void)b;
    record_put_garbage(
        txn, (Garbage){.first = SPACE_PARTITION_FIRST + 6, .last = SPACE_PARTITION_FIRST + 7});
}

static void an_impossible_catalogue_is_refused(void **state)
{
    (void)state;
    static void (*const damages[])(Base *, StoreTxn *) = {
        no_counters,
        a_database_never_given_out,
        a_container_never_given_out,
        an_offer_never_given_out,
        a_space_never_given_out,
        a_move_to_a_space_never_given_out,
        a_change_that_never_was,
        two_databases_of_one_name,
        two_containers_of_one_name,
        a_container_without_its_database,
        a_database_without_its_offer,
        a_container_without_its_offer,
        an_offer_without_its_owner,
        an_offer_of_another_owner,
        an_offer_of_no_database,
        a_definition_that_is_no_normal_form,
        a_script_never_given_out,
        a_script_without_its_container,
        a_script_of_a_later_change,
        two_scripts_of_one_name,
        a_script_without_a_body,
        a_trigger_of_an_unknown_type,
        a_user_never_given_out,
        a_user_without_its_database,
        a_user_of_a_later_change,
        two_users_of_one_name,
        a_permission_never_given_out,
        a_permission_without_its_user,
        a_permission_of_a_later_change,
        a_permission_that_was_not_granted,
        two_permissions_of_one_name,
        two_permissions_for_the_same,
        a_permission_without_a_mode,
        a_permission_for_nothing,
        a_permission_for_an_impossible_key,
        garbage_beyond_all_spaces,
    };
    for (size_t i = 0; i < ARRAY_COUNT(damages); i++) {
        Base b;
        base_open(&b);
        StoreTxn *txn = store_txn_begin(b.t.store);
        damages[i](&b, txn);
        assert_ok(store_txn_commit_wait(txn, err));
        size_t keys = count_keys(b.t.store, SPACE_CATALOG);
        Error refusal = {0};
        Status status = test_try_open(&b.t, &refusal);
        if (status != STATUS_CORRUPT || strlen(refusal.message) == 0)
            fail_msg("damage %zu: status %d: %s", i, (int)status, refusal.message);
        assert_null(b.t.catalog);
        /* Looking changes nothing: a person may want to see what is left. */
        assert_int_equal(count_keys(b.t.store, SPACE_CATALOG), keys);
        store_close(TAKE(b.t.store));
        memory_store_open_with(&PARTITION_MERGE, &b.t.store);
        base_close(&b);
    }
}

/* Deletes and creates whatever there is, as clients of a damaged catalogue would. */
static void use_everything(TestCatalog *t)
{
    uint32_t numbers[16];
    size_t count = 0;
    const Database *database;
    for (uint32_t i = 0; count < ARRAY_COUNT(numbers) &&
                         (database = snapshot_next_database(test_read(t), i)) != NULL;
         i = database->info.number + 1)
        numbers[count++] = database->info.number;
    (void)test_dump(t);
    for (size_t i = 0; i < count; i++) {
        AUTO(test_change_done) TestChange c;
        fill_container(&c, numbers[i], row_definition(&t->arena, "new", ""), NONE);
        (void)test_run(t->catalog, &c);
        const Container *container = snapshot_next_container(test_read(t), numbers[i], 0);
        if (container != NULL) {
            AUTO(test_change_done) TestChange replace;
            test_change_init(&replace, CATALOG_REPLACE_CONTAINER);
            replace.change.database = numbers[i];
            replace.change.container = container->info.number;
            replace.change.definition = row_definition(&t->arena, "own", ",'defaultTtl':5");
            (void)test_run(t->catalog, &replace);
        }
        assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, numbers[i], 0), STATUS_OK);
    }
    make_database(t, "brand new", MANUAL(400));
}

typedef struct Record {
    Slice key;
    Slice value;
} Record;

static size_t read_records(TestCatalog *t, Record *records, size_t max)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(t->store, NULL, SPACE_CATALOG, SLICE_EMPTY, SLICE_EMPTY);
    for (size_t count = 0;; count++) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
        assert_true(count < max);
        records[count] = (Record){arena_copy(&t->arena, key), arena_copy(&t->arena, value)};
    }
}

static void write_records(Store *store, const Record *records, size_t count, size_t damaged,
                          Slice key, Slice value)
{
    StoreTxn *txn = store_txn_begin(store);
    for (size_t i = 0; i < count; i++) {
        bool swap = i == damaged;
        store_txn_put(txn, SPACE_CATALOG, swap ? key : records[i].key,
                      swap ? value : records[i].value);
    }
    assert_ok(store_txn_commit_wait(txn, err));
}

/* Tables that a split has filled past the log stay when the log loses the newest changes. */
static void a_space_that_holds_something_is_not_given_out(void **state)
{
    (void)state;
    TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t first = make_container(&t, database, "first", MANUAL(400));
    StoreSpace used = test_container(&t, database, first)->ranges[0].space + 3;
    test_close_catalog(&t);
    StoreTxn *txn = store_txn_begin(t.store);
    store_txn_put(txn, used, SLICE("key"), SLICE("of nobody"));
    assert_ok(store_txn_commit_wait(txn, err));
    assert_ok(test_try_open(&t, err));
    uint32_t second = make_container(&t, database, "second", MANUAL(400));
    assert_true(test_container(&t, database, second)->ranges[0].space > used);
    test_close(&t);
}

/* Flips bits of every byte of every record: what is not noticed must still be safe to use. */
static void a_flipped_bit_is_refused_or_harmless(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    Base b;
    base_open(&b);
    Record records[16];
    size_t count = read_records(&b.t, records, ARRAY_COUNT(records));
    size_t refused = 0;
    size_t harmless = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < records[i].key.len + records[i].value.len; at++) {
            store_close(TAKE(b.t.store));
            memory_store_open_with(&PARTITION_MERGE, &b.t.store);
            char *key = arena_cstr(&b.t.arena, records[i].key);
            char *value = arena_cstr(&b.t.arena, records[i].value);
            char *flipped = at < records[i].key.len ? &key[at] : &value[at - records[i].key.len];
            *flipped = (char)(*flipped ^ (1 << random_below(&random, 8)));
            write_records(b.t.store, records, count, i, slice_make(key, records[i].key.len),
                          slice_make(value, records[i].value.len));
            Error refusal = {0};
            Status status = test_try_open(&b.t, &refusal);
            if (status == STATUS_OK) {
                harmless++;
                use_everything(&b.t);
                test_close_catalog(&b.t);
            } else {
                refused++;
                assert_int_equal(status, STATUS_CORRUPT);
            }
        }
    }
    print_message("%zu refused, %zu harmless\n", refused, harmless);
    assert_true(refused > harmless);
    store_close(TAKE(b.t.store));
    memory_store_open_with(&PARTITION_MERGE, &b.t.store);
    base_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_impossible_catalogue_is_refused),
        cmocka_unit_test(a_space_that_holds_something_is_not_given_out),
        cmocka_unit_test(a_flipped_bit_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
