/* log_check.c - tells the torn end of RocksDB's log from damage in its middle.
 *
 *     file   = block of 32 KB *, the last one may be shorter
 *     block  = record *, then fewer than 7 bytes of zeros
 *     record = | checksum u32 LE | length u16 LE | type u8 | body, 'length' bytes |
 *
 * A group of ours is one FULL record, or FIRST, MIDDLE..., LAST if it goes over the end of a block.
 * The checksum, a CRC-32C that RocksDB masks, covers the type and the body. See RocksDB's
 * description of its write-ahead log.
 *
 * RocksDB can replay a log up to its first broken record, which is right for the end that a loss of
 * power has torn: what stood there was never acknowledged. For damage in the middle it is wrong,
 * since everything behind it would silently be gone. The difference can be seen: the next group is
 * not begun before the one before it is on disk. So, if anything behind a broken record begins a
 * group, the broken one was acknowledged. (With relaxed durability this does not hold, and who
 * chose it has accepted that newest writes may be lost.)
 *
 * Only looked at when RocksDB, asked to be strict, has refused the log; so it need not be fast.
 */
#include "store/rocksdb/rocksdb_int.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LOG_BLOCK_BYTES = 32 << 10,
    LOG_HEADER_BYTES = 7,
    LOG_FULL = 1,
    LOG_FIRST = 2,
    LOG_LAST = 4,
};

typedef struct LogCheck {
    const char *folder;
    uint32_t crc_table[256];
    uint8_t block[LOG_BLOCK_BYTES];

    bool is_broken; /* a broken record was found: */
    uint64_t broken_number;
    uint64_t broken_at;
    bool is_damaged; /* and the beginning of a group behind it */
} LogCheck;

static void make_crc_table(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? (crc >> 1) ^ UINT32_C(0x82F63B78) : crc >> 1;
        table[i] = crc;
    }
}

/* Of a record's type and body, which lie behind one another, as it stands in the record. */
static uint32_t masked_crc(const LogCheck *check, const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ check->crc_table[(crc ^ bytes[i]) & 0xFF];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xA282EAD8);
}

/* The size of the record at 'at', or 0 if there is no whole one. */
static size_t record_bytes(const LogCheck *check, size_t at, size_t end, uint8_t *type)
{
    if (end - at < LOG_HEADER_BYTES)
        return 0;
    const uint8_t *record = check->block + at;
    size_t len = (size_t)record[4] | (size_t)record[5] << 8;
    *type = record[6];
    if (*type < LOG_FULL || *type > LOG_LAST || len > end - at - LOG_HEADER_BYTES)
        return 0;
    uint32_t stored = 0;
    memcpy(&stored, record, sizeof(stored)); /* little-endian, like every machine we run on */
    return stored == masked_crc(check, record + 6, 1 + len) ? LOG_HEADER_BYTES + len : 0;
}

/* Nothing but zeros: room that was taken before it was needed. */
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

/* Where the next record begins is unknown behind a broken one: it may be anywhere. */
static bool group_begins_behind(const LogCheck *check, size_t at, size_t end)
{
    uint8_t type = 0;
    for (; at < end; at++) {
        if (record_bytes(check, at, end, &type) > 0 && begins_group(type))
            return true;
    }
    return false;
}

static void check_block(LogCheck *check, uint64_t number, uint64_t offset, size_t end)
{
    uint8_t type = 0;
    size_t len = 0;
    for (size_t at = 0; at < end; at += len) {
        if (is_blank(check->block + at, end - at))
            return;
        len = record_bytes(check, at, end, &type);
        if (len > 0) {
            check->is_damaged = check->is_damaged || (check->is_broken && begins_group(type));
            continue;
        }
        if (!check->is_broken) {
            check->is_broken = true;
            check->broken_number = number;
            check->broken_at = offset + at;
            check->is_damaged = group_begins_behind(check, at + 1, end);
        }
        return;
    }
}

static Status check_file(LogCheck *check, uint64_t number, Error *err)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%06llu.log", check->folder, (unsigned long long)number);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, errno, "cannot read '%.300s'", path);
    size_t len = 0;
    for (uint64_t offset = 0; (len = fread(check->block, 1, LOG_BLOCK_BYTES, file)) > 0;
         offset += len)
        check_block(check, number, offset, len);
    bool failed = ferror(file) != 0;
    (void)fclose(file); /* only read from */
    return failed ? error_set_errno(err, EIO, "cannot read '%.300s'", path) : STATUS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The numbers of the logs, the oldest first; the caller frees them. */
static Status find_logs(const char *folder, uint64_t **numbers, size_t *count, Error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return error_set_errno(err, errno, "cannot read the data folder '%.200s'", folder);
    *count = 0;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL) {
        char *end = NULL;
        uint64_t number = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name || strcmp(end, ".log") != 0)
            continue;
        *numbers = mem_realloc(*numbers, sizeof(uint64_t) * (*count + 1));
        (*numbers)[(*count)++] = number;
    }
    (void)closedir(dir); /* only read from */
    if (*count > 0)
        qsort(*numbers, *count, sizeof(uint64_t), compare_numbers);
    return STATUS_OK;
}

static Status check_files(LogCheck *check, const uint64_t *numbers, size_t count, Error *err)
{
    for (size_t i = 0; i < count && !check->is_damaged; i++)
        TRY(check_file(check, numbers[i], err));
    if (!check->is_damaged)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "cannot open the data folder '%.200s': its log %06llu.log is damaged at byte "
                     "%llu, and acknowledged writes stand behind that; restore the folder from a "
                     "copy, or start once with --durability relaxed to go on without them",
                     check->folder, (unsigned long long)check->broken_number,
                     (unsigned long long)check->broken_at);
}

Status log_check(const char *folder, Error *err)
{
    uint64_t *numbers = NULL;
    size_t count = 0;
    TRY(find_logs(folder, &numbers, &count, err));
    LogCheck *check = MEM_NEW(LogCheck);
    check->folder = folder;
    make_crc_table(check->crc_table);
    Status status = check_files(check, numbers, count, err);
    mem_free(check);
    mem_free(numbers);
    return status;
}
