/* options.c - see options.h. */
#include "cli/options.h"

#include "api/core/auth.h"
#include "base/nearest.h"
#include "cli/memory_limit.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONFIG_BYTES_MAX = 64 << 10,
    KEY_FILE_BYTES_MAX = 4 << 10,
    NAME_BYTES_MAX = 63,       /* of the account and its region */
    ENDPOINT_BYTES_MAX = 1024, /* every account document has it */
    WORD_MAX = 64,
    ADDRESS_SHARE = 4, /* of all connections, for one client address */
    ADDRESS_FAILURES_MAX = 1000,
};

/* A LIST has commas between its entries, and may be given several times in one place. A SECRET is a
 * text that options_hide overwrites where others could see it. */
typedef enum Kind { KIND_TEXT, KIND_SECRET, KIND_NUMBER, KIND_SIZE, KIND_FLAG, KIND_LIST } Kind;

typedef struct Row {
    const char *name;
    Kind kind;
    const char *placeholder;
    const char *fallback;
    const char *help;
    size_t offset; /* of its text in Settings */
} Row;

static const Row ROWS[] = {
#define OPTION_ROW(field, name, kind, placeholder, fallback, help) \
    {name, KIND_##kind, placeholder, fallback, help, offsetof(Settings, field)},
#include "cli/options.def"
#undef OPTION_ROW
};

static const char **setting(Settings *settings, const Row *row)
{
    return (const char **)(void *)((char *)settings + row->offset);
}

const char *options_nearest(const char *word, const char *const *candidates)
{
    return nearest_word(word, candidates);
}

Status options_take_value(int argc, char *const *argv, int *at, const char *name, const char **out,
                          bool *found, Error *err)
{
    size_t len = strlen(name);
    const char *argument = argv[*at];
    *found = strncmp(argument, name, len) == 0 && (argument[len] == '\0' || argument[len] == '=');
    if (!*found)
        return STATUS_OK;
    if (argument[len] == '=')
        *out = argument + len + 1;
    else if (*at + 1 < argc)
        *out = argv[++*at];
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s needs a value", name);
    if (**out == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s must not be empty", name);
    return STATUS_OK;
}

static const Row *find_row(Slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        if (slice_equal(name, slice_from_cstr(ROWS[i].name)))
            return &ROWS[i];
    }
    return NULL;
}

static Status unknown_option(Arena *arena, const char *where, Slice name, Error *err)
{
    const char *names[ARRAY_COUNT(ROWS) + 1] = {NULL};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++)
        names[i] = ROWS[i].name;
    const char *nearest = options_nearest(arena_cstr(arena, name), names);
    if (nearest != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "%s: there is no option '%.*s'; did you mean '%s'?", where,
                         SLICE_CUT(name, 80), nearest);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "%s: there is no option '%.*s'; 'orrery serve --help' lists them", where,
                     SLICE_CUT(name, 80));
}

/* Sets an option as one place gives it; the entries of a list add up. */
static void set(Arena *arena, Settings *settings, const Row *row, const char *value)
{
    const char **text = setting(settings, row);
    if (row->kind == KIND_SECRET)
        value = arena_cstr(arena, slice_from_cstr(value)); /* before it is hidden */
    *text = row->kind == KIND_LIST && *text != NULL ? arena_format(arena, "%s,%s", *text, value).ptr
                                                    : value;
}

/* --name value, --name=value, and --name alone for flags. */
static Status parse_arguments(Arena *arena, int argc, char *const *argv, Settings *settings,
                              bool *help, Error *err)
{
    for (int i = 0; i < argc; i++) {
        Slice argument = slice_from_cstr(argv[i]);
        if (slice_equal(argument, SLICE("--help")) || slice_equal(argument, SLICE("-h"))) {
            *help = true;
            return STATUS_OK;
        }
        if (!slice_starts_with(argument, SLICE("--")))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%s' is not an option; options begin with --, 'orrery serve --help' "
                             "lists them",
                             argv[i]);
        Slice rest = slice_from(argument, 2);
        bool has_value = slice_find(rest, '=') < rest.len;
        Slice name = slice_cut(&rest, '=');
        const Row *row = find_row(name);
        if (row == NULL)
            return unknown_option(arena, "command line", name, err);
        if (has_value) {
            set(arena, settings, row, arena_cstr(arena, rest));
        } else if (row->kind == KIND_FLAG) {
            set(arena, settings, row, "true");
        } else if (i + 1 < argc) {
            set(arena, settings, row, argv[++i]);
        } else {
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--%s needs a value: --%s %s",
                             row->name, row->name, row->placeholder);
        }
    }
    return STATUS_OK;
}

static void hide(char *text)
{
    for (; *text != '\0'; text++)
        *text = '*';
}

/* The row of an entry of the environment; 'name' has room for its name. NULL if it has none. */
static const Row *find_variable(Slice entry, char name[WORD_MAX])
{
    static const Slice prefix = SLICE_INIT("ORRERY_");
    Slice upper = slice_first(entry, slice_find(entry, '='));
    if (!slice_starts_with(upper, prefix) || upper.len - prefix.len >= WORD_MAX)
        return NULL;
    upper = slice_from(upper, prefix.len);
    for (size_t i = 0; i < upper.len; i++) {
        char c = upper.ptr[i];
        name[i] = (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return find_row(slice_make(name, upper.len));
}

void options_hide(int argc, char *const *argv, char *const *environment)
{
    char name[WORD_MAX];
    for (int i = 0; i < argc; i++) {
        Slice rest = slice_from_cstr(argv[i]);
        if (!slice_starts_with(rest, SLICE("--")))
            continue;
        size_t equals = slice_find(rest, '=');
        const Row *row = find_row(slice_from(slice_first(rest, equals), 2));
        if (row == NULL || row->kind == KIND_FLAG)
            continue;
        bool is_secret = row->kind == KIND_SECRET;
        if (equals < rest.len && is_secret)
            hide(argv[i] + equals + 1);
        else if (equals == rest.len && i + 1 < argc && is_secret)
            hide(argv[i + 1]);
        i += equals == rest.len ? 1 : 0; /* its value is no option */
    }
    for (; *environment != NULL; environment++) {
        Slice entry = slice_from_cstr(*environment);
        const Row *row = find_variable(entry, name);
        size_t equals = slice_find(entry, '=');
        if (row != NULL && row->kind == KIND_SECRET && equals < entry.len)
            hide(*environment + equals + 1);
    }
}

/* ORRERY_KEY_FILE and so on. An unknown name that begins with ORRERY_ is probably a typing error.
 */
static Status parse_environment(Arena *arena, char *const *environment, Settings *settings,
                                Error *err)
{
    static const Slice prefix = SLICE_INIT("ORRERY_");
    for (; *environment != NULL; environment++) {
        Slice entry = slice_from_cstr(*environment);
        if (!slice_starts_with(entry, prefix))
            continue;
        Slice rest = slice_from(entry, prefix.len);
        Slice upper = slice_cut(&rest, '=');
        char *name = arena_cstr(arena, upper);
        for (char *c = name; *c != '\0'; c++)
            *c = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        const Row *row = find_row(slice_from_cstr(name));
        if (row == NULL)
            return unknown_option(arena, "environment (ORRERY_...)", slice_from_cstr(name), err);
        const char **text = setting(settings, row);
        if (*text == NULL)
            *text = arena_cstr(arena, rest);
    }
    return STATUS_OK;
}

static Status read_file(Arena *arena, const char *path, size_t bytes_max, Slice *out, Error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, errno, "cannot read '%s'", path);
    char *text = arena_alloc(arena, bytes_max + 1);
    size_t len = fread(text, 1, bytes_max + 1, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed || len > bytes_max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%s' cannot be read or has more than %zu bytes", path, bytes_max);
    /* What follows a zero byte would be lost silently. */
    if (memchr(text, '\0', len) != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' is not a text file", path);
    *out = slice_make(text, len);
    return STATUS_OK;
}

/* Lines of name = value; # begins a comment; a flag may stand alone. */
static Status parse_config(Arena *arena, const char *path, Settings *settings, Error *err)
{
    Slice rest;
    Settings file = {0};
    TRY(read_file(arena, path, CONFIG_BYTES_MAX, &rest, err));
    for (unsigned number = 1; rest.ptr != NULL; number++) {
        Slice line = slice_cut(&rest, '\n');
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        line = slice_trim(line);
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        Slice value = line;
        Slice name = slice_trim(slice_cut(&value, '='));
        const Row *row = find_row(name);
        Slice where = arena_format(arena, "%s:%u", path, number);
        if (row == NULL)
            return unknown_option(arena, where.ptr, name, err);
        if (row->offset == offsetof(Settings, config))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "%s: a configuration file cannot name another one", where.ptr);
        if (value.ptr == NULL && row->kind != KIND_FLAG)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s: expected '%s = %s'", where.ptr,
                             row->name, row->placeholder);
        if (row->kind == KIND_LIST || *setting(&file, row) == NULL)
            set(arena, &file, row,
                value.ptr == NULL ? "true" : arena_cstr(arena, slice_trim(value)));
    }
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const char **text = setting(settings, &ROWS[i]);
        if (*text == NULL)
            *text = *setting(&file, &ROWS[i]);
    }
    return STATUS_OK;
}

static Status to_number(const char *name, const char *text, uint64_t max, uint64_t *out, Error *err)
{
    if (!slice_to_u64(slice_from_cstr(text), out) || *out > max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--%s must be a whole number from 0 to %llu, not '%s'", name,
                         (unsigned long long)max, text);
    return STATUS_OK;
}

static Status to_u32(const char *name, const char *text, uint32_t max, uint32_t *out, Error *err)
{
    uint64_t value = 0;
    TRY(to_number(name, text, max, &value, err));
    *out = (uint32_t)value;
    return STATUS_OK;
}

static Status to_flag(const char *name, const char *text, bool *out, Error *err)
{
    if (!slice_to_bool(slice_from_cstr(text), out))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--%s takes no value, or true or false; not '%s'", name, text);
    return STATUS_OK;
}

/* A number of bytes with an optional K, M or G. */
static Status to_size(const char *name, const char *text, uint64_t *out, Error *err)
{
    Slice digits = slice_from_cstr(text);
    unsigned shift = 0;
    static const char units[] = "KMG";
    if (digits.len > 0) {
        char last = digits.ptr[digits.len - 1];
        const char *unit = strchr(units, last >= 'a' ? last - 'a' + 'A' : last);
        if (unit != NULL && *unit != '\0') {
            shift = 10 * (unsigned)(unit - units + 1);
            digits.len--;
        }
    }
    if (!slice_to_u64(digits, out) || *out > (UINT64_C(1) << 50) >> shift)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--%s must be a size such as 64M or 4G, not '%s'", name, text);
    *out <<= shift;
    return STATUS_OK;
}

static Status to_durability(const char *text, StoreDurability *out, Error *err)
{
    bool relaxed = strcmp(text, "relaxed") == 0;
    if (!relaxed && strcmp(text, "sync") != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--durability must be sync or relaxed, not '%s'", text);
    *out = relaxed ? STORE_DURABILITY_RELAXED : STORE_DURABILITY_SYNC;
    return STATUS_OK;
}

static const char *or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

Status options_read_key(Arena *arena, const char *path, const char **out, Error *err)
{
    Slice text;
    TRY(read_file(arena, path, KEY_FILE_BYTES_MAX, &text, err));
    text = slice_first(text, slice_find(text, '\n'));
    text = slice_trim(slice_first(text, slice_find(text, '\r')));
    if (text.len == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' has no key in its first line",
                         path);
    *out = arena_cstr(arena, text);
    return STATUS_OK;
}

static Status resolve_key(Arena *arena, const Settings *s, ServeOptions *out, Error *err)
{
    out->key = AUTH_DEVELOPMENT_KEY;
    out->key_is_given = true;
    if (s->key[0] != '\0' && s->key_file[0] != '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--key and --key-file exclude each other; give one of them");
    out->key_option = "--key";
    if (s->key[0] != '\0') {
        out->key = s->key;
    } else if (s->key_file[0] != '\0') {
        out->key_option = "--key-file";
        TRY(options_read_key(arena, s->key_file, &out->key, err));
    } else {
        out->key_is_given = false;
    }
    return STATUS_OK;
}

/* A key set that comes over a network without TLS could be anybody's. */
static bool is_loopback_url(Slice url)
{
    static const Slice scheme = SLICE_INIT("http://");
    if (!slice_starts_with(url, scheme))
        return false;
    Slice host = slice_from(url, scheme.len);
    host = slice_first(host, slice_find(host, '/'));
    if (slice_starts_with(host, SLICE("[::1]")))
        return host.len == 5 || host.ptr[5] == ':';
    host = slice_first(host, slice_find(host, ':'));
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (slice_equal_nocase(host, SLICE("localhost")))
        return true;
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static Status check_identity(const Settings *s, Error *err)
{
    bool has_issuer = s->identity_issuer[0] != '\0';
    bool has_all = has_issuer && s->identity_audience[0] != '\0' && s->identity_keys[0] != '\0';
    bool has_any = has_issuer || s->identity_audience[0] != '\0' || s->identity_keys[0] != '\0' ||
                   s->identity_readers[0] != '\0' || s->identity_contributors[0] != '\0';
    if (has_any && !has_all)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--identity-issuer, --identity-audience and --identity-keys go together; "
                         "the other options on identities need them");
    if (strstr(s->identity_keys, "://") != NULL &&
        !is_loopback_url(slice_from_cstr(s->identity_keys)))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--identity-keys must be a file, or a URL on this machine such as "
                         "http://localhost:8080/keys; not '%s'",
                         s->identity_keys);
    return STATUS_OK;
}

static Status resolve_charges(Arena *arena, const char *path, const ChargeModel **out, Error *err)
{
    if (path[0] == '\0')
        return STATUS_OK;
    Slice text;
    Error cause;
    ChargeModel *model = ARENA_NEW(arena, ChargeModel);
    TRY(read_file(arena, path, CHARGE_FILE_BYTES_MAX, &text, err));
    if (charge_model_parse(text, model, &cause) != STATUS_OK)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--charges %s, %s", path,
                         cause.message);
    *out = model;
    return STATUS_OK;
}

/* The endpoint in the account document. "localhost" would make the JS SDK read that document
 * again before every request. */
static Status check_name(const char *option, const char *text, const char *more, Error *err)
{
    Slice name = slice_from_cstr(text);
    bool good = name.len >= 1 && name.len <= NAME_BYTES_MAX && text[0] != ' ' &&
                !slice_ends_with(name, SLICE(" ")) && !slice_equal_nocase(name, SLICE("localhost"));
    for (size_t i = 0; i < name.len; i++) {
        char c = text[i];
        good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr(more, c) != NULL);
    }
    if (good)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "--%s must be a name of 1 to %d letters, digits and '%s', and not "
                     "'localhost'; found '%s'",
                     option, NAME_BYTES_MAX, more, text);
}

static Status check_endpoint(const char *text, Error *err)
{
    Slice url = slice_from_cstr(text);
    bool scheme =
        slice_starts_with(url, SLICE("http://")) || slice_starts_with(url, SLICE("https://"));
    bool plain = url.len <= ENDPOINT_BYTES_MAX;
    for (size_t i = 0; i < url.len; i++)
        plain = plain && url.ptr[i] > ' ' && url.ptr[i] < 0x7f && url.ptr[i] != '"' &&
                url.ptr[i] != '\\';
    if (scheme && plain && slice_ends_with(url, SLICE("/")))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "--public-endpoint must be a URL that ends with '/', such as "
                     "https://db.example.com:443/, not '%s'",
                     text);
}

/* "scheme://host:port" without a path, as browsers send it. */
static bool is_origin(Slice text)
{
    if (slice_equal(text, SLICE("*")) || slice_equal(text, SLICE("null")))
        return true;
    size_t colon = slice_find(text, ':');
    Slice host = slice_from(text, colon + 3 < text.len ? colon + 3 : text.len);
    bool plain = colon > 0 && host.len > 0 &&
                 slice_equal(slice_first(slice_from(text, colon), 3), SLICE("://")) &&
                 slice_find(host, '/') == host.len;
    for (size_t i = 0; i < text.len; i++)
        plain = plain && text.ptr[i] > ' ' && text.ptr[i] < 0x7f;
    return plain;
}

/* A name without a port, perhaps with "*." before it. */
static bool is_host(Slice text)
{
    if (slice_equal(text, SLICE("*")))
        return true;
    if (slice_starts_with(text, SLICE("*.")))
        text = slice_from(text, 2);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '-' || c == '_';
        if (!good)
            return false;
    }
    return text.len > 0;
}

static Status check_list(const char *name, const char *text, bool (*is_good)(Slice entry),
                         const char *expected, Error *err)
{
    Slice list = slice_from_cstr(text);
    while (list.len > 0) {
        Slice entry = slice_trim(slice_cut(&list, ','));
        if (!is_good(entry))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--%s must be %s, not '%.*s'", name,
                             expected, SLICE_CUT(entry, 100));
    }
    return STATUS_OK;
}

static Status to_throughput(const Settings *s, ProvisionRules *out, Error *err)
{
    bool no_limit = false;
    bool no_burst = false;
    ProvisionRules rules = PROVISION_RULES_DEFAULT;
    TRY(to_flag("no-rate-limit", s->no_rate_limit, &no_limit, err));
    TRY(to_flag("no-burst", s->no_burst, &no_burst, err));
    TRY(to_flag("serverless", s->serverless, &rules.is_serverless, err));
    TRY(to_u32("partition-ru", s->partition_ru, PROVISION_RU_MAX, &rules.partition_ru, err));
    if (rules.partition_ru < PROVISION_PARTITION_RU_MIN)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--partition-ru must be at least %d",
                         PROVISION_PARTITION_RU_MIN);
    if (rules.partition_ru != PROVISION_PARTITION_RU)
        rules.new_partition_ru = 0;
    TRY(to_u32("default-ru", s->default_ru, PROVISION_FIXED_RU_MAX, &rules.fallback.ru, err));
    if (provision_check(&rules.fallback, &(ProvisionHistory){.is_fixed = true}, err) != STATUS_OK)
        return error_context(err, "--default-ru");
    rules.is_enforced = !no_limit;
    rules.has_burst = !no_burst;
    *out = rules;
    return STATUS_OK;
}

static Status to_moves(const Settings *s, MoveRules *out, Error *err)
{
    bool no_splits = false;
    TRY(to_flag("no-auto-split", s->no_auto_split, &no_splits, err));
    TRY(to_flag("auto-merge", s->auto_merge, &out->merges, err));
    TRY(to_size("partition-max", s->partition_max, &out->partition_bytes_max, err));
    TRY(to_size("split-rate", s->split_rate, &out->bytes_per_s, err));
    out->splits = !no_splits;
    return STATUS_OK;
}

static Status to_memory(const Settings *s, uint32_t cpus, MemoryBudget *out, Error *err)
{
    uint64_t total = 0;
    uint64_t cache = 0;
    TRY(to_size("memory", s->memory, &total, err));
    TRY(to_size("cache", s->cache, &cache, err));
    return memory_budget(total, memory_limit(), cache, cpus, out, err);
}

/* The defaults leave out clients on this machine, which tests and tools are, and everything if a
 * proxy's address stands for all clients. A limit that was given holds for every address. */
static Status to_address_limits(const Settings *s, ServeOptions *o, Error *err)
{
    TRY(to_u32("address-connections-max", s->address_connections_max, 1000000,
               &o->address_connections_max, err));
    TRY(to_u32("address-failures-max", s->address_failures_max, 1000000000,
               &o->address_failures_max, err));
    o->limits_local_connections = o->address_connections_max != 0;
    o->limits_local_failures = o->address_failures_max != 0;
    if (o->address_connections_max == 0 && !o->trust_forwarded)
        o->address_connections_max = (o->connections_max + ADDRESS_SHARE - 1) / ADDRESS_SHARE;
    if (o->address_failures_max == 0 && !o->trust_forwarded)
        o->address_failures_max = ADDRESS_FAILURES_MAX;
    return STATUS_OK;
}

static Status to_merge(const char *text, ApiMerge *out, Error *err)
{
    static const char *const NAMES[] = {
        [API_MERGE_AUTO] = "auto", [API_MERGE_ALWAYS] = "always", [API_MERGE_NEVER] = "never"};
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        if (strcmp(text, NAMES[i]) == 0) {
            *out = (ApiMerge)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "--merge must be auto, always or never, not '%s'", text);
}

/* Those that only say yes or no. */
static Status to_flags(const Settings *s, ServeOptions *o, Error *err)
{
    const struct {
        const char *name;
        const char *text;
        bool *out;
    } rows[] = {
        {"require-tls", s->require_tls, &o->requires_tls},
        {"no-sandbox", s->no_sandbox, &o->no_sandbox},
        {"allow-development-key", s->allow_development_key, &o->allow_development_key},
        {"trust-forwarded", s->trust_forwarded, &o->trust_forwarded},
        {"no-statistics", s->no_statistics, &o->no_statistics},
        {"no-query-texts", s->no_query_texts, &o->no_query_texts},
        {"enable-chaos", s->enable_chaos, &o->enable_chaos},
        {"extensions", s->extensions, &o->extensions},
        {"temporary", s->temporary, &o->temporary},
        {"stop-at-eof", s->stop_at_eof, &o->stop_at_eof},
        {"no-previous-images", s->no_previous_images, &o->no_previous_images},
        {"allow-weak-engine", s->allow_weak_engine, &o->cluster.allows_weak_engine},
        {"accept-lost-writes", s->accept_lost_writes, &o->accept_lost_writes},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        TRY(to_flag(rows[i].name, rows[i].text, rows[i].out, err));
    return STATUS_OK;
}

static Status check_seed(const ServeOptions *o, const Settings *s, Error *err)
{
    if (o->seed != NULL && o->client_ca != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--seed and --client-ca exclude each other: the server has no client "
                         "certificate for its requests to itself");
    bool stops_at_eof = false;
    TRY(to_flag("stop-at-eof", s->stop_at_eof, &stops_at_eof, err));
    if (o->seed != NULL && strcmp(o->seed, "-") == 0 && stops_at_eof)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--seed - and --stop-at-eof exclude each other: the input would end with "
                         "the seed file, and the server with it");
    return STATUS_OK;
}

static Status to_cluster(Arena *arena, const Settings *s, ServeOptions *o, Error *err)
{
    ClusterTexts texts = {
        .cluster = s->cluster,
        .secret = s->cluster_secret,
        .node = s->node,
        .advertise = s->advertise,
        .peer = s->peer,
    };
    ClusterSettings *c = &o->cluster;
    TRY(cluster_settings_read(arena, &texts, c, err));
    TRY(to_u32("replicas", s->replicas, CLUSTER_REPLICAS_MAX, &c->replicas, err));
    TRY(to_u32("journal-keep", s->journal_keep, CLUSTER_KEEP_S_MAX, &c->keep_s, err));
    TRY(to_size("journal-bytes", s->journal_bytes, &c->journal_bytes, err));
    if (c->replicas == 0 || c->keep_s == 0 || c->journal_bytes < CLUSTER_JOURNAL_BYTES_MIN)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--replicas and --journal-keep must be at least 1, --journal-bytes at "
                         "least %lluM",
                         (unsigned long long)(CLUSTER_JOURNAL_BYTES_MIN >> 20));
    if (c->engine != NULL && o->durability == STORE_DURABILITY_RELAXED)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--durability relaxed and --cluster exclude each other: the journal's "
                         "engine makes writes durable");
    return STATUS_OK;
}

static Status convert(Arena *arena, const Settings *s, ServeOptions *out, Error *err)
{
    ServeOptions o = {
        .data = s->data,
        .host = s->host,
        .secondary_key = s->secondary_key,
        .read_only_key = s->read_only_key,
        .secondary_read_only_key = s->secondary_read_only_key,
        .seal_key_file = or_null(s->seal_key_file),
        .identity_issuer = s->identity_issuer,
        .identity_audience = s->identity_audience,
        .identity_keys = s->identity_keys,
        .identity_readers = s->identity_readers,
        .identity_contributors = s->identity_contributors,
        .cert = or_null(s->cert),
        .cert_key = or_null(s->cert_key),
        .client_ca = or_null(s->client_ca),
        .account = s->account,
        .region = s->region,
        .public_endpoint = s->public_endpoint,
        .allow_host = s->allow_host,
        .cors = s->cors,
        .audit = or_null(s->audit),
        .seed = or_null(s->seed),
    };
    if (s->data[0] == '\0' || s->host[0] == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--data and --host must not be empty");
    if ((o.cert == NULL) != (o.cert_key == NULL))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--cert and --cert-key go together; give both or neither");
    TRY(check_seed(&o, s, err));
    uint32_t port = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    TRY(to_u32("port", s->port, UINT16_MAX, &port, err));
    o.port = (uint16_t)port;
    TRY(to_u32("threads", s->threads, 256, &o.threads, err));
    TRY(to_u32("connections-max", s->connections_max, 1000000, &o.connections_max, err));
    TRY(to_u32("idle-timeout", s->idle_timeout, 86400, &o.idle_timeout_s, err));
    TRY(to_u32("request-timeout", s->request_timeout, 3600, &o.request_timeout_s, err));
    if (o.connections_max == 0 || o.idle_timeout_s == 0 || o.request_timeout_s == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--connections-max, --idle-timeout and --request-timeout must be at "
                         "least 1");
    TRY(to_memory(s, cores < 1 ? 1 : (uint32_t)cores, &o.memory, err));
    TRY(to_flags(s, &o, err));
    o.requires_tls = o.requires_tls || o.client_ca != NULL;
    TRY(to_address_limits(s, &o, err));
    TRY(to_merge(s->merge, &o.merge, err));
    TRY(to_throughput(s, &o.throughput, err));
    TRY(to_size("logical-partition-max", s->logical_partition_max, &o.logical_partition_bytes_max,
                err));
    TRY(to_moves(s, &o.moves, err));
    TRY(to_durability(s->durability, &o.durability, err));
    TRY(to_cluster(arena, s, &o, err));
    if (!log_level_parse(slice_from_cstr(s->log_level), &o.log_level))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--log-level must be error, warn, info or debug, not '%s'", s->log_level);
    if (!consistency_parse(slice_from_cstr(s->consistency), &o.consistency))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--consistency must be Strong, BoundedStaleness, Session, "
                         "ConsistentPrefix or Eventual, not '%s'",
                         s->consistency);
    TRY(resolve_charges(arena, s->charges, &o.charges, err));
    TRY(check_name("account", s->account, "-", err));
    TRY(check_name("region", s->region, " -", err));
    if (s->public_endpoint[0] != '\0')
        TRY(check_endpoint(s->public_endpoint, err));
    TRY(check_list("allow-host", s->allow_host, is_host,
                   "host names without a port, such as cosmos or *.example.com", err));
    TRY(check_list("cors", s->cors, is_origin,
                   "origins without a path, such as http://localhost:3000", err));
    TRY(resolve_key(arena, s, &o, err));
    TRY(check_identity(s, err));
    if (o.threads == 0)
        o.threads = cores < 1 ? 1 : cores > 64 ? 64 : (uint32_t)cores;
    *out = o;
    return STATUS_OK;
}

/* --temporary and --data are two answers to one question. Called after each place that gives
 * options, the strongest first: the first place that gives an answer counts, so that --temporary
 * works where the environment or a file names the folder. */
static Status settle_folder(Settings *s, bool *is_settled, Error *err)
{
    bool is_temporary = false;
    if (s->temporary != NULL)
        TRY(to_flag("temporary", s->temporary, &is_temporary, err));
    if (*is_settled || (s->data == NULL && !is_temporary))
        return STATUS_OK;
    if (s->data != NULL && is_temporary)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--temporary and --data exclude each other; give one of them");
    if (is_temporary)
        s->data = "data"; /* is not looked at */
    else
        s->temporary = "false";
    *is_settled = true;
    return STATUS_OK;
}

Status options_parse(Arena *arena, int argc, char *const *argv, char *const *environment,
                     ServeOptions *out, bool *help, Error *err)
{
    Settings settings = {0};
    bool is_settled = false;
    *help = false;
    TRY(parse_arguments(arena, argc, argv, &settings, help, err));
    if (*help)
        return STATUS_OK;
    TRY(settle_folder(&settings, &is_settled, err));
    TRY(parse_environment(arena, environment, &settings, err));
    TRY(settle_folder(&settings, &is_settled, err));
    if (settings.config != NULL && settings.config[0] != '\0')
        TRY(parse_config(arena, settings.config, &settings, err));
    TRY(settle_folder(&settings, &is_settled, err));
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const char **text = setting(&settings, &ROWS[i]);
        if (*text == NULL)
            *text = ROWS[i].fallback;
    }
    return convert(arena, &settings, out, err);
}

#define ARGUMENT_OF_TEXT   ARGUMENT_VALUE
#define ARGUMENT_OF_SECRET ARGUMENT_VALUE
#define ARGUMENT_OF_NUMBER ARGUMENT_VALUE
#define ARGUMENT_OF_SIZE   ARGUMENT_VALUE
#define ARGUMENT_OF_FLAG   ARGUMENT_FLAG
#define ARGUMENT_OF_LIST   ARGUMENT_LIST
static const ArgumentRow ARGUMENT_ROWS[] = {
#define OPTION_ROW(field, name, kind, placeholder, fallback, help) \
    {name, ARGUMENT_OF_##kind, placeholder, fallback, help, offsetof(Settings, field)},
#include "cli/options.def"
#undef OPTION_ROW
};
const ArgumentTable SERVE_OPTIONS = {"serve", ARGUMENT_ROWS, ARRAY_COUNT(ARGUMENT_ROWS)};
