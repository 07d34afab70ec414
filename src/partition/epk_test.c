/* epk_test.c - hashes bit for bit as the SDKs compute them, and equality of keys. */
#include "partition/partition_testing_int.h"

#include "base/random.h"

static PartitionKind kind_of(Json row)
{
    int64_t version = 0;
    assert_true(json_to_i64(json_get(row, SLICE("version")), &version));
    if (slice_equal(json_string(json_get(row, SLICE("kind"))), SLICE("MultiHash")))
        return PARTITION_MULTI_HASH;
    return version == 1 ? PARTITION_HASH_V1 : PARTITION_HASH_V2;
}

static void key_of(Json list, PartitionKey *out)
{
    *out = (PartitionKey){0};
    JsonIter it = json_iter(list);
    while (json_next(&it)) /* an object stands for undefined, which JSON cannot write */
        out->parts[out->count++] = json_is(it.value, JSON_OBJECT) ? JSON_NONE : it.value;
}

static Json read_vectors(Arena *arena)
{
    const char *slash = strrchr(__FILE__, '/');
    Slice folder = slash == NULL ? SLICE("") : slice_make(__FILE__, (size_t)(slash - __FILE__) + 1);
    FILE *file = fopen(arena_format(arena, "%.*sepk_vectors.json", SLICE_ARG(folder)).ptr, "rbe");
    assert_non_null(file);
    char *text = arena_alloc(arena, 1 << 20);
    size_t len = fread(text, 1, 1 << 20, file);
    assert_int_equal(fclose(file), 0);
    Json rows = JSON_NONE;
    assert_ok(json_parse(arena, slice_make(text, len), &rows, err));
    return rows;
}

static void every_vector_hashes_as_the_sdks_do(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json rows = read_vectors(&arena);
    assert_int_equal(json_count(rows), 127);
    JsonIter it = json_iter(rows);
    while (json_next(&it)) {
        PartitionKey key;
        key_of(json_get(it.value, SLICE("key")), &key);
        Epk epk;
        epk_make(kind_of(it.value), &key, &epk);
        char hex[2 * EPK_BYTES_MAX];
        hex_encode(epk.bytes, epk.len, hex);
        assert_slice(slice_make(hex, 2 * (size_t)epk.len),
                     json_string(json_get(it.value, SLICE("epk"))));
    }
}

static void a_prefix_of_a_hierarchical_key_is_a_prefix_of_its_hash(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    PartitionKey key;
    key_of(row_json(&arena, "['t',true,7]"), &key);
    Epk whole;
    epk_make(PARTITION_MULTI_HASH, &key, &whole);
    assert_int_equal(whole.len, 48);
    while (key.count > 0) {
        Epk prefix;
        key.count--;
        epk_make(PARTITION_MULTI_HASH, &key, &prefix);
        assert_int_equal(prefix.len, EPK_HASH_BYTES * key.count);
        assert_true(slice_starts_with(epk_slice(&whole), epk_slice(&prefix)));
    }
}

static void without_a_key_there_is_no_hash(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    PartitionKey key;
    Epk epk;
    key_of(row_json(&arena, "['x']"), &key);
    epk_make(PARTITION_NONE, &key, &epk);
    assert_int_equal(epk.len, 0);
    key_of(row_json(&arena, "[]"), &key);
    for (PartitionKind kind = PARTITION_HASH_V1; kind <= PARTITION_NONE; kind++) {
        epk_make(kind, &key, &epk);
        assert_int_equal(epk.len, 0);
    }
}

static void hashes_are_spread_evenly_from_0_to_1(void **state)
{
    (void)state;
    static const PartitionKind kinds[] = {PARTITION_HASH_V1, PARTITION_HASH_V2,
                                          PARTITION_MULTI_HASH};
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        unsigned tenths[10] = {0};
        double last_fraction = 0;
        Epk last = {.len = 0};
        for (int i = 0; i < 1000; i++) {
            JsonBuilder b;
            json_build(&b, &arena);
            json_add_string(&b, arena_format(&arena, "key %d", i));
            PartitionKey key = {.count = 1, .parts = {json_built(&b)}};
            Epk epk;
            epk_make(kinds[k], &key, &epk);
            double fraction = epk_fraction(kinds[k], epk_slice(&epk));
            assert_true(fraction >= 0 && fraction < 1);
            tenths[(int)(fraction * 10)]++;
            /* In the order of the hashes themselves. */
            int order = slice_compare(epk_slice(&epk), epk_slice(&last));
            assert_true(order > 0 ? fraction >= last_fraction : fraction <= last_fraction);
            last = epk;
            last_fraction = fraction;
        }
        for (int i = 0; i < 10; i++)
            assert_in_range(tenths[i], 60, 140);
        assert_true(epk_fraction(kinds[k], SLICE_EMPTY) == 0);
        assert_true(epk_fraction(kinds[k], SLICE("\xFF")) == 1);
    }
    /* Bounds may be cut anywhere. */
    assert_true(epk_fraction(PARTITION_HASH_V2, SLICE("\x20")) == 0.5);
    uint8_t half[EPK_NUMBER_BYTES_MAX];
    size_t len = epk_encode_number(0x1p31, half);
    assert_true(epk_fraction(PARTITION_HASH_V1, slice_make(half, len)) == 0.5);
    assert_true(epk_fraction(PARTITION_HASH_V1, SLICE("\x05")) == 0);
    assert_true(epk_fraction(PARTITION_HASH_V1, SLICE("\x04zz")) == 0);
}

static void no_hash_begins_with_what_bounds_a_purge(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Random random;
    random_init(&random, 1);
    for (int i = 0; i < 1000; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "['%llx']", (unsigned long long)random_u64(&random));
        PartitionKey key;
        Epk epk;
        key_of(row_json(&arena, text), &key);
        epk_make(PARTITION_HASH_V2, &key, &epk);
        assert_in_range(epk.bytes[0], 0, 0x3F);
    }
}

static void encoded_numbers_sort_as_numbers_do(void **state)
{
    (void)state;
    static const double numbers[] = {-1.7976931348623157e308,
                                     -1e21,
                                     -2.5,
                                     -1,
                                     -0.5,
                                     -5e-324,
                                     0,
                                     5e-324,
                                     0.1,
                                     0.5,
                                     1,
                                     1.5,
                                     2,
                                     255,
                                     256,
                                     1e21,
                                     1.7976931348623157e308};
    uint8_t before[EPK_NUMBER_BYTES_MAX];
    size_t before_len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        uint8_t bytes[EPK_NUMBER_BYTES_MAX];
        size_t len = epk_encode_number(numbers[i], bytes);
        assert_true(len <= sizeof(bytes));
        if (i > 0)
            assert_true(slice_compare(slice_make(before, before_len), slice_make(bytes, len)) < 0);
        memcpy(before, bytes, len);
        before_len = len;
    }
    uint8_t zero[EPK_NUMBER_BYTES_MAX];
    uint8_t minus[EPK_NUMBER_BYTES_MAX];
    size_t len = epk_encode_number(0.0, zero);
    assert_int_equal(epk_encode_number(-0.0, minus), len);
    assert_memory_equal(zero, minus, len);
}

static void long_strings_are_refused(void **state)
{
    (void)state;
    static const struct {
        PartitionKind kind;
        size_t len;
        Status status;
    } rows[] = {
        {PARTITION_HASH_V1, 2048, STATUS_OK},    {PARTITION_HASH_V1, 2049, STATUS_BAD_REQUEST},
        {PARTITION_HASH_V2, 2048, STATUS_OK},    {PARTITION_HASH_V2, 2049, STATUS_BAD_REQUEST},
        {PARTITION_MULTI_HASH, 2048, STATUS_OK}, {PARTITION_MULTI_HASH, 2049, STATUS_BAD_REQUEST},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char *text = arena_zalloc(&arena, rows[i].len + 16);
        text[0] = '[';
        memset(text + 2, 'x', rows[i].len);
        text[1] = text[rows[i].len + 2] = '"';
        text[rows[i].len + 3] = ']';
        PartitionKey key;
        key_of(row_json(&arena, text), &key);
        Error err = {0};
        assert_status(partition_key_check(&key, &err), rows[i].status);
        Epk epk;
        if (rows[i].status == STATUS_OK) /* what passes the check has a hash */
            epk_make(rows[i].kind, &key, &epk);
    }
}

static void keys_are_equal_value_by_value(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } rows[] = {
        {"['x']", "['x']", true},      {"['x']", "['y']", false},
        {"['x']", "['x','x']", false}, {"[1]", "[1.0]", true},
        {"[0]", "[-0.0]", false},      {"[1]", "['1']", false},
        {"[null]", "[null]", true},    {"[null]", "[{}]", false},
        {"[{}]", "[{}]", true},        {"[true]", "[true]", true},
        {"[true]", "[false]", false},  {"[]", "[]", true},
        {"['a',1]", "['a',1]", true},  {"['a',1]", "['a',2]", false},
        {"['']", "['']", true},        {"['\\u00e9']", "['\xC3\xA9']", true},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionKey a, b;
        key_of(row_json(&arena, rows[i].a), &a);
        key_of(row_json(&arena, rows[i].b), &b);
        if (partition_key_equal(&a, &b) != rows[i].equal ||
            partition_key_equal(&b, &a) != rows[i].equal)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_hashes_as_the_sdks_do),
        cmocka_unit_test(a_prefix_of_a_hierarchical_key_is_a_prefix_of_its_hash),
        cmocka_unit_test(without_a_key_there_is_no_hash),
        cmocka_unit_test(hashes_are_spread_evenly_from_0_to_1),
        cmocka_unit_test(no_hash_begins_with_what_bounds_a_purge),
        cmocka_unit_test(encoded_numbers_sort_as_numbers_do),
        cmocka_unit_test(long_strings_are_refused),
        cmocka_unit_test(keys_are_equal_value_by_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
