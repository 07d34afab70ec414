/* order_text.h - items whose values differ, for measuring queries.
 *
 * An order is a number, as an item of item_maker.h is, and its text follows from that number: order
 * 17 is always the same. It has about ORDER_BYTES bytes and 20 paths that lead to values. What
 * queries ask for is made by arithmetic that the scripts of pgbench have as well:
 *
 *     id           "o" and order_text_name(n)
 *     pk           "c" and order_text_name(n / LOAD_ITEMS_PER_KEY)
 *     orderNumber  "ORD-" and order_text_name(n), so no two orders have the same
 *     status       "status-" and a number below ORDER_STATUS_COUNT
 *     category     "category-" and a number below ORDER_CATEGORY_COUNT
 *     total        any number of cents below ORDER_TOTAL_MAX
 *     quantity     1 to ORDER_QUANTITY_MAX
 *     price        any number of cents up to ORDER_PRICE_MAX
 *     tags         "tag-" and numbers: one of the 10 frequent ones, one of the 90 that follow, and
 *                  one of the others up to ORDER_TAG_COUNT
 *     note         words, ORDER_NOTE_MIN to ORDER_NOTE_MAX letters
 */
#pragma once

#include "base/buf.h"

#define ORDER_BYTES     1024
#define ORDER_BYTES_MAX 2048

enum {
    ORDER_STATUS_COUNT = 10,
    ORDER_CATEGORY_COUNT = 100,
    ORDER_TOTAL_MAX = 100000,
    ORDER_QUANTITY_MAX = 100,
    ORDER_PRICE_MAX = 1000,
    ORDER_TAG_FREQUENT = 10,
    ORDER_TAG_RARE = 100, /* number of the first that is rare */
    ORDER_TAG_COUNT = 1000,
    ORDER_NOTE_MIN = 350,
    ORDER_NOTE_MAX = 760,
};

/* One to one, and far apart for numbers that are neighbours. */
uint64_t order_text_name(uint64_t number);

/* Replaces what is in 'text', which must have room for ORDER_BYTES_MAX. '*id' and '*key' become
 * parts of it. */
void order_text_print(uint64_t number, Buf *text, Slice *id, Slice *key);
