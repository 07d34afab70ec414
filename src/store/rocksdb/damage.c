/* damage.c - what to do about stored data that has turned out to be damaged.
 *
 * A read that meets a damaged block fails alone (I13). A compaction that meets one ends all
 * writing: RocksDB cannot rewrite what it cannot read, and takes no write from then on. So the
 * first damage that is met switches compaction off (R6), and a file with the reason is left in the
 * folder, so that it stays off after a restart. The number of files then grows, which makes reads
 * slower and takes room, but reads and writes of everything else go on until an administrator has
 * repaired the folder and removed that file.
 */
#include "store/rocksdb/rocksdb_int.h"

#include <fcntl.h>
#include <unistd.h>

#define MARK_NAME "DAMAGED"

bool damage_read_mark(int folder_fd, Error *reason)
{
    int fd = openat(folder_fd, MARK_NAME, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char text[256];
    ssize_t len = read(fd, text, sizeof(text) - 1);
    (void)close(fd); /* only read from */
    text[len < 0 ? 0 : len] = '\0';
    for (char *c = text; *c != '\0'; c++) /* an administrator may have edited it */
        *c = *c < ' ' ? ' ' : *c;
    Status status = error_set(reason, STATUS_CORRUPT, SUB_NONE,
                              "damage was found before (%s); compaction is off until the data is "
                              "repaired and the file " MARK_NAME " removed",
                              text);
    return status != STATUS_OK;
}

/* Best effort: without the file the next start meets the damage again. */
static void write_mark(int folder_fd, const char *reason)
{
    int fd = openat(folder_fd, MARK_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    ssize_t written = write(fd, reason, strlen(reason));
    if (written >= 0)
        (void)fsync(fd);
    (void)close(fd);
}

void damage_note(int folder_fd, rocksdb_t *db, const Error *reason)
{
    static const char *const names[] = {"disable_auto_compactions"};
    static const char *const values[] = {"true"};
    char *text = NULL;
    rocksdb_set_options(db, 1, names, values, &text);
    rocksdb_free(text); /* nothing more can be done about it */
    write_mark(folder_fd, reason->message);
}
