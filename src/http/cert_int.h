/* cert_int.h - a certificate that is never written to a disk. */
#pragma once

#include "base/error.h"

#include <openssl/x509.h>

/* Makes a key and a certificate for it like that of cert_ensure. The caller frees both. */
MUST_USE Status cert_make_own(EVP_PKEY **key, X509 **cert, Error *err);
