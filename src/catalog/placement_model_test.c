/* placement_model_test.c - random changes on a leader, whichever node that is: after each refresh
 * the follower shows the same, every object that did not change is the same object, and each node
 * has partitions for the ranges that it serves and for no others. */
#include "base/random.h"
#include "base/test_seed.h"
#include "catalog/placement_testing_int.h"
#include "catalog/saved_states.h"

enum { ROUNDS = 1500, OPS_MAX = 5, NAMES = 4 };

typedef struct Model {
    Pair pair;
    TestNode *leader;
    TestNode *follower;
    Random random;
    size_t states; /* saved, restored and dropped */
    size_t kept;   /* containers that stayed the same object while others changed */
} Model;

static void model_close(Model *m)
{
    pair_close(&m->pair);
}
DEFINE_AUTO_VALUE(Model, model_close)

static size_t below(Model *m, size_t max)
{
    return (size_t)random_below(&m->random, max);
}

static const char *name(Model *m, const char *kind)
{
    return arena_cstr(&m->leader->t.arena,
                      arena_format(&m->leader->t.arena, "%s%zu", kind, below(m, NAMES)));
}

/* Any database; NULL if there is none. */
static const Database *any_database(Model *m)
{
    const Database *list[64];
    size_t count = 0;
    const Database *database;
    const Snapshot *snapshot = test_read(&m->leader->t);
    for (uint32_t from = 0;
         count < 64 && (database = snapshot_next_database(snapshot, from)) != NULL;
         from = database->info.number + 1)
        list[count++] = database;
    return count == 0 ? NULL : list[below(m, count)];
}

static const Container *any_container(Model *m)
{
    const Container *list[256];
    size_t count = 0;
    SnapshotWalk walk = {0};
    const Snapshot *snapshot = test_read(&m->leader->t);
    while (count < 256 && snapshot_next(snapshot, &walk))
        list[count++] = walk.container;
    return count == 0 ? NULL : list[below(m, count)];
}

/* Most are meant to succeed, and all may be refused. */
static void run(Model *m, TestChange *c)
{
    (void)test_run(m->leader->t.catalog, c);
    test_change_done(c);
}

static void change_databases(Model *m)
{
    TestChange c;
    const Database *database = any_database(m);
    if (database != NULL && below(m, 4) == 0) {
        (void)delete_one(&m->leader->t, CATALOG_DELETE_DATABASE, database->info.number, 0);
        return;
    }
    fill_database(&c, slice_from_cstr(name(m, "d")), below(m, 2) == 0 ? MANUAL(0) : MANUAL(2000));
    run(m, &c);
}

static void change_containers(Model *m)
{
    TestChange c;
    const Database *database = any_database(m);
    const Container *container = any_container(m);
    Arena *arena = &m->leader->t.arena;
    const char *ttl = below(m, 2) == 0 ? ",'defaultTtl':60" : "";
    if (container != NULL && below(m, 3) == 0) {
        test_change_init(&c, CATALOG_REPLACE_CONTAINER);
        c.change.database = container->database;
        c.change.container = container->info.number;
        c.change.definition = row_definition(arena, arena_cstr(arena, container->info.id), ttl);
        run(m, &c);
    } else if (container != NULL && below(m, 3) == 0) {
        (void)delete_one(&m->leader->t, CATALOG_DELETE_CONTAINER, container->database,
                         container->info.number);
    } else if (database != NULL) {
        fill_container(&c, database->info.number, row_definition(arena, name(m, "c"), ttl),
                       below(m, 2) == 0 ? MANUAL(0) : MANUAL(3000));
        c.change.first_range = below(m, 2) == 0 ? 0 : 1000;
        run(m, &c);
    }
}

static void change_offers(Model *m)
{
    const Container *container = any_container(m);
    if (container == NULL || container->offer == 0)
        return;
    TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = container->offer;
    c.change.provision = MANUAL(1000 * (1 + (uint32_t)below(m, 5)));
    run(m, &c);
}

static void change_moves(Model *m)
{
    const Container *container = any_container(m);
    if (container == NULL)
        return;
    TestChange c;
    if (container->pending_count > 0) {
        fill_move(&c, below(m, 3) == 0 ? CATALOG_UNDO_MOVE : CATALOG_END_MOVE, container);
    } else {
        size_t at = below(m, container->range_count);
        const PartitionRange *range = &container->ranges[at];
        Slice cut = arena_format(&m->leader->t.arena, "%.*s80",
                                 SLICE_ARG(range->min.len == 0 ? SLICE("00") : range->min));
        fill_begin(&m->leader->t, &c, container, range->id, range->id,
                   arena_cstr(&m->leader->t.arena, cut));
    }
    run(m, &c);
}

static void change_users(Model *m)
{
    const Database *database = any_database(m);
    if (database == NULL)
        return;
    uint32_t number = database->info.number;
    const Snapshot *snapshot = test_read(&m->leader->t);
    const User *user = snapshot_next_user(snapshot, number, 0);
    TestChange c;
    static const CatalogOp ops[] = {CATALOG_CREATE_USER, CATALOG_REPLACE_USER, CATALOG_DELETE_USER};
    fill_user(&c, user == NULL ? CATALOG_CREATE_USER : ops[below(m, 3)], number, name(m, "u"));
    c.change.user = user == NULL ? 0 : user->info.number;
    run(m, &c);
    if (user == NULL)
        return;
    Arena *arena = &m->leader->t.arena;
    UserKey key = {number, c.change.user};
    const Permission *permission = snapshot_next_permission(test_read(&m->leader->t), key, 0);
    static const CatalogOp grants[] = {CATALOG_CREATE_PERMISSION, CATALOG_REPLACE_PERMISSION,
                                       CATALOG_DELETE_PERMISSION};
    Slice rest = arena_format(arena, "'resource':'dbs/d/colls/%zu'", below(m, 3));
    fill_permission(&c, permission == NULL ? CATALOG_CREATE_PERMISSION : grants[below(m, 3)], key,
                    row_permission(arena, name(m, "p"), below(m, 2) == 0 ? "All" : "Read",
                                   arena_cstr(arena, rest)));
    c.change.permission = permission == NULL ? 0 : permission->info.number;
    run(m, &c);
}

static void change_scripts(Model *m)
{
    const Container *container = any_container(m);
    if (container == NULL)
        return;
    StoredScriptGroup group =
        container_scripts(container, (StoredScriptKind)below(m, STORED_SCRIPT_KINDS));
    const StoredScript *script = snapshot_next_script(test_read(&m->leader->t), group, 0);
    TestChange c;
    static const CatalogOp ops[] = {CATALOG_CREATE_SCRIPT, CATALOG_REPLACE_SCRIPT,
                                    CATALOG_DELETE_SCRIPT};
    fill_script(&c, script == NULL ? CATALOG_CREATE_SCRIPT : ops[below(m, 3)], group,
                row_script(&m->leader->t.arena, group.kind, name(m, "s"), "function () {}"));
    c.change.script = script == NULL ? 0 : script->info.number;
    run(m, &c);
}

static void change_keys(Model *m)
{
    const Database *database = any_database(m);
    if (database == NULL)
        return;
    Arena *arena = &m->leader->t.arena;
    const EncryptionKey *key =
        snapshot_next_key(test_read(&m->leader->t), database->info.number, 0);
    TestChange c;
    test_change_init(&c,
                     key == NULL || below(m, 2) == 0 ? CATALOG_CREATE_KEY : CATALOG_REPLACE_KEY);
    c.change.database = database->info.number;
    c.change.key = key == NULL ? 0 : key->info.number;
    const char *id =
        c.change.op == CATALOG_CREATE_KEY ? name(m, "k") : arena_cstr(arena, key->info.id);
    c.change.definition =
        row_json(arena, arena_cstr(arena, arena_format(arena,
                                                       "{'id':'%s','encryptionAlgorithm':'x',"
                                                       "'wrappedDataEncryptionKey':'AAAA',"
                                                       "'keyWrapMetadata':{'n':%zu}}",
                                                       id, below(m, 100))));
    run(m, &c);
}

/* All of a swap: the name of one container goes to another one of its database. */
static void change_names(Model *m)
{
    const Container *old = any_container(m);
    if (old == NULL || old->pending_count > 0)
        return;
    uint32_t database = old->database;
    uint32_t source = old->info.number;
    const Container *copy = snapshot_next_container(test_read(&m->leader->t), database, 0);
    TestChange c;
    test_change_init(&c, CATALOG_BEGIN_SWAP);
    c.change.database = database;
    c.change.container = source;
    uint32_t target = copy->info.number;
    run(m, &c);
    test_change_init(&c, CATALOG_END_SWAP);
    c.change.database = database;
    c.change.container = source;
    c.change.copy = target;
    c.change.id = slice_from_cstr(name(m, "old"));
    run(m, &c);
    test_change_init(&c, CATALOG_UNDO_SWAP); /* if it was refused */
    c.change.database = database;
    c.change.container = source;
    run(m, &c);
}

/* They are tried for long while a container is moved. */
static bool is_moving(Model *m)
{
    SnapshotWalk walk = {0};
    const Snapshot *snapshot = test_read(&m->leader->t);
    while (snapshot_next(snapshot, &walk)) {
        if (walk.container->pending_count > 0)
            return true;
    }
    return false;
}

static void gather_all(Model *m)
{
    for (bool is_moved = true; is_moved;) {
        is_moved = false;
        SnapshotWalk walk = {0};
        const Snapshot *snapshot = test_read(&m->leader->t);
        while (!is_moved && snapshot_next(snapshot, &walk)) {
            for (size_t i = 0; !is_moved && i < walk.container->range_count; i++) {
                StoreSpace space = walk.container->ranges[i].space;
                is_moved = !node_is_local(m->leader, space);
                if (is_moved)
                    node_hand_over(m->follower, m->leader, space);
            }
        }
    }
}

/* Where not all partitions of the database are here, these are refused. */
static void change_states(Model *m)
{
    Catalog *catalog = m->leader->t.catalog;
    const Database *any = any_database(m);
    const SavedState *saved = snapshot_next_saved(test_read(&m->leader->t), 0);
    Arena *arena = &m->leader->t.arena;
    if (below(m, 2) == 0)
        gather_all(m);
    Slice database = any == NULL ? SLICE("none") : arena_copy(arena, any->info.id);
    Slice state = slice_from_cstr(name(m, "s"));
    if (saved != NULL && below(m, 2) == 0) {
        database = arena_copy(arena, saved->database_id);
        state = arena_copy(arena, saved->name);
    }
    bool has_replaced = false;
    Error err;
    size_t choice = below(m, 4);
    if (is_moving(m))
        return;
    Status status = choice < 2 ? catalog_save_state(catalog, database, state, &has_replaced, &err)
                    : choice == 2 ? catalog_restore_state(catalog, database, state, &err)
                                  : catalog_drop_state(catalog, database, state, &err);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND && status != STATUS_NOT_OWNER)
        fail_msg("%s", err.message);
    m->states += status == STATUS_OK ? 1 : 0;
}

/* A space goes to the other node. */
static void change_owner(Model *m)
{
    const Container *container = any_container(m);
    if (container == NULL)
        return;
    StoreSpace space = container->ranges[below(m, container->range_count)].space;
    bool is_here = node_is_local(m->leader, space);
    node_hand_over(is_here ? m->leader : m->follower, is_here ? m->follower : m->leader, space);
}

static void change_leader(Model *m)
{
    node_switch(m->leader, m->follower);
    TestNode *before = m->leader;
    m->leader = m->follower;
    m->follower = before;
}

static void change_any(Model *m)
{
    static void (*const changes[])(Model * m) = {
        change_databases, change_containers, change_containers, change_containers, change_offers,
        change_moves,     change_moves,      change_users,      change_scripts,    change_keys,
        change_names,     change_states,     change_owner,
    };
    changes[below(m, ARRAY_COUNT(changes))](m);
}

/* ---- what must hold after a refresh ---- */

static void dump_more(const Snapshot *snapshot, Buf *out)
{
    const Database *database;
    const EncryptionKey *key;
    for (uint32_t i = 0; (database = snapshot_next_database(snapshot, i)) != NULL;
         i = database->info.number + 1) {
        for (uint32_t j = 0; (key = snapshot_next_key(snapshot, database->info.number, j)) != NULL;
             j = key->info.number + 1) {
            buf_slice(out, SLICE("\nkey "));
            dump_info(&key->info, out);
            json_print(key->definition, out);
            assert_ptr_equal(snapshot_key_by_id(snapshot, database->info.number, key->info.id),
                             key);
        }
    }
    const SavedState *state;
    for (uint32_t i = 0; (state = snapshot_next_saved(snapshot, i)) != NULL;
         i = state->number + 1) {
        buf_format(out, "\nstate %u %.*s of %.*s (%u) at %lld %s", state->number,
                   SLICE_ARG(state->name), SLICE_ARG(state->database_id), state->database,
                   (long long)state->saved_at_s, state->is_restoring ? "restoring" : "");
        for (size_t k = 0; k < state->container_count; k++)
            buf_format(out, " %u", state->containers[k]);
    }
}

static Slice dump_all(TestNode *node)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)64 << 20);
    dump_snapshot(test_read(&node->t), &text);
    dump_more(test_read(&node->t), &text);
    return arena_copy(&node->t.arena, buf_view(&text));
}

/* Without its scripts, which are objects of their own. */
static Slice describe(Arena *arena, const Container *container)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)1 << 20);
    dump_info(&container->info, &text);
    buf_format(&text, "offer=%u next=%u lsn=%llu", container->offer, container->range_next,
               (unsigned long long)container->ranges_lsn);
    json_print(container->definition, &text);
    dump_ranges("space", container->ranges, container->range_count, &text);
    dump_ranges("pending", container->pending, container->pending_count, &text);
    return arena_copy(arena, buf_view(&text));
}

static void check_kept(Model *m, const Snapshot *before, const Snapshot *after)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    SnapshotWalk walk = {0};
    while (snapshot_next(before, &walk)) {
        const Container *old = walk.container;
        const Container *now = snapshot_container(after, old->database, old->info.number);
        if (now == NULL || now == old) {
            m->kept += now == old ? 1 : 0;
            continue;
        }
        if (slice_equal(describe(&arena, old), describe(&arena, now)))
            fail_msg("container %u was made again though nothing of it has changed",
                     old->info.number);
    }
    const Offer *offer;
    for (uint32_t i = 0; (offer = snapshot_next_offer(before, i)) != NULL;
         i = offer->info.number + 1) {
        const Offer *now = snapshot_offer(after, offer->info.number);
        if (now != NULL && now != offer && now->info.lsn == offer->info.lsn)
            assert_true(now->storage_kb_ever != offer->storage_kb_ever);
    }
}

static void check_handle(TestNode *node, const PartitionHandle *handle)
{
    StoreSpace space = handle_range(handle)->space;
    assert_int_equal(handle_is_local(handle), node_is_local(node, space));
    assert_int_equal(handle_is_served(handle), handle_is_local(handle));
}

/* One partition for each space that the node serves, and a budget that is the owner's. */
static void check_handles(TestNode *node)
{
    SnapshotWalk walk = {0};
    const Snapshot *snapshot = test_read(&node->t);
    while (snapshot_next(snapshot, &walk)) {
        const Container *container = walk.container;
        for (size_t i = 0; i < container->range_count; i++) {
            const PartitionHandle *handle = container_handle_at(container, i);
            check_handle(node, handle);
            const Offer *offer = snapshot_offer(
                snapshot, container->offer != 0 ? container->offer : walk.database->offer);
            assert_non_null(offer);
            size_t parts =
                container->offer != 0 ? container->range_count : walk.database->partitions;
            assert_true(handle_share(handle) == provision_share(&offer->provision, parts));
        }
        for (size_t i = 0; i < container->pending_count; i++)
            check_handle(node, container_handle(container, &container->pending[i]));
    }
}

static void check(Model *m)
{
    AUTO(snapshot_unref) Snapshot *before = snapshot_ref(test_read(&m->follower->t));
    node_refresh(m->follower);
    Slice a = dump_all(m->leader);
    Slice b = dump_all(m->follower);
    if (!slice_equal(a, b))
        fail_msg("the leader has\n%.*s\nthe follower\n%.*s", SLICE_ARG(a), SLICE_ARG(b));
    check_kept(m, before, test_read(&m->follower->t));
    check_handles(m->leader);
    check_handles(m->follower);
}

static void a_follower_shows_what_the_leader_shows(void **state)
{
    (void)state;
    AUTO(model_close) Model m = {0};
    pair_open(&m.pair);
    m.leader = &m.pair.a;
    m.follower = &m.pair.b;
    random_init(&m.random, test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        size_t ops = 1 + below(&m, OPS_MAX);
        for (size_t i = 0; i < ops; i++)
            change_any(&m);
        if (below(&m, 20) == 0)
            change_leader(&m);
        check(&m);
    }
    assert_true(m.kept > ROUNDS);
    assert_true(m.states > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_follower_shows_what_the_leader_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
