/* seed.c - see seed.h. */
#include "seed/seed.h"

#include "base/encoding.h"
#include "catalog/definition.h"
#include "seed/seed_body.h"
#include "seed/seed_int.h"
#include "seed/seed_items.h"

#include <poll.h>
#include <stdio.h>

/* ---- requests ---- */

static SeedLink child_link(Arena *arena, const SeedLink *up, Slice segment, Slice id)
{
    Slice encoded = percent_encode(arena, id, SLICE("-_.~"));
    return (SeedLink){
        .path = arena_format(arena, "%.*s/%.*s/%.*s", SLICE_ARG(up->path), SLICE_ARG(segment),
                             SLICE_ARG(encoded)),
        .link = arena_format(arena, "%.*s%s%.*s/%.*s", SLICE_ARG(up->link),
                             up->link.len > 0 ? "/" : "", SLICE_ARG(segment), SLICE_ARG(id)),
    };
}

Status seed_ask(SeedRun *run, const SeedRequest *request, ClientCall *call, Error *err)
{
    *call = (ClientCall){
        .method = request->method,
        .path = request->path,
        .resource_type = request->type,
        .resource_link = request->link,
        .headers = request->headers,
        .content = json_is(request->body, JSON_UNDEFINED)
                       ? SLICE_EMPTY
                       : json_print_arena(run->arena, request->body),
        .arena = run->arena,
    };
    while (call->header_count < ARRAY_COUNT(request->headers) &&
           request->headers[call->header_count].name != NULL)
        call->header_count++;
    TRY(remote_ask(&run->remote, call, err));
    call->headers = NULL; /* the caller's request need not live as long as the answer */
    call->header_count = 0;
    return STATUS_OK;
}

Status seed_answer(SeedRun *run, const ClientCall *call, Json *out, Error *err)
{
    if (json_parse(run->arena, call->body, out, err) == STATUS_OK)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the answer for %.*s is not JSON; is it a server of the protocol?",
                     SLICE_CUT(call->path, 200));
}

/* A request for one resource, or, to create it, for the list that it will be in. */
static SeedRequest request_of(ClientMethod method, Slice type, const SeedLink *link, Json body,
                              ClientHeader header)
{
    SeedRequest request = {
        .method = method, .path = link->path, .type = type, .link = link->link, .body = body};
    size_t count = 0;
    if (!json_is(body, JSON_UNDEFINED))
        request.headers[count++] = (ClientHeader){"content-type", SLICE("application/json")};
    request.headers[count] = header;
    return request;
}

/* ---- resources ---- */

/* What the kinds of resources differ in. */
typedef struct Kind {
    const char *noun; /* for people */
    Slice segment;    /* of addresses, and the type that is signed */
    /* The form of a body in which two can be compared. NULL if an id is all that there is. */
    Status (*normalise)(Arena *arena, Json body, Json *normal, Error *err);
} Kind;

static Status normal_procedure(Arena *arena, Json body, Json *normal, Error *err)
{
    return stored_script_definition_create(arena, STORED_PROCEDURE, body, normal, err);
}

static Status normal_trigger(Arena *arena, Json body, Json *normal, Error *err)
{
    return stored_script_definition_create(arena, STORED_TRIGGER, body, normal, err);
}

static Status normal_function(Arena *arena, Json body, Json *normal, Error *err)
{
    return stored_script_definition_create(arena, STORED_FUNCTION, body, normal, err);
}

static const Kind DATABASE = {"database", SLICE_INIT("dbs"), NULL};
static const Kind CONTAINER = {"container", SLICE_INIT("colls"), NULL};
static const Kind ENCRYPTION_KEY = {"client encryption key", SLICE_INIT("clientencryptionkeys"),
                                    encryption_key_definition_create};
static const Kind USER = {"user", SLICE_INIT("users"), NULL};
static const Kind PERMISSION = {"permission", SLICE_INIT("permissions"),
                                permission_definition_create};
static const Kind PROCEDURE = {"stored procedure", SLICE_INIT("sprocs"), normal_procedure};
static const Kind TRIGGER = {"trigger", SLICE_INIT("triggers"), normal_trigger};
static const Kind FUNCTION = {"user-defined function", SLICE_INIT("udfs"), normal_function};

/* A resource of the file while it is dealt with. */
typedef struct Target {
    const Kind *kind;
    const SeedLink *up;
    SeedLink link;
    Json json;  /* as it stands in the file */
    Slice name; /* for people: "shop/orders" */
    SeedPlace place;
} Target;

static void report(SeedRun *run, const Target *target, SeedChange change)
{
    const SeedOptions *o = run->options;
    run->summary.resources[change]++;
    if (o->on_resource != NULL)
        o->on_resource(o->ctx, change, target->kind->noun, arena_cstr(run->arena, target->name));
}

/* Reads the resource; '*found' is undefined if it does not exist. */
static Status read_target(SeedRun *run, const Target *target, Json *found, Error *err)
{
    ClientCall call;
    SeedRequest request =
        request_of(CLIENT_GET, target->kind->segment, &target->link, JSON_NONE, (ClientHeader){0});
    TRY(seed_ask(run, &request, &call, err));
    *found = JSON_NONE;
    if (call.http_status == 404)
        return STATUS_OK;
    if (call.http_status != 200)
        return remote_refused(&call, err);
    TRY(seed_answer(run, &call, found, err));
    if (json_is(*found, JSON_OBJECT))
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the answer for %.*s is not an object; is it a server of the protocol?",
                     SLICE_CUT(call.path, 200));
}

static Status create_target(SeedRun *run, const Target *target, Json body, ClientHeader header,
                            Error *err)
{
    ClientCall call;
    SeedLink list = {
        .path = arena_format(run->arena, "%.*s/%.*s", SLICE_ARG(target->up->path),
                             SLICE_ARG(target->kind->segment)),
        .link = target->up->link,
    };
    SeedRequest request = request_of(CLIENT_POST, target->kind->segment, &list, body, header);
    TRY(seed_ask(run, &request, &call, err));
    if (call.http_status != 201)
        return remote_refused(&call, err);
    report(run, target, SEED_CREATED);
    return STATUS_OK;
}

static Status replace_target(SeedRun *run, const Target *target, Json body, Error *err)
{
    ClientCall call;
    SeedRequest request =
        request_of(CLIENT_PUT, target->kind->segment, &target->link, body, (ClientHeader){0});
    TRY(seed_ask(run, &request, &call, err));
    return call.http_status == 200 ? STATUS_OK : remote_refused(&call, err);
}

static Status delete_target(SeedRun *run, const Target *target, Error *err)
{
    ClientCall call;
    SeedRequest request = request_of(CLIENT_DELETE, target->kind->segment, &target->link, JSON_NONE,
                                     (ClientHeader){0});
    TRY(seed_ask(run, &request, &call, err));
    if (call.http_status != 204 && call.http_status != 404)
        return remote_refused(&call, err);
    report(run, target, call.http_status == 204 ? SEED_DELETED : SEED_UNCHANGED);
    return STATUS_OK;
}

static bool is_same(Arena *arena, const Kind *kind, Json found, Json body)
{
    Json a, b;
    Error ignored;
    return kind->normalise == NULL ||
           (kind->normalise(arena, found, &a, &ignored) == STATUS_OK &&
            kind->normalise(arena, body, &b, &ignored) == STATUS_OK && json_equal(a, b));
}

/* Makes a resource that has no throughput be as its body says. */
static Status ensure(SeedRun *run, const Target *target, Json body, Error *err)
{
    Json found;
    TRY(read_target(run, target, &found, err));
    if (json_is(found, JSON_UNDEFINED))
        return create_target(run, target, body, (ClientHeader){0}, err);
    if (is_same(run->arena, target->kind, found, body)) {
        report(run, target, SEED_UNCHANGED);
        return STATUS_OK;
    }
    TRY(replace_target(run, target, body, err));
    report(run, target, SEED_REPLACED);
    return STATUS_OK;
}

/* ---- each kind ---- */

typedef Status (*ApplyFunction)(SeedRun *run, const Target *target, Error *err);

/* Applies each resource of the list that is the member 'name' of the resource 'up'. */
static Status apply_list(SeedRun *run, const Target *up, const char *name, const Kind *kind,
                         ApplyFunction function, Error *err)
{
    Arena *before = run->arena;
    SeedPlace list = seed_place_member(&up->place, slice_from_cstr(name));
    Status status = STATUS_OK;
    size_t i = 0;
    for (JsonIter it = json_iter(json_get(up->json, list.name));
         status == STATUS_OK && json_next(&it); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, ARENA_SMALL_BYTES);
        run->arena = &arena;
        Slice id = json_string(json_get(it.value, SLICE("id")));
        Target target = {
            .kind = kind,
            .up = &up->link,
            .link = child_link(&arena, &up->link, kind->segment, id),
            .json = it.value,
            .name = arena_format(&arena, "%.*s%s%.*s", SLICE_ARG(up->name),
                                 up->name.len > 0 ? "/" : "", SLICE_ARG(id)),
            .place = seed_place_element(&list, i),
        };
        Json absent = json_get(it.value, SLICE("absent"));
        bool is_absent = json_is(absent, JSON_BOOL) && json_bool(absent);
        status = is_absent ? delete_target(run, &target, err) : function(run, &target, err);
        /* The innermost place is the one that says most. */
        if (status != STATUS_OK && strstr(err->message, "$.") == NULL)
            status = seed_place_context(&target.place, err);
        run->arena = before;
    }
    return status;
}

static Status apply_script(SeedRun *run, const Target *target, Error *err)
{
    Json body;
    TRY(seed_script_body(run->arena, run->options->file->folder, target->json, &body, err));
    return ensure(run, target, body, err);
}

static Status apply_plain(SeedRun *run, const Target *target, Error *err)
{
    return ensure(run, target, seed_plain_body(run->arena, target->json), err);
}

static Status apply_user(SeedRun *run, const Target *target, Error *err)
{
    TRY(apply_plain(run, target, err));
    return apply_list(run, target, "permissions", &PERMISSION, apply_plain, err);
}

/* Compares the throughput of a database or container that exists, and reports the resource. */
static Status settle_existing(SeedRun *run, const Target *target, Json found, bool is_replaced,
                              Error *err)
{
    bool is_changed = false;
    Json rid = json_get(found, SLICE("_rid"));
    if (!json_is(rid, JSON_STRING))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server's %s has no _rid",
                         target->kind->noun);
    TRY(seed_throughput_apply(run, target->json, json_string(rid), &is_changed, err));
    report(run, target, is_changed || is_replaced ? SEED_REPLACED : SEED_UNCHANGED);
    return STATUS_OK;
}

/* The server's container and the file's are compared in the form that the server itself gives to
 * every container: defaults filled in, words in one spelling. What cannot be changed is refused
 * there, with its name. */
static Status ensure_container(SeedRun *run, const Target *target, bool *is_new, Error *err)
{
    Json found, old, new;
    Json body = seed_container_body(run->arena, target->json);
    ContainerRules rules = {.allow_no_partition_key = true};
    TRY(read_target(run, target, &found, err));
    *is_new = json_is(found, JSON_UNDEFINED);
    if (*is_new)
        return create_target(run, target, body, seed_throughput_header(run->arena, target->json),
                             err);
    if (container_definition_create(run->arena, found, rules, &old, err) != STATUS_OK)
        return error_context(err, "the server's container is not understood");
    if (container_definition_replace(run->arena, old, body, &new, err) != STATUS_OK)
        return error_context(err, "the container exists and cannot become as the file says");
    bool is_replaced = !json_equal(old, new);
    if (is_replaced)
        TRY(replace_target(run, target, new, err));
    return settle_existing(run, target, found, is_replaced, err);
}

static Status apply_container(SeedRun *run, const Target *target, Error *err)
{
    bool is_new = false;
    TRY(ensure_container(run, target, &is_new, err));
    TRY(apply_list(run, target, "storedProcedures", &PROCEDURE, apply_script, err));
    TRY(apply_list(run, target, "triggers", &TRIGGER, apply_script, err));
    TRY(apply_list(run, target, "userDefinedFunctions", &FUNCTION, apply_script, err));
    Slice database = slice_from(target->up->link, strlen("dbs/"));
    return seed_items_apply(run, database, target->json, &target->place, is_new, err);
}

static Status apply_database(SeedRun *run, const Target *target, Error *err)
{
    Json found;
    TRY(read_target(run, target, &found, err));
    if (json_is(found, JSON_UNDEFINED)) {
        JsonBuilder b;
        json_build(&b, run->arena);
        json_begin_object(&b);
        json_key(&b, SLICE("id"));
        json_add(&b, json_get(target->json, SLICE("id")));
        json_end(&b);
        TRY(create_target(run, target, json_built(&b),
                          seed_throughput_header(run->arena, target->json), err));
    } else {
        TRY(settle_existing(run, target, found, false, err));
    }
    TRY(apply_list(run, target, "clientEncryptionKeys", &ENCRYPTION_KEY, apply_plain, err));
    TRY(apply_list(run, target, "containers", &CONTAINER, apply_container, err));
    return apply_list(run, target, "users", &USER, apply_user, err);
}

Status seed_run(const SeedOptions *options, SeedSummary *out, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    SeedRun run = {
        .options = options,
        .remote = {.client = options->client, .stop_fd = options->stop_fd},
        .arena = &arena,
    };
    Target root = {.json = options->file->root};
    Status status = apply_list(&run, &root, "databases", &DATABASE, apply_database, err);
    struct pollfd stop = {.fd = options->stop_fd, .events = POLLIN};
    if (status != STATUS_OK && options->stop_fd >= 0 && poll(&stop, 1, 0) > 0)
        run.summary.is_interrupted = true;
    *out = run.summary;
    return status == STATUS_OK ? STATUS_OK : error_context(err, "%.200s", options->file->path);
}

/* ---- what people read ---- */

const char *seed_change_word(SeedChange change)
{
    static const char *const WORDS[SEED_CHANGES] = {
        [SEED_CREATED] = "created",
        [SEED_REPLACED] = "replaced",
        [SEED_DELETED] = "deleted",
        [SEED_UNCHANGED] = "unchanged",
    };
    return WORDS[change];
}

SeedSummaryText seed_summary_text(const SeedSummary *s)
{
    SeedSummaryText out;
    uint64_t same = s->resources[SEED_UNCHANGED];
    uint64_t changes = s->resources[SEED_CREATED] + s->resources[SEED_REPLACED] +
                       s->resources[SEED_DELETED] + s->items_written;
    if (changes == 0)
        (void)snprintf(out.text, sizeof(out.text),
                       "Nothing was changed: %llu resources and %llu items are as the file says.",
                       (unsigned long long)same, (unsigned long long)s->items_unchanged);
    else
        (void)snprintf(out.text, sizeof(out.text),
                       "Resources: %llu created, %llu replaced, %llu deleted, %llu unchanged. "
                       "Items: %llu written, %llu unchanged.",
                       (unsigned long long)s->resources[SEED_CREATED],
                       (unsigned long long)s->resources[SEED_REPLACED],
                       (unsigned long long)s->resources[SEED_DELETED], (unsigned long long)same,
                       (unsigned long long)s->items_written,
                       (unsigned long long)s->items_unchanged);
    return out;
}
