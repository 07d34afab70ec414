/* client.c - see client.h. The only file that knows libcurl. */
#include "client/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "base/shared_library.h"
#include "client/request_signature.h"

#include <curl/curl.h>

/* Debian's flavour with GnuTLS, because PROJ needs the same one. */
#define CURL_LIBRARY "libcurl-gnutls.so.4"

/* Of the REST protocol, as SDKs of today send it. */
#define PROTOCOL_VERSION "2020-07-15"

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
    Buf head;
    Buf body;
    char reason[CURL_ERROR_SIZE]; /* of a failure, in libcurl's words */
} Transfer;

struct Client {
    Curl curl;
    CURLM *multi;
    char *endpoint; /* without a slash at the end */
    SignKey key;    /* set if 'has_key' */
    bool has_key;
    char *cert_file;
    bool is_insecure;
    uint32_t timeout_ms;
    size_t answer_bytes_max;
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

Status client_open(const ClientOptions *options, Client **out, Error *err)
{
    ASSERT(options->timeout_ms > 0);
    Curl curl;
    TRY(load_curl(&curl, err));
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "'%s' does not start", CURL_LIBRARY);

    AUTO(client_close) Client *client = MEM_NEW(Client);
    *client = (Client){
        .curl = curl,
        .multi = curl.multi_init(),
        .is_insecure = options->is_insecure,
        .timeout_ms = options->timeout_ms,
        .answer_bytes_max =
            options->answer_bytes_max > 0 ? options->answer_bytes_max : CLIENT_ANSWER_BYTES_MAX,
    };
    ASSERT(client->multi != NULL);
    arena_init(&client->arena, SCRATCH_BYTES);
    TRY(parse_endpoint(client, options->endpoint, err));
    client->has_key = options->key != NULL;
    if (client->has_key)
        TRY(sign_key_parse(slice_from_cstr(options->key), &client->key, err));
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
        buf_done(&client->transfers[i]->head);
        buf_done(&client->transfers[i]->body);
        mem_free(client->transfers[i]);
    }
    mem_free(client->transfers);
    (void)client->curl.multi_cleanup(client->multi); /* fails on misuse only */
    client->curl.global_cleanup();
    arena_done(&client->arena);
    sign_key_wipe(&client->key);
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

static size_t on_header(char *bytes, size_t size, size_t count, void *user)
{
    ASSERT(size == 1);
    Transfer *transfer = user;
    if (count >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        buf_reset(&transfer->head); /* what came before was an interim answer */
    buf_bytes(&transfer->head, bytes, count);
    return buf_full(&transfer->head) ? 0 : count;
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
    buf_init(&transfer->head, CLIENT_HEAD_BYTES_MAX);
    buf_init(&transfer->body, client->answer_bytes_max);
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

static Slice method_name(ClientMethod method)
{
    static const Slice names[] = {[CLIENT_GET] = SLICE_INIT("GET"),
                                  [CLIENT_POST] = SLICE_INIT("POST"),
                                  [CLIENT_PUT] = SLICE_INIT("PUT"),
                                  [CLIENT_DELETE] = SLICE_INIT("DELETE")};
    return names[method];
}

static void sign(Transfer *transfer, const ClientCall *call, Arena *scratch)
{
    char date[DATE_LEN];
    date_print(clock_wall_s(clock_real()), date);
    char signature[SIGN_LEN];
    sign_request(&transfer->client->key, method_name(call->method), call->resource_type,
                 call->resource_link, slice_make(date, DATE_LEN), signature);
    Slice token = arena_format(scratch, "type=master&ver=1.0&sig=%.*s", SIGN_LEN, signature);
    add_header(transfer, scratch, "authorization", percent_encode(scratch, token, SLICE("-_.")));
    add_header(transfer, scratch, "x-ms-date", slice_make(date, DATE_LEN));
}

static void add_headers(Transfer *transfer, const ClientCall *call, Arena *scratch)
{
    if (transfer->client->has_key)
        sign(transfer, call, scratch);
    add_header(transfer, scratch, "x-ms-version", SLICE(PROTOCOL_VERSION));
    if (call->method == CLIENT_POST || call->method == CLIENT_PUT)
        add_header(transfer, scratch, "Expect", SLICE_EMPTY); /* or libcurl waits for a 100 */
    for (size_t i = 0; i < call->header_count; i++)
        add_header(transfer, scratch, call->headers[i].name, call->headers[i].value);
}

static void set_options(Transfer *transfer, const ClientCall *call, const char *url)
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
    SET(transfer, CURLOPT_HEADERFUNCTION, on_header);
    SET(transfer, CURLOPT_HEADERDATA, transfer);
    SET(transfer, CURLOPT_ERRORBUFFER, transfer->reason);
    SET(transfer, CURLOPT_PRIVATE, transfer);
    if (client->cert_file != NULL)
        SET(transfer, CURLOPT_CAINFO, client->cert_file);
    if (client->is_insecure) {
        SET(transfer, CURLOPT_SSL_VERIFYPEER, 0L);
        SET(transfer, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (call->method == CLIENT_POST || call->method == CLIENT_PUT) {
        SET(transfer, CURLOPT_POST, 1L);
        SET(transfer, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->content.len);
        SET(transfer, CURLOPT_POSTFIELDS, call->content.len > 0 ? call->content.ptr : "");
        if (call->method == CLIENT_PUT)
            SET(transfer, CURLOPT_CUSTOMREQUEST, "PUT");
    } else if (call->method == CLIENT_DELETE) {
        SET(transfer, CURLOPT_CUSTOMREQUEST, "DELETE");
    }
}

void client_start(Client *client, ClientCall *call)
{
    ASSERT(slice_starts_with(call->path, SLICE("/")));
    Transfer *transfer = free_transfer(client);
    ASSERT(transfer->headers == NULL);
    buf_reset(&transfer->head);
    buf_reset(&transfer->body);
    transfer->reason[0] = '\0';

    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, SCRATCH_BYTES);
    add_headers(transfer, call, &scratch);
    Slice url = arena_format(&scratch, "%s%.*s", client->endpoint, SLICE_ARG(call->path));
    set_options(transfer, call, arena_cstr(&scratch, url));

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
                         client->answer_bytes_max);
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
        call->head = arena_copy(call->arena, buf_view(&transfer->head));
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

static Status cannot_wait(const Client *client, CURLMcode code, Error *err)
{
    return error_set(err, STATUS_INTERNAL, SUB_NONE, "cannot wait for %s: %s", client->endpoint,
                     client->curl.multi_strerror(code));
}

/* Does what can be done at once, and hands out a call that has ended. */
static Status perform(Client *client, ClientCall **ended, Error *err)
{
    int running = 0;
    *ended = take_ended(client);
    if (*ended != NULL)
        return STATUS_OK;
    CURLMcode failed = client->curl.multi_perform(client->multi, &running);
    if (failed != CURLM_OK)
        return cannot_wait(client, failed, err);
    *ended = take_ended(client);
    return STATUS_OK;
}

Status client_poll(Client *client, ClientWake *wakes, size_t wake_count, uint32_t timeout_ms,
                   ClientCall **ended, Error *err)
{
    ASSERT(wake_count <= CLIENT_WAKES_MAX);
    for (size_t i = 0; i < wake_count; i++)
        wakes[i].is_ready = false;
    TRY(perform(client, ended, err));
    if (*ended != NULL)
        return STATUS_OK;
    struct curl_waitfd fds[CLIENT_WAKES_MAX] = {0};
    for (size_t i = 0; i < wake_count; i++)
        fds[i] = (struct curl_waitfd){.fd = wakes[i].fd, .events = CURL_WAIT_POLLIN};
    CURLMcode failed =
        client->curl.multi_poll(client->multi, fds, (unsigned)wake_count, (int)timeout_ms, NULL);
    if (failed != CURLM_OK)
        return cannot_wait(client, failed, err);
    for (size_t i = 0; i < wake_count; i++)
        wakes[i].is_ready = fds[i].revents != 0;
    return perform(client, ended, err);
}

Status client_wait(Client *client, int cancel_fd, ClientCall **ended, Error *err)
{
    *ended = take_ended(client);
    while (*ended == NULL && client->active_count > 0) {
        ClientWake cancel = {.fd = cancel_fd};
        TRY(client_poll(client, &cancel, cancel_fd >= 0 ? 1 : 0, POLL_MS_MAX, ended, err));
        if (cancel.is_ready) {
            give_up_all(client);
            *ended = NULL;
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "given up");
        }
    }
    return STATUS_OK;
}

Slice client_header(const ClientCall *call, Slice name)
{
    Slice rest = call->head;
    while (rest.len > 0) {
        Slice line = slice_cut(&rest, '\n');
        if (slice_ends_with(line, SLICE("\r")))
            line.len--;
        size_t colon = slice_find(line, ':');
        if (colon < line.len && slice_equal_nocase(slice_first(line, colon), name))
            return slice_trim(slice_from(line, colon + 1));
    }
    return SLICE_EMPTY;
}
