/* cert.h - the server's own certificate, made on first start.
 *
 * SDKs want HTTPS even from a database on the same machine, so the server makes a certificate by
 * itself. It is self-signed, for localhost, this machine's name and the loopback addresses, and
 * marked as an authority, so that trust stores accept it.
 *
 * Threads    Any, but not two for the same files at the same time.
 */
#pragma once

#include "base/error.h"

#define CERT_VALID_DAYS 3650

/* Makes the certificate and its key if neither file exists, otherwise leaves them and checks that
 * they are readable and belong together. The key file is readable by its owner only. */
MUST_USE Status cert_ensure(const char *cert_path, const char *key_path, Error *err);
