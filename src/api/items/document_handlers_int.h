/* document_handlers_int.h - the handlers of items, for the table of routes. */
#pragma once

#include "api/core/request_int.h"

Status documents_create(ApiRequest *r, Error *err); /* create, upsert, batch */
Status documents_list(ApiRequest *r, Error *err);
Status documents_changes(ApiRequest *r, Error *err); /* lists and queries with A-IM */
Status documents_query(ApiRequest *r, Error *err);
Status documents_read(ApiRequest *r, Error *err);
Status documents_replace(ApiRequest *r, Error *err);
Status documents_patch(ApiRequest *r, Error *err);
Status documents_delete(ApiRequest *r, Error *err);
Status documents_batch(ApiRequest *r, Error *err);
Status documents_purge(ApiRequest *r, Error *err); /* operations/partitionkeydelete */
Status procedures_execute(ApiRequest *r, Error *err);
