/* advise_options.h - the command line of `orrery advise`.
 *
 * Ownership  Texts live in the arena given to advise_options_parse, or in argv.
 */
#pragma once

#include "advise/key_advice.h"

typedef struct AdviseCommand {
    const char *file; /* of the sample, "-" for standard input; NULL if a container is sampled */
    const char *endpoint;
    const char *key;
    const char *cert_file; /* NULL for the system's authorities */
    const char *database;
    const char *container;
    const char *queries_file; /* NULL if none */
    const char *html_file;    /* NULL if none */
    bool is_json;
    size_t sample_max;
    uint32_t partitions;
    bool are_partitions_given;
    double growth;
    PropertyPath time_path; /* count 0 if not given */
    PropertyPath together;
    bool has_check;
    KeyCandidate check;
} AdviseCommand;

/* '*help' is true if --help was asked for; '*out' is then not complete. */
MUST_USE Status advise_options_parse(Arena *arena, int argc, char *const *argv,
                                     char *const *environment, AdviseCommand *out, bool *help,
                                     Error *err);
