/* entry_format_test.c - entries are read as they were written, and nothing else is taken. */
#include "store/replicated/entry_format_int.h"

#include "base/random.h"
#include "base/test_seed.h"
#include "store/store_testing_int.h"

enum { SPACE = 9 };

/* What an entry holds. */
typedef struct Contents {
    Tree tree;
    Buf merges;
} Contents;

static void contents_init(Contents *contents)
{
    *contents = (Contents){.tree = {0}};
    buf_init(&contents->merges, SIZE_MAX);
}

static void contents_done(Contents *contents)
{
    tree_done(&contents->tree);
    buf_done(&contents->merges);
}
DEFINE_AUTO_VALUE(Contents, contents_done)

static Status read_into(Slice bytes, Contents *contents, Error *err)
{
    static const EntryKnown known = {JOURNAL_FORMAT, &TEST_MERGE};
    return entry_read(bytes, &known, SPACE, &contents->tree, &contents->merges, err);
}

static void put(Contents *contents, Slice key, Slice value)
{
    FullKey full;
    tree_put(&contents->tree, full_key(&full, SPACE, key), value);
}

static void mark_deleted(Contents *contents, Slice key)
{
    FullKey full;
    tree_mark_deleted(&contents->tree, full_key(&full, SPACE, key));
}

static void write_entry(const Contents *contents, size_t count, Buf *out)
{
    EntryWriter *writer = MEM_NEW(EntryWriter);
    entry_writer_init(writer);
    for (size_t i = 0; i < count; i++) {
        EngineWrites writes = {contents[i].tree, buf_view(&contents[i].merges)};
        entry_add(writer, &writes);
    }
    assert_ok(entry_finish(writer, JOURNAL_FORMAT, out, err));
    entry_writer_done(writer);
    mem_free(writer);
}

static void compare_entry(void *ctx, TreeEntry *entry)
{
    const Tree *other = ctx;
    const TreeEntry *found = tree_find(other, tree_entry_key(entry));
    assert_non_null(found);
    assert_int_equal(found->deleted, entry->deleted);
    assert_slice(tree_entry_value(found), tree_entry_value(entry));
}

static void expect_same(Contents *a, Contents *b)
{
    assert_int_equal(a->tree.count, b->tree.count);
    tree_each(&a->tree, compare_entry, &b->tree);
    assert_slice(buf_view(&a->merges), buf_view(&b->merges));
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    AUTO(contents_done) Contents in;
    AUTO(contents_done) Contents out;
    AUTO(buf_done) Buf bytes;
    contents_init(&in);
    contents_init(&out);
    buf_init(&bytes, JOURNAL_ENTRY_BYTES_MAX);
    char longest[STORE_KEY_BYTES_MAX];
    memset(longest, 'k', sizeof(longest));
    put(&in, SLICE(""), SLICE(""));
    put(&in, SLICE("a\0b"), SLICE("\0"));
    put(&in, SLICE("a\0c"), SLICE("value"));
    mark_deleted(&in, SLICE("a\0d"));
    put(&in, slice_make(longest, sizeof(longest)), SLICE("x"));
    put(&in, slice_make(longest, sizeof(longest) - 1), SLICE("y"));
    merge_record_append(&in.merges, SPACE, SLICE("~a"), SLICE("+a"));
    merge_record_append(&in.merges, SPACE, SLICE("~a"), SLICE("-a"));
    merge_record_append(&in.merges, SPACE, SLICE("`"), SLICE(""));
    write_entry(&in, 1, &bytes);
    assert_ok(read_into(buf_view(&bytes), &out, err));
    expect_same(&in, &out);
}

static void an_entry_of_nothing_is_read(void **state)
{
    (void)state;
    AUTO(contents_done) Contents out;
    AUTO(buf_done) Buf bytes;
    contents_init(&out);
    buf_init(&bytes, JOURNAL_ENTRY_BYTES_MAX);
    write_entry(NULL, 0, &bytes);
    assert_ok(read_into(buf_view(&bytes), &out, err));
    assert_int_equal(out.tree.count, 0);
}

/* The same bytes are read by every node from now on: format 1 as it is, plain and compressed. */
static void the_format_is_what_it_was(void **state)
{
    (void)state;
    static const Slice OLD[] = {
        SLICE_INIT("\x01\x00\x10\0\0\0"
                   "\x01\x02"
                   "ab\x01"
                   "1"
                   "\x06\x01"
                   "c"
                   "\x03\x02"
                   "~k\x02+a"),
        SLICE_INIT("\x01\x01\x65\0\0\0"
                   "\x5F\x01\x01k\x61x\x01\0\x48\x50xxxxx"),
    };
    AUTO(contents_done) Contents expected;
    contents_init(&expected);
    put(&expected, SLICE("ab"), SLICE("1"));
    mark_deleted(&expected, SLICE("ac"));
    merge_record_append(&expected.merges, SPACE, SLICE("~k"), SLICE("+a"));
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, JOURNAL_ENTRY_BYTES_MAX);
    write_entry(&expected, 1, &bytes);
    AUTO(contents_done) Contents plain;
    contents_init(&plain);
    assert_ok(read_into(OLD[0], &plain, err));
    expect_same(&expected, &plain);
    assert_slice(buf_view(&bytes), OLD[0]);

    AUTO(contents_done) Contents packed;
    AUTO(contents_done) Contents repeated;
    contents_init(&packed);
    contents_init(&repeated);
    char value[0x61];
    memset(value, 'x', sizeof(value));
    put(&repeated, SLICE("k"), slice_make(value, sizeof(value)));
    buf_reset(&bytes);
    write_entry(&repeated, 1, &bytes);
    assert_ok(read_into(OLD[1], &packed, err));
    expect_same(&repeated, &packed);
    AUTO(contents_done) Contents now;
    contents_init(&now);
    assert_ok(read_into(buf_view(&bytes), &now, err));
    expect_same(&repeated, &now);
    assert_true(bytes.len < 40);
}

static void bytes_that_are_no_entry_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        Slice bytes;
        Status status;
    } ROWS[] = {
        {"nothing", SLICE_INIT(""), STATUS_CORRUPT},
        {"a short head", SLICE_INIT("\1\0\0\0\0"), STATUS_CORRUPT},
        {"format 0", SLICE_INIT("\0\0\0\0\0\0"), STATUS_CORRUPT},
        {"a newer format", SLICE_INIT("\2\0\0\0\0\0"), STATUS_NOT_IMPLEMENTED},
        {"an unknown codec", SLICE_INIT("\1\2\0\0\0\0"), STATUS_CORRUPT},
        {"a longer length", SLICE_INIT("\1\0\1\0\0\0"), STATUS_CORRUPT},
        {"a shorter length", SLICE_INIT("\1\0\0\0\0\0\1"), STATUS_CORRUPT},
        {"kind 0", SLICE_INIT("\1\0\2\0\0\0\0\0"), STATUS_CORRUPT},
        {"no key", SLICE_INIT("\1\0\1\0\0\0\1"), STATUS_CORRUPT},
        {"half a key", SLICE_INIT("\1\0\3\0\0\0\2\2k"), STATUS_CORRUPT},
        {"no value", SLICE_INIT("\1\0\3\0\0\0\1\1k"), STATUS_CORRUPT},
        {"half a value", SLICE_INIT("\1\0\5\0\0\0\1\1k\2v"), STATUS_CORRUPT},
        {"more shared than there is", SLICE_INIT("\1\0\3\0\0\0\6\1k"), STATUS_CORRUPT},
        {"a number without end", SLICE_INIT("\1\0\6\0\0\0\xFF\xFF\xFF\xFF\xFF\x01"),
         STATUS_CORRUPT},
        {"a key beyond the longest", SLICE_INIT("\1\0\4\0\0\0\2\xFF\x7Fk"), STATUS_CORRUPT},
        {"a put of a merged key", SLICE_INIT("\1\0\4\0\0\0\1\1~\0"), STATUS_CORRUPT},
        {"a delete of a merged key", SLICE_INIT("\1\0\3\0\0\0\2\1~"), STATUS_CORRUPT},
        {"a merge into the empty key", SLICE_INIT("\1\0\3\0\0\0\3\0\0"), STATUS_CORRUPT},
        {"a merge of an unknown kind", SLICE_INIT("\1\0\4\0\0\0\3\1k\0"), STATUS_NOT_IMPLEMENTED},
        {"compressed rubbish", SLICE_INIT("\1\1\5\0\0\0\xFF\xFF\xFF\xFF"), STATUS_CORRUPT},
        {"compressed, and longer than can be", SLICE_INIT("\1\1\xFF\xFF\xFF\x03\0\0"),
         STATUS_CORRUPT},
        {"compressed, and much too long", SLICE_INIT("\1\1\xFF\xFF\xFF\xFF\0\0"), STATUS_CORRUPT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(contents_done) Contents out;
        contents_init(&out);
        Error err = {0};
        print_message("%s\n", ROWS[i].what);
        assert_status(read_into(ROWS[i].bytes, &out, &err), ROWS[i].status);
        assert_int_equal(err.status, ROWS[i].status);
    }
}

static void random_bytes(Random *random, char *out, size_t len, unsigned range)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)('a' + random_below(random, range));
}

static void random_transaction(Random *random, Contents *contents)
{
    char key[40], value[400];
    for (size_t i = random_below(random, 30); i > 0; i--) {
        size_t key_len = random_below(random, sizeof(key));
        size_t value_len = random_below(random, sizeof(value));
        random_bytes(random, key, key_len, 3);
        random_bytes(random, value, value_len, random_below(random, 2) == 0 ? 2 : 26);
        Slice at = slice_make(key, key_len);
        switch (random_below(random, 3)) {
        case 0:
            put(contents, at, slice_make(value, value_len));
            break;
        case 1:
            mark_deleted(contents, at);
            break;
        default:
            if (key_len == 0)
                break;
            key[0] = '~';
            merge_record_append(&contents->merges, SPACE, at, slice_make(value, value_len));
        }
    }
}

static void move_entry(void *ctx, TreeEntry *entry)
{
    tree_put_entry(ctx, entry);
}

/* Several transactions are read as one, with the later over the earlier. */
static void random_transactions_are_read_as_they_follow_each_other(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int round = 0; round < 300; round++) {
        enum { COUNT_MAX = 5 };
        Contents in[COUNT_MAX];
        AUTO(contents_done) Contents all;
        AUTO(contents_done) Contents out;
        AUTO(buf_done) Buf bytes;
        contents_init(&all);
        contents_init(&out);
        buf_init(&bytes, JOURNAL_ENTRY_BYTES_MAX);
        size_t count = random_below(&random, COUNT_MAX + 1);
        for (size_t i = 0; i < count; i++) {
            contents_init(&in[i]);
            random_transaction(&random, &in[i]);
            tree_each(&in[i].tree, move_entry, &all.tree);
            buf_slice(&all.merges, buf_view(&in[i].merges));
        }
        write_entry(in, count, &bytes);
        assert_ok(read_into(buf_view(&bytes), &out, err));
        expect_same(&all, &out);
        for (size_t i = 0; i < count; i++)
            contents_done(&in[i]);

        /* Any part of it, and any change of it, ends with an answer. */
        for (int i = 0; i < 20 && bytes.len > 0; i++) {
            Contents ignored;
            contents_init(&ignored);
            Slice cut = slice_first(buf_view(&bytes), random_below(&random, bytes.len));
            Error err = {0};
            assert_status(read_into(cut, &ignored, &err), STATUS_CORRUPT);
            contents_done(&ignored);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(an_entry_of_nothing_is_read),
        cmocka_unit_test(the_format_is_what_it_was),
        cmocka_unit_test(bytes_that_are_no_entry_are_refused),
        cmocka_unit_test(random_transactions_are_read_as_they_follow_each_other),
    };
    return cmocka_run_group_tests_name("entry_format", tests, NULL, NULL);
}
