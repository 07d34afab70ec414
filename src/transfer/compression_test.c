/* compression_test.c - what was compressed comes back, in pieces of any size, and damage is found.
 */
#include "transfer/compression.h"

#include "base/random.h"
#include "base/testing.h"

static const Compression KINDS[] = {COMPRESSION_GZIP, COMPRESSION_ZSTD};

static void fill_text(Buf *out, size_t bytes)
{
    Random random;
    random_init(&random, 7);
    while (out->len < bytes)
        buf_format(out, "{\"id\":\"%llu\"}\n", (unsigned long long)random_below(&random, 1000000));
}

/* Everything that 'in' means, fed in pieces; the status of the first failure. */
static Status expand(Compression kind, Slice in, size_t piece, Buf *out, bool *is_whole)
{
    AUTO(decompressor_free) Decompressor *stream = decompressor_new(kind);
    while (in.len > 0) {
        Slice part = slice_first(in, piece);
        size_t size = part.len;
        Error err;
        do {
            if (decompressor_feed(stream, &part, 1000, out, &err) != STATUS_OK)
                return err.status;
        } while (part.len > 0);
        in = slice_from(in, size);
    }
    for (size_t before = SIZE_MAX; before != out->len;) { /* what is still inside */
        before = out->len;
        Slice none = SLICE_EMPTY;
        Error err;
        if (decompressor_feed(stream, &none, 1000, out, &err) != STATUS_OK)
            return err.status;
    }
    *is_whole = decompressor_is_whole(stream);
    return STATUS_OK;
}

static void texts_come_back_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
        AUTO(buf_done) Buf text, packed;
        buf_init(&text, 1 << 20);
        buf_init(&packed, 1 << 20);
        fill_text(&text, 300000);
        AUTO(compressor_free) Compressor *stream = compressor_new(KINDS[k]);
        /* Three members, the last of them small. */
        compressor_write(stream, slice_first(buf_view(&text), 100000), &packed);
        compressor_end(stream, &packed);
        compressor_end(stream, &packed); /* does nothing */
        compressor_write(stream, slice_first(slice_from(buf_view(&text), 100000), 199990), &packed);
        compressor_end(stream, &packed);
        compressor_write(stream, slice_from(buf_view(&text), 299990), &packed);
        compressor_end(stream, &packed);
        assert_int_equal(compression_of_bytes(buf_view(&packed)), KINDS[k]);
        static const size_t pieces[] = {1, 7, 4096, 1 << 20};
        for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
            AUTO(buf_done) Buf again;
            buf_init(&again, 1 << 20);
            bool is_whole = false;
            assert_status(expand(KINDS[k], buf_view(&packed), pieces[i], &again, &is_whole),
                          STATUS_OK);
            assert_true(is_whole);
            assert_int_equal(again.len, text.len);
            assert_memory_equal(again.ptr, text.ptr, text.len);
        }
    }
}

static void an_output_bound_is_respected(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
        AUTO(buf_done) Buf zeros, packed, out;
        buf_init(&zeros, 4 << 20);
        buf_init(&packed, 4 << 20);
        buf_init(&out, 4 << 20);
        for (size_t i = 0; i < 1 << 20; i++)
            buf_byte(&zeros, 0);
        AUTO(compressor_free) Compressor *writer = compressor_new(KINDS[k]);
        compressor_write(writer, buf_view(&zeros), &packed);
        compressor_end(writer, &packed);
        AUTO(decompressor_free) Decompressor *stream = decompressor_new(KINDS[k]);
        Slice in = buf_view(&packed);
        assert_ok(decompressor_feed(stream, &in, 12345, &out, err));
        assert_int_equal(out.len, 12345);
        assert_false(decompressor_is_whole(stream));
    }
}

static void damage_and_cuts_are_found(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
        AUTO(buf_done) Buf text, packed;
        buf_init(&text, 1 << 20);
        buf_init(&packed, 1 << 20);
        fill_text(&text, 1000);
        AUTO(compressor_free) Compressor *stream = compressor_new(KINDS[k]);
        compressor_write(stream, buf_view(&text), &packed);
        compressor_end(stream, &packed);
        for (size_t cut = 1; cut < packed.len; cut++) {
            AUTO(buf_done) Buf out;
            buf_init(&out, 1 << 20);
            bool is_whole = true;
            Slice part = slice_first(buf_view(&packed), cut);
            assert_status(expand(KINDS[k], part, 100, &out, &is_whole), STATUS_OK);
            if (is_whole)
                fail_msg("%zu of %zu bytes are taken for the whole", cut, packed.len);
        }
        buf_bytes(&packed, "garbage", 7);
        AUTO(buf_done) Buf out;
        buf_init(&out, 1 << 20);
        bool is_whole = false;
        assert_status(expand(KINDS[k], buf_view(&packed), 100, &out, &is_whole),
                      STATUS_BAD_REQUEST);
    }
}

static void names_have_suffixes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *stripped;
        Compression kind;
    } rows[] = {
        {"a.json", "a.json", COMPRESSION_NONE},
        {"a.json.gz", "a.json", COMPRESSION_GZIP},
        {"a.csv.zst", "a.csv", COMPRESSION_ZSTD},
        {"gz", "gz", COMPRESSION_NONE},
        {"", "", COMPRESSION_NONE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice name = slice_from_cstr(rows[i].name);
        assert_int_equal(compression_of_name(name), rows[i].kind);
        assert_slice_text(compression_strip(name), rows[i].stripped);
    }
    assert_int_equal(compression_of_bytes(SLICE("{\"a\"")), COMPRESSION_NONE);
    assert_int_equal(compression_of_bytes(SLICE("")), COMPRESSION_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back_in_pieces_of_any_size),
        cmocka_unit_test(an_output_bound_is_respected),
        cmocka_unit_test(damage_and_cuts_are_found),
        cmocka_unit_test(names_have_suffixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
