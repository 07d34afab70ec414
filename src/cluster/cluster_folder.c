/* cluster_folder.c - see cluster_folder.h.
 *
 *     file = "orrery-cluster 1\n" cluster " " incarnation " " attempt " " node "\n" checksum "\n"
 *
 * The cluster's id and the attempt are 32 hexadecimal characters, the incarnation is decimal, the
 * checksum 8 hexadecimal characters over all bytes before it. It is written as a new file that
 * takes the old one's place, so a crash leaves one or the other.
 *
 * Before each join the file names the attempt, so that a process that ends between its join and the
 * write of its incarnation can join again. The incarnation is 0 before the first join has ended.
 *
 * Another file beside it names the machine as it runs now, and the folder there:
 *
 *     machine = boot id " " device " " inode "\n"
 *
 * The lock shows only on the same machine that the process before is gone. If the machine was
 * started anew since, or the folder is a copy or is elsewhere, what the file says is not what is
 * found; nor is it if there is no file. It is not synced: a machine that loses it starts anew.
 *
 * While a folder is adopted, an empty file stands beside it, which is made before this file and
 * removed when everything else is durable. As long as it is there, all data is in the folder.
 */
#include "cluster/cluster_folder.h"

#include "base/crc32.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "orrery-cluster 1\n"
static_assert(JOURNAL_ATTEMPT_BYTES == 16, "an attempt has as many characters as an id");
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
enum { MACHINE_BYTES_MAX = 128, BOOT_ID_CHARS = 36 };
enum { FILE_BYTES_MAX = 512, ID_CHARS = 32, SUM_CHARS = 8, PATH_BYTES_MAX = 4096 };

struct ClusterFolder {
    char path[PATH_BYTES_MAX];
    char node[JOURNAL_NAME_MAX + 1];
    int lock;
    bool is_member;
    bool is_adopting;
    bool has_moved;
    uint8_t cluster[16];
    uint64_t incarnation;
    uint8_t attempt[JOURNAL_ATTEMPT_BYTES]; /* zeroes if none is under way */
};

static Status join_path(const ClusterFolder *folder, const char *name,
                        char out[PATH_BYTES_MAX + 32], Error *err)
{
    int len = snprintf(out, PATH_BYTES_MAX + 32, "%s/%s", folder->path, name);
    if (len < 0 || len >= PATH_BYTES_MAX + 32)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the data folder's path is too long");
    return STATUS_OK;
}

static Status lock_folder(ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    TRY(join_path(folder, CLUSTER_FOLDER_LOCK, path, err));
    folder->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (folder->lock < 0)
        return error_set_errno(err, errno, "cannot open '%s'", path);
    if (flock(folder->lock, LOCK_EX | LOCK_NB) != 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the data folder '%s' is used by another process", folder->path);
    return STATUS_OK;
}

/* 'text' is the whole file. */
static bool parse(ClusterFolder *folder, Slice text, Slice *node)
{
    Slice head = SLICE(HEAD);
    uint8_t sum[4];
    size_t len;
    if (text.len < head.len + SUM_CHARS + 1 || !slice_starts_with(text, head))
        return false;
    Slice body = slice_first(text, text.len - SUM_CHARS - 1);
    Slice hex = {text.ptr + body.len, SUM_CHARS};
    if (text.ptr[text.len - 1] != '\n' || !hex_decode(hex, sum, sizeof(sum), &len) ||
        be32_get(sum) != crc32_of(body))
        return false;
    Slice line = slice_from(body, head.len);
    if (!slice_ends_with(line, SLICE("\n")))
        return false;
    line.len--;
    Slice id = slice_cut(&line, ' ');
    Slice incarnation = slice_cut(&line, ' ');
    Slice attempt = slice_cut(&line, ' ');
    size_t attempt_len;
    *node = line;
    return hex_decode(id, folder->cluster, sizeof(folder->cluster), &len) &&
           len == sizeof(folder->cluster) && slice_to_u64(incarnation, &folder->incarnation) &&
           hex_decode(attempt, folder->attempt, sizeof(folder->attempt), &attempt_len) &&
           attempt_len == sizeof(folder->attempt) && node->len > 0 && node->len <= JOURNAL_NAME_MAX;
}

static Status read_file(ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    TRY(join_path(folder, CLUSTER_FOLDER_FILE, path, err));
    char text[FILE_BYTES_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%s'", path);
    ssize_t len = read(fd, text, sizeof(text));
    int code = errno;
    (void)close(fd); /* nothing was written */
    if (len < 0)
        return error_set_errno(err, code, "cannot read '%s'", path);
    Slice node;
    if (!parse(folder, slice_make(text, (size_t)len), &node))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "'%s' is damaged", path);
    if (!slice_equal(node, slice_from_cstr(folder->node)))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder '%s' is of the node '%.*s', not of '%s'; start it with "
                         "--node %.*s, or '%s' with an empty folder (--data)",
                         folder->path, SLICE_ARG(node), folder->node, SLICE_ARG(node),
                         folder->node);
    folder->is_member = folder->incarnation != 0;
    return STATUS_OK;
}

/* ---- the machine ---- */

/* The beginning of a file, of at most 'size' bytes; empty if it cannot be read. */
static Slice read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, size) : 0;
    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    return slice_make(text, len > 0 ? (size_t)len : 0);
}

/* What the second file would say now; empty if that cannot be found out. */
static Slice find_machine(const ClusterFolder *folder, char text[MACHINE_BYTES_MAX])
{
    char id[MACHINE_BYTES_MAX];
    struct stat data;
    Slice boot = slice_first(read_text(BOOT_ID, id, sizeof(id)), BOOT_ID_CHARS);
    if (boot.len < BOOT_ID_CHARS || stat(folder->path, &data) != 0)
        return SLICE_EMPTY;
    int len = snprintf(text, MACHINE_BYTES_MAX, "%.*s %llu %llu\n", SLICE_ARG(boot),
                       (unsigned long long)data.st_dev, (unsigned long long)data.st_ino);
    ASSERT(len > 0 && len < MACHINE_BYTES_MAX);
    return slice_make(text, (size_t)len);
}

static Status check_machine(ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    char now[MACHINE_BYTES_MAX];
    char before[MACHINE_BYTES_MAX];
    TRY(join_path(folder, CLUSTER_FOLDER_MACHINE, path, err));
    Slice machine = find_machine(folder, now);
    folder->has_moved =
        folder->is_member &&
        (machine.len == 0 || !slice_equal(machine, read_text(path, before, sizeof(before))));
    return STATUS_OK;
}

bool cluster_folder_has_moved(const ClusterFolder *folder)
{
    return folder->has_moved;
}

Status cluster_folder_settle(ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    char text[MACHINE_BYTES_MAX];
    TRY(join_path(folder, CLUSTER_FOLDER_MACHINE, path, err));
    Slice machine = find_machine(folder, text);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_done = fd >= 0 && write(fd, machine.ptr, machine.len) == (ssize_t)machine.len;
    int code = errno;
    if (fd >= 0)
        (void)close(fd); /* a file that is not whole is taken for another machine's */
    if (!is_done)
        return error_set_errno(err, code, "cannot write '%s'", path);
    folder->has_moved = false;
    return STATUS_OK;
}

/* Whether a database is in the folder: the file that names its newest list of files. */
static Status has_data(const ClusterFolder *folder, bool *out, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    TRY(join_path(folder, "store/CURRENT", path, err));
    *out = access(path, F_OK) == 0;
    return STATUS_OK;
}

static Status sync_folder(const char *path, Error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%s'", path);
    bool is_done = fsync(fd) == 0;
    int code = errno;
    (void)close(fd); /* nothing was written through it */
    return is_done ? STATUS_OK : error_set_errno(err, code, "cannot sync '%s'", path);
}

bool cluster_folder_is_adopted_partly(const char *path)
{
    char marker[PATH_BYTES_MAX + 32];
    int len = snprintf(marker, sizeof(marker), "%s/" CLUSTER_FOLDER_ADOPTING, path);
    return len > 0 && (size_t)len < sizeof(marker) && access(marker, F_OK) == 0;
}

static Status begin_adoption(const ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    TRY(join_path(folder, CLUSTER_FOLDER_ADOPTING, path, err));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot write '%s'", path);
    (void)close(fd); /* nothing was written */
    return sync_folder(folder->path, err);
}

Status cluster_folder_end_adoption(ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    TRY(join_path(folder, CLUSTER_FOLDER_ADOPTING, path, err));
    if (unlink(path) != 0)
        return error_set_errno(err, errno, "cannot remove '%s'", path);
    folder->is_adopting = false;
    return sync_folder(folder->path, err);
}

/* What the folder is decides who may have it. */
static Status check_kind(ClusterFolder *folder, bool adopts, Error *err)
{
    bool with_data = false;
    TRY(has_data(folder, &with_data, err));
    bool is_partly = cluster_folder_is_adopted_partly(folder->path);
    folder->is_adopting = adopts;
    if (adopts && folder->is_member && !is_partly)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder '%s' is that of a node already; start it with `orrery "
                         "serve --cluster`",
                         folder->path);
    if (adopts && !with_data)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "the data folder '%s' has no data to adopt; `orrery serve --cluster` "
                         "makes a new node of it",
                         folder->path);
    if (adopts)
        return STATUS_OK;
    if (is_partly)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder '%s' is adopted only in part: repeat `orrery cluster "
                         "adopt`; nothing is lost",
                         folder->path);
    if (with_data && !folder->is_member)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder '%s' has data of a server without a cluster; `orrery "
                         "cluster adopt` makes a cluster of it",
                         folder->path);
    return STATUS_OK;
}

static Status open_folder(const char *path, Slice node, bool adopts, ClusterFolder **out,
                          Error *err)
{
    if (strlen(path) >= PATH_BYTES_MAX || node.len == 0 || node.len > JOURNAL_NAME_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a path of at most %d and a name of 1 to %d characters",
                         PATH_BYTES_MAX - 1, JOURNAL_NAME_MAX);
    AUTO(cluster_folder_close) ClusterFolder *folder = MEM_NEW(ClusterFolder);
    folder->lock = -1;
    memcpy(folder->path, path, strlen(path) + 1);
    memcpy(folder->node, node.ptr, node.len);
    TRY(lock_folder(folder, err));
    TRY(read_file(folder, err));
    TRY(check_kind(folder, adopts, err));
    TRY(check_machine(folder, err));
    *out = TAKE(folder);
    return STATUS_OK;
}

Status cluster_folder_open(const char *path, Slice node, ClusterFolder **out, Error *err)
{
    return open_folder(path, node, false, out, err);
}

Status cluster_folder_adopt(const char *path, Slice node, ClusterFolder **out, Error *err)
{
    return open_folder(path, node, true, out, err);
}

bool cluster_folder_is_member(const ClusterFolder *folder)
{
    return folder->is_member;
}

static Status write_synced(const char *path, Slice text, Error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot write '%s'", path);
    ssize_t written = write(fd, text.ptr, text.len);
    bool is_done = written == (ssize_t)text.len && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 || !is_done)
        return error_set_errno(err, code, "cannot write '%s'", path);
    return STATUS_OK;
}

static Status write_file(const ClusterFolder *folder, Error *err)
{
    char path[PATH_BYTES_MAX + 32];
    char fresh[PATH_BYTES_MAX + 32];
    TRY(join_path(folder, CLUSTER_FOLDER_FILE, path, err));
    TRY(join_path(folder, CLUSTER_FOLDER_FILE ".new", fresh, err));
    char id[ID_CHARS];
    hex_encode(folder->cluster, sizeof(folder->cluster), id);
    char attempt[ID_CHARS];
    hex_encode(folder->attempt, sizeof(folder->attempt), attempt);
    char text[FILE_BYTES_MAX];
    int len = snprintf(text, sizeof(text), HEAD "%.*s %llu %.*s %s\n", ID_CHARS, id,
                       (unsigned long long)folder->incarnation, ID_CHARS, attempt, folder->node);
    ASSERT(len > 0 && (size_t)len < sizeof(text) - SUM_CHARS - 1);
    uint8_t sum[4];
    be32_put(sum, crc32_of(slice_make(text, (size_t)len)));
    hex_encode(sum, sizeof(sum), text + len);
    text[len + SUM_CHARS] = '\n';
    TRY(write_synced(fresh, slice_make(text, (size_t)len + SUM_CHARS + 1), err));
    if (rename(fresh, path) != 0)
        return error_set_errno(err, errno, "cannot write '%s'", path);
    return sync_folder(folder->path, err);
}

Status cluster_folder_join(ClusterFolder *folder, Journal *journal, const JournalJoin *join,
                           JournalMember *out, Error *err)
{
    static const uint8_t none[JOURNAL_ATTEMPT_BYTES] = {0};
    if (memcmp(folder->attempt, none, sizeof(none)) == 0)
        random_secret(folder->attempt, sizeof(folder->attempt));
    if (folder->is_adopting)
        TRY(begin_adoption(folder, err));
    TRY(write_file(folder, err));
    if (!folder->is_member) /* it has owned nothing yet */
        TRY(cluster_folder_settle(folder, err));
    JournalJoin own = *join;
    memcpy(own.attempt, folder->attempt, sizeof(own.attempt));
    own.name = slice_from_cstr(folder->node);
    own.incarnation_of_folder = folder->is_member ? folder->incarnation : 0;
    memset(own.cluster_of_folder, 0, sizeof(own.cluster_of_folder));
    if (folder->is_member)
        memcpy(own.cluster_of_folder, folder->cluster, sizeof(folder->cluster));
    JournalMember member;
    TRY(journal_join(journal, &own, &member, err));
    memcpy(folder->cluster, member.cluster, sizeof(folder->cluster));
    folder->incarnation = member.incarnation;
    folder->is_member = true;
    memset(folder->attempt, 0, sizeof(folder->attempt));
    TRY(write_file(folder, err));
    *out = member;
    return STATUS_OK;
}

void cluster_folder_close(ClusterFolder *folder)
{
    if (folder == NULL)
        return;
    if (folder->lock >= 0)
        (void)close(folder->lock); /* which unlocks it */
    mem_free(folder);
}
