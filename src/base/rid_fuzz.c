/* rid_fuzz.c - any text: either it is no resource id, or it prints back as itself. */
#include "base/rid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Rid rid;
    Slice text = slice_make(data, size);
    if (!rid_parse(text, &rid))
        return 0;
    char out[RID_CHILD_LEN];
    size_t len = RID_CHILD_LEN;
    if (rid.kind == RID_OFFER) {
        rid_print_offer(rid.offer, out);
        len = RID_OFFER_LEN;
    } else if (rid.kind == RID_DATABASE) {
        rid_print_database(rid.database, out);
        len = RID_DATABASE_LEN;
    } else if (rid.kind == RID_CONTAINER) {
        rid_print_container(rid.database, rid.container, out);
        len = RID_CONTAINER_LEN;
    } else if (rid.kind == RID_USER) {
        rid_print_user(rid.database, rid.user, out);
        len = RID_USER_LEN;
    } else if (rid.kind == RID_PERMISSION) {
        rid_print_permission(rid.database, rid.user, rid.child, out);
    } else if (rid.kind == RID_CLIENT_ENCRYPTION_KEY) {
        rid_print_key(rid.database, (uint32_t)rid.child, out);
    } else {
        rid_print_child(rid.kind, rid.database, rid.container, rid.child, out);
    }
    ASSERT(slice_equal(slice_make(out, len), text));
    return 0;
}
