/* catalog_model_test.c - random changes against a model of plain arrays, with restarts; and many
 * threads at once.
 */
#include "catalog/testing_int.h"

#include "base/random.h"
#include "base/test_seed.h"

#include <pthread.h>

enum { DATABASES = 6, CONTAINERS = 30, SCRIPTS = 4, USERS = 3, PERMISSIONS = 4, STEPS = 600 };

typedef struct ModelContainer {
    bool exists;
    uint32_t number;
    uint32_t ru;   /* of its own; 0 if it shares */
    int64_t ttl;   /* what was last written; 0 if none */
    char etag[64]; /* of the newest version */
    bool is_moving;
    uint32_t range_next; /* every id below it was given out */
    struct {
        uint32_t number; /* 0 if there is none of this name */
        unsigned version;
    } scripts[STORED_SCRIPT_KINDS][SCRIPTS];
} ModelContainer;

typedef struct ModelUser {
    uint32_t number; /* 0 if there is none of this name */
    struct {
        uint32_t number;  /* likewise */
        size_t link;      /* what it is for */
        uint64_t granted; /* since when */
        bool is_all;
    } permissions[PERMISSIONS];
} ModelUser;

typedef struct ModelDatabase {
    bool exists;
    uint32_t number;
    uint32_t ru; /* 0 if there is no throughput to share */
    ModelContainer containers[CONTAINERS];
    ModelUser users[USERS];
} ModelDatabase;

typedef struct Model {
    TestCatalog *t;
    Random random;
    ModelDatabase databases[DATABASES];
} Model;

static size_t shared_count(const ModelDatabase *database)
{
    size_t count = 0;
    for (size_t i = 0; i < CONTAINERS; i++)
        count += database->containers[i].exists && database->containers[i].ru == 0 ? 1 : 0;
    return count;
}

/* Some that are allowed, some that are not. */
static Provision random_provision(Model *m)
{
    static const uint32_t ru[] = {0, 0, 0, 400, 500, 10100, 300, 450};
    return MANUAL(ru[random_below(&m->random, ARRAY_COUNT(ru))]);
}

static bool is_allowed(Provision provision)
{
    return provision.ru == 0 || (provision.ru >= 400 && provision.ru % 100 == 0);
}

static Slice name_of(Model *m, const char *kind, size_t index)
{
    return arena_format(&m->t->arena, "%s %zu", kind, index);
}

static void create_database(Model *m, size_t i)
{
    ModelDatabase *database = &m->databases[i];
    Provision provision = random_provision(m);
    Status expected = database->exists         ? STATUS_CONFLICT
                      : !is_allowed(provision) ? STATUS_BAD_REQUEST
                                               : STATUS_OK;
    AUTO(test_change_done) TestChange c;
    fill_database(&c, name_of(m, "db", i), provision);
    assert_int_equal(test_run(m->t->catalog, &c), expected);
    if (expected == STATUS_OK)
        *database = (ModelDatabase){
            .exists = true, .number = c.change.result_database->info.number, .ru = provision.ru};
}

static void delete_database(Model *m, size_t i)
{
    ModelDatabase *database = &m->databases[i];
    assert_int_equal(delete_one(m->t, CATALOG_DELETE_DATABASE, database->number, 0),
                     database->exists ? STATUS_OK : STATUS_NOT_FOUND);
    database->exists = false;
}

static void note_etag(ModelContainer *container, Slice etag)
{
    (void)snprintf(container->etag, sizeof(container->etag), "%.*s", SLICE_ARG(etag));
}

static void create_container(Model *m, size_t i, size_t j)
{
    ModelDatabase *database = &m->databases[i];
    ModelContainer *container = &database->containers[j];
    Provision provision = random_provision(m);
    bool shares = provision.ru == 0 && database->ru != 0;
    Status expected = !database->exists        ? STATUS_NOT_FOUND
                      : container->exists      ? STATUS_CONFLICT
                      : !is_allowed(provision) ? STATUS_BAD_REQUEST
                      : shares && shared_count(database) == SHARED_CONTAINERS_MAX
                          ? STATUS_BAD_REQUEST
                          : STATUS_OK;
    AUTO(test_change_done) TestChange c;
    Slice id = name_of(m, "c", j);
    fill_container(&c, database->number, row_definition(&m->t->arena, id.ptr, ""), provision);
    assert_int_equal(test_run(m->t->catalog, &c), expected);
    if (expected != STATUS_OK)
        return;
    *container = (ModelContainer){
        .exists = true,
        .number = c.change.result_container->info.number,
        .ru = shares              ? 0
              : provision.ru == 0 ? 400
                                  : provision.ru,
    };
    note_etag(container, c.change.result_container->info.etag);
    container->range_next = c.change.result_container->range_next;
}

static void replace_container(Model *m, size_t i, size_t j)
{
    ModelDatabase *database = &m->databases[i];
    ModelContainer *container = &database->containers[j];
    static const Status outcomes[] = {STATUS_OK, STATUS_OK, STATUS_PRECONDITION_FAILED};
    size_t kind = random_below(&m->random, ARRAY_COUNT(outcomes));
    bool exists = database->exists && container->exists;
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = database->number;
    c.change.container = container->number;
    int64_t ttl = 1 + (int64_t)random_below(&m->random, 1000);
    Slice rest = arena_format(&m->t->arena, ",'defaultTtl':%lld", (long long)ttl);
    c.change.definition = row_definition(&m->t->arena, name_of(m, "c", j).ptr, rest.ptr);
    c.change.if_match = kind == 0   ? SLICE_EMPTY
                        : kind == 1 ? slice_from_cstr(container->etag)
                                    : SLICE("\"another\"");
    assert_int_equal(test_run(m->t->catalog, &c), exists ? outcomes[kind] : STATUS_NOT_FOUND);
    if (c.change.status != STATUS_OK)
        return;
    container->ttl = ttl;
    note_etag(container, c.change.result_container->info.etag);
}

static void delete_container(Model *m, size_t i, size_t j)
{
    ModelDatabase *database = &m->databases[i];
    ModelContainer *container = &database->containers[j];
    bool exists = database->exists && container->exists;
    assert_int_equal(
        delete_one(m->t, CATALOG_DELETE_CONTAINER, database->number, container->number),
        exists ? STATUS_OK : STATUS_NOT_FOUND);
    container->exists = false;
}

/* The offer of a database or of one of its containers. */
static void replace_offer(Model *m, size_t i, size_t j)
{
    ModelDatabase *database = &m->databases[i];
    ModelContainer *container = &database->containers[j];
    bool of_database = random_below(&m->random, 2) == 0;
    const Snapshot *snapshot = test_read(m->t);
    const Database *d = snapshot_database(snapshot, database->number);
    const Container *c = snapshot_container(snapshot, database->number, container->number);
    uint32_t offer = of_database ? (d == NULL ? 0 : d->offer) : (c == NULL ? 0 : c->offer);
    uint32_t *ru = of_database ? &database->ru : &container->ru;
    bool exists = database->exists && (of_database || container->exists) && *ru != 0;
    assert_int_equal(offer != 0, exists);
    AUTO(test_change_done) TestChange change;
    test_change_init(&change, CATALOG_REPLACE_OFFER);
    change.change.offer = offer;
    change.change.provision = MANUAL(500 + 50 * (uint32_t)random_below(&m->random, 10));
    uint32_t wanted = change.change.provision.ru;
    assert_int_equal(test_run(m->t->catalog, &change), !exists             ? STATUS_NOT_FOUND
                                                       : wanted % 100 != 0 ? STATUS_BAD_REQUEST
                                                                           : STATUS_OK);
    if (change.change.status == STATUS_OK)
        *ru = wanted;
}

/* A split or a merge of what is there, cut at most once, in the middle of the first source. */
static void begin_one(Model *m, ModelContainer *model, const Container *container)
{
    size_t first = random_below(&m->random, container->range_count);
    size_t left = container->range_count - first;
    size_t sources = 1 + random_below(&m->random, left < 3 ? left : 3);
    bool is_cut = sources == 1 || random_below(&m->random, 2) == 0;
    const PartitionRange *from = &container->ranges[first];
    Slice cut = arena_format(&m->t->arena, "%.*s01", SLICE_ARG(from->min));
    bool fits = slice_compare(cut, from[sources - 1].max) < 0;
    AUTO(test_change_done) TestChange c;
    fill_move(&c, CATALOG_BEGIN_MOVE, container);
    c.change.range_first = from->id;
    c.change.range_last = from[sources - 1].id;
    c.change.cuts = &cut;
    c.change.cut_count = is_cut ? 1 : 0;
    Status expected = model->is_moving  ? STATUS_CONFLICT
                      : is_cut && !fits ? STATUS_BAD_REQUEST
                                        : STATUS_OK;
    assert_int_equal(test_run(m->t->catalog, &c), expected);
    if (expected != STATUS_OK)
        return;
    assert_int_equal(c.change.result_container->pending[0].id, model->range_next);
    model->range_next += is_cut ? 2 : 1;
    model->is_moving = true;
}

static void end_one(Model *m, ModelContainer *model, const Container *container)
{
    CatalogOp op = random_below(&m->random, 3) == 0 ? CATALOG_UNDO_MOVE : CATALOG_END_MOVE;
    AUTO(test_change_done) TestChange c;
    fill_move(&c, op, container);
    size_t sources = 0;
    (void)container_sources(container, &sources);
    size_t expected = op == CATALOG_UNDO_MOVE
                          ? container->range_count
                          : container->range_count - sources + container->pending_count;
    assert_int_equal(test_run(m->t->catalog, &c), model->is_moving ? STATUS_OK : STATUS_NOT_FOUND);
    if (model->is_moving)
        assert_int_equal(c.change.result_container->range_count, expected);
    model->is_moving = false;
}

static void move(Model *m, size_t i, size_t j)
{
    ModelContainer *model = &m->databases[i].containers[j];
    const Container *container = test_container(m->t, m->databases[i].number, model->number);
    if (!m->databases[i].exists || !model->exists)
        return;
    if (random_below(&m->random, 2) == 0)
        begin_one(m, model, container);
    else
        end_one(m, model, container);
}

/* Creates, upserts, replaces, renames or deletes one script. */
static void change_script(Model *m, size_t i, size_t j)
{
    ModelDatabase *database = &m->databases[i];
    ModelContainer *container = &database->containers[j];
    StoredScriptGroup group = {database->number, container->number,
                               (StoredScriptKind)random_below(&m->random, STORED_SCRIPT_KINDS)};
    size_t from = random_below(&m->random, SCRIPTS);
    size_t to = random_below(&m->random, SCRIPTS); /* the name that it has afterwards */
    unsigned version = (unsigned)random_below(&m->random, 1000);
    static const CatalogOp ops[] = {CATALOG_CREATE_SCRIPT, CATALOG_CREATE_SCRIPT,
                                    CATALOG_REPLACE_SCRIPT, CATALOG_DELETE_SCRIPT};
    CatalogOp op = ops[random_below(&m->random, ARRAY_COUNT(ops))];
    AUTO(test_change_done) TestChange c;
    fill_script(&c, op, group,
                row_script(&m->t->arena, group.kind, arena_cstr(&m->t->arena, name_of(m, "s", to)),
                           arena_cstr(&m->t->arena, arena_format(&m->t->arena, "%u", version))));
    c.change.is_upsert = random_below(&m->random, 2) == 0;
    bool is_owned = database->exists && container->exists;
    uint32_t old = is_owned ? container->scripts[group.kind][from].number : 0;
    uint32_t there = is_owned ? container->scripts[group.kind][to].number : 0;
    c.change.script = old;
    bool is_create = op == CATALOG_CREATE_SCRIPT;
    bool is_taken = is_create ? there != 0 && !c.change.is_upsert
                              : op == CATALOG_REPLACE_SCRIPT && there != 0 && there != old;
    Status expected = !is_owned || (!is_create && old == 0) ? STATUS_NOT_FOUND
                      : is_taken                            ? STATUS_CONFLICT
                                                            : STATUS_OK;
    assert_int_equal(test_run(m->t->catalog, &c), expected);
    if (expected != STATUS_OK)
        return;
    if (!is_create)
        container->scripts[group.kind][from].number = 0;
    if (op == CATALOG_DELETE_SCRIPT)
        return;
    uint32_t number = c.change.result_script->info.number;
    assert_true(is_create ? there == 0 || number == there : number == old);
    container->scripts[group.kind][to].number = number;
    container->scripts[group.kind][to].version = version;
}

/* Creates, upserts, renames or deletes one user. */
static void change_user(Model *m, size_t i)
{
    ModelDatabase *database = &m->databases[i];
    size_t from = random_below(&m->random, USERS);
    size_t to = random_below(&m->random, USERS);
    static const CatalogOp ops[] = {CATALOG_CREATE_USER, CATALOG_CREATE_USER, CATALOG_REPLACE_USER,
                                    CATALOG_DELETE_USER};
    CatalogOp op = ops[random_below(&m->random, ARRAY_COUNT(ops))];
    AUTO(test_change_done) TestChange c;
    fill_user(&c, op, database->number, arena_cstr(&m->t->arena, name_of(m, "u", to)));
    c.change.is_upsert = random_below(&m->random, 2) == 0;
    uint32_t old = database->exists ? database->users[from].number : 0;
    uint32_t there = database->exists ? database->users[to].number : 0;
    c.change.user = old;
    bool is_create = op == CATALOG_CREATE_USER;
    bool is_taken = is_create ? there != 0 && !c.change.is_upsert
                              : op == CATALOG_REPLACE_USER && there != 0 && there != old;
    Status expected = !database->exists || (!is_create && old == 0) ? STATUS_NOT_FOUND
                      : is_taken                                    ? STATUS_CONFLICT
                                                                    : STATUS_OK;
    assert_int_equal(test_run(m->t->catalog, &c), expected);
    if (expected != STATUS_OK)
        return;
    if (op == CATALOG_DELETE_USER) {
        database->users[from] = (ModelUser){0};
        return;
    }
    uint32_t number = c.change.result_user->info.number;
    assert_true(is_create ? there == 0 || number == there : number == old);
    ModelUser moved = is_create ? database->users[to] : database->users[from];
    if (!is_create)
        database->users[from] = (ModelUser){0};
    moved.number = number;
    database->users[to] = moved;
}

/* Whether another permission than the one with this number is for the link. */
static bool is_granted(const ModelUser *user, size_t link, uint32_t except)
{
    for (size_t i = 0; i < PERMISSIONS; i++) {
        if (user->permissions[i].number != 0 && user->permissions[i].number != except &&
            user->permissions[i].link == link)
            return true;
    }
    return false;
}

/* Creates, upserts, replaces, renames or deletes one permission. */
static void change_permission(Model *m, size_t i)
{
    ModelDatabase *database = &m->databases[i];
    ModelUser *user = &database->users[random_below(&m->random, USERS)];
    size_t from = random_below(&m->random, PERMISSIONS);
    size_t to = random_below(&m->random, PERMISSIONS);
    size_t link = random_below(&m->random, 3);
    bool is_all = random_below(&m->random, 2) == 0;
    static const CatalogOp ops[] = {CATALOG_CREATE_PERMISSION, CATALOG_CREATE_PERMISSION,
                                    CATALOG_REPLACE_PERMISSION, CATALOG_DELETE_PERMISSION};
    CatalogOp op = ops[random_below(&m->random, ARRAY_COUNT(ops))];
    Arena *arena = &m->t->arena;
    Slice rest = arena_format(arena, "'resource':'dbs/d/colls/%zu'", link);
    AUTO(test_change_done) TestChange c;
    fill_permission(&c, op, (UserKey){database->number, user->number},
                    row_permission(arena, arena_cstr(arena, name_of(m, "p", to)),
                                   is_all ? "All" : "Read", arena_cstr(arena, rest)));
    c.change.is_upsert = random_below(&m->random, 2) == 0;
    bool is_owned = database->exists && user->number != 0;
    bool is_create = op == CATALOG_CREATE_PERMISSION;
    uint32_t old = is_owned ? user->permissions[from].number : 0;
    uint32_t there = is_owned ? user->permissions[to].number : 0;
    uint32_t replaced = is_create ? there : old; /* by this one, if there is one */
    c.change.permission = old;
    bool is_taken = is_create ? there != 0 && !c.change.is_upsert : there != 0 && there != old;
    bool is_refused =
        op != CATALOG_DELETE_PERMISSION && (is_taken || is_granted(user, link, replaced));
    Status expected = !is_owned || (!is_create && old == 0) ? STATUS_NOT_FOUND
                      : is_refused                          ? STATUS_CONFLICT
                                                            : STATUS_OK;
    assert_int_equal(test_run(m->t->catalog, &c), expected);
    if (expected != STATUS_OK)
        return;
    size_t at = is_create ? to : from;
    bool keeps = replaced != 0 && user->permissions[at].link == link &&
                 (is_all || !user->permissions[at].is_all);
    uint64_t granted = user->permissions[at].granted;
    user->permissions[at].number = 0;
    if (op == CATALOG_DELETE_PERMISSION)
        return;
    const Permission *made = c.change.result_permission;
    assert_true(replaced == 0 || made->info.number == replaced);
    assert_int_equal(made->granted_lsn, keeps ? granted : made->info.lsn);
    user->permissions[to].number = made->info.number;
    user->permissions[to].link = link;
    user->permissions[to].is_all = is_all;
    user->permissions[to].granted = made->granted_lsn;
}

static void restart(Model *m)
{
    test_reopen(m->t);
    for (size_t i = 0; i < DATABASES; i++) {
        for (size_t j = 0; j < CONTAINERS; j++)
            m->databases[i].containers[j].is_moving = false;
    }
}

static void step(Model *m)
{
    size_t i = random_below(&m->random, DATABASES);
    size_t j = random_below(&m->random, CONTAINERS);
    uint64_t what = random_below(&m->random, 100);
    if (what < 10)
        create_database(m, i);
    else if (what < 13)
        delete_database(m, i);
    else if (what < 60)
        create_container(m, i, j);
    else if (what < 68)
        replace_container(m, i, j);
    else if (what < 82)
        for (int n = 0; n < 4; n++) {
            move(m, i, j);
            change_script(m, i, j);
            change_script(m, i, j);
            change_user(m, i);
            change_permission(m, i);
            change_permission(m, i);
        }
    else if (what < 89)
        delete_container(m, i, j);
    else if (what < 98)
        replace_offer(m, i, j);
    else
        restart(m);
}

/* The map is whole, and everything in it was given out once. */
static void compare_map(const Container *found, const ModelContainer *expected)
{
    assert_int_equal(found->range_next, expected->range_next);
    assert_int_equal(found->pending_count > 0, expected->is_moving);
    Slice bound = SLICE("");
    for (size_t i = 0; i < found->range_count; i++) {
        const PartitionRange *range = &found->ranges[i];
        assert_slice(range->min, bound);
        assert_true(slice_compare(range->min, range->max) < 0);
        bound = range->max;
        assert_true(range->id < found->range_next);
        for (size_t j = 0; j < found->range_count; j++) {
            assert_true(j == i || found->ranges[j].id != range->id);
            assert_true(j == i || found->ranges[j].space != range->space);
            /* A range of the map is no other range's ancestor (I11). */
            assert_true(j == i || !partition_range_is_from(range, found->ranges[j].id));
        }
    }
    assert_slice(bound, SLICE("FF"));
}

static void compare_scripts(Model *m, const Container *found, const ModelContainer *expected)
{
    for (size_t kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        StoredScriptGroup group = container_scripts(found, (StoredScriptKind)kind);
        size_t count = 0;
        for (size_t k = 0; k < SCRIPTS; k++) {
            uint32_t number = expected->scripts[kind][k].number;
            const StoredScript *script =
                snapshot_script_by_id(test_read(m->t), group, name_of(m, "s", k));
            assert_int_equal(script == NULL ? 0 : script->info.number, number);
            if (script == NULL)
                continue;
            count++;
            assert_slice(script->body,
                         arena_format(&m->t->arena, "%u", expected->scripts[kind][k].version));
        }
        assert_int_equal(snapshot_script_count(test_read(m->t), group), count);
    }
}

static void compare_container(Model *m, size_t i, size_t j)
{
    const ModelDatabase *database = &m->databases[i];
    const ModelContainer *expected = &database->containers[j];
    const Snapshot *snapshot = test_read(m->t);
    const Container *found =
        snapshot_container_by_id(snapshot, database->number, name_of(m, "c", j));
    assert_int_equal(found != NULL, expected->exists);
    if (found == NULL)
        return;
    assert_int_equal(found->info.number, expected->number);
    assert_slice(found->info.etag, slice_from_cstr(expected->etag));
    int64_t ttl = 0;
    (void)json_to_i64(json_get(found->definition, SLICE("defaultTtl")), &ttl);
    assert_int_equal(ttl, expected->ttl);
    const Offer *offer = snapshot_offer(snapshot, found->offer);
    assert_int_equal(offer == NULL ? 0 : offer->provision.ru, expected->ru);
    compare_map(found, expected);
    compare_scripts(m, found, expected);
}

static void compare_users(Model *m, const ModelDatabase *expected)
{
    const Snapshot *snapshot = test_read(m->t);
    size_t users = 0;
    for (size_t k = 0; k < USERS; k++) {
        const ModelUser *model = &expected->users[k];
        const User *user = snapshot_user_by_id(snapshot, expected->number, name_of(m, "u", k));
        assert_int_equal(user == NULL ? 0 : user->info.number, model->number);
        if (user == NULL)
            continue;
        users++;
        size_t count = 0;
        for (size_t l = 0; l < PERMISSIONS; l++) {
            const Permission *permission =
                snapshot_permission_by_id(snapshot, user_key(user), name_of(m, "p", l));
            assert_int_equal(permission == NULL ? 0 : permission->info.number,
                             model->permissions[l].number);
            if (permission == NULL)
                continue;
            count++;
            assert_int_equal(permission->granted_lsn, model->permissions[l].granted);
            assert_int_equal(permission->mode == PERMISSION_ALL, model->permissions[l].is_all);
        }
        assert_int_equal(snapshot_permission_count(snapshot, user_key(user)), count);
    }
    assert_int_equal(snapshot_user_count(snapshot, expected->number), users);
}

static void compare(Model *m)
{
    (void)test_dump(m->t); /* checks that the snapshot agrees with itself */
    for (size_t i = 0; i < DATABASES; i++) {
        const ModelDatabase *expected = &m->databases[i];
        const Snapshot *snapshot = test_read(m->t);
        const Database *found = snapshot_database_by_id(snapshot, name_of(m, "db", i));
        assert_int_equal(found != NULL, expected->exists);
        if (found == NULL)
            continue;
        assert_int_equal(found->info.number, expected->number);
        const Offer *offer = snapshot_offer(snapshot, found->offer);
        assert_int_equal(offer == NULL ? 0 : offer->provision.ru, expected->ru);
        assert_int_equal(snapshot_shared_count(snapshot, found->info.number),
                         shared_count(expected));
        for (size_t j = 0; j < CONTAINERS; j++)
            compare_container(m, i, j);
        compare_users(m, expected);
    }
}

static void random_changes_do_what_a_model_says(TestCatalog *t)
{
    Model m = {.t = t};
    random_init(&m.random, test_seed());
    for (int i = 0; i < STEPS; i++) {
        step(&m);
        if (i % 50 == 0) {
            compare(&m);
            arena_reset(&t->arena);
        }
    }
    compare(&m);
    restart(&m); /* which undoes moves */
    compare(&m);
    Slice before = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), before);
}

/* ---- many threads ---- */

enum { SENDERS = 8, READERS = 2, ROUNDS = 60 };

typedef struct Sender {
    pthread_t thread;
    TestCatalog *t;
    unsigned index;
    _Atomic bool *stop;
    uint64_t looks; /* readers */
} Sender;

/* Creates, checks that it sees what it was told, races for one name, deletes. */
static void *send(void *arg)
{
    Sender *self = arg;
    Catalog *catalog = self->t->catalog;
    CatalogReader reader;
    catalog_reader_init(&reader, catalog);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json definition = row_definition(&arena, "c", "");
    for (unsigned i = 0; i < ROUNDS; i++) {
        AUTO(test_change_done) TestChange own;
        fill_database(&own, arena_format(&arena, "db %u", self->index), MANUAL(400));
        ASSERT(test_run(catalog, &own) == STATUS_OK);
        uint32_t number = own.change.result_database->info.number;
        ASSERT(snapshot_database(catalog_read(&reader), number) != NULL);
        AUTO(test_change_done) TestChange container;
        fill_container(&container, number, definition, MANUAL(0));
        ASSERT(test_run(catalog, &container) == STATUS_OK);
        ASSERT(snapshot_next_container(catalog_read(&reader), number, 0) != NULL);
        AUTO(test_change_done) TestChange race;
        fill_database(&race, SLICE("everybody wants this"), MANUAL(0));
        Status status = test_run(catalog, &race);
        ASSERT(status == STATUS_OK || status == STATUS_CONFLICT);
        if (status == STATUS_OK)
            ASSERT(delete_one(self->t, CATALOG_DELETE_DATABASE,
                              race.change.result_database->info.number, 0) == STATUS_OK);
        ASSERT(delete_one(self->t, CATALOG_DELETE_DATABASE, number, 0) == STATUS_OK);
        ASSERT(snapshot_database(catalog_read(&reader), number) == NULL);
    }
    catalog_reader_done(&reader);
    return NULL;
}

/* Walks everything, over and over; a snapshot agrees with itself whatever happens. */
static void *look(void *arg)
{
    Sender *self = arg;
    CatalogReader reader;
    catalog_reader_init(&reader, self->t->catalog);
    while (!atomic_load(self->stop)) {
        const Snapshot *snapshot = catalog_read(&reader);
        AUTO(buf_done) Buf text;
        buf_init(&text, (size_t)16 << 20);
        dump_snapshot(snapshot, &text);
        self->looks++;
    }
    catalog_reader_done(&reader);
    return NULL;
}

static void many_threads_change_and_read_at_once(TestCatalog *t)
{
    static Sender threads[SENDERS + READERS];
    _Atomic bool stop = false;
    make_container(t, make_database(t, "always there", MANUAL(0)), "c", MANUAL(100000));
    Slice before = test_dump(t);
    for (unsigned i = 0; i < SENDERS + READERS; i++) {
        threads[i] = (Sender){.t = t, .index = i, .stop = &stop};
        assert_int_equal(
            pthread_create(&threads[i].thread, NULL, i < SENDERS ? send : look, &threads[i]), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
    atomic_store(&stop, true);
    for (unsigned i = SENDERS; i < SENDERS + READERS; i++) {
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
        assert_true(threads[i].looks > 0);
    }
    assert_slice(test_dump(t), before);
    test_reopen(t);
    assert_slice(test_dump(t), before);
}

/* A group's last answer may be followed by the end of everything. */
static void a_catalogue_may_be_closed_after_the_last_answer(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        AUTO(test_close) TestCatalog t;
        test_open(&t, TEST_MEMORY);
        uint32_t database = make_database(&t, "db", MANUAL(0));
        assert_int_equal(delete_one(&t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    }
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(random_changes_do_what_a_model_says),
        ENGINE_TEST(many_threads_change_and_read_at_once),
    };
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_catalogue_may_be_closed_after_the_last_answer),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("model", tests, ARRAY_COUNT(tests));
}
