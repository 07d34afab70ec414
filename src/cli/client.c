/* client.c - see client.h. The only file that knows libcurl. */
#include "cli/client.h"

#include "api/core/auth.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "base/shared_library.h"

#include <curl/curl.h>

/* Debian's flavour with GnuTLS, because PROJ needs the same one. */
#define CURL_LIBRARY "libcurl-gnutls.so.4"

#define CURL_FUNCTIONS(X)  \
    X(easy_cleanup)        \
    X(easy_getinfo)        \
    X(easy_init)           \
    X(easy_reset)          \
    X(easy_setopt)         \
    X(easy_strerror)       \
    X(free)                \
    X(global_cleanup)      \
    X(global_init)         \
    X(multi_add_handle)    \
    X(multi_cleanup)       \
    X(multi_info_read)     \
    X(multi_init)          \
    X(multi_perform)       \
    X(multi_poll)          \
    X(multi_remove_handle) \
    X(multi_strerror)      \
    X(slist_append)        \
    X(slist_free_all)      \
    X(url)                 \
    X(url_cleanup)         \
    X(url_get)             \
    X(url_set)

/* The library's functions, without "curl_" in front of their names. */
typedef struct Curl {
#define POINTER(name) typeof(curl_##name) *name;
    CURL_FUNCTIONS(POINTER)
#undef POINTER
} Curl;

enum {
    POLL_MS_MAX = 1000, /* libcurl wakes up earlier if it has something to do */
    SCRATCH_BYTES = 4096,
};

/* A call under way, or memory for the next one. */
typedef struct Transfer {
    Client *client;
    ClientCall *call; /* NULL if it is free */
    CURL *easy;
    struct curl_slist *headers;
    Buf body;
    char reason[CURL_ERROR_SIZE]; /* of a failure, in libcurl's words */
} Transfer;

struct Client {
    Curl curl;
    CURLM *multi;
    char *endpoint; /* without a slash at the end */
    char *key;
    char *cert_file;
    uint32_t timeout_ms;
    Arena arena;          /* for the strings above */
    Transfer **transfers; /* all that were ever needed at the same time */
    size_t transfer_count;
    size_t active_count; /* transfers with a call */
};

/* libcurl refuses an option only if it does not know it or has no memory. */
#define SET(transfer, option, value) \
    ASSERT((transfer)->client->curl.easy_setopt((transfer)->easy, option, value) == CURLE_OK)

/* ---- open and close ---- */

static Status load_curl(Curl *curl, Error *err)
{
#define ROW(name) {"curl_" #name, offsetof(Curl, name)},
    static const LibraryFunction FUNCTIONS[] = {CURL_FUNCTIONS(ROW)};
#undef ROW
    return shared_library_load(CURL_LIBRARY, FUNCTIONS, ARRAY_COUNT(FUNCTIONS), curl, err);
}

/* Whether the URL has that part, and the part is not 'expected'. */
static bool has_other(const Curl *curl, CURLU *url, CURLUPart part, const char *expected)
{
    char *text = NULL;
    bool is_other = curl->url_get(url, part, &text, 0) == CURLUE_OK &&
                    (expected == NULL || strcmp(text, expected) != 0);
    curl->free(text);
    return is_other;
}

static bool is_endpoint(const Curl *curl, CURLU *url, const char *text)
{
    return curl->url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
           (!has_other(curl, url, CURLUPART_SCHEME, "http") ||
            !has_other(curl, url, CURLUPART_SCHEME, "https")) &&
           !has_other(curl, url, CURLUPART_PATH, "/") &&
           !has_other(curl, url, CURLUPART_USER, NULL) &&
           !has_other(curl, url, CURLUPART_QUERY, NULL) &&
           !has_other(curl, url, CURLUPART_FRAGMENT, NULL);
}

/* "http://localhost:8081/" without its slash. */
static Status parse_endpoint(Client *client, const char *text, Error *err)
{
    const Curl *curl = &client->curl;
    CURLU *url = curl->url();
    ASSERT(url != NULL);
    char *normal = NULL;
    if (is_endpoint(curl, url, text) &&
        curl->url_get(url, CURLUPART_URL, &normal, 0) == CURLUE_OK) {
        Slice whole = slice_from_cstr(normal);
        ASSERT(slice_ends_with(whole, SLICE("/")));
        client->endpoint = arena_cstr(&client->arena, slice_first(whole, whole.len - 1));
    }
    curl->free(normal);
    curl->url_cleanup(url);
    if (client->endpoint == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.200s' is not an endpoint; expected a URL such as "
                         "http://localhost:8081",
                         text);
    return STATUS_OK;
}

static Status check_key(const char *key, Error *err)
{
    char ignored[AUTH_SIGNATURE_LEN];
    return auth_sign(slice_from_cstr(key), SLICE("GET"), SLICE_EMPTY, SLICE_EMPTY, SLICE_EMPTY,
                     ignored, err);
}

Status client_open(const ClientOptions *options, Client **out, Error *err)
{
    ASSERT(options->timeout_ms > 0);
    Curl curl;
    TRY(load_curl(&curl, err));
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "'%s' does not start", CURL_LIBRARY);

    AUTO(client_close) Client *client = MEM_NEW(Client);
    *client = (Client){.curl = curl, .multi = curl.multi_init(), .timeout_ms = options->timeout_ms};
    ASSERT(client->multi != NULL);
    arena_init(&client->arena, SCRATCH_BYTES);
    TRY(parse_endpoint(client, options->endpoint, err));
    if (options->key != NULL) {
        TRY(check_key(options->key, err));
        client->key = arena_cstr(&client->arena, slice_from_cstr(options->key));
    }
    if (options->cert_file != NULL)
        client->cert_file = arena_cstr(&client->arena, slice_from_cstr(options->cert_file));

    *out = TAKE(client);
    return STATUS_OK;
}

/* The transfer can be used for another call. */
static void transfer_release(Transfer *transfer)
{
    Client *client = transfer->client;
    ASSERT(transfer->call != NULL);
    ASSERT(client->active_count > 0);
    (void)client->curl.multi_remove_handle(client->multi,
                                           transfer->easy); /* fails on misuse only */
    client->curl.slist_free_all(transfer->headers);
    transfer->headers = NULL;
    transfer->call = NULL;
    client->active_count--;
}

static void give_up_all(Client *client)
{
    for (size_t i = 0; i < client->transfer_count; i++) {
        if (client->transfers[i]->call != NULL)
            transfer_release(client->transfers[i]);
    }
    ASSERT(client->active_count == 0);
}

void client_close(Client *client)
{
    if (client == NULL)
        return;
    give_up_all(client);
    for (size_t i = 0; i < client->transfer_count; i++) {
        client->curl.easy_cleanup(client->transfers[i]->easy);
        buf_done(&client->transfers[i]->body);
        mem_free(client->transfers[i]);
    }
    mem_free(client->transfers);
    (void)client->curl.multi_cleanup(client->multi); /* fails on misuse only */
    client->curl.global_cleanup();
    arena_done(&client->arena);
    mem_free(client);
}

/* ---- a call ---- */

static size_t on_body(char *bytes, size_t size, size_t count, void *user)
{
    ASSERT(size == 1);
    Transfer *transfer = user;
    buf_bytes(&transfer->body, bytes, count);
    return buf_full(&transfer->body) ? 0 : count; /* 0 ends the transfer: CURLE_WRITE_ERROR */
}

static Transfer *free_transfer(Client *client)
{
    for (size_t i = 0; i < client->transfer_count; i++) {
        if (client->transfers[i]->call == NULL)
            return client->transfers[i];
    }
    Transfer *transfer = MEM_NEW(Transfer);
    *transfer = (Transfer){.client = client, .easy = client->curl.easy_init()};
    ASSERT(transfer->easy != NULL);
    buf_init(&transfer->body, CLIENT_ANSWER_BYTES_MAX);
    client->transfers =
        mem_realloc(client->transfers, (client->transfer_count + 1) * sizeof(Transfer *));
    client->transfers[client->transfer_count++] = transfer;
    return transfer;
}

static void add_header(Transfer *transfer, Arena *scratch, const char *name, Slice value)
{
    Slice line = arena_format(scratch, "%s: %.*s", name, SLICE_ARG(value));
    struct curl_slist *list =
        transfer->client->curl.slist_append(transfer->headers, arena_cstr(scratch, line));
    ASSERT(list != NULL);
    transfer->headers = list;
}

static Slice method_of(const ClientCall *call)
{
    return call->method.len > 0      ? call->method
           : call->body_sent.len > 0 ? SLICE("POST")
                                     : SLICE("GET");
}

static void sign(Transfer *transfer, const ClientCall *call, Arena *scratch)
{
    char date[DATE_LEN];
    date_print(clock_wall_s(clock_real()), date);
    char signature[AUTH_SIGNATURE_LEN];
    Error err;
    Status status =
        auth_sign(slice_from_cstr(transfer->client->key), method_of(call), call->resource_type,
                  call->resource_link, slice_make(date, DATE_LEN), signature, &err);
    ASSERT(status == STATUS_OK); /* client_open has signed with this key */
    Slice token =
        arena_format(scratch, "type=master&ver=1.0&sig=%.*s", AUTH_SIGNATURE_LEN, signature);
    add_header(transfer, scratch, "authorization", percent_encode(scratch, token, SLICE("-_.")));
    add_header(transfer, scratch, "x-ms-date", slice_make(date, DATE_LEN));
}

/* libcurl reads the body while it sends it: it stays as it is until the call has ended. */
static void set_body(Transfer *transfer, Slice body)
{
    SET(transfer, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    SET(transfer, CURLOPT_POSTFIELDS, body.ptr);
}

static void set_options(Transfer *transfer, const char *url)
{
    const Client *client = transfer->client;
    client->curl.easy_reset(transfer->easy); /* keeps connections and sessions */
    SET(transfer, CURLOPT_URL, url);
    SET(transfer, CURLOPT_HTTPHEADER, transfer->headers);
    SET(transfer, CURLOPT_USERAGENT, "orrery/" ORRERY_VERSION);
    SET(transfer, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(transfer, CURLOPT_NOPROXY, "*"); /* the environment's proxy is for the web */
    SET(transfer, CURLOPT_NOSIGNAL, 1L);
    SET(transfer, CURLOPT_TIMEOUT_MS, (long)client->timeout_ms);
    SET(transfer, CURLOPT_WRITEFUNCTION, on_body);
    SET(transfer, CURLOPT_WRITEDATA, transfer);
    SET(transfer, CURLOPT_ERRORBUFFER, transfer->reason);
    SET(transfer, CURLOPT_PRIVATE, transfer);
    if (client->cert_file != NULL)
        SET(transfer, CURLOPT_CAINFO, client->cert_file);
}

void client_start(Client *client, ClientCall *call)
{
    ASSERT(slice_starts_with(call->path, SLICE("/")));
    Transfer *transfer = free_transfer(client);
    ASSERT(transfer->headers == NULL);
    buf_reset(&transfer->body);
    transfer->reason[0] = '\0';

    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, SCRATCH_BYTES);
    if (client->key != NULL)
        sign(transfer, call, &scratch);
    if (call->body_sent.len > 0)
        add_header(transfer, &scratch, "content-type", SLICE("application/json"));
    Slice url = arena_format(&scratch, "%s%.*s", client->endpoint, SLICE_ARG(call->path));
    set_options(transfer, arena_cstr(&scratch, url));
    if (call->body_sent.len > 0) {
        set_body(transfer, call->body_sent);
    } else if (slice_equal(method_of(call), SLICE("POST"))) {
        SET(transfer, CURLOPT_POST, 1L);
        SET(transfer, CURLOPT_POSTFIELDSIZE, 0L);
    } else if (call->method.len > 0) {
        SET(transfer, CURLOPT_CUSTOMREQUEST, arena_cstr(&scratch, call->method)); /* copied */
    }

    transfer->call = call;
    client->active_count++;
    CURLMcode failed = client->curl.multi_add_handle(client->multi, transfer->easy);
    ASSERT(failed == CURLM_OK); /* otherwise it was added before, or there is no memory */
}

/* ---- its end ---- */

/* libcurl's words for a failure; the system's, if a system call has failed. */
static const char *reason_of(const Transfer *transfer, CURLcode code)
{
    const Curl *curl = &transfer->client->curl;
    long system_error = 0;
    if (code == CURLE_COULDNT_CONNECT &&
        curl->easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &system_error) == CURLE_OK &&
        system_error != 0)
        return strerror((int)system_error);
    return transfer->reason[0] != '\0' ? transfer->reason : curl->easy_strerror(code);
}

static Status failure(const Transfer *transfer, CURLcode code, Error *err)
{
    const Client *client = transfer->client;
    switch ((int)code) { /* an enum of a hundred, most of them for other protocols */
    case CURLE_OPERATION_TIMEDOUT:
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "%s has not answered within %u ms",
                         client->endpoint, client->timeout_ms);
    case CURLE_WRITE_ERROR:
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the answer of %s has more than %zu bytes", client->endpoint,
                         CLIENT_ANSWER_BYTES_MAX);
    case CURLE_PARTIAL_FILE:
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "%s closed the connection in the middle of an answer", client->endpoint);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "%s does not answer in HTTP/1.1; is it an Orrery server?",
                         client->endpoint);
    case CURLE_PEER_FAILED_VERIFICATION:
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the certificate of %s is not trusted: %s", client->endpoint,
                         reason_of(transfer, code));
    default:
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "cannot reach the server at %s: %s",
                         client->endpoint, reason_of(transfer, code));
    }
}

static ClientCall *finish(Transfer *transfer, CURLcode code)
{
    const Curl *curl = &transfer->client->curl;
    ClientCall *call = transfer->call;
    ASSERT(call != NULL);
    call->error = (Error){.status = STATUS_OK};
    if (code == CURLE_OK) {
        long status = 0;
        CURLcode failed = curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        ASSERT(failed == CURLE_OK);
        call->http_status = (int)status;
        call->body = arena_copy(call->arena, buf_view(&transfer->body));
    } else {
        (void)failure(transfer, code, &call->error); /* it is in the call now */
    }
    transfer_release(transfer);
    return call;
}

/* A call that libcurl has ended, NULL if there is none. */
static ClientCall *take_ended(Client *client)
{
    int left = 0;
    CURLMsg *message = client->curl.multi_info_read(client->multi, &left);
    if (message == NULL)
        return NULL;
    ASSERT(message->msg == CURLMSG_DONE); /* there is no other kind */
    char *transfer = NULL;
    CURLcode code = message->data.result; /* the message ends with the handle */
    CURLcode failed = client->curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    ASSERT(failed == CURLE_OK);
    return finish((Transfer *)(void *)transfer, code);
}

Status client_wait(Client *client, int cancel_fd, ClientCall **ended, Error *err)
{
    const Curl *curl = &client->curl;
    ClientCall *call = take_ended(client);
    while (call == NULL && client->active_count > 0) {
        struct curl_waitfd cancel = {.fd = cancel_fd, .events = CURL_WAIT_POLLIN};
        int running = 0;
        CURLMcode failed = curl->multi_perform(client->multi, &running);
        call = take_ended(client);
        if (failed == CURLM_OK && call == NULL)
            failed =
                curl->multi_poll(client->multi, &cancel, cancel_fd >= 0 ? 1 : 0, POLL_MS_MAX, NULL);
        if (failed != CURLM_OK)
            return error_set(err, STATUS_INTERNAL, SUB_NONE, "cannot wait for %s: %s",
                             client->endpoint, curl->multi_strerror(failed));
        if (cancel.revents != 0) {
            give_up_all(client);
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "given up");
        }
    }
    *ended = call;
    return STATUS_OK;
}
