/* sha256_test.c - published sums, in one piece and in many. */
#include "api/core/sha256.h"

#include "base/testing.h"

static void sums_are_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *sum;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice text = slice_from_cstr(rows[i].text);
        char out[SHA256_TEXT_LEN];
        sha256_of(text, out);
        assert_slice(slice_make(out, sizeof(out)), slice_from_cstr(rows[i].sum));
        assert_true(sha256_is_text(slice_make(out, sizeof(out))));
        Sha256 sum;
        sha256_init(&sum);
        for (size_t at = 0; at < text.len; at++)
            sha256_add(&sum, slice_first(slice_from(text, at), 1));
        sha256_end(&sum, out);
        assert_slice(slice_make(out, sizeof(out)), slice_from_cstr(rows[i].sum));
    }
}

static void other_text_is_no_sum(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "", "e3b0", "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
        "../../etc/passwd................................................",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8550"};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_false(sha256_is_text(slice_from_cstr(rows[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_published_ones),
        cmocka_unit_test(other_text_is_no_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
