/* record_test.c - what is written is read back, and what is damaged is refused. */
#include "catalog/testing_int.h"

/* What a load visits, as text. */
typedef struct Seen {
    Buf text;
    bool refuse; /* the visitor itself fails at the first database */
} Seen;

static Status see_counters(void *ctx, const CatalogCounters *c, Error *err)
{
    (void)err;
    buf_format(&((Seen *)ctx)->text, "counters %llu %u %u %u %llu%s\n", (unsigned long long)c->lsn,
               c->database_next, c->container_next, c->offer_next,
               (unsigned long long)c->space_next, c->is_serverless ? " serverless" : "");
    return STATUS_OK;
}

static Status see_database(void *ctx, const DatabaseRecord *r, Error *err)
{
    Seen *seen = ctx;
    if (seen->refuse)
        return error_set(err, STATUS_INTERNAL, SUB_NONE, "enough");
    buf_format(&seen->text, "database %u '%.*s' %llu %lld %u,%u\n", r->number, SLICE_ARG(r->id),
               (unsigned long long)r->lsn, (long long)r->ts_s, r->offer, r->partitions);
    return STATUS_OK;
}

static void see_ranges(Buf *text, const PartitionRange *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_format(text, " %u:%.*s-%.*s@%llu,%llu", ranges[i].id, SLICE_ARG(ranges[i].min),
                   SLICE_ARG(ranges[i].max), (unsigned long long)ranges[i].space,
                   (unsigned long long)ranges[i].lsn);
        for (size_t j = 0; j < ranges[i].parent_count; j++)
            buf_format(text, "%c%u", j == 0 ? '<' : '+', ranges[i].parents[j]);
    }
}

static Status see_container(void *ctx, const ContainerRecord *r, Error *err)
{
    (void)err;
    Buf *text = &((Seen *)ctx)->text;
    buf_format(text, "container %u/%u %llu %lld %u next=%u lsn=%llu ", r->database, r->number,
               (unsigned long long)r->lsn, (long long)r->ts_s, r->offer, r->range_next,
               (unsigned long long)r->ranges_lsn);
    json_print(r->definition, text);
    see_ranges(text, r->ranges, r->range_count);
    if (r->pending_count > 0)
        buf_format(text, " pending");
    see_ranges(text, r->pending, r->pending_count);
    buf_byte(text, '\n');
    return STATUS_OK;
}

static Status see_offer(void *ctx, const OfferRecord *r, Error *err)
{
    (void)err;
    buf_format(&((Seen *)ctx)->text, "offer %u of %u/%u %llu %lld mode=%d %u ever=%u,%llu at=%lld",
               r->number, r->database, r->container, (unsigned long long)r->lsn, (long long)r->ts_s,
               (int)r->provision.mode, r->provision.ru, r->ru_ever,
               (unsigned long long)r->storage_kb_ever, (long long)r->replaced_at_s);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX && r->buckets.chosen > 0; i++)
        buf_format(&((Seen *)ctx)->text, " %u", r->buckets.percent[i]);
    buf_format(&((Seen *)ctx)->text, " bucket=%u\n", r->buckets.chosen);
    return STATUS_OK;
}

static Status see_garbage(void *ctx, Garbage g, Error *err)
{
    (void)err;
    buf_format(&((Seen *)ctx)->text, "garbage %llu-%llu\n", (unsigned long long)g.first,
               (unsigned long long)g.last);
    return STATUS_OK;
}

static Status see_key(void *ctx, const EncryptionKeyRecord *r, Error *err)
{
    (void)err;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    buf_format(&((Seen *)ctx)->text, "key %u.%u lsn=%llu ts=%lld created=%lld %.*s\n", r->database,
               r->number, (unsigned long long)r->lsn, (long long)r->ts_s,
               (long long)r->created_at_s, SLICE_ARG(json_print_arena(&arena, r->definition)));
    return STATUS_OK;
}

static Status see_script(void *ctx, const StoredScriptRecord *r, Error *err)
{
    (void)err;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    buf_format(&((Seen *)ctx)->text, "script %u/%u.%d.%u lsn=%llu ts=%lld %.*s\n",
               r->group.database, r->group.container, (int)r->group.kind, r->number,
               (unsigned long long)r->lsn, (long long)r->ts_s,
               SLICE_ARG(json_print_arena(&arena, r->definition)));
    return STATUS_OK;
}

static Status see_user(void *ctx, const UserRecord *r, Error *err)
{
    (void)err;
    buf_format(&((Seen *)ctx)->text, "user %u.%u '%.*s' lsn=%llu ts=%lld\n", r->database, r->number,
               SLICE_ARG(r->id), (unsigned long long)r->lsn, (long long)r->ts_s);
    return STATUS_OK;
}

static Status see_permission(void *ctx, const PermissionRecord *r, Error *err)
{
    (void)err;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    buf_format(&((Seen *)ctx)->text, "permission %u.%u.%u lsn=%llu,%llu ts=%lld %.*s\n",
               r->owner.database, r->owner.user, r->number, (unsigned long long)r->lsn,
               (unsigned long long)r->granted_lsn, (long long)r->ts_s,
               SLICE_ARG(json_print_arena(&arena, r->definition)));
    return STATUS_OK;
}

static Status load(Store *store, Seen *seen, Error *err)
{
    RecordVisitor visitor = {.ctx = seen,
                             .counters = see_counters,
                             .database = see_database,
                             .container = see_container,
                             .offer = see_offer,
                             .garbage = see_garbage,
                             .key = see_key,
                             .script = see_script,
                             .user = see_user,
                             .permission = see_permission};
    return record_load(store, &visitor, err);
}

static void expect_load(Store *store, const char *expected)
{
    Seen seen = {0};
    buf_init(&seen.text, 1 << 20);
    assert_ok(load(store, &seen, err));
    assert_slice(buf_view(&seen.text), slice_from_cstr(expected));
    buf_done(&seen.text);
}

#define RANGES                                                                              \
    {.id = 0, .min = SLICE_INIT(""), .max = SLICE_INIT("7F"), .space = 65536, .lsn = 3},    \
    {                                                                                       \
        .id = 1, .min = SLICE_INIT("7F"), .max = SLICE_INIT("FF"), .space = 65540, .lsn = 3 \
    }

/* A container with two ranges, and one that moves two merged ranges into two others. */
static void put_containers(StoreTxn *txn, Arena *arena)
{
    static const PartitionRange ranges[] = {RANGES};
    record_put_container(txn, &(ContainerRecord){.number = 8,
                                                 .database = 7,
                                                 .lsn = 5,
                                                 .ts_s = TEST_BEGIN_S,
                                                 .definition = row_json(arena, "{'id':'c'}"),
                                                 .ranges = ranges,
                                                 .range_count = 2,
                                                 .range_next = 2,
                                                 .ranges_lsn = 4,
                                                 .offer = 9});
    static const uint32_t parents[] = {0, 2};
    static const PartitionRange after_move[] = {{.id = 3,
                                                 .max = SLICE_INIT("FF"),
                                                 .space = 65541,
                                                 .lsn = 4,
                                                 .parents = parents,
                                                 .parent_count = 2}};
    static const uint32_t more_parents[] = {0, 2, 3};
    static const PartitionRange pending[] = {{.id = 4,
                                              .max = SLICE_INIT("3F"),
                                              .space = 65542,
                                              .lsn = 5,
                                              .parents = more_parents,
                                              .parent_count = 3},
                                             {.id = 5,
                                              .min = SLICE_INIT("3F"),
                                              .max = SLICE_INIT("FF"),
                                              .space = 65543,
                                              .lsn = 5,
                                              .parents = more_parents,
                                              .parent_count = 3}};
    record_put_container(txn, &(ContainerRecord){.number = 9,
                                                 .database = 7,
                                                 .lsn = 5,
                                                 .ts_s = TEST_BEGIN_S,
                                                 .definition = row_json(arena, "{'id':'m'}"),
                                                 .ranges = after_move,
                                                 .range_count = 1,
                                                 .pending = pending,
                                                 .pending_count = 2,
                                                 .range_next = 6,
                                                 .ranges_lsn = 4});
}

static void put_user(StoreTxn *txn, UserKey user, Arena *arena)
{
    record_put_permission(txn, &(PermissionRecord){.number = 2,
                                                   .owner = user,
                                                   .lsn = 9,
                                                   .granted_lsn = 8,
                                                   .ts_s = TEST_BEGIN_S,
                                                   .definition = row_json(arena, "{'id':'p'}")});
    record_put_user(
        txn, &(UserRecord){
                 .number = 6, .database = 7, .id = SLICE("u"), .lsn = 8, .ts_s = TEST_BEGIN_S});
}

static void records_are_read_as_they_were_written(void **state)
{
    (void)state;
    AUTO(store_close) Store *store = NULL;
    memory_store_open(&store);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    expect_load(store, "");
    StoreTxn *txn = store_txn_begin(store); /* in any order; they are read in that of their keys */
    record_put_garbage(txn, (Garbage){.first = 70000, .last = 70002});
    const StoredScriptGroup triggers = {7, 8, STORED_TRIGGER};
    record_put_script(txn, &(StoredScriptRecord){.number = 5,
                                                 .group = triggers,
                                                 .lsn = 7,
                                                 .ts_s = TEST_BEGIN_S,
                                                 .definition = row_json(&arena, "{'id':'t'}")});
    const UserKey user = {7, 6};
    put_user(txn, user, &arena);
    record_put_key(txn, &(EncryptionKeyRecord){.number = 3,
                                               .database = 7,
                                               .lsn = 6,
                                               .ts_s = TEST_BEGIN_S + 1,
                                               .created_at_s = TEST_BEGIN_S,
                                               .definition = row_json(&arena, "{'id':'k'}")});
    record_put_offer(txn, &(OfferRecord){.number = 9,
                                         .database = 7,
                                         .container = 8,
                                         .lsn = 6,
                                         .ts_s = TEST_BEGIN_S,
                                         .provision = {PROVISION_AUTOSCALE, 4000},
                                         .buckets = {.percent = {10, 0, 100}, .chosen = 3},
                                         .ru_ever = 5000,
                                         .storage_kb_ever = 123456,
                                         .replaced_at_s = TEST_BEGIN_S + 1});
    put_containers(txn, &arena);
    record_put_database(
        txn, &(DatabaseRecord){.number = 7, .id = SLICE("d b"), .lsn = 2, .ts_s = 1, .offer = 0});
    record_put_database(txn, &(DatabaseRecord){.number = 0x01000000,
                                               .id = SLICE("\xc3\xa9"),
                                               .lsn = (UINT64_C(1) << 53) - 1,
                                               .ts_s = (INT64_C(1) << 40) - 1,
                                               .offer = RID_OFFER_MAX,
                                               .partitions = 3});
    record_put_counters(txn, &(CatalogCounters){.lsn = 7,
                                                .database_next = 10,
                                                .container_next = 11,
                                                .offer_next = 12,
                                                .space_next = 13,
                                                .is_serverless = true});
    assert_ok(store_txn_commit_wait(txn, err));
    expect_load(
        store, "counters 7 10 11 12 13 serverless\n"
               "database 7 'd b' 2 1 0,0\n"
               "database 16777216 '\xc3\xa9' 9007199254740991 1099511627775 16777215,3\n"
               "container 7/8 5 1700000000 9 next=2 lsn=4 {\"id\":\"c\"} 0:-7F@65536,3 "
               "1:7F-FF@65540,3\n"
               "container 7/9 5 1700000000 0 next=6 lsn=4 {\"id\":\"m\"} 3:-FF@65541,4<0+2 pending "
               "4:-3F@65542,5<0+2+3 5:3F-FF@65543,5<0+2+3\n"
               "offer 9 of 7/8 6 1700000000 mode=1 4000 ever=5000,123456 at=1700000001 10 0 100 0 "
               "0 bucket=3\n"
               "garbage 70000-70002\n"
               "key 7.3 lsn=6 ts=1700000001 created=1700000000 {\"id\":\"k\"}\n"
               "script 7/8.1.5 lsn=7 ts=1700000000 {\"id\":\"t\"}\n"
               "user 7.6 'u' lsn=8 ts=1700000000\n"
               "permission 7.6.2 lsn=9,8 ts=1700000000 {\"id\":\"p\"}\n");

    txn = store_txn_begin(store);
    record_delete_database(txn, 7);
    record_delete_container(txn, 7, 8);
    record_delete_container(txn, 7, 9);
    record_delete_offer(txn, 9);
    record_delete_key(txn, 7, 3);
    record_delete_script(txn, triggers, 5);
    record_delete_user(txn, user);
    record_delete_permission(txn, user, 2);
    record_delete_garbage(txn, (Garbage){.first = 70000, .last = 70002});
    assert_ok(store_txn_commit_wait(txn, err));
    expect_load(store, "counters 7 10 11 12 13 serverless\n"
                       "database 16777216 '\xc3\xa9' 9007199254740991 1099511627775 16777215,3\n");
}

static void put_raw(Store *store, Slice key, Slice value)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, SPACE_CATALOG, key, value);
    assert_ok(store_txn_commit_wait(txn, err));
}

#define USER_KEY       SLICE_INIT("\x09\0\0\0\x07\0\0\0\x06")
#define PERMISSION_KEY SLICE_INIT("\x0a\0\0\0\x07\0\0\0\x06\0\0\0\x02")
#define DATABASE_KEY   SLICE_INIT("\x02\0\0\0\x07")
#define CONTAINER_KEY  SLICE_INIT("\x03\0\0\0\x07\0\0\0\x08")
#define OFFER_KEY      SLICE_INIT("\x04\0\0\0\x09")
#define SCRIPT_KEY     SLICE_INIT("\x07\0\0\0\x07\0\0\0\x08\x02\0\0\0\x05")
#define GARBAGE_KEY    SLICE_INIT("\x05\0\0\0\0\0\x01\x11\x70")
#define CONTAINER_ROW(ranges)                                                               \
    "{'v':1,'lsn':3,'ts':1,'offer':0,'definition':{'id':'c'},'rangeNext':2,'rangesLsn':3,'" \
    "ranges':" ranges "}"
#define RANGE(id, min, max, space, lsn) \
    "{'id':" id ",'min':'" min "','max':'" max "','space':" space ",'lsn':" lsn "}"

/* A range 4 with these parents, beside a range 5 that has none. */
#define LINEAGE_ROW(parents)                                                               \
    "{'v':1,'lsn':3,'ts':1,'offer':0,'definition':{'id':'c'},'rangeNext':6,'rangesLsn':3," \
    "'ranges':[{'id':4,'min':'','max':'7F','space':65536,'lsn':3,'parents':" parents       \
    "}," RANGE("5", "7F", "FF", "65537", "3") "]}"

/* A move under way in a container of three ranges, 0, 1 and 2. */
#define MOVE_ROW(next, pending)                                                                    \
    "{'v':1,'lsn':3,'ts':1,'offer':0,'definition':{'id':'c'},'rangeNext':" next ",'rangesLsn':3,'" \
    "ranges':[" RANGE("0", "", "50", "65540", "3") "," RANGE(                                      \
        "1", "50", "A0", "65541", "3") "," RANGE("2", "A0", "FF", "65538",                         \
                                                 "3") "],'pending':" pending "}"

#define SAVED "{'v':1,'name':'s','databaseId':'d','database':7,'ts':1,'restoring':false}"

typedef struct RecordRow {
    Slice key;
    const char *value;
    bool good;
} RecordRow;

static void expect_bounds(const RecordRow *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(store_close) Store *store = NULL;
        memory_store_open(&store);
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        put_raw(store, rows[i].key, json_bytes(&arena, row_json(&arena, rows[i].value)));
        Seen seen = {0};
        buf_init(&seen.text, 1 << 20);
        Error refusal = {0};
        Status status = load(store, &seen, &refusal);
        if (status != (rows[i].good ? STATUS_OK : STATUS_CORRUPT))
            fail_msg("row %zu: %s: %s", i, rows[i].value, refusal.message);
        assert_true(rows[i].good || seen.text.len == 0); /* it was not visited */
        buf_done(&seen.text);
    }
}

static void a_database_and_counters_have_bounds(void **state)
{
    (void)state;
    static const RecordRow ROWS[] = {
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':0}", true},
        /* a later version may add members, but says so when it changes their meaning */
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':0,'new':[1]}", true},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':1}", true},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':1,'partitions':3}", true},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':1,'partitions':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':0,'partitions':1}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':1,'partitions':9999}", false},
        {DATABASE_KEY, "{'v':2,'id':'d','lsn':1,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'id':'d','lsn':1,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'lsn':1,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'','lsn':1,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':7,'lsn':1,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':-1,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1.5,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1e300,'ts':1,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':2e12,'offer':0}", false},
        {DATABASE_KEY, "{'v':1,'id':'d','lsn':1,'ts':1,'offer':16777216}", false},
        {DATABASE_KEY, "[1]", false},
        {DATABASE_KEY, "null", false},
        {SLICE_INIT("\x01"), "{'v':1,'lsn':1,'database':1,'container':1,'offer':1,'space':65536}",
         true},
        {SLICE_INIT("\x01"), "{'v':1,'lsn':1,'database':1,'container':1,'offer':1}", false},
        {SLICE_INIT("\x01"),
         "{'v':1,'lsn':1,'database':1,'container':2147483648,'offer':1,'space':1}", false},
    };
    expect_bounds(ROWS, ARRAY_COUNT(ROWS));
}

static void the_ranges_of_a_container_have_bounds(void **state)
{
    (void)state;
    static const RecordRow ROWS[] = {
        {CONTAINER_KEY,
         CONTAINER_ROW(
             "[" RANGE("0", "", "7F", "65536", "3") "," RANGE("1", "7F", "FF", "65537", "3") "]"),
         true},
        {CONTAINER_KEY, CONTAINER_ROW("[" RANGE("0", "", "FF", "65536", "3") "]"), true},
        {CONTAINER_KEY, CONTAINER_ROW("[]"), false},
        {CONTAINER_KEY, CONTAINER_ROW("7"), false},
        {CONTAINER_KEY, CONTAINER_ROW("[7]"), false},
        /* a gap, an overlap, a missing end and begin, an empty range, not hexadecimal */
        {CONTAINER_KEY,
         CONTAINER_ROW(
             "[" RANGE("0", "", "7F", "65536", "3") "," RANGE("1", "80", "FF", "65537", "3") "]"),
         false},
        {CONTAINER_KEY,
         CONTAINER_ROW(
             "[" RANGE("0", "", "7F", "65536", "3") "," RANGE("1", "7E", "FF", "65537", "3") "]"),
         false},
        {CONTAINER_KEY, CONTAINER_ROW("[" RANGE("0", "", "7F", "65536", "3") "]"), false},
        {CONTAINER_KEY, CONTAINER_ROW("[" RANGE("0", "00", "FF", "65536", "3") "]"), false},
        {CONTAINER_KEY,
         CONTAINER_ROW(
             "[" RANGE("0", "", "", "65536", "3") "," RANGE("1", "", "FF", "65537", "3") "]"),
         false},
        {CONTAINER_KEY,
         CONTAINER_ROW(
             "[" RANGE("0", "", "7f", "65536", "3") "," RANGE("1", "7f", "FF", "65537", "3") "]"),
         false},
        /* half a byte */
        {CONTAINER_KEY,
         CONTAINER_ROW(
             "[" RANGE("0", "", "7F0", "65536", "3") "," RANGE("1", "7F0", "FF", "65537", "3") "]"),
         false},
        {CONTAINER_KEY, LINEAGE_ROW("[0]"), true},
        {CONTAINER_KEY, LINEAGE_ROW("[1,3]"), true},
        /* ancestors are older, in order, each there once, and not written if there are none */
        {CONTAINER_KEY, LINEAGE_ROW("[1,4]"), false},
        {CONTAINER_KEY, LINEAGE_ROW("[3,1]"), false},
        {CONTAINER_KEY, LINEAGE_ROW("[1,1]"), false},
        {CONTAINER_KEY, LINEAGE_ROW("[]"), false},
        {CONTAINER_KEY, LINEAGE_ROW("7"), false},
        {CONTAINER_KEY, LINEAGE_ROW("['1']"), false},
        {CONTAINER_KEY, LINEAGE_ROW("[-1]"), false},
        {CONTAINER_KEY, LINEAGE_ROW("[1.5]"), false},
        /* a range of no container, of the catalogue's own space, of a later change */
        {CONTAINER_KEY, CONTAINER_ROW("[" RANGE("2", "", "FF", "65536", "3") "]"), false},
        {CONTAINER_KEY, CONTAINER_ROW("[" RANGE("0", "", "FF", "1", "3") "]"), false},
        {CONTAINER_KEY, CONTAINER_ROW("[" RANGE("0", "", "FF", "65536", "4") "]"), false},
        {CONTAINER_KEY,
         "{'v':1,'lsn':3,'ts':1,'offer':0,'definition':'c','rangeNext':1,'rangesLsn':3,"
         "'ranges':[" RANGE("0", "", "FF", "65536", "3") "]}",
         false},
        {CONTAINER_KEY,
         "{'v':1,'lsn':3,'ts':1,'offer':0,'definition':{'id':'c'},'rangeNext':1,'rangesLsn':0,"
         "'ranges':[" RANGE("0", "", "FF", "65536", "0") "]}",
         false},
    };
    expect_bounds(ROWS, ARRAY_COUNT(ROWS));
}

static void the_move_of_a_container_has_bounds(void **state)
{
    (void)state;
    static const RecordRow ROWS[] = {
        /* a split of the second range, and a merge of all but the first */
        {CONTAINER_KEY,
         MOVE_ROW("5", "[" RANGE("3", "50", "80", "65550", "3") "," RANGE("4", "80", "A0", "65551",
                                                                          "3") "]"),
         true},
        {CONTAINER_KEY, MOVE_ROW("4", "[" RANGE("3", "50", "FF", "65550", "3") "]"), true},
        /* it begins and ends where ranges do, without a gap */
        {CONTAINER_KEY, MOVE_ROW("4", "[" RANGE("3", "51", "A0", "65550", "3") "]"), false},
        {CONTAINER_KEY, MOVE_ROW("4", "[" RANGE("3", "50", "9F", "65550", "3") "]"), false},
        {CONTAINER_KEY,
         MOVE_ROW("5", "[" RANGE("3", "50", "80", "65550", "3") "," RANGE("4", "81", "A0", "65551",
                                                                          "3") "]"),
         false},
        /* ids and spaces are the newest, in a row, and of no other range */
        {CONTAINER_KEY, MOVE_ROW("5", "[" RANGE("3", "50", "A0", "65550", "3") "]"), false},
        {CONTAINER_KEY, MOVE_ROW("3", "[" RANGE("2", "50", "A0", "65550", "3") "]"), false},
        {CONTAINER_KEY, MOVE_ROW("4", "[" RANGE("4", "50", "A0", "65550", "3") "]"), false},
        {CONTAINER_KEY, MOVE_ROW("4", "[" RANGE("3", "50", "A0", "65541", "3") "]"), false},
        {CONTAINER_KEY, MOVE_ROW("4", "[" RANGE("3", "50", "A0", "65539", "3") "]"), false},
        {CONTAINER_KEY,
         MOVE_ROW("5", "[" RANGE("3", "50", "80", "65550", "3") "," RANGE("4", "80", "A0", "65550",
                                                                          "3") "]"),
         false},
        {CONTAINER_KEY,
         MOVE_ROW("5", "[" RANGE("3", "50", "80", "65550", "3") "," RANGE("3", "80", "A0", "65551",
                                                                          "3") "]"),
         false},
        {CONTAINER_KEY, MOVE_ROW("3", "[]"), false},
        {CONTAINER_KEY, MOVE_ROW("3", "7"), false},
    };
    expect_bounds(ROWS, ARRAY_COUNT(ROWS));
}

static void an_offer_garbage_and_keys_have_bounds(void **state)
{
    (void)state;
    static const RecordRow ROWS[] = {
        {OFFER_KEY,
         "{'v':1,'database':7,'container':8,'lsn':1,'ts':1,'autoscale':false,'ru':400,'ruEver':"
         "400,'replacedAt':1}",
         true},
        {OFFER_KEY,
         "{'v':1,'database':7,'container':8,'lsn':1,'ts':1,'autoscale':0,'ru':400,'ruEver':400,"
         "'replacedAt':1}",
         false},
        /* more than can be bought, and so more partitions than can be made */
        {OFFER_KEY,
         "{'v':1,'database':7,'container':8,'lsn':1,'ts':1,'autoscale':false,'ru':1000001,"
         "'ruEver':400,'replacedAt':1}",
         false},
        {GARBAGE_KEY, "{'v':1,'last':70000}", true},
        {GARBAGE_KEY, "{'v':1,'last':70005}", true},
        {GARBAGE_KEY, "{'v':1,'last':69999}", false},
        {SLICE_INIT("\x05\0\0\0\0\0\0\0\x01"), "{'v':1,'last':70000}", false},
        {SCRIPT_KEY, "{'v':1,'lsn':1,'ts':1,'definition':{}}", true},
        {SCRIPT_KEY, "{'v':1,'lsn':1,'ts':1}", false},
        {SCRIPT_KEY, "{'v':1,'ts':1,'definition':{}}", false},
        {SLICE_INIT("\x07\0\0\0\x07\0\0\0\x08\x03\0\0\0\x05"), /* a kind of scripts too many */
         "{'v':1,'lsn':1,'ts':1,'definition':{}}", false},
        {USER_KEY, "{'v':1,'id':'u','lsn':1,'ts':1}", true},
        {USER_KEY, "{'v':1,'id':'','lsn':1,'ts':1}", false},
        {USER_KEY, "{'v':1,'id':'u','ts':1}", false},
        {PERMISSION_KEY, "{'v':1,'lsn':2,'granted':1,'ts':1,'definition':{}}", true},
        {PERMISSION_KEY, "{'v':1,'lsn':2,'granted':3,'ts':1,'definition':{}}", false},
        {PERMISSION_KEY, "{'v':1,'lsn':2,'ts':1,'definition':{}}", false},
        {PERMISSION_KEY, "{'v':1,'lsn':2,'granted':1,'ts':1}", false},
        /* keys */
        {SLICE_INIT("\x0a\0\0\0\x07\0\0\0\x08"),
         "{'v':1,'lsn':2,'granted':1,'ts':1,'definition':{}}", false},
        {SLICE_INIT("\x0d\0\0\0\x07\0\0\0\x08"), "{'v':1,'id':'u','lsn':1,'ts':1}", false},
        {SLICE_INIT("\x0b\0\0\0\x07"), SAVED, true},
        {SLICE_INIT("\x0b\0\0\0\x07"), "{'v':1,'name':'s','databaseId':'d','database':7,'ts':1}",
         false},
        {SLICE_INIT("\x0b\0\0\0\x07"),
         "{'v':1,'name':'s/','databaseId':'d','database':7,'ts':1,'restoring':false}", false},
        {SLICE_INIT("\x0b\0\0\0\x07"),
         "{'v':1,'name':'s','databaseId':'d','database':0,'ts':1,'restoring':false}", false},
        {SLICE_INIT("\x0b\0\0\0\x07"),
         "{'v':2,'name':'s','databaseId':'d','database':7,'ts':1,'restoring':false}", false},
        {SLICE_INIT("\x0b\0\0\0"), SAVED, false},
        {SLICE_INIT("\x0b\0\0\0\x07\0\0\0\x08"), "{'v':1,'id':'u','lsn':1,'ts':1}", false},
        {SLICE_INIT("\x0b\0\0\0\x07\x0b\0\0\0\x07"), SAVED, false},
        {SLICE_INIT("\x0b\0\0\0\x07\x09\0\0\0\x07\0\0\0\x08"), "{'v':1,'id':'u','lsn':1,'ts':1}",
         true},
        {SLICE_INIT("\x0b\0\0\0\x07\x09\0\0\0\x07\0\0\0\x08"), "{'v':1,'lsn':1,'ts':1}", false},
        {SLICE_INIT("\x0c\0\0\0\x07"), "{'v':1}", false},
        {SLICE_INIT("\x07\0\0\0\x07\0\0\0\x08\x02\0\0\0"), "{'v':1,'lsn':1,'ts':1,'definition':{}}",
         false},
        {SLICE_INIT(""), "{'v':1}", false},
        {SLICE_INIT("\x06"), "{'v':1}", false},
        {SLICE_INIT("\x02"), "{'v':1,'id':'d','lsn':1,'ts':1,'offer':0}", false},
        {SLICE_INIT("\x02\0\0\0\x07\0"), "{'v':1,'id':'d','lsn':1,'ts':1,'offer':0}", false},
    };
    expect_bounds(ROWS, ARRAY_COUNT(ROWS));
}

static void bytes_that_are_no_document_are_refused(void **state)
{
    (void)state;
    AUTO(store_close) Store *store = NULL;
    memory_store_open(&store);
    put_raw(store, (Slice)DATABASE_KEY, SLICE("no document"));
    Seen seen = {0};
    buf_init(&seen.text, 1024);
    Error refusal = {0};
    assert_int_equal(load(store, &seen, &refusal), STATUS_CORRUPT);
    assert_true(refusal.message[0] != '\0');
}

static void what_the_visitor_says_and_what_the_store_says_is_passed_on(void **state)
{
    (void)state;
    AUTO(store_close) Store *store = NULL;
    memory_store_open(&store);
    StoreTxn *txn = store_txn_begin(store);
    record_put_database(txn, &(DatabaseRecord){.number = 7, .id = SLICE("d"), .lsn = 1});
    assert_ok(store_txn_commit_wait(txn, err));
    Seen seen = {.refuse = true};
    buf_init(&seen.text, 1024);
    Error refusal = {0};
    assert_int_equal(load(store, &seen, &refusal), STATUS_INTERNAL);
    assert_string_equal(refusal.message, "enough");
    memory_store_fail_cursor_steps(store, 1, STATUS_IO);
    assert_int_equal(load(store, &seen, &refusal), STATUS_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_as_they_were_written),
        cmocka_unit_test(a_database_and_counters_have_bounds),
        cmocka_unit_test(the_ranges_of_a_container_have_bounds),
        cmocka_unit_test(the_move_of_a_container_has_bounds),
        cmocka_unit_test(an_offer_garbage_and_keys_have_bounds),
        cmocka_unit_test(bytes_that_are_no_document_are_refused),
        cmocka_unit_test(what_the_visitor_says_and_what_the_store_says_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
