/* wal_scan.c - how far a log of RocksDB, or its MANIFEST, is whole, and what follows.
 *
 *     file   = block of 32 KB *, the last one may be shorter
 *     block  = record *, then fewer than 7 bytes of zeros
 *     record = | checksum u32 LE | length u16 LE | type u8 | body, 'length' bytes |
 *
 * A group is one FULL record, or FIRST, MIDDLE..., LAST if it goes over the end of a block. The
 * checksum, a CRC-32C that RocksDB masks, covers the type and the body. See RocksDB's description
 * of its write-ahead log. In a log a group is what one commit of ours wrote, in a MANIFEST it is
 * one change of the set of files.
 *
 * RocksDB itself takes zeros, and a file that ends early, for the end of the log.
 */
#include "store/rocksdb/folder_check_int.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

enum {
    LOG_BLOCK_BYTES = 32 << 10,
    LOG_HEADER_BYTES = 7,
    LOG_FULL = 1,
    LOG_FIRST = 2,
    LOG_MIDDLE = 3,
    LOG_LAST = 4,
};

typedef struct Scanner {
    const WalVisitor *visitor;
    uint32_t crc_tables[8][256];
    uint8_t block[LOG_BLOCK_BYTES];
    uint64_t offset; /* of the block */
    size_t len;      /* of what there is of it */

    bool is_in_group; /* FIRST was seen, and not LAST */
    bool is_broken;   /* a place was found that is no record */
    uint8_t head[WAL_HEAD_BYTES_MAX];
    size_t head_len;
    WalScan result;
} Scanner;

static void make_crc_tables(uint32_t tables[8][256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? (crc >> 1) ^ UINT32_C(0x82F63B78) : crc >> 1;
        tables[0][i] = crc;
    }
    for (size_t t = 1; t < 8; t++) {
        for (size_t i = 0; i < 256; i++)
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xFF];
    }
}

/* The checksum of a record's type and body, which follow one another, as the record holds it. */
static uint32_t masked_crc(const Scanner *scanner, const uint8_t *at, size_t len)
{
    const uint32_t(*tables)[256] = scanner->crc_tables;
    uint32_t crc = UINT32_MAX;
    for (; len >= 8; at += 8, len -= 8) {
        uint32_t low = 0;
        memcpy(&low, at, sizeof(low)); /* little-endian, like every machine we run on */
        low ^= crc;
        crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^
              tables[4][low >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; len > 0; at++, len--)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xFF];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xA282EAD8);
}

/* The size of the record at 'at', or 0 if there is no whole one. */
static size_t record_bytes(const Scanner *scanner, size_t at, uint8_t *type)
{
    if (scanner->len - at < LOG_HEADER_BYTES)
        return 0;
    const uint8_t *record = scanner->block + at;
    size_t len = (size_t)record[4] | (size_t)record[5] << 8;
    *type = record[6];
    if (*type < LOG_FULL || *type > LOG_LAST || len > scanner->len - at - LOG_HEADER_BYTES)
        return 0;
    uint32_t stored = 0;
    memcpy(&stored, record, sizeof(stored));
    return stored == masked_crc(scanner, record + 6, 1 + len) ? LOG_HEADER_BYTES + len : 0;
}

static bool is_blank(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static bool begins_group(uint8_t type)
{
    return type == LOG_FULL || type == LOG_FIRST;
}

static void add_to_head(Scanner *scanner, const uint8_t *body, size_t len)
{
    size_t room = WAL_HEAD_BYTES_MAX - scanner->head_len;
    len = len < room ? len : room;
    memcpy(scanner->head + scanner->head_len, body, len);
    scanner->head_len += len;
}

/* Adds one whole record. False if it cannot follow the one before it. */
static bool take_record(Scanner *scanner, size_t at, size_t bytes, uint8_t type)
{
    if (begins_group(type) == scanner->is_in_group)
        return false;
    if (begins_group(type))
        scanner->head_len = 0;
    add_to_head(scanner, scanner->block + at + LOG_HEADER_BYTES, bytes - LOG_HEADER_BYTES);
    scanner->is_in_group = type == LOG_FIRST || type == LOG_MIDDLE;
    if (scanner->is_in_group)
        return true;
    scanner->result.whole_bytes = scanner->offset + at + bytes;
    if (scanner->visitor != NULL)
        scanner->visitor->group(scanner->visitor->ctx,
                                slice_make((const char *)scanner->head, scanner->head_len));
    return true;
}

/* After a broken record the next one may begin anywhere. */
static void look_for_more(Scanner *scanner, size_t at)
{
    if (is_blank(scanner->block + at, scanner->len - at))
        return;
    uint8_t type = 0;
    while (at < scanner->len && !scanner->result.has_more) {
        size_t bytes = record_bytes(scanner, at, &type);
        scanner->result.has_more = bytes > 0 && begins_group(type);
        at += bytes > 0 ? bytes : 1;
    }
}

static void scan_block(Scanner *scanner)
{
    size_t at = 0;
    uint8_t type = 0;
    while (!scanner->is_broken && scanner->len - at >= LOG_HEADER_BYTES) {
        size_t bytes = record_bytes(scanner, at, &type);
        scanner->is_broken = bytes == 0 || !take_record(scanner, at, bytes, type);
        at += scanner->is_broken ? 0 : bytes;
    }
    if (scanner->is_broken)
        look_for_more(scanner, at);
    uint64_t whole = scanner->result.whole_bytes;
    size_t from = whole > scanner->offset ? (size_t)(whole - scanner->offset) : 0;
    if (!is_blank(scanner->block + from, scanner->len - from))
        scanner->result.is_torn = true;
    else if (from > 0)
        scanner->result.is_torn = false; /* a group of earlier blocks has ended here */
}

Status wal_scan(const char *path, const WalVisitor *visitor, WalScan *out, Error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, errno, "cannot read '%.300s'", path);
    Scanner *scanner = MEM_NEW(Scanner);
    scanner->visitor = visitor;
    make_crc_tables(scanner->crc_tables);
    while (!scanner->result.has_more &&
           (scanner->len = fread(scanner->block, 1, LOG_BLOCK_BYTES, file)) > 0) {
        scan_block(scanner);
        scanner->offset += scanner->len;
    }
    bool failed = ferror(file) != 0;
    (void)fclose(file); /* only read from */
    *out = scanner->result;
    out->is_torn = out->is_torn || out->has_more;
    mem_free(scanner);
    return failed ? error_set_errno(err, EIO, "cannot read '%.300s'", path) : STATUS_OK;
}
