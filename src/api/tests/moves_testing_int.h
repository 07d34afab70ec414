/* moves_testing_int.h - for tests: splits and merges of the container 'c', step by step. Not part
 * of the library. */
#pragma once

#include "api/tests/testing_int.h"
#include "partition/item_move.h"

enum { TARGETS_MAX = 4 };

typedef struct Change {
    CatalogChange change;
    Latch answered;
} Change;

static inline void on_change(CatalogChange *change)
{
    latch_post(&CONTAINER_OF(change, Change, change)->answered);
}

/* A change of the catalogue on the container 'c', as the driver of a move makes them. */
static inline Container *run_change(FakeServer *server, CatalogOp op, uint32_t first, uint32_t last,
                                    const Slice *cuts, size_t cut_count)
{
    const Container *container = container_now(server);
    Change c = {.change = {.op = op,
                           .database = container->database,
                           .container = container->info.number,
                           .range_first = first,
                           .range_last = last,
                           .cuts = cuts,
                           .cut_count = cut_count,
                           .done = on_change}};
    latch_init(&c.answered);
    catalog_submit(server->catalog, &c.change);
    latch_wait(&c.answered);
    latch_done(&c.answered);
    if (c.change.status != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    Container *result = TAKE(c.change.result_container);
    catalog_change_release(&c.change);
    return result;
}

/* A move of ranges of 'c' whose data is in the targets: writes wait at the fence. */
typedef struct Moving {
    FakeServer *server;
    Container *container; /* with the targets pending */
    Move *move;
} Moving;

static inline void moving_begin(Moving *m, FakeServer *server, uint32_t first, uint32_t last,
                                const Slice *cuts, size_t cut_count)
{
    *m = (Moving){.server = server};
    m->container = run_change(server, CATALOG_BEGIN_MOVE, first, last, cuts, cut_count);
    size_t source_count = 0;
    const PartitionRange *sources = container_sources(m->container, &source_count);
    MovePart from[TARGETS_MAX];
    MovePart to[TARGETS_MAX];
    assert_true(source_count <= TARGETS_MAX && m->container->pending_count <= TARGETS_MAX);
    for (size_t i = 0; i < source_count; i++)
        from[i] = (MovePart){handle_local(container_handle(m->container, &sources[i])),
                             sources[i].min_bytes};
    for (size_t i = 0; i < m->container->pending_count; i++)
        to[i] = (MovePart){handle_local(container_handle(m->container, &m->container->pending[i])),
                           m->container->pending[i].min_bytes};
    m->move = move_new(from, source_count, to, m->container->pending_count);
    Error err = {0};
    bool is_done = false;
    size_t left = 1;
    assert_int_equal(move_begin(m->move, &err), STATUS_OK);
    while (!is_done)
        assert_int_equal(move_copy(m->move, &is_done, &err), STATUS_OK);
    while (left > 0)
        assert_int_equal(move_catch_up(m->move, &left, &err), STATUS_OK);
    assert_int_equal(move_fence(m->move, &err), STATUS_OK);
}

/* The map changes; requests that wait are not answered yet. */
static inline void moving_switch(Moving *m)
{
    container_unref(run_change(m->server, CATALOG_END_MOVE, 0, 0, NULL, 0));
}

/* Waits until the sources are released. */
static _Atomic size_t gone_count;

static inline void on_gone(void *ctx, StoreSpace space)
{
    (void)space;
    atomic_fetch_add((_Atomic size_t *)ctx, 1);
}

static inline void moving_retire(Moving *m)
{
    move_end(m->move, on_gone, &gone_count);
    move_free(TAKE(m->move));
    container_unref(TAKE(m->container));
}

static inline void moving_end(Moving *m)
{
    moving_switch(m);
    moving_retire(m);
}

/* A whole split in two, in the middle of the values that hashes have, or a whole merge. */
static inline void split(FakeServer *server, uint32_t id, const char *cut)
{
    Slice at = slice_from_cstr(cut);
    Moving m;
    moving_begin(&m, server, id, id, &at, 1);
    moving_end(&m);
}

static inline void merge(FakeServer *server, uint32_t first, uint32_t last)
{
    Moving m;
    moving_begin(&m, server, first, last, NULL, 0);
    moving_end(&m);
}
