/* request_signature_test.c - signatures as the SDKs make them. */
#include "client/request_signature.h"

#include "base/testing.h"

#define KEY \
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

static void signatures_are_those_of_the_sdks(void **state)
{
    (void)state;
    static const struct {
        Slice method, type, link;
        const char *signature;
    } rows[] = {
#define ROW(method, type, link, signature) \
    {SLICE_INIT(method), SLICE_INIT(type), SLICE_INIT(link), signature}
        ROW("GET", "", "", "TCpv7klme4e3gg7gFSCpnubeVH8DBNZoqM4ZACzc4DM="),
        ROW("GET", "dbs", "", "JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg="),
        ROW("POST", "dbs", "", "CExRYYHKTOE3hfR48gRloqdIxY/2B9gaKOP89LBs9Tw="),
        ROW("GET", "colls", "dbs/Db1/colls/C1", "3GZYkprlnliLNBemtPv0kQRMr2hR6QZMlHllG7WEKUw="),
        ROW("post", "DOCS", "dbs/Db1/colls/C1", "PS1GAbammID86nDsTyzNAw5IadxnP2M2r7Mxc1Uxsoo="),
#undef ROW
    };
    SignKey key;
    assert_ok(sign_key_parse(SLICE(KEY), &key, err));
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char signature[SIGN_LEN];
        sign_request(&key, rows[i].method, rows[i].type, rows[i].link,
                     SLICE("Tue, 01 Oct 2024 12:00:00 GMT"), signature);
        assert_slice_text(slice_make(signature, SIGN_LEN), rows[i].signature);
    }
    sign_key_wipe(&key);
    assert_int_equal(key.len, 0);
}

static void what_is_no_key_is_refused(void **state)
{
    (void)state;
    static const Slice rows[] = {SLICE_INIT(""), SLICE_INIT("%"), SLICE_INIT("abc"),
                                 SLICE_INIT(" YQ==")};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        SignKey key = {.len = 77};
        Error err;
        assert_status(sign_key_parse(rows[i], &key, &err), STATUS_BAD_REQUEST);
        assert_int_equal(key.len, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_those_of_the_sdks),
        cmocka_unit_test(what_is_no_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
