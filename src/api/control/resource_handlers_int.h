/* resource_handlers_int.h - the handlers of the catalogue's resources, one file per type, for the
 * table of routes. */
#pragma once

#include "api/core/request_int.h"

Status account_read(ApiRequest *r, Error *err);
Status databases_list(ApiRequest *r, Error *err);
Status databases_query(ApiRequest *r, Error *err);
Status databases_create(ApiRequest *r, Error *err);
Status databases_read(ApiRequest *r, Error *err);
Status databases_delete(ApiRequest *r, Error *err);
Status containers_list(ApiRequest *r, Error *err);
Status containers_query(ApiRequest *r, Error *err);
Status containers_create(ApiRequest *r, Error *err);
Status containers_read(ApiRequest *r, Error *err);
Status containers_replace(ApiRequest *r, Error *err);
Status containers_delete(ApiRequest *r, Error *err);
Status pkranges_list(ApiRequest *r, Error *err);
Status pkranges_read(ApiRequest *r, Error *err);
Status offers_list(ApiRequest *r, Error *err);
Status offers_query(ApiRequest *r, Error *err);
Status offers_read(ApiRequest *r, Error *err);
Status offers_replace(ApiRequest *r, Error *err);
Status client_keys_list(ApiRequest *r, Error *err);
Status client_keys_query(ApiRequest *r, Error *err);
Status client_keys_create(ApiRequest *r, Error *err);
Status client_keys_read(ApiRequest *r, Error *err);
Status client_keys_replace(ApiRequest *r, Error *err);
Status scripts_list(ApiRequest *r, Error *err); /* of all three kinds, see scripts.c */
Status scripts_query(ApiRequest *r, Error *err);
Status scripts_create(ApiRequest *r, Error *err);
Status scripts_read(ApiRequest *r, Error *err);
Status scripts_replace(ApiRequest *r, Error *err);
Status scripts_delete(ApiRequest *r, Error *err);
Status absent_list(ApiRequest *r, Error *err); /* see absent.c */
Status users_list(ApiRequest *r, Error *err);
Status users_query(ApiRequest *r, Error *err);
Status users_create(ApiRequest *r, Error *err);
Status users_read(ApiRequest *r, Error *err);
Status users_replace(ApiRequest *r, Error *err);
Status users_delete(ApiRequest *r, Error *err);
Status permissions_list(ApiRequest *r, Error *err);
Status permissions_query(ApiRequest *r, Error *err);
Status permissions_create(ApiRequest *r, Error *err);
Status permissions_read(ApiRequest *r, Error *err);
Status permissions_replace(ApiRequest *r, Error *err);
Status permissions_delete(ApiRequest *r, Error *err);
Status conflicts_query(ApiRequest *r, Error *err);
