/* options.h - the settings of `orrery serve`: command line, environment, configuration file.
 *
 * Options are rows of options.def. A name or value that is not understood is refused with a hint,
 * wherever it comes from.
 *
 * Ownership  Texts live in the arena given to options_parse.
 */
#pragma once

#include "api/api.h"
#include "api/core/consistency.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "catalog/move_orders.h"
#include "cli/arguments.h"
#include "cli/cluster_settings.h"
#include "cli/memory_budget.h"
#include "store/store.h"
#include "throughput/charge.h"
#include "throughput/provision.h"

/* The raw settings: one text per row, already merged. */
typedef struct Settings {
#define OPTION_ROW(field, name, kind, placeholder, fallback, help) const char *field;
#include "cli/options.def"
#undef OPTION_ROW
} Settings;

/* The same as values, which are valid. */
typedef struct ServeOptions {
    const char *data;
    const char *host;
    uint16_t port;
    const char *key; /* of --key or --key-file, or the development key */
    bool key_is_given;
    const char *key_option; /* which of the two gave it */
    const char *secondary_key;
    const char *read_only_key;
    const char *secondary_read_only_key;
    const char *seal_key_file; /* NULL for the one in the data folder */
    bool allow_development_key;
    const char *identity_issuer; /* these are empty if not given; the first three go together */
    const char *identity_audience;
    const char *identity_keys;
    const char *identity_readers;
    const char *identity_contributors;
    const char *cert; /* NULL to make one in the data folder */
    const char *cert_key;
    const char *client_ca; /* NULL if clients need no certificate */
    bool requires_tls;     /* also because of 'client_ca' */
    StoreDurability durability;
    bool accept_lost_writes;
    uint64_t logical_partition_bytes_max; /* 0 for no limit */
    uint32_t threads;
    uint32_t connections_max;
    uint32_t address_connections_max; /* 0 for no limit, as in the next one */
    uint32_t address_failures_max;    /* a minute */
    bool limits_local_connections;    /* clients on this machine, too */
    bool limits_local_failures;
    MemoryBudget memory; /* of --memory and --cache */
    uint32_t idle_timeout_s;
    uint32_t request_timeout_s;
    const char *account;
    const char *region;
    const char *public_endpoint;
    const char *allow_host; /* lists, separated by commas; empty if there are none */
    const char *cors;
    bool trust_forwarded;
    bool no_statistics;
    bool no_query_texts;
    bool enable_chaos;
    bool no_sandbox;
    ProvisionRules throughput;
    MoveRules moves;
    const ChargeModel *charges; /* of --charges; NULL for the published ones */
    Consistency consistency;
    ApiMerge merge;
    bool extensions;
    const char *seed; /* NULL if there is none */
    ClusterSettings cluster;
    bool temporary; /* 'data' is then made by the server */
    bool stop_at_eof;
    bool no_previous_images;
    LogLevel log_level;
    const char *audit; /* NULL for no audit log */
} ServeOptions;

/* 'environment' is a list like environ. '*help' is true if --help was asked for; '*out' is then not
 * written. Reads --config, --key-file and --charges. */
MUST_USE Status options_parse(Arena *arena, int argc, char *const *argv, char *const *environment,
                              ServeOptions *out, bool *help, Error *err);

/* Overwrites the values of keys in the arguments and the environment, where every user of the
 * machine, or every process of this one, can read them. After options_parse, which has copied them.
 */
void options_hide(int argc, char *const *argv, char *const *environment);

/* The same rows for the help, the manual page and the completion; not for arguments_parse. */
extern const ArgumentTable SERVE_OPTIONS;

/* For commands with few options: takes --name value or --name=value at 'argv[*at]'. '*found' is
 * false if it is another option. */
MUST_USE Status options_take_value(int argc, char *const *argv, int *at, const char *name,
                                   const char **out, bool *found, Error *err);

/* The key that a file holds in its first line. */
MUST_USE Status options_read_key(Arena *arena, const char *path, const char **out, Error *err);

/* The word of 'candidates' (NULL at the end) that is most like 'word', or NULL if none is similar.
 */
const char *options_nearest(const char *word, const char *const *candidates);
