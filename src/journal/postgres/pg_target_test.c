/* pg_target_test.c - the URL of the engine: what is refused before anything is sent, and which
 * server is talked to. */
#include "journal/postgres/pg_int.h"
#include "journal/postgres/pg_testing_int.h"

static void only_a_verified_server_is_talked_to(void **state)
{
    (void)state;
    AUTO(pair_end) PostgresPair pair = {0};
    pair_start(&pair);
    static const struct {
        const char *host;
        const char *root;
        bool is_right;
    } rows[] = {
        {"localhost", "ca", true}, {"localhost", "other", false}, {"wrong.example", "ca", false}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice url = arena_format(&test_arena,
                                 "host=%s hostaddr=127.0.0.1 port=%u user=postgres dbname=postgres "
                                 "sslmode=verify-full sslrootcert=%s/tls/%s.crt",
                                 rows[i].host, pair_port(&pair, "a"), pair.folder, rows[i].root);
        AUTO(journal_close) Journal *journal = open_postgres(arena_cstr(&test_arena, url), 0);
        JournalMember member;
        JournalJoin join = {.name = SLICE("t")};
        Error error = {0};
        Status status = journal_join(journal, &join, &member, &error);
        assert_status(status, rows[i].is_right ? STATUS_OK : STATUS_UNAVAILABLE);
    }
}

static void urls_are_checked_before_anything_is_sent(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool allow_insecure;
        Status status;
    } rows[] = {
        {"postgresql://u@127.0.0.1/d", false, STATUS_OK},
        {"postgresql://u@[::1]/d?sslmode=disable", false, STATUS_OK},
        {"postgresql:///d", false, STATUS_OK},
        {"host=/run/pg dbname=d", false, STATUS_OK},
        {"postgresql://u@db.example/d", false, STATUS_OK}, /* verify-full is added */
        {"postgresql://u@db.example/d?sslmode=verify-full", false, STATUS_OK},
        {"postgresql://u@db.example/d?sslmode=require", false, STATUS_BAD_REQUEST},
        {"postgresql://u@db.example/d?sslmode=disable", true, STATUS_OK},
        {"postgresql://u@localhost,db.example/d?sslmode=prefer", false, STATUS_BAD_REQUEST},
        {"postgresql://u@db.example/d?channel_binding=disable", false, STATUS_BAD_REQUEST},
        {"host=localhost hostaddr=10.1.2.3 sslmode=disable", false, STATUS_BAD_REQUEST},
        {"host=127.0.0.2 sslmode=disable", false, STATUS_OK},
        {"host=127.db.example sslmode=disable", false, STATUS_BAD_REQUEST},
        {"host=127.0.0.1.example sslmode=disable", false, STATUS_BAD_REQUEST},
        {"host=::2 sslmode=disable", false, STATUS_BAD_REQUEST},
        {"postgresql://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/d", false, STATUS_BAD_REQUEST},
        {"host=a,b port=1,2,3", false, STATUS_BAD_REQUEST},
        {"host=h password=hidden nonsense", false, STATUS_BAD_REQUEST},
        {"postgresql://u@h/d?nonsense=1", false, STATUS_BAD_REQUEST},
        {"postgresql://u@db.example/d?service=other", false, STATUS_BAD_REQUEST},
        {"postgresql://u@db.example/d?service=other", true, STATUS_BAD_REQUEST},
        {"postgresql://u@db.example/d?sslmode=", false, STATUS_OK}, /* verify-full, as without */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PostgresJournalOptions options = {.url = rows[i].url,
                                          .allow_insecure = rows[i].allow_insecure};
        AUTO(journal_close) Journal *journal = NULL;
        Error error = {0};
        Status status = postgres_journal_open(&options, &journal, &error);
        if (status != rows[i].status)
            fail_msg("%s: %s", rows[i].url, error.message);
        assert_null(strstr(error.message, "hidden"));
    }
}

static Status open_url(const char *url)
{
    PostgresJournalOptions options = {.url = url};
    AUTO(journal_close) Journal *journal = NULL;
    Error error = {0};
    return postgres_journal_open(&options, &journal, &error);
}

static void the_environment_names_no_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *url;
        Status status;
    } rows[] = {
        {"PGHOST", "postgresql:///d", STATUS_BAD_REQUEST},
        {"PGHOST", "postgresql://u@127.0.0.1/d", STATUS_OK},
        {"PGHOST", "hostaddr=127.0.0.1 dbname=d", STATUS_BAD_REQUEST},
        {"PGHOSTADDR", "postgresql://u@localhost/d", STATUS_BAD_REQUEST},
        {"PGHOSTADDR", "host=localhost hostaddr=127.0.0.1", STATUS_OK},
        {"PGSERVICE", "host=localhost hostaddr=127.0.0.1", STATUS_BAD_REQUEST},
    };
    /* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(setenv(rows[i].name, "10.1.2.3", 1), 0);
        Status status = open_url(rows[i].url);
        assert_int_equal(unsetenv(rows[i].name), 0);
        if (status != rows[i].status)
            fail_msg("%s with %s: status %d", rows[i].url, rows[i].name, (int)status);
        assert_status(open_url(rows[i].url), STATUS_OK);
    }
    /* NOLINTEND(concurrency-mt-unsafe) */
}

/* The server's certificate is looked at as without the option. */
static void an_option_without_a_value_is_as_if_it_were_not_there(void **state)
{
    (void)state;
    AUTO(pair_end) PostgresPair pair = {0};
    pair_start(&pair);
    for (int is_empty = 0; is_empty < 2; is_empty++) {
        Slice url = arena_format(&test_arena,
                                 "host=wrong.example hostaddr=127.0.0.1 port=%u user=postgres "
                                 "dbname=postgres sslrootcert=%s/tls/ca.crt%s",
                                 pair_port(&pair, "a"), pair.folder,
                                 is_empty ? " sslmode='' channel_binding=''" : "");
        AUTO(journal_close) Journal *journal = open_postgres(arena_cstr(&test_arena, url), 0);
        pg_of(journal)->target.is_local = false; /* what no test has */
        JournalMember member;
        JournalJoin join = {.name = SLICE("t")};
        Error error = {0};
        assert_status(journal_join(journal, &join, &member, &error), STATUS_UNAVAILABLE);
        assert_non_null(strstr(error.message, "certificate"));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_a_verified_server_is_talked_to),
        TEST(urls_are_checked_before_anything_is_sent),
        TEST(the_environment_names_no_hosts),
        TEST(an_option_without_a_value_is_as_if_it_were_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
