/* request_fuzz.c - whole requests, from the HTTP library's hands to the answer.
 *
 * An input is lines: method, path, then headers "name: value", an empty line, and the body. Its
 * first byte says which key signs it: none, the read-only key, or the master key, whose requests
 * reach the handlers; and whether the body comes with the head or later. Names that cannot be
 * guessed are written in paths and headers as $D and $C (resource ids of a database and its
 * container), $O (its offer), $E (its ETag), $N (the database's number in hexadecimal) and $I
 * (resource id of the container's first item).
 *
 * Two headers are not sent: "$clock" sets the wall clock, in microseconds since 1970, for this
 * request and the work that it starts, and "$date" is what is signed as x-ms-date instead of the
 * clock's date. The next input finds the clock where it was at first, so time goes back as often as
 * forwards. Without a key the authorization is sent as it is in the input; "$T" stands for a token
 * that may read the items of one partition key.
 *
 * Every request is answered once (I2, which the fake checks), in the protocol's form (I4), and a
 * request that is not authorised learns nothing about a resource (I1). A line of the audit log is a
 * line, whatever the request holds.
 */
#include "api/tests/fake_http_int.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum {
    HEADERS_MAX = 32,
    DATABASES_MAX = 20,
    INPUTS_PER_SERVER = 2000,
    /* Weight of an input with a clock: the time of items never goes back on one server. */
    CLOCK_INPUTS = 50,
};

/* A name that no input holds by chance, so that an answer that shows it has leaked it. */
#define SECRET "Kx9secretQ7"

typedef struct Fuzz {
    FakeServer server;
    Log log; /* of the audit log, which all servers share */
    Metrics metrics;
    Audit *audit;
    bool is_open;
    unsigned inputs;
} Fuzz;

static Fuzz fuzz; /* lives as long as the process, as libFuzzer has no other place for it */

/* In the place of a file: each write is one whole line of printable ASCII. */
static ssize_t check_line(int fd, const void *bytes, size_t len)
{
    (void)fd;
    const char *text = bytes;
    ASSERT(len > 2);
    ASSERT(len <= AUDIT_LINE_BYTES_MAX);
    ASSERT(text[len - 1] == '\n');
    for (size_t i = 0; i < len - 1; i++)
        ASSERT(text[i] >= ' ' && text[i] <= '~');
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json line = JSON_NONE;
    Error err;
    Status status = json_parse(&arena, slice_make(text, len), &line, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(json_is(json_get(line, SLICE("time")), JSON_STRING));
    return (ssize_t)len;
}

static void open_audit(void)
{
    fuzz.log = (Log){.fd = STDERR_FILENO, .level = LOG_LEVEL_ERROR, .clock = clock_real()};
    metrics_init(&fuzz.metrics, 1);
    AuditOptions options = {.path = "/dev/null",
                            .clock = clock_real(),
                            .log = &fuzz.log,
                            .metrics = &fuzz.metrics.shards[0],
                            .queue_bytes_max = AUDIT_QUEUE_BYTES_MAX,
                            .write = check_line};
    Error err;
    Status status = audit_open(&options, &fuzz.audit, &err);
    ASSERT(status == STATUS_OK);
}

static void expect(FakeServer *server, Slice method, Slice path, Slice body, int status)
{
    FakeRequest request = {.method = method, .path = path, .body = body, .key = SLICE(FAKE_KEY)};
    FakeAnswer answer;
    fake_request(server, &request, &answer);
    ASSERT(answer.status == status);
}

/* Items of either container, so that inputs find some. */
static void fill(FakeServer *server)
{
    Slice docs = SLICE("/dbs/db/colls/c/docs");
    Slice deep = SLICE("/dbs/db/colls/h/docs");
    expect(server, SLICE("POST"), docs,
           SLICE("{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"l\":[1,2,{\"m\":3}]}"), 201);
    expect(server, SLICE("POST"), docs, SLICE("{\"id\":\"2\",\"pk\":\"a\",\"s\":\"x\"}"), 201);
    expect(server, SLICE("POST"), docs, SLICE("{\"id\":\"1\",\"pk\":7}"), 201);
    expect(server, SLICE("POST"), SLICE("/dbs/db/colls/c/sprocs"),
           SLICE("{\"id\":\"s\",\"body\":\"\"}"), 201);
    expect(server, SLICE("POST"), SLICE("/dbs/db/colls/c/udfs"),
           SLICE("{\"id\":\"f\",\"body\":\"x => x\"}"), 201);
    expect(server, SLICE("POST"), SLICE("/dbs/db/users"), SLICE("{\"id\":\"u\"}"), 201);
    expect(server, SLICE("POST"), SLICE("/dbs/db/users/u/permissions"),
           SLICE("{\"id\":\"p\",\"permissionMode\":\"Read\",\"resource\":\"dbs/db/colls/c\","
                 "\"resourcePartitionKey\":[\"a\"]}"),
           201);
    expect(server, SLICE("POST"), docs, SLICE("{\"id\":\"1\"}"), 201);
    expect(server, SLICE("POST"), deep, SLICE("{\"id\":\"1\",\"t\":\"a\",\"u\":1}"), 201);
    expect(server, SLICE("POST"), deep,
           SLICE("{\"id\":\"2\",\"t\":\"a\",\"u\":1,\"x\":1,\"ttl\":9}"), 201);
    expect(server, SLICE("POST"), deep, SLICE("{\"id\":\"1\",\"t\":\"a\"}"), 201);
}

/* A server with a little of everything. A fresh one now and then keeps what inputs create small. */
static void refresh(void)
{
    if (fuzz.is_open && fuzz.inputs++ < INPUTS_PER_SERVER)
        return;
    if (fuzz.is_open)
        fake_server_close(&fuzz.server);
    if (fuzz.audit == NULL)
        open_audit();
    fuzz.inputs = 0;
    fuzz.is_open = true;
    FakeServer *server = &fuzz.server;
    fake_server_open(server, &(ApiOptions){.certificate = SLICE("PEM"),
                                           .audit = fuzz.audit,
                                           .trust_forwarded = true,
                                           .browsers = {.origins = SLICE("http://a.example"),
                                                        .checks_hosts = true}});
    Slice dbs = SLICE("/dbs");
    Slice colls = SLICE("/dbs/db/colls");
    expect(server, SLICE("POST"), dbs, SLICE("{\"id\":\"db\"}"), 201);
    expect(server, SLICE("POST"), dbs, SLICE("{\"id\":\"" SECRET "\"}"), 201);
    expect(server, SLICE("POST"), colls,
           SLICE("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}"), 201);
    expect(server, SLICE("POST"), colls,
           SLICE("{\"id\":\"" SECRET "\",\"partitionKey\":{\"paths\":[\"/pk\"]}}"), 201);
    expect(server, SLICE("POST"), colls,
           SLICE("{\"id\":\"h\",\"partitionKey\":{\"paths\":[\"/t\",\"/u\"],"
                 "\"kind\":\"MultiHash\",\"version\":2},\"defaultTtl\":-1,"
                 "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/x\"]}]}}"),
           201);
    fill(server);
    fake_server_reset(server);
}

static void check_error(FakeServer *server, const FakeAnswer *answer)
{
    ASSERT(slice_equal(fake_header(answer, "content-type"), SLICE("application/json")));
    Json body = JSON_NONE;
    Error err;
    Status status = json_parse(&server->arena, answer->body, &body, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(json_is(json_get(body, SLICE("code")), JSON_STRING));
    ASSERT(json_is(json_get(body, SLICE("message")), JSON_STRING));
}

static void check_success(FakeServer *server, const FakeAnswer *answer)
{
    bool empty = answer->status == 204 || answer->status == 304;
    ASSERT(!empty || answer->body.len == 0);
    if (slice_starts_with(answer->body, SLICE("\x81"))) /* the answer to a binary batch */
        return;
    if (!slice_equal(fake_header(answer, "content-type"), SLICE("application/json")))
        return;
    Json body = JSON_NONE;
    Error err;
    Status status = json_parse(&server->arena, answer->body, &body, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(json_is(body, JSON_OBJECT) || json_is(body, JSON_ARRAY));
}

static void check_answer(FakeServer *server, const FakeAnswer *answer)
{
    ASSERT(fake_header(answer, "x-ms-activity-id").len > 0);
    ASSERT(fake_header(answer, "x-ms-request-charge").len > 0);
    for (size_t i = 0; i < answer->header_count; i++) {
        ASSERT(answer->headers[i].name.len > 0);
        for (size_t j = 0; j < answer->headers[i].name.len; j++)
            ASSERT(answer->headers[i].name.ptr[j] < 'A' || answer->headers[i].name.ptr[j] > 'Z');
    }
    if (answer->status >= 400)
        check_error(server, answer);
    else
        check_success(server, answer);
}

static bool holds(Slice text, Slice word)
{
    return text.len > 0 && memmem(text.ptr, text.len, word.ptr, word.len) != NULL;
}

/* A client without a key gets a refusal or a path that is open to all, and no resource in either.
 * Its own words may be in the answer, decoded. */
static void check_stranger(Slice input, const FakeAnswer *answer)
{
    /* The last word begins the key in the identity tokens of emulators. */
    if (holds(input, SLICE(FAKE_READ_KEY)) || holds(input, SLICE(FAKE_KEY)) ||
        holds(input, SLICE("QzJ5NnlEamY1")))
        return; /* it was authorised after all */
    ASSERT(answer->status != 201);
    ASSERT(answer->status != 304);
    if (holds(input, SLICE(SECRET)) || holds(input, SLICE("_rid")) || holds(input, SLICE("%")))
        return;
    ASSERT(!holds(answer->body, SLICE(SECRET)));
    ASSERT(!holds(answer->body, SLICE("_rid")));
    for (size_t i = 0; i < answer->header_count; i++)
        ASSERT(!holds(answer->headers[i].value, SLICE(SECRET)));
}

/* A client with the token changes nothing, and sees no items of other keys. */
static void check_holder(Slice input, const FakeAnswer *answer)
{
    ASSERT(answer->status != 201);
    ASSERT(answer->status != 204 || slice_starts_with(slice_from(input, 1), SLICE("OPTIONS")));
    ASSERT(holds(input, SLICE(SECRET)) || !holds(answer->body, SLICE(SECRET)));
    ASSERT(holds(input, SLICE("pk")) || !holds(answer->body, SLICE("\"pk\":7")));
}

/* Puts a token in the place of "$T". */
static bool put_token(FakeServer *server, HttpHeader *headers, size_t count)
{
    ApiLoop *loop = server->loop.user;
    const Snapshot *snapshot = catalog_read(&loop->reader);
    const Database *database = snapshot_database_by_id(snapshot, SLICE("db"));
    const User *user =
        database == NULL ? NULL : snapshot_user_by_id(snapshot, database->info.number, SLICE("u"));
    const Permission *permission =
        user == NULL ? NULL : snapshot_permission_by_id(snapshot, user_key(user), SLICE("p"));
    bool is_put = false;
    for (size_t i = 0; i < count && permission != NULL; i++) {
        if (!slice_equal(headers[i].name, SLICE("authorization")) ||
            !slice_equal(headers[i].value, SLICE("$T")))
            continue;
        headers[i].value =
            resource_token_make(&server->api->resource_tokens, permission,
                                UINT64_C(1000000) * FAKE_BEGIN_S, 3600, &server->arena);
        is_put = true;
    }
    return is_put;
}

static void add_item_rid(const Container *container, Buf *out)
{
    char rid[RID_CHILD_LEN];
    rid_print_child(RID_DOCUMENT, container->database, container->info.number, item_number(0, 1),
                    rid);
    buf_bytes(out, rid, sizeof(rid));
}

/* Puts what the catalogue holds now in the place of $ and a letter. */
static Slice expand(FakeServer *server, Slice text)
{
    ApiLoop *loop = server->loop.user;
    const Snapshot *snapshot = catalog_read(&loop->reader);
    const Database *database = snapshot_database_by_id(snapshot, SLICE("db"));
    const Container *container =
        database == NULL ? NULL
                         : snapshot_container_by_id(snapshot, database->info.number, SLICE("c"));
    const Offer *offer = container == NULL ? NULL : snapshot_offer(snapshot, container->offer);
    if (offer == NULL)
        return text;
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < text.len; i++) {
        char letter = text.ptr[i] == '$' && i + 1 < text.len ? text.ptr[++i] : '\0';
        if (letter == 'D')
            buf_slice(&out, database->info.rid);
        else if (letter == 'C')
            buf_slice(&out, container->info.rid);
        else if (letter == 'O')
            buf_slice(&out, offer->info.rid);
        else if (letter == 'E')
            buf_slice(&out, container->info.etag);
        else if (letter == 'N')
            buf_format(&out, "%08x", database->info.number);
        else if (letter == 'I')
            add_item_rid(container, &out);
        else
            buf_byte(&out, (uint8_t)text.ptr[i]);
    }
    return arena_copy(&server->arena, buf_view(&out));
}

/* Text that is no number leaves the clock as it is. */
static void set_clock(FakeServer *server, Slice text)
{
    uint64_t wall_us = 0;
    if (!slice_to_u64(text, &wall_us))
        return;
    fake_clock_set_wall(&server->clock, wall_us);
    fuzz.inputs += CLOCK_INPUTS;
}

/* Header values as HTTP can carry them; names in lower case, as the library hands them over. */
static void parse_headers(FakeServer *server, Slice *rest, bool has_key,
                          HttpHeader headers[HEADERS_MAX], FakeRequest *out)
{
    Arena *arena = &server->arena;
    out->headers = headers;
    while (rest->ptr != NULL && out->header_count < HEADERS_MAX) {
        Slice line = slice_cut(rest, '\n');
        if (line.len == 0)
            break;
        Slice value = line;
        Slice name = slice_trim(slice_cut(&value, ':'));
        char *lower = arena_cstr(arena, name);
        for (size_t i = 0; i < name.len; i++)
            lower[i] = lower[i] >= 'A' && lower[i] <= 'Z' ? (char)(lower[i] + 32) : lower[i];
        value = has_key ? expand(server, slice_trim(value)) : slice_trim(value);
        char *clean = arena_cstr(arena, value);
        size_t len = value.len;
        for (size_t i = 0; i < len; i++)
            clean[i] = (unsigned char)clean[i] < ' ' || clean[i] == 0x7f ? ' ' : clean[i];
        HttpHeader header = {slice_make(lower, name.len), slice_make(clean, len)};
        if (slice_equal(header.name, SLICE("$clock")))
            set_clock(server, header.value);
        else if (slice_equal(header.name, SLICE("$date")))
            out->date = header.value;
        else if (name.len > 0 && !(has_key && slice_equal(header.name, SLICE("authorization"))))
            headers[out->header_count++] = header;
    }
}

/* Removes what the input has made, so that the next input finds the same server. */
static void tidy(FakeServer *server)
{
    ApiLoop *loop = server->loop.user;
    const Snapshot *snapshot = catalog_read(&loop->reader);
    const Database *database = snapshot_database_by_id(snapshot, SLICE("db"));
    if (database == NULL ||
        snapshot_container_by_id(snapshot, database->info.number, SLICE("c")) == NULL ||
        snapshot->databases.count > DATABASES_MAX || snapshot->container_count > DATABASES_MAX ||
        snapshot_user_count(snapshot, database->info.number) > DATABASES_MAX)
        fuzz.inputs = INPUTS_PER_SERVER;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    refresh();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    refresh();
    FakeServer *server = &fuzz.server;
    unsigned client = data[0] % 4;
    bool knows = client != 0; /* a request without a key is checked as it is */
    Slice rest = slice_make(data + 1, size - 1);
    HttpHeader headers[HEADERS_MAX];
    FakeRequest request = {.method = slice_cut(&rest, '\n')};
    request.path = slice_cut(&rest, '\n');
    if (knows)
        request.path = expand(server, request.path);
    fake_clock_set_wall(&server->clock, UINT64_C(1000000) * FAKE_BEGIN_S);
    parse_headers(server, &rest, knows, headers, &request);
    for (size_t i = 0; i < request.header_count; i++)
        if (slice_equal(headers[i].name, SLICE("host")))
            request.authority = headers[i].value;
    bool is_holder = client == 0 && put_token(server, headers, request.header_count);
    request.body = rest;
    request.body_comes_later = data[0] / 4 % 2 == 1;
    request.key = client == 0 ? SLICE_EMPTY : client == 1 ? SLICE(FAKE_READ_KEY) : SLICE(FAKE_KEY);
    FakeAnswer answer;
    fake_request(server, &request, &answer);
    check_answer(server, &answer);
    if (is_holder)
        check_holder(slice_make(data, size), &answer);
    else if (client == 0)
        check_stranger(slice_make(data, size), &answer);
    if (client == 1)
        ASSERT(answer.status != 201);
    tidy(server);
    fake_server_reset(server);
    return 0;
}
