/* access.c - see access_int.h. */
#include "api/core/access_int.h"

/* A batch is a POST to a feed, also if all its operations read: the service wants a key that may
 * write for it. Permissions hold tokens that may allow more than the key that reads them. */
static bool read_only_key_may(const ApiRequest *r)
{
    bool is_read = r->operation == OPERATION_LIST || r->operation == OPERATION_READ ||
                   r->operation == OPERATION_QUERY;
    return is_read && r->address.type != RESOURCE_PERMISSION;
}

/* The service's status and first words are those of a wrong signature. */
static Status refuse_read_only_key(const ApiRequest *r, Error *err)
{
    return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE,
                     "The input authorization token can't serve the request. The read-only key may "
                     "not be used for %.*s on this resource; use a read-write key.",
                     SLICE_CUT(r->http->method, 20));
}

Status access_check(const ApiRequest *r, Error *err)
{
    switch (r->principal.kind) {
    case PRINCIPAL_KEY:
        break;
    case PRINCIPAL_READ_ONLY_KEY:
        return read_only_key_may(r) ? STATUS_OK : refuse_read_only_key(r, err);
    }
    return STATUS_OK;
}
