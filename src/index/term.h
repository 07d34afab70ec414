/* term.h - what the index is made of: a path, and a value that was found there.
 *
 *     key   = | 0x10 | path u64 BE | value | chunk, 6 bytes BE |      value: a set, see set.h
 *     value = 00                      anything at all is there
 *           / 05                      null
 *           / 06 / 07                 false, true
 *           / 08 | number, 8 bytes    a double, so that memcmp order is numeric order
 *           / 0A | text | 00 01       a string; a zero byte in it is written 00 FF
 *           / 0A | text | 00 02       the beginning of a longer string, TERM_STRING_BYTES of it
 *           / 0C / 0D                 an array, an object: that it is there
 *
 * Values order as ORDER BY orders them (I2). Two kinds do not identify the value: a string that was
 * cut, and a number that stands for integers that are no doubles. A reader that finds such a term
 * must look at the item.
 *
 * A path is the hash of its steps, with a random key of the partition: clients cannot choose names
 * whose paths collide, and two of a million paths collide by chance in one of 10^7 partitions. A
 * step is a name, or "any element of the array".
 *
 * The root's own terms exist for every item: (root, 00) is the set of all items that are indexed.
 *
 * Composite and spatial indexes, and samples of the values of a path, have terms of the same form
 * under paths of their own: see terms.h, and below.
 */
#pragma once

#include "base/buf.h"
#include "base/encoding.h"
#include "base/hash.h"
#include "base/slice.h"
#include "json/json.h"

enum {
    TERM_KIND = 0x10, /* the first byte of the key */
    TERM_STRING_BYTES = 96,
    TERM_KEY_HEAD = 1 + 8,
    TERM_CHUNK_BYTES = 6,
    /* A string all of zero bytes, and its end; composite terms have eight of them. */
    TERM_VALUE_BYTES_MAX = 8 * (1 + 2 * TERM_STRING_BYTES + 2),
};

typedef enum TermTag {
    TERM_PRESENT = 0x00,
    TERM_UNDEFINED = 0x04, /* in composite terms only */
    TERM_NULL = 0x05,
    TERM_FALSE = 0x06,
    TERM_TRUE = 0x07,
    TERM_NUMBER = 0x08,
    TERM_STRING = 0x0A,
    TERM_ARRAY = 0x0C,
    TERM_OBJECT = 0x0D,
    TERM_END = 0x0E, /* sorts after every value */
} TermTag;

/* Paths, step by step from the root. */
typedef uint64_t TermPath;
TermPath term_path_root(HashKey key);
TermPath term_path_name(HashKey key, TermPath parent, Slice name);
TermPath term_path_element(HashKey key, TermPath parent);

/* Each appends one value. '*exact' becomes false if the term stands for other values, too, and is
 * otherwise left as it is. */
void term_put_tag(Buf *out, TermTag tag);
void term_put_bool(Buf *out, bool value);
void term_put_number(Buf *out, double value, bool *exact);
void term_put_string(Buf *out, Slice value, bool *exact);
void term_put_json(Buf *out, Json value, bool *exact); /* any type; undefined is TERM_UNDEFINED */

/* Appends the bytes with which the terms of all strings begin that begin with 'prefix' (which is
 * cut if it is too long): the start of a range, whose end is term_after(). '*exact' as above. */
void term_put_prefix(Buf *out, Slice prefix, bool *exact);

/* Changes 'bytes' in place to the first that sort after everything that begins with them; empty if
 * there are none. */
void term_after(Buf *bytes);

/* Reads one value back; 'text' is unescaped into 'arena'. 'exact' is false for a string that was
 * cut and for a number that stands for several. Returns false if the bytes are no value (I6). */
typedef struct TermValue {
    TermTag tag;
    double number;
    Slice text;
    bool exact;
} TermValue;
bool term_read(Arena *arena, Slice *bytes, TermValue *out);

/* Samples, from which ranges are estimated (I10). One value in 64 has its terms once more under the
 * path of the first sample of its path, one in 256 also under that of the second, and so on. Only
 * its bytes decide: an estimate depends on what is stored, not on how the store keeps it, nor on
 * the partition's key. A value of one byte, like TERM_PRESENT, is in no sample. */
enum { TERM_SAMPLES = 7, TERM_SAMPLE_BITS = 6, TERM_SAMPLE_MORE_BITS = 2 };
unsigned term_samples(Slice value); /* how many samples have it: the first ones */
TermPath term_path_sample(TermPath path, unsigned sample); /* applied twice it gives the path */

/* The key of a chunk, and back. */
void term_key(Buf *out, TermPath path, Slice value, uint64_t high);
bool term_key_read(Slice key, TermPath *path, Slice *value, uint64_t *high);
