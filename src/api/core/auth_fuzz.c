/* auth_fuzz.c - any authorization and date: never accepted, unless the signature was made with a
 * key, and then always.
 *
 * An input is lines: authorization, x-ms-date, date, method, path.
 */
#include "api/core/auth.h"

#include "base/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEY   "c2VjcmV0LWtleS1vZi10aGlzLWZ1enotdGFyZ2V0" /* in no seed's signature */
#define NOW_S 1700000000

static Status check(const AuthKeys *keys, const AuthRequest *request, Arena *arena,
                    Principal *principal, Error *err)
{
    AuthToken token;
    TRY(auth_parse(arena, request->authorization, &token, err));
    if (token.scheme != AUTH_MASTER)
        return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE, "another kind of token");
    return auth_check(keys, request, &token, NOW_S, arena, principal, err);
}

static void check_forged(const AuthKeys *keys, const AuthRequest *request, Arena *arena)
{
    Principal principal = {.kind = PRINCIPAL_READ_ONLY_KEY};
    Error err;
    Status status = check(keys, request, arena, &principal, &err);
    ASSERT(status == STATUS_UNAUTHORIZED || status == STATUS_FORBIDDEN);
    ASSERT(err.message[0] != '\0');
}

/* The same request, signed. Only its date can now be wrong. */
static void check_signed(const AuthKeys *keys, AuthRequest request, Arena *arena)
{
    char signature[AUTH_SIGNATURE_LEN];
    Error err;
    Status status = auth_sign(SLICE(KEY), request.method, address_segment(request.address->type),
                              request.address->link, request.x_ms_date, signature, &err);
    ASSERT(status == STATUS_OK);
    request.authorization =
        arena_format(arena, "type=master&ver=1.0&sig=%.*s", AUTH_SIGNATURE_LEN, signature);
    int64_t date_s = 0;
    bool dated = date_parse(request.x_ms_date, &date_s);
    bool fresh = dated && date_s >= NOW_S - 1800 && date_s <= NOW_S + 900;
    Principal principal = {.kind = PRINCIPAL_READ_ONLY_KEY};
    status = check(keys, &request, arena, &principal, &err);
    if (request.x_ms_date.len == 0)
        return; /* then the other date's line is signed */
    ASSERT((status == STATUS_OK) == fresh);
    ASSERT(status != STATUS_OK || principal.kind == PRINCIPAL_KEY);
    /* A signature covers the method, whatever its case. */
    request.method = SLICE("another");
    status = check(keys, &request, arena, &principal, &err);
    ASSERT(status != STATUS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    AUTO(auth_keys_close) AuthKeys *keys = NULL;
    Error err;
    Status status = auth_keys_open((AuthKeyTexts){.primary = SLICE(KEY)}, &keys, &err);
    ASSERT(status == STATUS_OK);
    Slice rest = slice_make(data, size);
    AuthRequest request = {.authorization = slice_cut(&rest, '\n')};
    request.x_ms_date = slice_cut(&rest, '\n');
    request.date = slice_cut(&rest, '\n');
    request.method = slice_cut(&rest, '\n');
    Address address;
    if (slice_equal_nocase(request.method, SLICE("another")) ||
        address_parse(&arena, rest, &address, &err) != STATUS_OK)
        return 0;
    request.address = &address;
    check_forged(keys, &request, &arena);
    check_signed(keys, request, &arena);
    return 0;
}
