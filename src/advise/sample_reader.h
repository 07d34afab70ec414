/* sample_reader.h - a stream of text as items of a sample: JSON lines, or one JSON array.
 *
 * The text comes in pieces of any size. Objects are cut out of it by counting braces outside of
 * strings, and each is then parsed strictly, so that a file may be larger than memory.
 *
 * Ownership  The caller provides the reader and calls sample_reader_done.
 * Threads    Belongs to one thread.
 * Bounds     SAMPLE_ITEM_BYTES_MAX for one item; JSON_DEPTH_MAX levels, by json_parse.
 */
#pragma once

#include "advise/sample.h"
#include "base/buf.h"

/* No container takes a larger item; system properties and spaces have room besides. */
#define SAMPLE_ITEM_BYTES_MAX ((size_t)4 << 20)

typedef enum SampleReaderState {
    SAMPLE_READER_START,   /* nothing but spaces so far */
    SAMPLE_READER_BETWEEN, /* JSON lines: an object may follow */
    SAMPLE_READER_ELEMENT, /* array: an object must follow, or the end if there was none yet */
    SAMPLE_READER_COMMA,   /* array: a comma or the end must follow */
    SAMPLE_READER_OBJECT,  /* inside an object */
    SAMPLE_READER_END,     /* array: only spaces may follow */
} SampleReaderState;

typedef struct SampleReader {
    Sample *sample;
    SampleReaderState state;
    bool is_array;
    bool is_in_string;
    bool is_escaped;
    uint32_t depth;
    uint64_t line; /* from 1 */
    Buf object;    /* the text of the object so far */
} SampleReader;

void sample_reader_init(SampleReader *reader, Sample *sample);
void sample_reader_done(SampleReader *reader);
DEFINE_AUTO_VALUE(SampleReader, sample_reader_done)

/* STATUS_BAD_REQUEST says in which line something is wrong. The reader is of no use then. */
MUST_USE Status sample_reader_feed(SampleReader *reader, Slice text, Error *err);

/* The text has ended: fails if an object or the array has not. */
MUST_USE Status sample_reader_end(SampleReader *reader, Error *err);
