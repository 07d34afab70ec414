/* resource_token_fuzz.c - any authorization: never accepted as a resource token that we did not
 * issue. */
#include "api/core/resource_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_S 1700000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    AUTO(snapshot_unref) Snapshot *snapshot = snapshot_new((HashKey){0});
    ResourceTokenKey key;
    resource_token_key_init(&key, "secret of this fuzz target", 26);
    AuthToken token;
    Error err;
    if (auth_parse(&arena, slice_make(data, size), &token, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_UNAUTHORIZED);
        ASSERT(err.message[0] != '\0');
        return 0;
    }
    if (token.scheme != AUTH_RESOURCE)
        return 0;
    Principal principal;
    Status status = resource_token_check(&key, &token, snapshot, NOW_S, &arena, &principal, &err);
    ASSERT(status == STATUS_UNAUTHORIZED);
    return 0;
}
