/* item_maker.h - the varying part of requests for items: which item, and with what in it.
 *
 * An item is a number. Its id and its partition key are made of that number by a multiplication
 * that is one to one, so neighbours in number are not neighbours in the store, any item can be
 * named without a list of them, and 'items_per_key' items in a row share a partition key. Its text
 * has 'item_bytes' bytes and one of these shapes:
 *
 *     plain    an order with 20 values that are no objects or arrays. Texts differ little, which is
 *              enough if they are only stored and read
 *     order    values that differ (order_text.h), for queries
 *     fields   ten texts of equal length, as YCSB has them
 *
 * Ownership  An ItemMaker owns its memory until item_maker_done. What item_maker_print returns
 *            lives until the next call.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "load/key_choice.h"

#define LOAD_ITEM_BYTES       1024
#define LOAD_ITEM_BYTES_MIN   256
#define LOAD_ITEM_BYTES_MAX   1900000 /* with its system properties, below the 2 MB of an item */
#define LOAD_ITEM_COUNT_MAX   UINT64_C(1000000000)
#define LOAD_ITEM_NAME_LEN    16
#define LOAD_ITEM_NAME_SIZE   24 /* room for the name of an item or an order */
#define LOAD_ITEM_SERIAL_LEN  10
#define LOAD_ITEM_NOTES_SIZE  ((size_t)64 << 10)
#define LOAD_ITEM_FIELD_COUNT 10
#define LOAD_ITEM_BATCH_MAX   100 /* operations of a batch, by the protocol */
#define LOAD_ITEM_SCAN_LENGTH 100
#define LOAD_ITEMS_PER_KEY    100   /* if nothing else is said, and of orders always */
#define LOAD_ITEM_ADDED_MAX   16384 /* new items whose answers may be missing at the same time */

/* X(name, text)
 *
 *     read, sweep          any of the items; the items in their order
 *     create, upsert       a new item; any of the items, whole
 *     patch, update        two values of any item; one of its ten fields
 *     read-modify-write    a read, then an update of the same item
 *     scan                 items of a partition key, by id from any of them on
 *     batch                100 new items, atomically
 *     execute              a procedure with the id of any of the items
 *     execute-new          a procedure with a list of 100 new items */
#define LOAD_ITEM_OPERATIONS(X)    \
    X(READ, "read")                \
    X(SWEEP, "sweep")              \
    X(CREATE, "create")            \
    X(UPSERT, "upsert")            \
    X(PATCH, "patch")              \
    X(UPDATE, "update")            \
    X(MODIFY, "read-modify-write") \
    X(SCAN, "scan")                \
    X(BATCH, "batch")              \
    X(EXECUTE, "execute")          \
    X(EXECUTE_NEW, "execute-new")

typedef enum ItemOperation {
#define X(name, text) LOAD_ITEM_##name,
    LOAD_ITEM_OPERATIONS(X)
#undef X
        LOAD_ITEM_OPERATION_COUNT,
} ItemOperation;

const char *item_operation_name(ItemOperation operation);

typedef enum ItemShape {
    LOAD_ITEM_SHAPE_PLAIN,
    LOAD_ITEM_SHAPE_ORDER,
    LOAD_ITEM_SHAPE_FIELDS
} ItemShape;

typedef struct ItemOptions {
    uint8_t percent[LOAD_ITEM_OPERATION_COUNT]; /* how many of 100 requests; together 100 */
    KeyDistribution distribution;
    ItemShape shape;
    uint64_t count; /* items 0 to count - 1 exist; at least 1 */
    uint64_t first; /* number of the first new item */
    uint64_t end;   /* number after the last new item of batches; 0 for no end */
    uint64_t seed;
    uint32_t item_bytes;    /* 0 for LOAD_ITEM_BYTES; not of orders */
    uint32_t items_per_key; /* 0 for LOAD_ITEMS_PER_KEY */
    uint32_t scan_length;   /* a scan asks for 1 to so many items; 0 for LOAD_ITEM_SCAN_LENGTH */
} ItemOptions;

/* What was chosen for one request, which may take several steps. */
typedef struct ItemTurn {
    ItemOperation operation;
    uint64_t number; /* of the item, or of the first one */
    uint32_t length; /* items of a batch or a scan */
    uint32_t step;   /* 1 for the write of LOAD_ITEM_MODIFY */
} ItemTurn;

typedef struct ItemMaker {
    ItemOptions options;
    Random random;
    KeyChoice keys;
    uint64_t next;   /* number of the next new item */
    uint64_t added;  /* new items from 'first' on that all were answered */
    uint64_t serial; /* of the next text, so that no two are the same */
    uint32_t batch_max;
    Buf text;                          /* of an item, with the names of the last one in it */
    char id_text[LOAD_ITEM_NAME_SIZE]; /* of the item that was printed last */
    char key_text[LOAD_ITEM_NAME_SIZE];
    Slice id;
    Slice key;
    size_t id_at; /* offsets in 'text'; not for orders, and 'serial_at' only of plain ones */
    size_t key_at;
    size_t serial_at;
    size_t letters_at[LOAD_ITEM_FIELD_COUNT]; /* where letters go, which differ each time */
    size_t letters_len;
    size_t letters_count;
    char *notes; /* LOAD_ITEM_NOTES_SIZE letters; a note is some of them in a row */
    uint64_t
        answered[LOAD_ITEM_ADDED_MAX / 64]; /* a bit for each new item after 'added', in a ring */
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

/* Chooses an operation and its item. */
void item_maker_choose(ItemMaker *maker, ItemTurn *out);

/* The request of that step; of a scan, the page that goes on at 'continuation' if there is one. */
ItemRequest item_maker_print(ItemMaker *maker, const ItemTurn *turn, Slice continuation);

/* The turn is over: an item that it added may be chosen from now on. */
void item_maker_ended(ItemMaker *maker, const ItemTurn *turn);

/* How many batches have the items 'first' to 'end' - 1. */
uint64_t item_maker_batches(const ItemMaker *maker);
