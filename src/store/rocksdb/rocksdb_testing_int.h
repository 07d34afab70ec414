/* store_testing_int.h - what the tests of this folder share: stores in folders, processes, much
 * data. */
#pragma once

#include "store/store_testing_int.h"

#include "base/random.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static inline Status try_open(const char *path, StoreDurability durability, Store **store,
                              Error *err)
{
    RocksdbStoreOptions options = {
        .path = path, .durability = durability, .cache_bytes = (size_t)4 << 20};
    return rocksdb_store_open(&options, store, err);
}

static inline Store *open_at(const char *path)
{
    Store *store = NULL;
    assert_ok(try_open(path, STORE_DURABILITY_SYNC, &store, err));
    return store;
}

/* With keys that are merged. */
static inline Store *test_rocksdb_open(const char *path)
{
    Store *store = NULL;
    assert_ok(test_open_rocksdb(path, &store, err));
    return store;
}

static inline void put_bulk(Store *store, StoreSpace space, uint32_t count)
{
    char value[1000];
    Random random;
    random_init(&random, space);
    for (uint32_t i = 0; i < count;) {
        StoreTxn *txn = store_txn_begin(store);
        for (uint32_t j = 0; j < 1000 && i < count; j++, i++) {
            for (size_t k = 0; k + 8 <= sizeof(value); k += 8)
                memcpy(value + k, &(uint64_t){random_u64(&random)}, 8);
            char key[16];
            int len = snprintf(key, sizeof(key), "%08u", i);
            store_txn_put(txn, space, slice_make(key, (size_t)len),
                          slice_make(value, sizeof(value)));
        }
        commit_now(txn);
    }
}

static inline uint32_t count_keys(Store *store, const StoreSnapshot *snapshot, StoreSpace space)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, snapshot, space, SLICE_EMPTY, SLICE_EMPTY);
    for (uint32_t count = 0;; count++) {
        Slice key = {0}, value = {0};
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
    }
}

static inline int run_command(const char *command, const char *path)
{
    int out = -1;
    int status = wait_for(run_self(command, path, &out));
    (void)close(out);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The largest file in the folder whose name ends with 'part', or begins with it. */
static inline off_t find_file(const char *folder, const char *part, char path[512])
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    off_t size = -1;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);
        bool is_end = len >= strlen(part) && strcmp(entry->d_name + len - strlen(part), part) == 0;
        if (!is_end && strncmp(entry->d_name, part, strlen(part)) != 0)
            continue;
        char one[512];
        (void)snprintf(one, sizeof(one), "%.200s/%.200s", folder, entry->d_name);
        struct stat info;
        assert_int_equal(stat(one, &info), 0);
        if (info.st_size > size) {
            size = info.st_size;
            memcpy(path, one, sizeof(one));
        }
    }
    (void)closedir(dir);
    assert_true(size > 0);
    return size;
}

static inline void flip_bytes(const char *path, off_t at)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t bytes[16];
    ssize_t count = pread(fd, bytes, sizeof(bytes), at);
    assert_true(count > 0);
    for (ssize_t i = 0; i < count; i++)
        bytes[i] ^= 0x55;
    assert_int_equal(pwrite(fd, bytes, (size_t)count, at), count);
    (void)close(fd);
}
