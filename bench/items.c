/* items.c - see items.h.
 *
 * The text of an item is made once, with gaps for what differs; a request fills the gaps in place
 * and copies the whole. That costs the client less than the signature does.
 */
#include "bench/items.h"

#include "base/mem.h"
#include "bench/orders.h"

#include <string.h>

/* Odd, so that multiplying by it modulo 2^64 is one to one; the golden ratio spreads neighbours. */
#define NAME_FACTOR UINT64_C(0x9E3779B97F4A7C15)

#define GAP_NAME   "................"
#define GAP_SERIAL "1000000000"

static_assert(sizeof(GAP_NAME) - 1 == ITEM_NAME_LEN, "the gap has the size of what fills it");
static_assert(sizeof(GAP_SERIAL) - 1 == ITEM_SERIAL_LEN, "the gap has the size of what fills it");

static const char TEXT_BEGIN[] = "{\"id\":\"";
static const char TEXT_KEY[] = "\",\"pk\":\"";
static const char TEXT_SERIAL[] = "\",\"serial\":";
static const char TEXT_REST[] =
    ",\"customer\":{\"name\":\"Johanna van der Waals\",\"email\":\"johanna.vdwaals@example.com\","
    "\"vip\":true,\"address\":{\"street\":\"Sterrenwachtlaan 11\",\"city\":\"Leiden\","
    "\"zip\":\"2311 GW\",\"country\":\"NL\"}},\"status\":\"shipped\",\"total\":149.95,"
    "\"currency\":\"EUR\",\"quantity\":3,\"orderedAt\":\"2024-10-01T12:00:00.000Z\","
    "\"tags\":[\"optics\",\"brass\",\"fragile\"],\"discount\":null,\"note\":\"";
static const char TEXT_END[] = "\"}";

static const char HEADERS_BATCH[] = "x-ms-cosmos-is-batch-request: True\r\n"
                                    "x-ms-cosmos-batch-atomic: True\r\n"
                                    "x-ms-cosmos-batch-ordered: True\r\n";

static const char *const OPERATIONS[] = {
#define X(name, text, what) [ITEM_##name] = (text),
    ITEM_OPERATIONS(X)
#undef X
};

bool item_operation_parse(Slice name, ItemOperation *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(OPERATIONS); i++) {
        if (slice_equal(name, slice_from_cstr(OPERATIONS[i]))) {
            *out = (ItemOperation)i;
            return true;
        }
    }
    return false;
}

/* Appends 'text' and returns the offset after it. */
static size_t put(Buf *buf, const char *text)
{
    buf_slice(buf, slice_from_cstr(text));
    return buf->len;
}

/* Makes the text of all items, with its gaps. */
static void print_text(ItemMaker *maker)
{
    size_t id_at = put(&maker->text, TEXT_BEGIN);
    (void)put(&maker->text, GAP_NAME);
    size_t key_at = put(&maker->text, TEXT_KEY);
    (void)put(&maker->text, GAP_NAME);
    size_t serial_at = put(&maker->text, TEXT_SERIAL);
    (void)put(&maker->text, GAP_SERIAL);
    (void)put(&maker->text, TEXT_REST);
    size_t note_at = maker->text.len;
    maker->note_len = ITEM_BYTES - (sizeof(TEXT_END) - 1) - note_at;
    for (size_t i = 0; i < maker->note_len; i++)
        buf_byte(&maker->text, 'x');
    (void)put(&maker->text, TEXT_END);
    ASSERT(maker->text.len == ITEM_BYTES);
    maker->text_id = maker->text.ptr + id_at;
    maker->text_key = maker->text.ptr + key_at;
    maker->text_serial = maker->text.ptr + serial_at;
    maker->note = maker->text.ptr + note_at;
    maker->notes = mem_alloc(ITEM_NOTES_SIZE);
    for (size_t i = 0; i < ITEM_NOTES_SIZE; i++)
        maker->notes[i] = (char)('a' + random_below(&maker->random, 26));
}

void item_maker_init(ItemMaker *maker, const ItemOptions *options)
{
    ASSERT(options->count > 0);
    *maker = (ItemMaker){.options = *options, .next = options->first, .serial = 1};
    random_init(&maker->random, options->seed);
    buf_init(&maker->text, options->is_orders ? ORDER_BYTES_MAX : ITEM_BYTES);
    buf_init(&maker->headers, 1024);
    buf_init(&maker->body, (size_t)ITEMS_PER_KEY * (maker->text.bytes_max + 100));
    if (!options->is_orders)
        print_text(maker);
}

void item_maker_done(ItemMaker *maker)
{
    mem_free(maker->notes);
    buf_done(&maker->text);
    buf_done(&maker->headers);
    buf_done(&maker->body);
}

static void print_name(uint64_t number, char *out)
{
    uint64_t mixed = number * NAME_FACTOR;
    for (int i = 0; i < ITEM_NAME_LEN; i++, mixed <<= 4)
        out[i] = "0123456789abcdef"[mixed >> 60];
}

static void fill_gaps(ItemMaker *maker, uint64_t number)
{
    print_name(number, maker->text_id);
    print_name(number / ITEMS_PER_KEY, maker->text_key);
    maker->id = slice_make(maker->text_id, ITEM_NAME_LEN);
    maker->key = slice_make(maker->text_key, ITEM_NAME_LEN);
    /* The first digit stays, since a number must not begin with a zero. */
    uint64_t serial = maker->serial++;
    for (int i = ITEM_SERIAL_LEN - 1; i > 0; i--, serial /= 10)
        maker->text_serial[i] = (char)('0' + serial % 10);
    size_t from = random_below(&maker->random, ITEM_NOTES_SIZE - maker->note_len);
    memcpy(maker->note, maker->notes + from, maker->note_len);
}

static void fill_text(ItemMaker *maker, uint64_t number)
{
    if (maker->options.is_orders)
        order_print(number, &maker->text, &maker->id, &maker->key);
    else
        fill_gaps(maker, number);
}

/* Appends ITEMS_PER_KEY new items of one partition key, each between 'before' and 'after'. */
static void print_new_items(ItemMaker *maker, const char *before, const char *after)
{
    maker->next = (maker->next + ITEMS_PER_KEY - 1) / ITEMS_PER_KEY * ITEMS_PER_KEY;
    for (int i = 0; i < ITEMS_PER_KEY; i++) {
        fill_text(maker, maker->next++);
        (void)put(&maker->body, i == 0 ? "[" : ",");
        (void)put(&maker->body, before);
        buf_slice(&maker->body, buf_view(&maker->text));
        (void)put(&maker->body, after);
    }
    (void)put(&maker->body, "]");
}

static void print_batch(ItemMaker *maker)
{
    print_new_items(maker, "{\"operationType\":\"Create\",\"resourceBody\":", "}");
    ASSERT(!buf_full(&maker->body));
}

/* One argument, which is a list. */
static void print_list_argument(ItemMaker *maker)
{
    (void)put(&maker->body, "[");
    print_new_items(maker, "", "");
    (void)put(&maker->body, "]");
    ASSERT(!buf_full(&maker->body));
}

static void print_id_argument(ItemMaker *maker)
{
    (void)put(&maker->body, "[\"");
    buf_slice(&maker->body, maker->id);
    (void)put(&maker->body, "\"]");
}

/* Changes two values and leaves the others, which the server has to keep. */
static void print_patch(ItemMaker *maker)
{
    (void)put(&maker->body, "{\"operations\":[{\"op\":\"incr\",\"path\":\"/quantity\",\"value\":1},"
                            "{\"op\":\"set\",\"path\":\"/serial\",\"value\":");
    buf_u64(&maker->body, UINT64_C(1000000000) + maker->serial++);
    (void)put(&maker->body, "}]}");
}

static ItemOperation choose(ItemMaker *maker)
{
    if (maker->options.operation != ITEM_MIX)
        return maker->options.operation;
    bool is_write = random_below(&maker->random, 100) < maker->options.writes_percent;
    return is_write ? ITEM_UPSERT : ITEM_READ;
}

ItemRequest item_next(ItemMaker *maker)
{
    ItemOperation operation = choose(maker);
    buf_reset(&maker->headers);
    buf_reset(&maker->body);
    if (operation == ITEM_BATCH)
        print_batch(maker);
    else if (operation == ITEM_EXECUTE_NEW)
        print_list_argument(maker);
    else if (operation == ITEM_CREATE || operation == ITEM_SWEEP)
        fill_text(maker, maker->next++);
    else
        fill_text(maker, random_below(&maker->random, maker->options.count));

    (void)put(&maker->headers, "x-ms-documentdb-partitionkey: [\"");
    buf_slice(&maker->headers, maker->key);
    (void)put(&maker->headers, "\"]\r\n");
    Slice id = maker->id;
    ItemRequest request = {.method = SLICE("POST"), .body = buf_view(&maker->text)};
    switch (operation) {
    case ITEM_READ:
    case ITEM_SWEEP:
        request = (ItemRequest){.method = SLICE("GET"), .id = id};
        break;
    case ITEM_CREATE:
        break;
    case ITEM_UPSERT:
        (void)put(&maker->headers, "x-ms-documentdb-is-upsert: true\r\n");
        break;
    case ITEM_PATCH:
        print_patch(maker);
        request = (ItemRequest){.method = SLICE("PATCH"), .id = id, .body = buf_view(&maker->body)};
        break;
    case ITEM_BATCH:
        (void)put(&maker->headers, HEADERS_BATCH);
        request.body = buf_view(&maker->body);
        break;
    case ITEM_EXECUTE:
        print_id_argument(maker);
        request.body = buf_view(&maker->body);
        break;
    case ITEM_EXECUTE_NEW:
        request.body = buf_view(&maker->body);
        break;
    case ITEM_MIX:
    case ITEM_OPERATION_COUNT:
        break; /* choose() does not return these */
    }
    request.headers = buf_view(&maker->headers);
    return request;
}
