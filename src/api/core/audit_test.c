/* audit_test.c - lines, disks that do not take them, queues that are full, and rotation. */
#include "api/core/audit.h"

#include "base/testing.h"

#include "base/latch.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, LINES_MAX = 4096 };

/* What the writer's thread meets; set before it is started, or while it waits. */
static struct {
    _Atomic int failures;    /* so many writes fail */
    _Atomic int halves;      /* so many write only a half */
    _Atomic bool is_covered; /* something else is appended after a half */
    _Atomic bool is_waiting; /* the next write waits for 'go' */
    Latch reached, go;
} disk;

static ssize_t disk_write(int fd, const void *bytes, size_t len)
{
    if (atomic_exchange(&disk.is_waiting, false)) {
        latch_post(&disk.reached);
        latch_wait(&disk.go);
    }
    if (atomic_load(&disk.failures) > 0) {
        atomic_fetch_sub(&disk.failures, 1);
        errno = ENOSPC;
        return -1;
    }
    if (atomic_load(&disk.halves) == 0)
        return write(fd, bytes, len);
    atomic_fetch_sub(&disk.halves, 1);
    ssize_t written = write(fd, bytes, len / 2);
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (atomic_load(&disk.is_covered)) {
        assert_int_equal(write(fd, "?", 1), 1);
        assert_int_equal(lseek(fd, end, SEEK_SET), end);
    }
    return written;
}

typedef struct Site {
    TestFolder folder;
    char path[80];
    char moved[80];
    FakeClock clock;
    Log log;
    int log_fd;
    Metrics metrics;
    Arena arena;
    Audit *audit;
} Site;

static void site_start(Site *site, size_t queue_bytes_max)
{
    AuditOptions options = {.path = site->path,
                            .clock = &site->clock.clock,
                            .log = &site->log,
                            .metrics = &site->metrics.shards[0],
                            .queue_bytes_max = queue_bytes_max,
                            .write = disk_write};
    assert_ok(audit_open(&options, &site->audit, err));
}

static int site_open(void **state)
{
    Site *site = MEM_NEW(Site);
    test_folder_init(&site->folder);
    (void)snprintf(site->path, sizeof(site->path), "%s/audit.log", site->folder.path);
    (void)snprintf(site->moved, sizeof(site->moved), "%s/audit.log.1", site->folder.path);
    char log[80];
    (void)snprintf(log, sizeof(log), "%s/log", site->folder.path);
    site->log_fd = open(log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    fake_clock_init(&site->clock, UINT64_C(1700000000123456));
    site->log = (Log){.fd = site->log_fd, .level = LOG_LEVEL_INFO, .clock = &site->clock.clock};
    metrics_init(&site->metrics, 1);
    arena_init(&site->arena, 4096);
    atomic_store(&disk.failures, 0);
    atomic_store(&disk.halves, 0);
    atomic_store(&disk.is_covered, false);
    atomic_store(&disk.is_waiting, false);
    latch_init(&disk.reached);
    latch_init(&disk.go);
    *state = site;
    return 0;
}

static int site_close(void **state)
{
    Site *site = *state;
    audit_close(site->audit);
    latch_done(&disk.reached);
    latch_done(&disk.go);
    (void)close(site->log_fd);
    metrics_done(&site->metrics);
    arena_done(&site->arena);
    test_folder_done(&site->folder);
    mem_free(site);
    return 0;
}

static Slice read_whole(Site *site, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return SLICE_EMPTY;
    char *bytes = arena_alloc(&site->arena, FILE_BYTES_MAX);
    ssize_t len = read(fd, bytes, FILE_BYTES_MAX);
    (void)close(fd);
    assert_true(len >= 0);
    assert_true(len < FILE_BYTES_MAX);
    return slice_make(bytes, (size_t)len);
}

/* The lines of a file; each must be whole and parse. */
static size_t read_lines(Site *site, const char *path, Json lines[LINES_MAX])
{
    Slice text = read_whole(site, path);
    size_t count = 0;
    assert_true(text.len == 0 || slice_ends_with(text, SLICE("\n")));
    while (text.len > 0) {
        Slice line = slice_cut(&text, '\n');
        assert_true(line.len < AUDIT_LINE_BYTES_MAX);
        assert_true(count < LINES_MAX);
        if (line.len > 0)
            assert_ok(json_parse(&site->arena, line, &lines[count++], err));
    }
    return count;
}

static Slice text_of(Json line, const char *name)
{
    Json value = json_get(line, slice_from_cstr(name));
    return json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
}

static int64_t number_of(Json line, const char *name)
{
    int64_t value = -1;
    (void)json_to_i64(json_get(line, slice_from_cstr(name)), &value);
    return value;
}

static AuditRecord record_of(AuditEvent event, Slice path)
{
    return (AuditRecord){
        .event = event,
        .activity_id = SLICE("0a-b"),
        .client = SLICE("127.0.0.1:9"),
        .principal_kind = SLICE("key"),
        .principal_name = SLICE("primary"),
        .method = SLICE("POST"),
        .path = path,
        .operation = SLICE("create"),
        .resource_type = SLICE("dbs"),
        .id = SLICE("d"),
        .rid = SLICE("AQAAAA=="),
        .status = 201,
        .sub_status = 7,
    };
}

static bool post(Site *site, AuditEvent event, const char *path)
{
    AuditRecord record = record_of(event, slice_from_cstr(path));
    return audit_post(site->audit, &record);
}

static void stop(Site *site)
{
    audit_close(site->audit);
    site->audit = NULL;
}

static void a_line_says_everything_in_one_order(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    assert_true(post(site, AUDIT_CHANGE, "/dbs"));
    AuditRecord refusal = {.event = AUDIT_REFUSAL,
                           .principal_kind = SLICE("none"),
                           .method = SLICE("GET"),
                           .path = SLICE("/"),
                           .status = 401};
    assert_true(audit_post(site->audit, &refusal));
    stop(site);
    Slice expected = row_text(
        &site->arena,
        "{'time':'2023-11-14T22:13:20.123456Z','event':'change','activityId':'0a-b','client':"
        "'127.0.0.1:9','principal':{'kind':'key','name':'primary'},'method':'POST','path':'/dbs',"
        "'operation':'create','resourceType':'dbs','status':201,'subStatus':7,'id':'d','rid':"
        "'AQAAAA=='}\n"
        "{'time':'2023-11-14T22:13:20.123456Z','event':'refusal','principal':{'kind':'none'},"
        "'method':'GET','path':'/','status':401,'subStatus':0}\n");
    assert_slice(read_whole(site, site->path), expected);
    assert_int_equal(metrics_total(&site->metrics, METRIC_AUDIT_LINES), 2);
    assert_int_equal(metrics_total(&site->metrics, METRIC_AUDIT_DROPPED), 0);
}

static void what_could_end_a_line_is_escaped(void **state)
{
    static const struct {
        const char *path, *shown;
    } ROWS[] = {
        {"/a\nb\r\t\"\\", "/a\\u000ab\\u000d\\u0009\\\"\\\\"},
        {"\x7f\x01\x1b[31m", "\\u007f\\u0001\\u001b[31m"},
        {"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9", "\\u0085\\u2028\\u2029"},
        {"\xc3\xa9\xf0\x9f\x98\x80", "\\u00e9\\ud83d\\ude00"},
        {"a\xff\x80z\xc3", "a%FF%80z%C3"},
        {"\xed\xa0\x80\xc0\xaf", "%ED%A0%80%C0%AF"},
        {"/%0a%22", "/%0a%22"},
    };
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++)
        assert_true(post(site, AUDIT_CHANGE, ROWS[i].path));
    stop(site);
    Slice text = read_whole(site, site->path);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Slice line = slice_cut(&text, '\n');
        Slice shown = arena_format(&site->arena, "\"path\":\"%s\",", ROWS[i].shown);
        if (memmem(line.ptr, line.len, shown.ptr, shown.len) == NULL)
            fail_msg("row %zu: no %.*s in %.*s", i, SLICE_ARG(shown), SLICE_ARG(line));
    }
    assert_int_equal(text.len, 0);
}

static void whatever_a_client_sends_is_one_bounded_line(void **state)
{
    enum { ROUNDS = 200, TEXT_MAX = 20000 };
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    Random random;
    random_init(&random, test_seed());
    char *bytes = arena_alloc(&site->arena, TEXT_MAX);
    for (int i = 0; i < ROUNDS; i++) {
        AuditRecord record = record_of(AUDIT_CHANGE, SLICE_EMPTY);
        Slice *const texts[] = {
            &record.activity_id, &record.client, &record.principal_kind, &record.principal_name,
            &record.method,      &record.path,   &record.operation,      &record.resource_type,
            &record.id,          &record.rid,
        };
        /* One kind of bytes for all texts: each kind grows differently in print. */
        uint64_t kind = random_below(&random, 4);
        for (size_t j = 0; j < TEXT_MAX; j++) {
            uint8_t any = (uint8_t)random_below(&random, 256);
            bytes[j] = (char)(kind == 0 ? any : kind == 1 ? 1 : kind == 2 ? 0xff : any % 32 + '"');
        }
        for (size_t j = 0; j < ARRAY_COUNT(texts); j++)
            *texts[j] = slice_make(bytes, random_below(&random, i % 2 == 0 ? 64 : TEXT_MAX));
        assert_true(audit_post(site->audit, &record));
    }
    stop(site);
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->path, lines), ROUNDS);
    Slice text = read_whole(site, site->path);
    for (size_t i = 0; i < text.len; i++)
        assert_true(text.ptr[i] == '\n' || (text.ptr[i] >= ' ' && text.ptr[i] < 0x7f));
}

static void a_text_that_is_cut_ends_with_dots(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    char *path = arena_alloc(&site->arena, 10001);
    memset(path, 'x', 10000);
    path[10000] = '\0';
    assert_true(post(site, AUDIT_CHANGE, path));
    assert_true(post(site, AUDIT_REFUSAL, path));
    stop(site);
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->path, lines), 2);
    Slice shown = text_of(lines[0], "path");
    Slice refused = text_of(lines[1], "path");
    assert_true(shown.len > 2000);
    assert_true(slice_ends_with(shown, SLICE("x...")));
    assert_true(refused.len < 1000); /* a client without a key writes little */
    assert_true(slice_ends_with(refused, SLICE("x...")));
    assert_slice_text(text_of(lines[0], "rid"), "AQAAAA==");
}

static void the_file_is_the_owners_and_is_appended_to(void **state)
{
    Site *site = *state;
    for (int i = 0; i < 2; i++) {
        site_start(site, AUDIT_QUEUE_BYTES_MAX);
        assert_true(post(site, AUDIT_CHANGE, "/dbs"));
        stop(site);
    }
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->path, lines), 2);
    struct stat info;
    assert_int_equal(stat(site->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    AuditOptions nowhere = {.path = "/tmp", .queue_bytes_max = AUDIT_QUEUE_BYTES_MAX};
    Error err = {0};
    assert_int_equal(audit_open(&nowhere, &site->audit, &err) == STATUS_OK, false);
    assert_non_null(strstr(err.message, "cannot open the audit log '/tmp'"));
}

static void lines_that_the_disk_refuses_are_counted_in_the_next(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    atomic_store(&disk.failures, 3);
    for (int i = 0; i < 5; i++)
        assert_true(post(site, AUDIT_CHANGE, "/dbs"));
    stop(site);
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->path, lines), 2);
    assert_int_equal(number_of(lines[0], "dropped"), 3);
    assert_slice_text(text_of(lines[0], "path"), "/dbs");
    assert_int_equal(number_of(lines[1], "dropped"), -1);
    assert_int_equal(metrics_total(&site->metrics, METRIC_AUDIT_DROPPED), 3);
    assert_int_equal(metrics_total(&site->metrics, METRIC_AUDIT_LINES), 2);
    char log[80];
    (void)snprintf(log, sizeof(log), "%s/log", site->folder.path);
    Slice logged = read_whole(site, log);
    const char *first = memmem(logged.ptr, logged.len, "audit.write_failed", 18);
    assert_non_null(first);
    size_t rest = logged.len - (size_t)(first + 1 - logged.ptr);
    assert_null(memmem(first + 1, rest, "audit.write_failed", 18)); /* once, not for each line */
    assert_non_null(memmem(logged.ptr, logged.len, "audit.lines_lost", 16));
}

static void the_last_line_counts_what_no_other_could(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    atomic_store(&disk.failures, 2);
    assert_true(post(site, AUDIT_CHANGE, "/dbs"));
    assert_true(post(site, AUDIT_CHANGE, "/dbs"));
    stop(site);
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->path, lines), 1);
    assert_slice_text(text_of(lines[0], "event"), "loss");
    assert_int_equal(number_of(lines[0], "dropped"), 2);
}

static void half_a_line_is_cut_off(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    assert_true(post(site, AUDIT_CHANGE, "/1"));
    stop(site);
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    atomic_store(&disk.halves, 2);
    assert_true(post(site, AUDIT_CHANGE, "/2"));
    assert_true(post(site, AUDIT_CHANGE, "/3"));
    assert_true(post(site, AUDIT_CHANGE, "/4"));
    stop(site);
    static Json lines[LINES_MAX];
    size_t count = read_lines(site, site->path, lines);
    assert_int_equal(count, 2);
    assert_int_equal(number_of(lines[1], "dropped"), 2);
}

static void half_a_line_that_cannot_be_cut_off_does_not_spoil_the_next(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    atomic_store(&disk.is_covered, true);
    atomic_store(&disk.halves, 1);
    assert_true(post(site, AUDIT_CHANGE, "/1"));
    assert_true(post(site, AUDIT_CHANGE, "/2"));
    stop(site);
    Slice text = read_whole(site, site->path);
    Slice torn = slice_cut(&text, '\n');
    assert_true(slice_ends_with(torn, SLICE("?")));
    Json line;
    assert_ok(json_parse(&site->arena, slice_cut(&text, '\n'), &line, err));
    assert_int_equal(number_of(line, "dropped"), 1);
    assert_slice_text(text_of(line, "path"), "/2");
    assert_int_equal(text.len, 0);
}

static void a_full_queue_drops_refusals_first(void **state)
{
    Site *site = *state;
    atomic_store(&disk.is_waiting, true);
    site_start(site, 2 * AUDIT_LINE_BYTES_MAX);
    assert_true(post(site, AUDIT_CHANGE, "/first"));
    latch_wait(&disk.reached); /* the writer has it, and the disk is slow */
    size_t refusals = 0;
    while (post(site, AUDIT_REFUSAL, "/refused"))
        refusals++;
    size_t changes = 0;
    while (post(site, AUDIT_CHANGE, "/changed"))
        changes++;
    assert_true(refusals > 5);
    assert_true(changes + 2 >= refusals); /* the other half was theirs alone */
    assert_false(post(site, AUDIT_CHANGE, "/changed"));
    latch_post(&disk.go);
    stop(site);
    static Json lines[LINES_MAX];
    size_t count = read_lines(site, site->path, lines);
    assert_int_equal(count, 1 + refusals + changes);
    int64_t dropped = 0;
    for (size_t i = 0; i < count; i++)
        dropped += number_of(lines[i], "dropped") > 0 ? number_of(lines[i], "dropped") : 0;
    assert_int_equal(dropped, 3);
    assert_int_equal(number_of(lines[1], "dropped"), 3); /* the next that is written */
}

static void room_that_is_written_is_free_again(void **state)
{
    Site *site = *state;
    site_start(site, 2 * AUDIT_LINE_BYTES_MAX);
    for (int i = 0; i < 1000; i++) {
        while (!post(site, AUDIT_REFUSAL, "/dbs"))
            sleep_ms(1);
    }
    stop(site);
    static Json lines[LINES_MAX];
    assert_true(read_lines(site, site->path, lines) >= 1000);
}

static void rotation_separates_what_was_posted_before_and_after(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    assert_true(post(site, AUDIT_CHANGE, "/1"));
    atomic_store(&disk.is_waiting, true);
    assert_true(post(site, AUDIT_CHANGE, "/2"));
    latch_wait(&disk.reached); /* one of the two is being written */
    assert_int_equal(rename(site->path, site->moved), 0);
    audit_reopen(site->audit);
    audit_reopen(site->audit); /* one is enough */
    assert_true(post(site, AUDIT_CHANGE, "/3"));
    latch_post(&disk.go);
    stop(site);
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->moved, lines), 2);
    assert_slice_text(text_of(lines[1], "path"), "/2");
    assert_int_equal(read_lines(site, site->path, lines), 1);
    assert_slice_text(text_of(lines[0], "path"), "/3");
}

static void a_path_that_cannot_be_opened_again_leaves_the_old_file_in_use(void **state)
{
    Site *site = *state;
    site_start(site, AUDIT_QUEUE_BYTES_MAX);
    assert_int_equal(rename(site->path, site->moved), 0);
    assert_int_equal(mkdir(site->path, 0700), 0);
    audit_reopen(site->audit);
    assert_true(post(site, AUDIT_CHANGE, "/1"));
    stop(site);
    static Json lines[LINES_MAX];
    assert_int_equal(read_lines(site, site->moved, lines), 1);
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, site_open, site_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SITE(a_line_says_everything_in_one_order),
        WITH_SITE(what_could_end_a_line_is_escaped),
        WITH_SITE(whatever_a_client_sends_is_one_bounded_line),
        WITH_SITE(a_text_that_is_cut_ends_with_dots),
        WITH_SITE(the_file_is_the_owners_and_is_appended_to),
        WITH_SITE(lines_that_the_disk_refuses_are_counted_in_the_next),
        WITH_SITE(the_last_line_counts_what_no_other_could),
        WITH_SITE(half_a_line_is_cut_off),
        WITH_SITE(half_a_line_that_cannot_be_cut_off_does_not_spoil_the_next),
        WITH_SITE(a_full_queue_drops_refusals_first),
        WITH_SITE(room_that_is_written_is_free_again),
        WITH_SITE(rotation_separates_what_was_posted_before_and_after),
        WITH_SITE(a_path_that_cannot_be_opened_again_leaves_the_old_file_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
