/* cert_test.c - the certificate that is made on first start. */
#include "http/cert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

typedef struct Files {
    char folder[64];
    char cert[96];
    char key[96];
    char temporary[2][104];
} Files;

static int make_files(void **state)
{
    Files *files = calloc(1, sizeof(Files));
    assert_non_null(files);
    strcpy(files->folder, "/tmp/orrery-cert-XXXXXX");
    assert_non_null(mkdtemp(files->folder));
    (void)snprintf(files->cert, sizeof(files->cert), "%s/cert.pem", files->folder);
    (void)snprintf(files->key, sizeof(files->key), "%s/key.pem", files->folder);
    (void)snprintf(files->temporary[0], sizeof(files->temporary[0]), "%s.new", files->cert);
    (void)snprintf(files->temporary[1], sizeof(files->temporary[1]), "%s.new", files->key);
    *state = files;
    return 0;
}

static int remove_files(void **state)
{
    Files *files = *state;
    (void)unlink(files->cert);
    (void)unlink(files->key);
    assert_int_equal(rmdir(files->folder), 0); /* nothing else was left behind */
    free(files);
    return 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static size_t read_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(out, 1, size - 1, file);
    out[len] = '\0';
    assert_int_equal(fclose(file), 0);
    return len;
}

static X509 *load(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    assert_non_null(cert);
    assert_int_equal(fclose(file), 0);
    return cert;
}

static void ensure(const Files *files)
{
    Error err;
    if (cert_ensure(files->cert, files->key, &err) != STATUS_OK)
        fail_msg("%s", err.message);
}

static void refuse(const Files *files, const char *words)
{
    Error err;
    assert_int_equal(cert_ensure(files->cert, files->key, &err), STATUS_IO);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
}

static void a_new_certificate_is_for_this_machine_and_can_be_trusted(void **state)
{
    const Files *files = *state;
    ensure(files);
    X509 *cert = load(files->cert);
    char host[256];
    assert_int_equal(gethostname(host, sizeof(host)), 0);
    assert_int_equal(X509_check_host(cert, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(cert, host, 0, 0, NULL), 1);
    assert_int_equal(X509_check_ip_asc(cert, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "::1", 0), 1);
    assert_int_equal(X509_check_host(cert, "example.com", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ca(cert), 1);
    assert_int_equal(X509_verify(cert, X509_get0_pubkey(cert)), 1);
    assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(cert)), 256);
    assert_true(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
    int days = 0, seconds = 0;
    assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)), 1);
    assert_in_range(days, CERT_VALID_DAYS - 1, CERT_VALID_DAYS);

    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    assert_int_equal(X509_STORE_add_cert(store, cert), 1);
    assert_int_equal(X509_STORE_CTX_init(check, store, cert, NULL), 1);
    X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_SERVER);
    if (X509_verify_cert(check) != 1)
        fail_msg("%s", X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
    X509_STORE_CTX_free(check);
    X509_STORE_free(store);
    X509_free(cert);
}

static void the_key_is_for_its_owner_only(void **state)
{
    const Files *files = *state;
    write_text(files->temporary[1], "left behind, readable by all");
    assert_int_equal(chmod(files->temporary[1], 0644), 0);
    ensure(files);
    struct stat info;
    assert_int_equal(stat(files->key, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void files_that_exist_are_left_alone(void **state)
{
    const Files *files = *state;
    char before[2][4096], after[2][4096];
    ensure(files);
    (void)read_text(files->cert, before[0], sizeof(before[0]));
    (void)read_text(files->key, before[1], sizeof(before[1]));
    ensure(files);
    (void)read_text(files->cert, after[0], sizeof(after[0]));
    (void)read_text(files->key, after[1], sizeof(after[1]));
    assert_string_equal(before[0], after[0]);
    assert_string_equal(before[1], after[1]);
}

static void a_lone_key_gets_a_certificate_and_stays(void **state)
{
    const Files *files = *state;
    char before[4096], after[4096];
    ensure(files);
    (void)read_text(files->key, before, sizeof(before));
    assert_int_equal(unlink(files->cert), 0);
    ensure(files);
    (void)read_text(files->key, after, sizeof(after));
    assert_string_equal(before, after);
}

static void bad_files_are_named(void **state)
{
    const Files *files = *state;
    ensure(files);
    char key[4096];
    (void)read_text(files->key, key, sizeof(key));

    assert_int_equal(unlink(files->key), 0);
    refuse(files, "but not its key");
    write_text(files->key, "not a key");
    refuse(files, "cannot load the key");
    assert_int_equal(unlink(files->cert), 0);
    refuse(files, "cannot load the key");
    write_text(files->cert, "not a certificate");
    refuse(files, "cannot load the certificate");

    assert_int_equal(unlink(files->cert), 0);
    assert_int_equal(unlink(files->key), 0);
    ensure(files);
    write_text(files->key, key);
    refuse(files, "does not belong to the certificate");
}

static void a_folder_that_does_not_exist_is_an_error(void **state)
{
    (void)state;
    Error err;
    assert_int_equal(cert_ensure("/no/such/folder/c", "/no/such/folder/k", &err), STATUS_IO);
    assert_non_null(strstr(err.message, "/no/such/folder/k"));
}

int main(void)
{
#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, make_files, remove_files)
    const struct CMUnitTest tests[] = {
        WITH_FILES(a_new_certificate_is_for_this_machine_and_can_be_trusted),
        WITH_FILES(the_key_is_for_its_owner_only),
        WITH_FILES(files_that_exist_are_left_alone),
        WITH_FILES(a_lone_key_gets_a_certificate_and_stays),
        WITH_FILES(bad_files_are_named),
        cmocka_unit_test(a_folder_that_does_not_exist_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
