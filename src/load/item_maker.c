/* item_maker.c - see item_maker.h.
 *
 * The text of an item is made once, with gaps for what differs; a request fills the gaps in place
 * and copies the whole. That costs the client less than the signature does.
 */
#include "load/item_maker.h"

#include "base/mem.h"
#include "load/order_text.h"

#include <inttypes.h>
#include <string.h>

/* Odd, so that multiplying by it modulo 2^64 is one to one; the golden ratio spreads neighbours. */
#define NAME_FACTOR UINT64_C(0x9E3779B97F4A7C15)

#define GAP_NAME   "................"
#define GAP_SERIAL "1000000000"

static_assert(sizeof(GAP_NAME) - 1 == LOAD_ITEM_NAME_LEN, "the gap has the size of what fills it");
static_assert(sizeof(GAP_SERIAL) - 1 == LOAD_ITEM_SERIAL_LEN,
              "the gap has the size of what fills it");
static_assert(LOAD_ITEM_NAME_SIZE >= U64_TEXT_MAX + 1,
              "the name of an order is a letter and a number");

enum {
    BATCH_BYTES_MAX = 1900000, /* of one batch, which the protocol limits to 2 MB */
    BATCH_EXTRA = 100,         /* bytes around an item in it */
    REST_LEN_MIN = 600,        /* plain items that are shorter have fewer values */
};

static const char TEXT_BEGIN[] = "{\"id\":\"";
static const char TEXT_KEY[] = "\",\"pk\":\"";
static const char TEXT_SERIAL[] = "\",\"serial\":";
static const char TEXT_REST[] =
    ",\"customer\":{\"name\":\"Johanna van der Waals\",\"email\":\"johanna.vdwaals@example.com\","
    "\"vip\":true,\"address\":{\"street\":\"Sterrenwachtlaan 11\",\"city\":\"Leiden\","
    "\"zip\":\"2311 GW\",\"country\":\"NL\"}},\"status\":\"shipped\",\"total\":149.95,"
    "\"currency\":\"EUR\",\"quantity\":3,\"orderedAt\":\"2024-10-01T12:00:00.000Z\","
    "\"tags\":[\"optics\",\"brass\",\"fragile\"],\"discount\":null,\"note\":\"";
static const char TEXT_REST_SHORT[] = ",\"quantity\":3,\"note\":\"";
static const char TEXT_END[] = "\"}";

static const char HEADERS_BATCH[] = "x-ms-cosmos-is-batch-request: True\r\n"
                                    "x-ms-cosmos-batch-atomic: True\r\n"
                                    "x-ms-cosmos-batch-ordered: True\r\n";

static const char *const OPERATIONS[] = {
#define X(name, text) [LOAD_ITEM_##name] = (text),
    LOAD_ITEM_OPERATIONS(X)
#undef X
};

const char *item_operation_name(ItemOperation operation)
{
    return OPERATIONS[operation];
}

/* Appends 'text' and returns the offset after it. */
static size_t put(Buf *buf, const char *text)
{
    buf_slice(buf, slice_from_cstr(text));
    return buf->len;
}

static void put_letters(ItemMaker *maker, size_t len)
{
    maker->letters_at[maker->letters_count++] = maker->text.len;
    maker->letters_len = len;
    for (size_t i = 0; i < len; i++)
        buf_byte(&maker->text, 'x');
}

/* Makes the text of all items, with its gaps. */
static void print_plain(ItemMaker *maker)
{
    maker->serial_at = put(&maker->text, TEXT_SERIAL);
    (void)put(&maker->text, GAP_SERIAL);
    bool is_short = maker->options.item_bytes < REST_LEN_MIN;
    (void)put(&maker->text, is_short ? TEXT_REST_SHORT : TEXT_REST);
    put_letters(maker, maker->options.item_bytes - (sizeof(TEXT_END) - 1) - maker->text.len);
    (void)put(&maker->text, TEXT_END);
}

static void print_fields(ItemMaker *maker)
{
    size_t frame = sizeof(",\"field0\":\"\"") - 1;
    size_t left = maker->options.item_bytes - maker->text.len - 2;
    size_t len = (left - LOAD_ITEM_FIELD_COUNT * frame) / LOAD_ITEM_FIELD_COUNT;
    (void)put(&maker->text, "\"");
    for (int i = 0; i < LOAD_ITEM_FIELD_COUNT; i++) {
        buf_format(&maker->text, ",\"field%d\":\"", i);
        put_letters(maker, len);
        (void)put(&maker->text, "\"");
    }
    (void)put(&maker->text, "}");
}

static void print_text(ItemMaker *maker)
{
    maker->id_at = put(&maker->text, TEXT_BEGIN);
    (void)put(&maker->text, GAP_NAME);
    maker->key_at = put(&maker->text, TEXT_KEY);
    (void)put(&maker->text, GAP_NAME);
    if (maker->options.shape == LOAD_ITEM_SHAPE_PLAIN)
        print_plain(maker);
    else
        print_fields(maker);
    ASSERT(!buf_full(&maker->text));
    maker->notes = mem_alloc(LOAD_ITEM_NOTES_SIZE);
    for (size_t i = 0; i < LOAD_ITEM_NOTES_SIZE; i++)
        maker->notes[i] = (char)('a' + random_below(&maker->random, 26));
}

static void choose_sizes(ItemMaker *maker)
{
    ItemOptions *o = &maker->options;
    if (o->item_bytes == 0)
        o->item_bytes = o->shape == LOAD_ITEM_SHAPE_ORDER ? ORDER_BYTES_MAX : LOAD_ITEM_BYTES;
    if (o->items_per_key == 0 || o->shape == LOAD_ITEM_SHAPE_ORDER)
        o->items_per_key = LOAD_ITEMS_PER_KEY;
    if (o->scan_length == 0)
        o->scan_length = LOAD_ITEM_SCAN_LENGTH;
    uint32_t fit = BATCH_BYTES_MAX / (o->item_bytes + BATCH_EXTRA);
    uint32_t max = fit < LOAD_ITEM_BATCH_MAX ? fit : LOAD_ITEM_BATCH_MAX;
    max = max < o->items_per_key ? max : o->items_per_key;
    maker->batch_max = max > 0 ? max : 1;
    /* A batch has the items of one partition key, so it begins with a new one. */
    if (o->percent[LOAD_ITEM_BATCH] > 0 || o->percent[LOAD_ITEM_EXECUTE_NEW] > 0)
        maker->next = (maker->next + o->items_per_key - 1) / o->items_per_key * o->items_per_key;
}

void item_maker_init(ItemMaker *maker, const ItemOptions *options)
{
    ASSERT(options->count > 0);
    *maker = (ItemMaker){.options = *options, .next = options->first, .serial = 1};
    random_init(&maker->random, options->seed);
    key_choice_init(&maker->keys, options->distribution, options->count);
    choose_sizes(maker);
    ASSERT(maker->options.item_bytes >= LOAD_ITEM_BYTES_MIN);
    ASSERT(maker->options.item_bytes <= LOAD_ITEM_BYTES_MAX);
    buf_init(&maker->text, maker->options.item_bytes);
    buf_init(&maker->headers, (size_t)64 << 10); /* a continuation may be long */
    buf_init(&maker->body,
             (size_t)maker->batch_max * (maker->options.item_bytes + BATCH_EXTRA) + 4096);
    if (options->shape != LOAD_ITEM_SHAPE_ORDER)
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
    for (int i = 0; i < LOAD_ITEM_NAME_LEN; i++, mixed <<= 4)
        out[i] = "0123456789abcdef"[mixed >> 60];
}

static Slice order_identity(char letter, uint64_t number, char out[LOAD_ITEM_NAME_SIZE])
{
    out[0] = letter;
    return slice_make(out, 1 + u64_print(order_text_name(number), out + 1));
}

/* The names alone, which is all that most requests need. */
static void make_names(ItemMaker *maker, uint64_t number)
{
    uint64_t key = number / maker->options.items_per_key;
    if (maker->options.shape == LOAD_ITEM_SHAPE_ORDER) {
        maker->id = order_identity('o', number, maker->id_text);
        maker->key = order_identity('c', key, maker->key_text);
        return;
    }
    print_name(number, maker->id_text);
    print_name(key, maker->key_text);
    maker->id = slice_make(maker->id_text, LOAD_ITEM_NAME_LEN);
    maker->key = slice_make(maker->key_text, LOAD_ITEM_NAME_LEN);
}

/* Letters that follow each other in 'notes'; long texts have several pieces of them. */
static void copy_letters(ItemMaker *maker, char *out, size_t len)
{
    while (len > 0) {
        size_t piece = len < LOAD_ITEM_NOTES_SIZE / 2 ? len : LOAD_ITEM_NOTES_SIZE / 2;
        memcpy(out, maker->notes + random_below(&maker->random, LOAD_ITEM_NOTES_SIZE - piece),
               piece);
        out += piece;
        len -= piece;
    }
}

static void fill_gaps(ItemMaker *maker)
{
    char *text = maker->text.ptr;
    memcpy(text + maker->id_at, maker->id_text, LOAD_ITEM_NAME_LEN);
    memcpy(text + maker->key_at, maker->key_text, LOAD_ITEM_NAME_LEN);
    uint64_t serial = maker->serial++;
    /* The first digit stays, since a number must not begin with a zero. */
    if (maker->serial_at > 0) {
        for (int i = LOAD_ITEM_SERIAL_LEN - 1; i > 0; i--, serial /= 10)
            text[maker->serial_at + (size_t)i] = (char)('0' + serial % 10);
    }
    for (size_t i = 0; i < maker->letters_count; i++)
        copy_letters(maker, text + maker->letters_at[i], maker->letters_len);
}

static Slice make_text(ItemMaker *maker, uint64_t number)
{
    make_names(maker, number);
    if (maker->options.shape == LOAD_ITEM_SHAPE_ORDER) {
        Slice id;
        Slice key;
        order_text_print(number, &maker->text, &id, &key);
    } else {
        fill_gaps(maker);
    }
    return buf_view(&maker->text);
}

/* Appends the items of the turn as a list, each between 'before' and 'after'. */
static void print_new_items(ItemMaker *maker, const ItemTurn *turn, const char *before,
                            const char *after)
{
    for (uint32_t i = 0; i < turn->length; i++) {
        (void)put(&maker->body, i == 0 ? "[" : ",");
        (void)put(&maker->body, before);
        buf_slice(&maker->body, make_text(maker, turn->number + i));
        (void)put(&maker->body, after);
    }
    (void)put(&maker->body, "]");
}

/* Changes two values and leaves the others, which the server has to keep. */
static void print_patch(ItemMaker *maker)
{
    (void)put(&maker->body, "{\"operations\":[{\"op\":\"incr\",\"path\":\"/quantity\",\"value\":1},"
                            "{\"op\":\"set\",\"path\":\"/serial\",\"value\":");
    buf_u64(&maker->body, UINT64_C(1000000000) + maker->serial++);
    (void)put(&maker->body, "}]}");
}

/* Items of other shapes get the field by this. */
static void print_update(ItemMaker *maker)
{
    bool is_fields = maker->options.shape == LOAD_ITEM_SHAPE_FIELDS;
    size_t len = is_fields ? maker->letters_len : 100;
    buf_format(&maker->body,
               "{\"operations\":[{\"op\":\"set\",\"path\":\"/field%" PRIu64 "\",\"value\":\"",
               random_below(&maker->random, LOAD_ITEM_FIELD_COUNT));
    if (maker->notes != NULL && buf_reserve(&maker->body, len)) {
        copy_letters(maker, maker->body.ptr + maker->body.len, len);
        maker->body.len += len;
    }
    (void)put(&maker->body, "\"}]}");
}

static void print_scan(ItemMaker *maker, const ItemTurn *turn, Slice continuation)
{
    buf_format(&maker->headers,
               "x-ms-documentdb-isquery: True\r\nx-ms-max-item-count: %" PRIu32 "\r\n",
               turn->length);
    if (continuation.len > 0) {
        (void)put(&maker->headers, "x-ms-continuation: ");
        buf_slice(&maker->headers, continuation);
        (void)put(&maker->headers, "\r\n");
    }
    buf_format(&maker->body,
               "{\"query\":\"SELECT TOP %" PRIu32 " * FROM c WHERE c.id >= @a ORDER BY c.id\","
               "\"parameters\":[{\"name\":\"@a\",\"value\":\"%.*s\"}]}",
               turn->length, SLICE_ARG(maker->id));
}

static ItemOperation choose_operation(ItemMaker *maker)
{
    const uint8_t *percent = maker->options.percent;
    uint64_t drawn = 100;
    for (int i = 0; i < LOAD_ITEM_OPERATION_COUNT; i++) {
        if (percent[i] == 0)
            continue;
        if (percent[i] == 100)
            return (ItemOperation)i;
        if (drawn == 100)
            drawn = random_below(&maker->random, 100);
        if (drawn < percent[i])
            return (ItemOperation)i;
        drawn -= percent[i];
    }
    ASSERT(false); /* the shares are 100 together */
    return LOAD_ITEM_READ;
}

static void choose_batch(ItemMaker *maker, ItemTurn *out)
{
    const ItemOptions *o = &maker->options;
    uint64_t left = o->items_per_key - maker->next % o->items_per_key;
    if (o->end > 0 && o->end > maker->next && o->end - maker->next < left)
        left = o->end - maker->next;
    out->length = left < maker->batch_max ? (uint32_t)left : maker->batch_max;
    out->number = maker->next;
    maker->next += out->length;
}

void item_maker_choose(ItemMaker *maker, ItemTurn *out)
{
    *out = (ItemTurn){.operation = choose_operation(maker)};
    switch (out->operation) {
    case LOAD_ITEM_BATCH:
    case LOAD_ITEM_EXECUTE_NEW:
        choose_batch(maker, out);
        return;
    case LOAD_ITEM_CREATE:
    case LOAD_ITEM_SWEEP:
        out->number = maker->next++;
        return;
    case LOAD_ITEM_SCAN:
        out->length = 1 + (uint32_t)random_below(&maker->random, maker->options.scan_length);
        break;
    case LOAD_ITEM_READ:
    case LOAD_ITEM_UPSERT:
    case LOAD_ITEM_PATCH:
    case LOAD_ITEM_UPDATE:
    case LOAD_ITEM_MODIFY:
    case LOAD_ITEM_EXECUTE:
    case LOAD_ITEM_OPERATION_COUNT:
        break;
    }
    out->number = key_choice_next(&maker->keys, &maker->random, maker->options.first, maker->added);
}

void item_maker_ended(ItemMaker *maker, const ItemTurn *turn)
{
    if (turn->operation != LOAD_ITEM_CREATE || maker->options.distribution != KEY_LATEST)
        return;
    uint64_t at = turn->number - maker->options.first;
    if (at < maker->added || at - maker->added >= LOAD_ITEM_ADDED_MAX)
        return; /* it was given up, or comes much too early; a later one counts instead */
    maker->answered[at % LOAD_ITEM_ADDED_MAX / 64] |= UINT64_C(1) << at % 64;
    for (;;) {
        uint64_t *word = &maker->answered[maker->added % LOAD_ITEM_ADDED_MAX / 64];
        uint64_t bit = UINT64_C(1) << maker->added % 64;
        if ((*word & bit) == 0)
            break;
        *word &= ~bit;
        maker->added++;
    }
}

uint64_t item_maker_batches(const ItemMaker *maker)
{
    uint64_t per_key = maker->options.items_per_key;
    uint64_t count = maker->options.end - maker->options.first;
    uint64_t whole = (per_key + maker->batch_max - 1) / maker->batch_max;
    return count / per_key * whole + (count % per_key + maker->batch_max - 1) / maker->batch_max;
}

static void put_key_header(ItemMaker *maker)
{
    (void)put(&maker->headers, "x-ms-documentdb-partitionkey: [\"");
    buf_slice(&maker->headers, maker->key);
    (void)put(&maker->headers, "\"]\r\n");
}

static ItemRequest print_write(ItemMaker *maker, const ItemTurn *turn)
{
    ItemRequest request = {.method = SLICE("POST")};
    switch (turn->operation) {
    case LOAD_ITEM_BATCH:
        print_new_items(maker, turn, "{\"operationType\":\"Create\",\"resourceBody\":", "}");
        request.body = buf_view(&maker->body);
        break;
    case LOAD_ITEM_EXECUTE_NEW:
        (void)put(&maker->body, "["); /* one argument, which is a list */
        print_new_items(maker, turn, "", "");
        (void)put(&maker->body, "]");
        request.body = buf_view(&maker->body);
        break;
    default:
        request.body = make_text(maker, turn->number);
        break;
    }
    ASSERT(!buf_full(&maker->body));
    put_key_header(maker);
    if (turn->operation == LOAD_ITEM_BATCH)
        (void)put(&maker->headers, HEADERS_BATCH);
    if (turn->operation == LOAD_ITEM_UPSERT)
        (void)put(&maker->headers, "x-ms-documentdb-is-upsert: true\r\n");
    request.headers = buf_view(&maker->headers);
    return request;
}

ItemRequest item_maker_print(ItemMaker *maker, const ItemTurn *turn, Slice continuation)
{
    buf_reset(&maker->headers);
    buf_reset(&maker->body);
    if (turn->operation == LOAD_ITEM_BATCH || turn->operation == LOAD_ITEM_EXECUTE_NEW ||
        turn->operation == LOAD_ITEM_CREATE || turn->operation == LOAD_ITEM_UPSERT)
        return print_write(maker, turn);
    make_names(maker, turn->number);
    put_key_header(maker);
    ItemRequest request = {.method = SLICE("POST")};
    switch (turn->operation) {
    case LOAD_ITEM_PATCH:
        print_patch(maker);
        request = (ItemRequest){.method = SLICE("PATCH"), .id = maker->id};
        break;
    case LOAD_ITEM_UPDATE:
        print_update(maker);
        request = (ItemRequest){.method = SLICE("PATCH"), .id = maker->id};
        break;
    case LOAD_ITEM_MODIFY:
        if (turn->step > 0)
            print_update(maker);
        request = (ItemRequest){.method = turn->step > 0 ? SLICE("PATCH") : SLICE("GET"),
                                .id = maker->id};
        break;
    case LOAD_ITEM_SCAN:
        print_scan(maker, turn, continuation);
        request.is_query = true;
        break;
    case LOAD_ITEM_EXECUTE:
        buf_format(&maker->body, "[\"%.*s\"]", SLICE_ARG(maker->id));
        break;
    default:
        request = (ItemRequest){.method = SLICE("GET"), .id = maker->id};
        break;
    }
    request.headers = buf_view(&maker->headers);
    request.body = buf_view(&maker->body);
    return request;
}
