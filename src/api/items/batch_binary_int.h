/* batch_binary_int.h - the numbers of the binary form; drawn at the top of batch_binary.c.
 *
 * They are those of the schemas "BatchOperation" and "BatchResult" that the .NET SDK carries, and
 * of the row format's own "Segment" and "Record" and type codes.
 */
#pragma once

#include "base/defs.h"

/* The first byte of every row. */
#define ROW_VERSION 0x81

#define SCHEMA_SEGMENT   0x7FFFD8F0u
#define SCHEMA_RECORD    0x7FFFD8F1u
#define SCHEMA_OPERATION 0x7FE15470u
#define SCHEMA_RESULT    0x7FE15471u

enum {
    SEGMENT_BYTES = 10, /* without its optional comment and schema */
    SEGMENT_HAS_LENGTH = 0x01,
    RECORD_HEADER_BYTES = 13, /* in front of each record */
    RESOURCE_TYPE_DOCUMENT = 2,
};

/* Presence bits of an operation. */
enum {
    HAS_OPERATION_TYPE = 1 << 0,
    HAS_RESOURCE_TYPE = 1 << 1,
    HAS_PARTITION_KEY = 1 << 2,
    HAS_EFFECTIVE_KEY = 1 << 3,
    HAS_ID = 1 << 4,
    HAS_BINARY_ID = 1 << 5,
    HAS_RESOURCE_BODY = 1 << 6,
    HAS_UNKNOWN = 1 << 7,
};

/* Presence bits of a result. */
enum {
    RESULT_HAS_STATUS = 1 << 0,
    RESULT_HAS_SUB_STATUS = 1 << 1,
    RESULT_HAS_ETAG = 1 << 2,
    RESULT_HAS_BODY = 1 << 3,
};

/* Paths of sparse fields: the places of their names in the schema, counted from 1. A larger number,
 * TOKEN_COUNT + n, means that a path of n bytes follows. */
enum {
    TOKEN_INDEXING = 8,
    TOKEN_IF_MATCH = 9,
    TOKEN_IF_NONE_MATCH = 10,
    TOKEN_TIME_TO_LIVE = 11,
    TOKEN_MINIMAL = 12,
    TOKEN_COUNT = 13,
};
enum { RESULT_TOKEN_RETRY_AFTER = 5, RESULT_TOKEN_CHARGE = 6 };

/* Type codes of scalars. */
enum {
    TYPE_NULL = 1,
    TYPE_FALSE = 2,
    TYPE_TRUE = 3,
    TYPE_INT8 = 5,
    TYPE_INT16 = 6,
    TYPE_INT32 = 7,
    TYPE_INT64 = 8,
    TYPE_UINT8 = 9,
    TYPE_UINT16 = 10,
    TYPE_UINT32 = 11,
    TYPE_UINT64 = 12,
    TYPE_VARINT = 13,
    TYPE_VARUINT = 14,
    TYPE_FLOAT32 = 15,
    TYPE_FLOAT64 = 16,
    TYPE_DECIMAL = 17,
    TYPE_DATE_TIME = 18,
    TYPE_GUID = 19,
    TYPE_UTF8 = 20,
    TYPE_BINARY = 21,
    TYPE_FLOAT128 = 22,
    TYPE_UNIX_DATE_TIME = 23,
    TYPE_OBJECT_ID = 24,
};
