/* explorer_page.c - see explorer_page.h. */
#include "api/core/explorer_page.h"

#include "api/core/response_int.h"

typedef struct ExplorerAsset {
    Slice path;
    Slice type;
    Slice etag;
    Slice gzip; /* its contents, compressed */
} ExplorerAsset;

#ifdef ORRERY_EXPLORER
#include "api/core/explorer_assets.inc"
#else
static const ExplorerAsset ASSETS[] = {{SLICE_INIT(""), SLICE_INIT(""), SLICE_INIT(""), {NULL, 0}}};
#endif

#define FOLDER SLICE("/_explorer/")

/* Scripts, styles and data come from this server alone, nobody may show the page inside another
 * one, and nothing that is typed into a form leaves it. */
static const Slice POLICY = SLICE_INIT(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");

static void add_protection(Response *response)
{
    response_header(response, SLICE("content-security-policy"), POLICY);
    response_header(response, SLICE("x-content-type-options"), SLICE("nosniff"));
    response_header(response, SLICE("x-frame-options"), SLICE("DENY"));
    response_header(response, SLICE("referrer-policy"), SLICE("no-referrer"));
    response_header(response, SLICE("cross-origin-opener-policy"), SLICE("same-origin"));
    response_header(response, SLICE("cross-origin-resource-policy"), SLICE("same-origin"));
}

/* The name of every file but the page itself changes with its contents. */
static Slice cache_rule(const ExplorerAsset *asset)
{
    return slice_equal(asset->path, FOLDER) ? SLICE("no-cache")
                                            : SLICE("public, max-age=31536000, immutable");
}

/* Answers of the protocol are never kept; these are. */
static void set_cache_rule(Response *response, Slice rule)
{
    for (size_t i = 0; i < response->header_count; i++) {
        if (slice_equal(response->headers[i].name, SLICE("cache-control")))
            response->headers[i].value = rule;
    }
}

static void answer_asset(ApiRequest *r, const ExplorerAsset *asset)
{
    Response response;
    bool is_known = request_has_version(r, asset->etag);
    response_begin(r, &response, is_known ? 304 : 200, SLICE("0"));
    add_protection(&response);
    response_header(&response, SLICE("etag"), asset->etag);
    set_cache_rule(&response, cache_rule(asset));
    if (!is_known) {
        response_header(&response, SLICE("content-type"), asset->type);
        response_header(&response, SLICE("content-encoding"), SLICE("gzip"));
        response.body = asset->gzip;
    }
    response_send(r, &response);
}

static void answer_redirect(ApiRequest *r)
{
    Response response;
    response_begin(r, &response, 308, SLICE("0"));
    response_header(&response, SLICE("location"), FOLDER);
    response_send(r, &response);
}

static void answer_missing(ApiRequest *r)
{
    Response response;
    response_begin(r, &response, 200, SLICE("0"));
    add_protection(&response);
    response_header(&response, SLICE("content-type"), SLICE("text/html; charset=utf-8"));
    response.body = SLICE("<!doctype html><html lang=\"en\"><title>Orrery</title><h1>Orrery is "
                          "running</h1><p>This program was built without the explorer. Install "
                          "Node.js, which builds it, run <code>make explorer</code> in the source "
                          "folder, and then <code>make run</code> again.</p></html>\n");
    response_send(r, &response);
}

bool explorer_page_answer(ApiRequest *r, Slice path)
{
    if (slice_equal(path, SLICE("/_explorer"))) {
        answer_redirect(r);
        return true;
    }
    if (!slice_starts_with(path, FOLDER))
        return false;
    if (slice_equal(path, SLICE("/_explorer/index.html")))
        path = FOLDER;
    for (size_t i = 0; i < ARRAY_COUNT(ASSETS); i++) {
        if (ASSETS[i].path.len > 0 && slice_equal(path, ASSETS[i].path)) {
            answer_asset(r, &ASSETS[i]);
            return true;
        }
    }
    if (!slice_equal(path, FOLDER))
        return false;
    answer_missing(r);
    return true;
}
