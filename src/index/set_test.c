/* set_test.c - sets against a model that has nothing to get wrong: a byte per number. */
#include "index/set_int.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HIGHS = 4, UNIVERSE = HIGHS * SET_CHUNK_NUMBERS, ROUNDS = 60 };

/* Chunks far apart; the last is the last there is. */
static const uint64_t HIGH[HIGHS] = {0, 1, 70000, (UINT64_C(1) << 48) - 1};

typedef struct Model {
    bool has[UNIVERSE];
} Model;

static uint64_t number_of(size_t place)
{
    return HIGH[place / SET_CHUNK_NUMBERS] << SET_CHUNK_BITS | place % SET_CHUNK_NUMBERS;
}

/* Each chunk has a density of its own: nothing, one, few, around the limit of arrays, half, most,
 * all. */
static void fill_chunk(Random *random, bool *has)
{
    static const uint32_t COUNTS[] = {0, 1, 2, 30, 1500, 4095, 4096, 4097, 9000, 30000, 60000};
    memset(has, 0, SET_CHUNK_NUMBERS);
    size_t kind = (size_t)random_below(random, ARRAY_COUNT(COUNTS) + 2);
    if (kind == ARRAY_COUNT(COUNTS)) {
        memset(has, 1, SET_CHUNK_NUMBERS);
    } else if (kind > ARRAY_COUNT(COUNTS)) { /* a run */
        size_t from = (size_t)random_below(random, SET_CHUNK_NUMBERS);
        memset(has + from, 1, (size_t)random_below(random, SET_CHUNK_NUMBERS - from + 1));
    } else {
        for (uint32_t left = COUNTS[kind]; left > 0;) {
            size_t at = (size_t)random_below(random, SET_CHUNK_NUMBERS);
            left -= !has[at];
            has[at] = true;
        }
    }
}

static Model *model_new(Random *random)
{
    Model *model = MEM_NEW(Model);
    for (size_t i = 0; i < HIGHS; i++)
        fill_chunk(random, model->has + i * SET_CHUNK_NUMBERS);
    return model;
}

static size_t list_of(const bool *has, uint16_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < SET_CHUNK_NUMBERS; i++) {
        if (has[i])
            out[count++] = (uint16_t)i;
    }
    return count;
}

/* The stored value of a chunk, by way of an operand. */
static void value_of(const bool *has, Buf *out)
{
    AUTO(mem_free) void *memory = mem_alloc(SET_CHUNK_NUMBERS * sizeof(uint16_t));
    AUTO(buf_done) Buf operand;
    buf_init(&operand, 1 << 20);
    set_operand(&operand, memory, list_of(has, memory), NULL, 0);
    Slice view = buf_view(&operand);
    assert_true(set_merge(SLICE_EMPTY, &view, 1, false, out));
}

static NumberSet set_of(Arena *arena, const Model *model)
{
    SetBuilder *b = set_builder_new(arena);
    for (size_t i = HIGHS; i-- > 0;) {
        AUTO(buf_done) Buf value;
        buf_init(&value, 1 << 20);
        value_of(model->has + i * SET_CHUNK_NUMBERS, &value);
        Error err;
        assert_int_equal(set_builder_add_value(b, HIGH[i], buf_view(&value), &err), STATUS_OK);
    }
    NumberSet set;
    set_builder_finish(b, &set);
    return set;
}

static void check_forms(const NumberSet *set)
{
    uint64_t count = 0;
    for (size_t i = 0; i < set->chunk_count; i++) {
        const SetChunk *chunk = &set->chunks[i];
        assert_true(chunk->count > 0);
        assert_int_equal(chunk->is_bitmap, chunk->count > SET_ARRAY_MAX);
        assert_true(i == 0 || set->chunks[i - 1].high < chunk->high);
        count += chunk->count;
    }
    assert_true(set->count == count);
}

static void expect_set(const NumberSet *set, const bool *has)
{
    check_forms(set);
    SetWalk walk = set_walk_up(set, 0);
    for (size_t place = 0; place < UNIVERSE; place++) {
        uint64_t number = 0;
        if (has[place] && (!set_walk_next(&walk, &number) || number != number_of(place)))
            fail_msg("expected %llx, found %llx", (unsigned long long)number_of(place),
                     (unsigned long long)number);
    }
    uint64_t number;
    assert_false(set_walk_next(&walk, &number));
    assert_false(set_walk_next(&walk, &number));
}

static void sets_intersect_and_subtract_like_the_model(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        AUTO(mem_free) void *a_memory = model_new(&random);
        AUTO(mem_free) void *b_memory = model_new(&random);
        AUTO(mem_free) void *c_memory = MEM_NEW(Model);
        const bool *a = ((Model *)a_memory)->has;
        const bool *b = ((Model *)b_memory)->has;
        bool *c = ((Model *)c_memory)->has;
        NumberSet x = set_of(&arena, a_memory);
        NumberSet y = set_of(&arena, b_memory);
        NumberSet z;
        expect_set(&x, a);

        for (size_t i = 0; i < UNIVERSE; i++)
            c[i] = a[i] && b[i];
        set_and(&arena, &x, &y, &z);
        expect_set(&z, c);
        assert_true(set_and_count(&x, &y) == z.count);
        for (size_t i = 0; i < UNIVERSE; i++)
            c[i] = a[i] && !b[i];
        set_minus(&arena, &x, &y, &z);
        expect_set(&z, c);
    }
}

static void results_share_nothing_with_their_operands(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    AUTO(arena_done) Arena operands;
    AUTO(arena_done) Arena results;
    arena_init(&operands, 1 << 16);
    arena_init(&results, 1 << 16);
    for (int round = 0; round < 10; round++) {
        AUTO(mem_free) void *model = model_new(&random);
        NumberSet x = set_of(&operands, model);
        NumberSet none = {0};
        NumberSet all, rest;
        SetBuilder *b = set_builder_new(&results);
        set_builder_add_set(b, &x);
        set_builder_finish(b, &all);
        set_minus(&results, &x, &none, &rest);
        arena_done(&operands); /* the sanitizer finds reads of it after this */
        expect_set(&all, ((Model *)model)->has);
        expect_set(&rest, ((Model *)model)->has);
    }
}

static void has_and_walks_agree_with_the_model_from_anywhere(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        AUTO(mem_free) void *memory = model_new(&random);
        const bool *has = ((Model *)memory)->has;
        NumberSet set = set_of(&arena, memory);
        for (int i = 0; i < 60; i++) {
            size_t place = (size_t)random_below(&random, UNIVERSE);
            uint64_t from = number_of(place);
            assert_int_equal(set_has(&set, from), has[place]);
            SetWalk up = set_walk_up(&set, from);
            SetWalk down = set_walk_down(&set, from);
            uint64_t number;
            size_t above = place;
            size_t below = place + 1;
            for (int steps = 0; steps < 5; steps++) {
                while (above < UNIVERSE && !has[above])
                    above++;
                assert_int_equal(set_walk_next(&up, &number), above < UNIVERSE);
                assert_true(above == UNIVERSE || number == number_of(above++));
                while (below > 0 && !has[below - 1])
                    below--;
                assert_int_equal(set_walk_next(&down, &number), below > 0);
                assert_true(below == 0 || number == number_of(--below));
            }
        }
    }
}

static void walks_begin_between_chunks_too(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    SetBuilder *b = set_builder_new(&arena);
    set_builder_add(b, 5);
    set_builder_add(b, 0x50007);
    NumberSet set;
    set_builder_finish(b, &set);
    static const struct {
        uint64_t from, up, down; /* 0 if there is none */
    } ROWS[] = {
        {0, 5, 0},
        {5, 5, 5},
        {6, 0x50007, 5},
        {0x30000, 0x50007, 5},
        {0x50006, 0x50007, 5},
        {0x50007, 0x50007, 0x50007},
        {0x50008, 0, 0x50007},
        {UINT64_MAX, 0, 0x50007},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        SetWalk up = set_walk_up(&set, ROWS[i].from);
        SetWalk down = set_walk_down(&set, ROWS[i].from);
        uint64_t number = 0;
        assert_int_equal(set_walk_next(&up, &number), ROWS[i].up != 0);
        assert_true(ROWS[i].up == 0 || number == ROWS[i].up);
        assert_int_equal(set_walk_next(&down, &number), ROWS[i].down != 0);
        assert_true(ROWS[i].down == 0 || number == ROWS[i].down);
    }
    NumberSet none = {0};
    uint64_t number;
    SetWalk walk = set_walk_up(&none, 0);
    assert_false(set_walk_next(&walk, &number));
    walk = set_walk_down(&none, UINT64_MAX);
    assert_false(set_walk_next(&walk, &number));
    assert_false(set_has(&none, 0));
}

static void builders_unite_sets(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int round = 0; round < ROUNDS / 4; round++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        AUTO(mem_free) void *memory = MEM_NEW(Model);
        bool *has = ((Model *)memory)->has;
        SetBuilder *b = set_builder_new(&arena);
        for (uint64_t i = random_below(&random, 4); i < 4; i++) {
            AUTO(mem_free) void *more = model_new(&random);
            NumberSet set = set_of(&arena, more);
            set_builder_add_set(b, &set);
            for (size_t place = 0; place < UNIVERSE; place++)
                has[place] = has[place] || ((Model *)more)->has[place];
        }
        NumberSet all;
        set_builder_finish(b, &all);
        expect_set(&all, has);
    }
}

static void builders_unite_what_comes_in_any_order(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    static const size_t COUNTS[] = {0, 1, 2, 8, 9, 39, 41, 500, 4096, 5000, 40000};
    for (size_t row = 0; row < ARRAY_COUNT(COUNTS) * 3; row++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        AUTO(mem_free) void *memory = MEM_NEW(Model);
        bool *has = ((Model *)memory)->has;
        SetBuilder *b = set_builder_new(&arena);
        size_t spread = row % 3 == 0 ? 100 : row % 3 == 1 ? SET_CHUNK_NUMBERS : UNIVERSE;
        for (size_t i = 0; i < COUNTS[row / 3]; i++) {
            size_t place = (size_t)random_below(&random, spread);
            uint64_t number = number_of(place);
            uint8_t value[3] = {0, (uint8_t)number, (uint8_t)(number >> 8)};
            has[place] = true;
            Error err;
            if (i % 2 == 0)
                set_builder_add(b, number);
            else
                assert_int_equal(set_builder_add_value(b, number >> SET_CHUNK_BITS,
                                                       slice_make(value, sizeof(value)), &err),
                                 STATUS_OK);
        }
        if (row % 2 == 0) { /* and something larger after it */
            AUTO(mem_free) void *more = model_new(&random);
            for (size_t i = 0; i < UNIVERSE; i++)
                has[i] = has[i] || ((Model *)more)->has[i];
            for (size_t i = 0; i < HIGHS; i++) {
                AUTO(buf_done) Buf value;
                buf_init(&value, 1 << 20);
                value_of(((Model *)more)->has + i * SET_CHUNK_NUMBERS, &value);
                Error err;
                assert_int_equal(set_builder_add_value(b, HIGH[i], buf_view(&value), &err),
                                 STATUS_OK);
            }
        }
        size_t before = arena_used(&arena);
        assert_true(set_builder_bytes(b) <= before);
        assert_true(set_builder_bytes(b) + 4096 > before / 2);
        NumberSet set;
        set_builder_finish(b, &set);
        expect_set(&set, has);
    }
}

static void builders_keep_thousands_of_chunks_apart(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    SetBuilder *b = set_builder_new(&arena);
    enum { CHUNKS = 5000 };
    for (uint64_t i = 0; i < 2 * CHUNKS; i++) {
        uint64_t high = i * 7919 % CHUNKS;
        set_builder_add(b, high << SET_CHUNK_BITS | i / CHUNKS);
    }
    NumberSet set;
    set_builder_finish(b, &set);
    check_forms(&set);
    assert_int_equal(set.chunk_count, CHUNKS);
    assert_int_equal(set.count, 2 * CHUNKS);
    assert_true(set_has(&set, UINT64_C(4999) << 16 | 1));
    assert_false(set_has(&set, UINT64_C(4999) << 16 | 2));
}

/* ---- stored chunks ---- */

typedef struct Change {
    uint16_t number;
    bool is_add;
} Change;

static int compare_u16(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* One operand from changes; of a number that occurs twice the last change counts. */
static void operand_of(const Change *changes, size_t count, Buf *out)
{
    AUTO(mem_free) void *last = mem_alloc(SET_CHUNK_NUMBERS);
    AUTO(mem_free) void *adds = mem_alloc(SET_CHUNK_NUMBERS * 2);
    AUTO(mem_free) void *removes = mem_alloc(SET_CHUNK_NUMBERS * 2);
    uint8_t *seen = last;
    size_t add_count = 0;
    size_t remove_count = 0;
    for (size_t i = count; i-- > 0;) {
        if (seen[changes[i].number]++ > 0)
            continue;
        if (changes[i].is_add)
            ((uint16_t *)adds)[add_count++] = changes[i].number;
        else
            ((uint16_t *)removes)[remove_count++] = changes[i].number;
        seen[changes[i].number] = 1;
    }
    qsort(adds, add_count, 2, compare_u16);
    qsort(removes, remove_count, 2, compare_u16);
    set_operand(out, adds, add_count, removes, remove_count);
}

/* A value and the operands that wait for it. */
typedef struct Pending {
    Buf value;
    bool has_value;
    Buf operands[64];
    size_t count;
} Pending;

static void pending_merge(Pending *p, size_t from, size_t to, bool is_partial)
{
    Slice views[64];
    for (size_t i = from; i < to; i++)
        views[i - from] = buf_view(&p->operands[i]);
    Buf merged;
    buf_init(&merged, 1 << 20);
    Slice existing = !p->has_value
                         ? SLICE_EMPTY
                         : (p->value.len > 0 ? buf_view(&p->value) : (Slice){(const char *)p, 0});
    assert_true(
        set_merge(is_partial ? SLICE_EMPTY : existing, views, to - from, is_partial, &merged));
    for (size_t i = from; i < to; i++)
        buf_done(&p->operands[i]);
    if (is_partial) {
        p->operands[from] = merged;
        from++;
    } else {
        buf_done(&p->value);
        p->value = merged;
        p->has_value = true;
    }
    memmove(p->operands + from, p->operands + to, (p->count - to) * sizeof(Buf));
    p->count -= to - from;
}

/* However a list of changes is cut into operands, and whichever of them the store merges first, the
 * same value comes out. */
static void merge_once(Random *random, const Change *changes, size_t count, Slice expected)
{
    Pending p = {0};
    buf_init(&p.value, 1 << 20);
    for (size_t at = 0; at < count || p.count > 0;) {
        if (at < count && p.count < 64) {
            size_t left = count - at;
            size_t take = 1 + (size_t)random_below(random, left < 40 ? left : left / 4);
            buf_init(&p.operands[p.count], 1 << 20);
            operand_of(changes + at, take, &p.operands[p.count++]);
            at += take;
        }
        uint64_t dice = random_below(random, 6);
        if (dice == 0 || p.count == 64 || at == count) {
            pending_merge(&p, 0, 1 + (size_t)random_below(random, p.count), false);
        } else if (dice < 3 && p.count > 0) {
            size_t from = (size_t)random_below(random, p.count);
            pending_merge(&p, from, from + 1 + (size_t)random_below(random, p.count - from), true);
        }
    }
    assert_int_equal(p.value.len, expected.len);
    assert_true(slice_equal(buf_view(&p.value), expected));
    buf_done(&p.value);
}

static void any_grouping_of_operands_gives_the_same_value(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    static const struct {
        size_t count;
        uint32_t spread;
        uint32_t adds_percent;
    } ROWS[] = {
        {1, 10, 100},         {10, 5, 50},        {200, 40, 60},      {3000, 65536, 80},
        {12000, 65536, 90},   {12000, 65536, 30}, {60000, 65536, 95}, {9000, 4200, 70},
        {250000, 65536, 100}, {30000, 100, 50},   {100, 65536, 0},
    };
    for (size_t row = 0; row < ARRAY_COUNT(ROWS); row++) {
        AUTO(mem_free) void *memory = mem_alloc(ROWS[row].count * sizeof(Change));
        AUTO(mem_free) void *has_memory = mem_alloc(SET_CHUNK_NUMBERS);
        Change *changes = memory;
        bool *has = has_memory;
        for (size_t i = 0; i < ROWS[row].count; i++) {
            changes[i].number = (uint16_t)random_below(&random, ROWS[row].spread);
            changes[i].is_add = random_below(&random, 100) < ROWS[row].adds_percent;
            has[changes[i].number] = changes[i].is_add;
        }
        AUTO(buf_done) Buf expected;
        buf_init(&expected, 1 << 20);
        AUTO(mem_free) void *list = mem_alloc(SET_CHUNK_NUMBERS * 2);
        size_t count = list_of(has, list);
        if (count > SET_ARRAY_MAX) {
            uint64_t bits[SET_WORDS] = {0};
            bits_add(bits, list, count);
            buf_byte(&expected, 1);
            buf_bytes(&expected, bits, sizeof(bits));
        } else if (count > 0) {
            buf_byte(&expected, 0);
            buf_bytes(&expected, list, 2 * count);
        }
        assert_int_equal(set_value_count(buf_view(&expected)), count);
        assert_int_equal(set_value_is_empty(buf_view(&expected)), count == 0);
        for (int round = 0; round < 6; round++)
            merge_once(&random, changes, ROWS[row].count, buf_view(&expected));
    }
}

static void a_full_chunk_is_one_bounded_operand(void **state)
{
    (void)state;
    AUTO(mem_free) void *memory = mem_alloc(SET_CHUNK_NUMBERS * 2);
    uint16_t *all = memory;
    for (size_t i = 0; i < SET_CHUNK_NUMBERS; i++)
        all[i] = (uint16_t)i;
    AUTO(buf_done) Buf add;
    AUTO(buf_done) Buf remove;
    AUTO(buf_done) Buf merged;
    AUTO(buf_done) Buf value;
    buf_init(&add, 1 << 20);
    buf_init(&remove, 1 << 20);
    buf_init(&merged, 1 << 20);
    buf_init(&value, 1 << 20);
    set_operand(&add, all, SET_CHUNK_NUMBERS, NULL, 0);
    set_operand(&remove, NULL, 0, all + 1, SET_CHUNK_NUMBERS - 1);
    assert_int_equal(add.len, 1 + 2 * SET_BITMAP_BYTES);
    Slice both[] = {buf_view(&remove), buf_view(&add)};
    assert_true(set_merge(SLICE_EMPTY, both, 2, true, &merged));
    assert_int_equal(merged.len, 1 + 2 * SET_BITMAP_BYTES);
    Slice one = buf_view(&merged);
    assert_true(set_merge(SLICE_EMPTY, &one, 1, false, &value));
    assert_int_equal(set_value_count(buf_view(&value)), SET_CHUNK_NUMBERS);

    /* The other way round the whole shrinks to a number that stays, and many that go. */
    Slice turned[] = {buf_view(&add), buf_view(&remove)};
    buf_reset(&value);
    assert_true(set_merge(SLICE_EMPTY, turned, 2, false, &value));
    assert_true(slice_equal(buf_view(&value), SLICE("\0\0\0")));
}

static void damaged_values_and_operands_are_refused(void **state)
{
    (void)state;
    static const struct {
        Slice bytes;
        bool is_value;
        bool is_operand;
    } ROWS[] = {
        {SLICE_INIT(""), true, false},
        {SLICE_INIT("\0"), true, false},
        {SLICE_INIT("\0\1\0"), true, false},
        {SLICE_INIT("\0\1\0\2\0"), true, false},
        {SLICE_INIT("\0\1\0\1\0"), false, false}, /* twice */
        {SLICE_INIT("\0\2\0\1\0"), false, false}, /* not sorted */
        {SLICE_INIT("\0\1"), false, false},       /* half a number */
        {SLICE_INIT("\1\1\0"), false, false},     /* a short bitmap */
        {SLICE_INIT("\2"), false, false},
        {SLICE_INIT("\2\0"), false, false},
        {SLICE_INIT("\2\0\0"), false, true},
        {SLICE_INIT("\2\1\0\5\0"), false, true},
        {SLICE_INIT("\2\2\0\5\0"), false, false}, /* more than there are */
        {SLICE_INIT("\2\1\0\5"), false, false},
        {SLICE_INIT("\2\1\0\5\0\5\0"), false, false}, /* to add and to take away */
        {SLICE_INIT("\2\2\0\5\0\4\0"), false, false},
        {SLICE_INIT("\2\0\0\5\0\4\0"), false, false},
        {SLICE_INIT("\3\0\0"), false, false},
        {SLICE_INIT("\4\0\0"), false, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        AUTO(buf_done) Buf out;
        buf_init(&out, 1 << 20);
        Slice add = SLICE("\2\1\0\7\0");
        Slice existing = ROWS[i].bytes;
        Error err;
        SetBuilder *b = set_builder_new(&arena);
        assert_int_equal(set_merge(existing, &add, 1, false, &out), ROWS[i].is_value);
        assert_int_equal(set_builder_add_value(b, 0, existing, &err),
                         ROWS[i].is_value ? STATUS_OK : STATUS_CORRUPT);
        assert_int_equal(set_merge(SLICE_EMPTY, &ROWS[i].bytes, 1, false, &out),
                         ROWS[i].is_operand);
        assert_int_equal(set_merge(SLICE_EMPTY, &ROWS[i].bytes, 1, true, &out), ROWS[i].is_operand);
    }
    AUTO(mem_free) void *large = mem_alloc(1 + 2 * SET_BITMAP_BYTES);
    uint8_t *bytes = large;
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    Slice wide = slice_make(bytes, 1 + 2 * SET_BITMAP_BYTES);
    bytes[0] = 3;
    assert_true(set_merge(SLICE_EMPTY, &wide, 1, true, &out));
    bytes[100] = bytes[100 + SET_BITMAP_BYTES] = 1; /* to add and to take away */
    assert_false(set_merge(SLICE_EMPTY, &wide, 1, true, &out));
    assert_false(set_merge(SLICE_EMPTY, &wide, 1, false, &out));

    memset(bytes, 0, SET_BITMAP_BYTES);
    assert_int_equal(set_value_count(slice_make(bytes, 1 + 2 * (SET_ARRAY_MAX + 1))), SIZE_MAX);
    bytes[0] = 1;
    bytes[50] = 3;
    assert_int_equal(set_value_count(slice_make(bytes, SET_BITMAP_BYTES)), SIZE_MAX);
    assert_int_equal(set_value_count(slice_make(bytes, 1 + SET_BITMAP_BYTES)), 2);
}

static void damage_deep_inside_is_found(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(buf_done) Buf bytes;
    AUTO(buf_done) Buf out;
    buf_init(&bytes, 1 << 20);
    buf_init(&out, 1 << 20);
    uint16_t numbers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (uint16_t)(3 * i);
    set_operand(&bytes, numbers, COUNT, NULL, 0);
    Slice operand = buf_view(&bytes);
    Error err;
    assert_true(set_merge(SLICE_EMPTY, &operand, 1, true, &out));
    assert_true(set_merge(SLICE_EMPTY, &operand, 1, false, &out));
    bytes.ptr[3 + 2 * 3999 + 1] = 0; /* the last number's high byte */
    assert_false(set_merge(SLICE_EMPTY, &operand, 1, true, &out));
    assert_false(set_merge(SLICE_EMPTY, &operand, 1, false, &out));

    bytes.ptr[2] = 0;
    Slice value = slice_from(operand, 2);
    Slice add = SLICE("\2\1\0\7\0");
    assert_false(set_merge(value, &add, 1, false, &out));
    SetBuilder *b = set_builder_new(&arena);
    assert_int_equal(set_builder_add_value(b, 0, value, &err), STATUS_CORRUPT);
    for (uint64_t i = 0; i < 5000; i++) /* and where there are bits already */
        set_builder_add(b, i);
    assert_int_equal(set_builder_add_value(b, 0, value, &err), STATUS_CORRUPT);
}

static void a_bitmap_without_a_bit_is_the_empty_set(void **state)
{
    (void)state;
    char bytes[1 + SET_BITMAP_BYTES] = {1};
    Slice value = slice_make(bytes, sizeof(bytes));
    assert_true(set_value_is_empty(value));
    assert_true(set_value_is_empty(SLICE_EMPTY));
    assert_false(set_value_is_empty(SLICE("\2"))); /* damaged: to be kept, and found */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    SetBuilder *b = set_builder_new(&arena);
    Error err;
    assert_int_equal(set_builder_add_value(b, 3, value, &err), STATUS_OK);
    assert_int_equal(set_builder_add_value(b, 4, SLICE_EMPTY, &err), STATUS_OK);
    NumberSet set;
    set_builder_finish(b, &set);
    assert_int_equal(set.chunk_count, 0);
    assert_int_equal(set.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_intersect_and_subtract_like_the_model),
        cmocka_unit_test(results_share_nothing_with_their_operands),
        cmocka_unit_test(has_and_walks_agree_with_the_model_from_anywhere),
        cmocka_unit_test(walks_begin_between_chunks_too),
        cmocka_unit_test(builders_unite_sets),
        cmocka_unit_test(builders_unite_what_comes_in_any_order),
        cmocka_unit_test(builders_keep_thousands_of_chunks_apart),
        cmocka_unit_test(any_grouping_of_operands_gives_the_same_value),
        cmocka_unit_test(a_full_chunk_is_one_bounded_operand),
        cmocka_unit_test(damaged_values_and_operands_are_refused),
        cmocka_unit_test(damage_deep_inside_is_found),
        cmocka_unit_test(a_bitmap_without_a_bit_is_the_empty_set),
    };
    return cmocka_run_group_tests_name("sets", tests, NULL, NULL);
}
