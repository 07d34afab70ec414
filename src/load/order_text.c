/* order_text.c - see order_text.h. */
#include "load/order_text.h"

#include "base/random.h"
#include "load/item_maker.h"

#include <inttypes.h>
#include <time.h>

/* Odd, so that multiplying by it modulo 2^32 is one to one; the golden ratio spreads neighbours. */
#define NAME_FACTOR UINT64_C(2654435761)

enum {
    WORD_COUNT = 4096,
    WORD_LEN_MAX = 8,
    CITY_COUNT = 500,
    COUNTRY_COUNT = 20,
    DATES_BEGIN_S = 1577836800, /* 2020-01-01 */
    DATES_RANGE_S = 5 * 365 * 86400,
    SHIPPING_MAX_S = 14 * 86400,
};

uint64_t order_text_name(uint64_t number)
{
    /* New items of a run may have numbers beyond 32 bits; what is above those stays. */
    return (number & ~(uint64_t)UINT32_MAX) | (uint32_t)(number * NAME_FACTOR);
}

/* The word of that number: two to four syllables, always the same. */
static size_t word_make(uint64_t number, char out[WORD_LEN_MAX])
{
    uint64_t bits = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    size_t len = 4 + 2 * ((bits >> 62) % 3);
    for (size_t i = 0; i < len; i += 2, bits >>= 7) {
        out[i] = "bcdfghjklmnprstv"[(bits >> 20) & 15];
        out[i + 1] = "aeiouaio"[(bits >> 24) & 7];
    }
    return len;
}

static void put(Buf *buf, const char *text)
{
    buf_slice(buf, slice_from_cstr(text));
}

static void put_word(Buf *buf, uint64_t number)
{
    char word[WORD_LEN_MAX];
    buf_bytes(buf, word, word_make(number, word));
}

static void put_name(Buf *buf, uint64_t number)
{
    char word[WORD_LEN_MAX];
    size_t len = word_make(number, word);
    word[0] = (char)(word[0] - 'a' + 'A');
    buf_bytes(buf, word, len);
}

static void put_cents(Buf *buf, uint64_t cents)
{
    buf_format(buf, "%" PRIu64 ".%02" PRIu64, cents / 100, cents % 100);
}

static void put_date(Buf *buf, uint64_t unix_s)
{
    time_t seconds = (time_t)unix_s;
    struct tm date;
    char text[32];
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&seconds, &date));
    buf_bytes(buf, text, len);
}

/* Appends 'prefix' and the name of 'number', and returns where they are in the buffer. */
static void put_identity(Buf *buf, const char *prefix, uint64_t number, size_t *at, size_t *len)
{
    *at = buf->len;
    put(buf, prefix);
    buf_u64(buf, order_text_name(number));
    *len = buf->len - *at;
}

static void put_customer(Buf *buf, Random *random)
{
    uint64_t first = random_below(random, WORD_COUNT);
    uint64_t last = random_below(random, WORD_COUNT);
    put(buf, ",\"customer\":{\"name\":\"");
    put_name(buf, first);
    put(buf, " ");
    put_name(buf, last);
    put(buf, "\",\"email\":\"");
    put_word(buf, first);
    put(buf, ".");
    put_word(buf, last);
    put(buf, "@example.com\",\"address\":{\"street\":\"");
    put_name(buf, random_below(random, WORD_COUNT));
    buf_format(buf, "laan %" PRIu64 "\",\"city\":\"", 1 + random_below(random, 300));
    put_name(buf, random_below(random, CITY_COUNT));
    buf_format(buf, "stad\",\"zip\":\"%05" PRIu64 "\",\"country\":\"",
               random_below(random, 100000));
    uint64_t country = random_below(random, COUNTRY_COUNT);
    buf_byte(buf, (uint8_t)('A' + country));
    buf_byte(buf, (uint8_t)('E' + country));
    put(buf, "\"}}");
}

static void put_tags(Buf *buf, Random *random)
{
    uint64_t frequent = random_below(random, ORDER_TAG_FREQUENT);
    uint64_t middling =
        ORDER_TAG_FREQUENT + random_below(random, ORDER_TAG_RARE - ORDER_TAG_FREQUENT);
    uint64_t rare = ORDER_TAG_RARE + random_below(random, ORDER_TAG_COUNT - ORDER_TAG_RARE);
    buf_format(buf,
               ",\"tags\":[\"tag-%" PRIu64 "\",\"tag-%" PRIu64 "\",\"tag-%" PRIu64
               "\"],\"discount\":null",
               frequent, middling, rare);
}

static void put_note(Buf *buf, Random *random)
{
    size_t len = ORDER_NOTE_MIN + random_below(random, ORDER_NOTE_MAX - ORDER_NOTE_MIN + 1);
    put(buf, ",\"note\":\"");
    size_t end = buf->len + len;
    while (buf->len < end) {
        put_word(buf, random_below(random, WORD_COUNT));
        buf_byte(buf, ' ');
    }
    /* The last word is cut, so that every length occurs. */
    buf->len = end;
    put(buf, "\"}");
}

void order_text_print(uint64_t number, Buf *text, Slice *id, Slice *key)
{
    Random random;
    random_init(&random, number);
    uint64_t ordered_at_s = DATES_BEGIN_S + random_below(&random, DATES_RANGE_S);
    size_t id_at;
    size_t key_at;
    size_t id_len;
    size_t key_len;
    buf_reset(text);
    put(text, "{\"id\":\"");
    put_identity(text, "o", number, &id_at, &id_len);
    put(text, "\",\"pk\":\"");
    put_identity(text, "c", number / LOAD_ITEMS_PER_KEY, &key_at, &key_len);
    buf_format(text, "\",\"orderNumber\":\"ORD-%" PRIu64 "\"", order_text_name(number));
    buf_format(text, ",\"status\":\"status-%" PRIu64 "\"",
               random_below(&random, ORDER_STATUS_COUNT));
    buf_format(text, ",\"category\":\"category-%" PRIu64 "\"",
               random_below(&random, ORDER_CATEGORY_COUNT));
    buf_format(text, ",\"paid\":%s", random_below(&random, 2) == 0 ? "false" : "true");
    buf_format(text, ",\"quantity\":%" PRIu64, 1 + random_below(&random, ORDER_QUANTITY_MAX));
    put(text, ",\"total\":");
    put_cents(text, random_below(&random, ORDER_TOTAL_MAX * 100));
    put(text, ",\"price\":");
    put_cents(text, 1 + random_below(&random, ORDER_PRICE_MAX * 100));
    put(text, ",\"orderedAt\":\"");
    put_date(text, ordered_at_s);
    put(text, "\",\"shippedAt\":\"");
    put_date(text, ordered_at_s + random_below(&random, SHIPPING_MAX_S));
    put(text, "\"");
    put_customer(text, &random);
    put_tags(text, &random);
    put_note(text, &random);
    ASSERT(!buf_full(text));
    *id = slice_make(text->ptr + id_at, id_len);
    *key = slice_make(text->ptr + key_at, key_len);
}
