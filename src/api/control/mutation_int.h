/* mutation_int.h - a change of the catalogue that a request asks for.
 *
 * The handler fills the change's inputs (in the request's arena) and submits it; 'answer' runs on
 * the request's loop when the change is durable, and answers the request from its results.
 */
#pragma once

#include "api/core/request_int.h"

typedef struct Mutation Mutation;
struct Mutation {
    HttpTask task;
    CatalogChange change;
    ApiRequest *request;
    void (*answer)(ApiRequest *r, const CatalogChange *change); /* only if it succeeded */
};

/* A mutation with 'op' and the request's If-Match filled in. */
Mutation *mutation_new(ApiRequest *r, CatalogOp op);
void mutation_submit(Mutation *mutation);
