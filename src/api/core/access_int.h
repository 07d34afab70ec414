/* access_int.h - what a principal may do: the table of access.def. */
#pragma once

#include "api/core/request_int.h"

/* The kinds of requests that rights are about. */
typedef enum AccessClass {
#define ACCESS_ROW(name, ...) ACCESS_##name,
#include "api/core/access.def"
#undef ACCESS_ROW
    ACCESS_COUNT
} AccessClass;

/* What a role can allow an identity; see ACTIONS. */
typedef enum IdentityAction {
    ACTION_NONE, /* nothing that is offered to identities */
    ACTION_OF_EACH_OPERATION,
    ACTION_READ_METADATA,
    ACTION_ITEM_CREATE,
    ACTION_ITEM_READ,
    ACTION_ITEM_REPLACE,
    ACTION_ITEM_UPSERT,
    ACTION_ITEM_DELETE,
    ACTION_EXECUTE_QUERY,
    ACTION_READ_CHANGE_FEED,
    ACTION_EXECUTE_PROCEDURE,
    ACTION_MANAGE_CONFLICTS,
    ACTION_COUNT
} IdentityAction;

/* The class of the request, by its address, its operation and its headers. */
AccessClass access_class(const ApiRequest *r);

/* Whether 'r->principal' may do what the request asks for: STATUS_UNAUTHORIZED or STATUS_FORBIDDEN
 * if not. Comes before anything is looked up, so a refusal does not tell whether it exists. */
MUST_USE Status access_check(const ApiRequest *r, Error *err);

/* The same for one operation inside a batch, of which access_check has seen the request alone. */
MUST_USE Status access_check_operation(const ApiRequest *r, IdentityAction action, Error *err);

/* A replacement may give an item or a script another id, which a token for that one does not allow.
 */
MUST_USE Status access_check_new_id(const ApiRequest *r, Slice old, Slice new, Error *err);
