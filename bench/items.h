/* items.h - the varying part of requests for items: which item, and with what in it.
 *
 * An item is a number. Its id and its partition key are made of that number by a multiplication
 * that is one to one, so neighbours in number are not neighbours in the store, any item can be
 * named without a list of them, and ITEMS_PER_KEY items in a row share a partition key. Its text
 * has ITEM_BYTES bytes and 20 values that are no objects or arrays.
 *
 * These texts differ little, which is enough if they are only stored and read. For queries, items
 * are orders (orders.h).
 *
 * Ownership  An ItemMaker owns its memory until item_maker_done. What item_next returns lives until
 *            the next call.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/defs.h"
#include "base/random.h"
#include "base/slice.h"

#define ITEM_BYTES      1024
#define ITEM_COUNT_MAX  UINT64_C(1000000000)
#define ITEM_NAME_LEN   16
#define ITEM_SERIAL_LEN 10
#define ITEM_NOTES_SIZE ((size_t)64 << 10)
#define ITEMS_PER_KEY   100 /* also the number of operations in a batch, the most there may be */

/* X(name, what) */
#define ITEM_OPERATIONS(X)                                                    \
    X(READ, "read", "any of the items")                                       \
    X(SWEEP, "sweep", "the items in their order")                             \
    X(CREATE, "create", "a new item")                                         \
    X(UPSERT, "upsert", "any of the items, whole")                            \
    X(PATCH, "patch", "two values of any item")                               \
    X(BATCH, "batch", "100 new items, atomically")                            \
    X(EXECUTE, "execute", "a procedure with the id of any of the items")      \
    X(EXECUTE_NEW, "execute-new", "a procedure with a list of 100 new items") \
    X(MIX, "mix", "upserts and otherwise reads")

typedef enum ItemOperation {
#define X(name, text, what) ITEM_##name,
    ITEM_OPERATIONS(X)
#undef X
        ITEM_OPERATION_COUNT,
} ItemOperation;

/* A procedure is executed instead of a request for items: the URL is that of the procedure. */
static inline bool item_operation_executes(ItemOperation operation)
{
    return operation == ITEM_EXECUTE || operation == ITEM_EXECUTE_NEW;
}

/* False if there is no operation of that name. */
bool item_operation_parse(Slice name, ItemOperation *out);

typedef struct ItemOptions {
    ItemOperation operation;
    uint64_t count;          /* items 0 to count - 1 exist; at least 1 */
    uint64_t first;          /* number of the first new item */
    uint32_t writes_percent; /* upserts among the requests of ITEM_MIX */
    uint64_t seed;
    bool is_orders; /* items are orders */
} ItemOptions;

typedef struct ItemMaker {
    ItemOptions options;
    Random random;
    uint64_t next;   /* number of the next new item */
    uint64_t serial; /* of the next text, so that no two are the same */
    Buf text;        /* of an item, with the names of the last one in it */
    Slice id;        /* of that item; these two are parts of 'text' */
    Slice key;
    char *text_id; /* these four point into 'text'; not for orders */
    char *text_key;
    char *text_serial;
    char *note;
    size_t note_len;
    char *notes; /* ITEM_NOTES_SIZE letters; a note is some of them in a row */
    Buf headers;
    Buf body;
} ItemMaker;

typedef struct ItemRequest {
    Slice method;
    Slice id;      /* of the item that the path names; empty if the path is that of all items */
    Slice headers; /* whole lines with their ends */
    Slice body;
    bool is_query; /* the body is a query */
} ItemRequest;

void item_maker_init(ItemMaker *maker, const ItemOptions *options);
void item_maker_done(ItemMaker *maker);
DEFINE_AUTO_VALUE(ItemMaker, item_maker_done)

ItemRequest item_next(ItemMaker *maker);
