/* cert.c - see cert.h.
 *
 * Each file is written under a temporary name, synced and renamed, the key first. So a crash leaves
 * no half-written file, and a key without a certificate gets one at the next start. An existing
 * file is never overwritten: it may be the user's own.
 */
#include "http/cert.h"

#include "base/mem.h"
#include "base/random.h"
#include "http/cert_int.h"
#include "http/tls_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERIAL_BYTES = 16, SECONDS_PER_DAY = 86400 };

DEFINE_AUTO(EVP_PKEY *, EVP_PKEY_free)
DEFINE_AUTO(X509 *, X509_free)
DEFINE_AUTO(BIGNUM *, BN_free)
static void bio_free(BIO *bio)
{
    (void)BIO_free(bio); /* a memory buffer: nothing can fail */
}
DEFINE_AUTO(BIO *, bio_free)

static Status make_key(const char *path, EVP_PKEY **out, Error *err);
static Status load_key(const char *path, EVP_PKEY **out, Error *err);
static Status write_cert(const char *path, EVP_PKEY *key, Error *err);
static Status make_cert(EVP_PKEY *key, X509 *cert, Error *err);
static Status add_extension(X509 *cert, int nid, const char *value, Error *err);
static Status write_file(const char *path, BIO *text, mode_t mode, Error *err);

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

Status cert_ensure(const char *cert_path, const char *key_path, Error *err)
{
    bool has_cert = exists(cert_path);
    bool has_key = exists(key_path);
    if (has_cert && !has_key)
        return error_set(err, STATUS_IO, SUB_NONE,
                         "found the certificate '%s' but not its key '%s'; remove the certificate "
                         "to have both made again",
                         cert_path, key_path);
    if (!has_cert) {
        AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;
        TRY(has_key ? load_key(key_path, &key, err) : make_key(key_path, &key, err));
        TRY(write_cert(cert_path, key, err));
    }
    AUTO(tls_unref) Tls *tls = NULL; /* only to see that it can be made */
    TlsFiles files = {.cert = cert_path, .key = key_path};
    return tls_open(&files, &tls, err);
}

Status cert_make_own(EVP_PKEY **key, X509 **cert, Error *err)
{
    AUTO(EVP_PKEY_free) EVP_PKEY *new_key = EVP_EC_gen("P-256");
    AUTO(X509_free) X509 *new_cert = X509_new();
    if (new_key == NULL || new_cert == NULL)
        return tls_error(err, "cannot make a certificate");
    TRY(make_cert(new_key, new_cert, err));
    *key = TAKE(new_key);
    *cert = TAKE(new_cert);
    return STATUS_OK;
}

static Status make_key(const char *path, EVP_PKEY **out, Error *err)
{
    AUTO(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    AUTO(bio_free) BIO *text = BIO_new(BIO_s_mem());
    if (key == NULL || text == NULL ||
        PEM_write_bio_PKCS8PrivateKey(text, key, NULL, NULL, 0, NULL, NULL) != 1)
        return tls_error(err, "cannot make a key");
    TRY(write_file(path, text, 0600, err));
    *out = TAKE(key);
    return STATUS_OK;
}

static Status load_key(const char *path, EVP_PKEY **out, Error *err)
{
    AUTO(bio_free) BIO *file = BIO_new_file(path, "r");
    char no_password[] = ""; /* otherwise OpenSSL asks for one on the terminal */
    EVP_PKEY *key = file == NULL ? NULL : PEM_read_bio_PrivateKey(file, NULL, NULL, no_password);
    if (key == NULL)
        return tls_error(err, "cannot load the key '%s'", path);
    *out = key;
    return STATUS_OK;
}

static Status write_cert(const char *path, EVP_PKEY *key, Error *err)
{
    AUTO(X509_free) X509 *cert = X509_new();
    AUTO(bio_free) BIO *text = BIO_new(BIO_s_mem());
    if (cert == NULL || text == NULL)
        return tls_error(err, "cannot make a certificate");
    TRY(make_cert(key, cert, err));
    if (PEM_write_bio_X509(text, cert) != 1)
        return tls_error(err, "cannot print a certificate");
    return write_file(path, text, 0644, err);
}

/* The machine's name, if it is valid in a certificate. */
static bool host_name(char *name, size_t size)
{
    if (gethostname(name, size) != 0)
        return false;
    name[size - 1] = '\0';
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

static Status set_serial(X509 *cert, Error *err)
{
    uint8_t serial[SERIAL_BYTES];
    random_secret(serial, sizeof(serial));
    serial[0] &= 0x7f; /* positive */
    AUTO(BN_free) BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
    if (number == NULL || BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) == NULL)
        return tls_error(err, "cannot number a certificate");
    return STATUS_OK;
}

static Status make_cert(EVP_PKEY *key, X509 *cert, Error *err)
{
    TRY(set_serial(cert, err));
    X509_NAME *name = X509_get_subject_name(cert);
    /* It is valid from yesterday, for machines whose clocks are slow. */
    if (X509_set_version(cert, X509_VERSION_3) != 1 || X509_set_pubkey(cert, key) != 1 ||
        X509_gmtime_adj(X509_getm_notBefore(cert), -SECONDS_PER_DAY) == NULL ||
        X509_gmtime_adj(X509_getm_notAfter(cert), (long)CERT_VALID_DAYS * SECONDS_PER_DAY) ==
            NULL ||
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1,
                                   -1, 0) != 1 ||
        X509_set_issuer_name(cert, name) != 1)
        return tls_error(err, "cannot fill in a certificate");

    char host[256];
    char names[512];
    bool has_host = host_name(host, sizeof(host)) && strcmp(host, "localhost") != 0;
    (void)snprintf(names, sizeof(names), "DNS:localhost,IP:127.0.0.1,IP:::1%s%s",
                   has_host ? ",DNS:" : "", has_host ? host : "");
    TRY(add_extension(cert, NID_basic_constraints, "critical,CA:TRUE", err));
    TRY(add_extension(cert, NID_key_usage, "critical,digitalSignature,keyCertSign", err));
    TRY(add_extension(cert, NID_ext_key_usage, "serverAuth", err));
    TRY(add_extension(cert, NID_subject_key_identifier, "hash", err));
    TRY(add_extension(cert, NID_subject_alt_name, names, err));
    if (X509_sign(cert, key, EVP_sha256()) <= 0)
        return tls_error(err, "cannot sign a certificate");
    return STATUS_OK;
}

static Status add_extension(X509 *cert, int nid, const char *value, Error *err)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool is_added = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_added ? STATUS_OK : tls_error(err, "cannot add to a certificate: %s", value);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* what matters was synced before */
}

static Status write_all(int fd, const char *path, BIO *text, Error *err)
{
    char *bytes = NULL;
    long left = BIO_get_mem_data(text, &bytes);
    while (left > 0) {
        ssize_t written = write(fd, bytes, (size_t)left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(err, errno, "cannot write '%s'", path);
        bytes += written;
        left -= written;
    }
    if (fsync(fd) != 0)
        return error_set_errno(err, errno, "cannot sync '%s'", path);
    return STATUS_OK;
}

/* The rename is durable only after the folder is synced. */
static Status sync_folder(const char *path, Error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    if (slash != NULL)
        (void)snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
                       path);
    __attribute__((cleanup(close_fd))) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        return error_set_errno(err, errno, "cannot sync the folder '%s'", folder);
    return STATUS_OK;
}

static Status write_file(const char *path, BIO *text, mode_t mode, Error *err)
{
    char temporary[PATH_MAX];
    int len = snprintf(temporary, sizeof(temporary), "%s.new", path);
    if (len < 0 || (size_t)len >= sizeof(temporary))
        return error_set(err, STATUS_IO, SUB_NONE, "the path '%.100s...' is too long", path);
    /* A file left behind by a crash may have another mode, so it is never reused. */
    (void)unlink(temporary);
    __attribute__((cleanup(close_fd))) int fd =
        open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot create '%s'", temporary);
    Status status = write_all(fd, temporary, text, err);
    if (status == STATUS_OK && rename(temporary, path) != 0)
        status = error_set_errno(err, errno, "cannot rename '%s' to '%s'", temporary, path);
    if (status != STATUS_OK) {
        (void)unlink(temporary);
        return status;
    }
    return sync_folder(path, err);
}
