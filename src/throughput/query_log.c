/* query_log.c - see query_log.h.
 *
 * The writer finds an entry by its hash in 'heads', which is short enough to be looked through: a
 * few cache lines for each query. Readers see only entries. The label of an entry changes under its
 * sequence number, as in top_keys.c; its counts change at any time.
 */
#include "throughput/query_log.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

/* What an entry is about. Only as many words as the text needs are written and read. */
typedef struct Label {
    uint64_t first_s;
    uint32_t container;
    uint16_t text_len;
    uint8_t key_parts;
    uint8_t is_exact;
    char text[QUERY_LOG_TEXT_MAX];
} Label;

#define LABEL_WORDS (sizeof(Label) / sizeof(uint64_t))
#define HEAD_WORDS  (offsetof(Label, text) / sizeof(uint64_t))
static_assert(sizeof(Label) % sizeof(uint64_t) == 0, "a label is copied word by word");
static_assert(offsetof(Label, text) % sizeof(uint64_t) == 0, "and so is its beginning");

typedef struct Entry {
    _Atomic uint32_t sequence; /* odd while the words are being written */
    _Atomic uint64_t last_s;
    _Atomic uint64_t counts[QUERY_COUNTS];
    _Atomic uint64_t words[LABEL_WORDS]; /* a Label */
} Entry;

typedef struct Head {
    uint64_t hash;
    uint64_t pages; /* with those that it inherited */
    uint32_t container;
} Head;

struct QueryLog {
    HashKey key; /* immutable, as the next */
    uint32_t entries_max;
    Head *heads;              /* the writer's */
    _Atomic uint32_t used;    /* entries */
    _Atomic(Entry *) entries; /* NULL until the first is added */
};

uint32_t query_log_entries(uint32_t threads)
{
    size_t logs = threads == 0 ? 1 : threads;
    size_t fit = QUERY_LOG_BYTES_MAX / ((sizeof(Entry) + sizeof(Head)) * logs);
    uint32_t entries = QUERY_LOG_ENTRIES_MAX;
    while (entries > QUERY_LOG_ENTRIES_MIN && entries > fit)
        entries /= 2;
    return entries;
}

QueryLog *query_log_new(uint32_t entries, HashKey key)
{
    ASSERT(entries > 1 && entries <= QUERY_LOG_ENTRIES_MAX);
    QueryLog *log = MEM_NEW(QueryLog);
    log->key = key;
    log->entries_max = entries;
    return log;
}

void query_log_free(QueryLog *log)
{
    if (log == NULL)
        return;
    mem_free(atomic_load_explicit(&log->entries, memory_order_relaxed));
    mem_free(log->heads);
    mem_free(log);
}

/* ---- adding ---- */

static Entry *entries_of(QueryLog *log)
{
    Entry *entries = atomic_load_explicit(&log->entries, memory_order_relaxed);
    if (UNLIKELY(entries == NULL)) {
        entries = MEM_NEW_ARRAY(Entry, log->entries_max);
        log->heads = MEM_NEW_ARRAY(Head, log->entries_max);
        atomic_store_explicit(&log->entries, entries, memory_order_release);
    }
    return entries;
}

static size_t words_of(size_t text_len)
{
    return HEAD_WORDS + (text_len + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

static void entry_write(Entry *entry, const Label *label)
{
    uint64_t words[LABEL_WORDS];
    memcpy(words, label, sizeof(words));
    uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    atomic_store_explicit(&entry->sequence, sequence + 1, memory_order_relaxed);
    for (size_t i = 0; i < words_of(label->text_len); i++)
        atomic_store_explicit(&entry->words[i], words[i], memory_order_release);
    for (size_t i = 0; i < QUERY_COUNTS; i++)
        atomic_store_explicit(&entry->counts[i], 0, memory_order_release);
    atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

/* Where a new text of the container goes: a free entry, or that of the text with the fewest pages.
 */
static uint32_t choose_place(const QueryLog *log, uint32_t used, uint32_t container)
{
    uint32_t own = 0;
    uint32_t own_least = used;
    uint32_t least = 0;
    for (uint32_t i = 0; i < used; i++) {
        if (log->heads[i].pages < log->heads[least].pages)
            least = i;
        if (log->heads[i].container != container)
            continue;
        own++;
        if (own_least == used || log->heads[i].pages < log->heads[own_least].pages)
            own_least = i;
    }
    if (own >= log->entries_max / 2)
        return own_least;
    return used < log->entries_max ? used : least;
}

static uint32_t add_new(QueryLog *log, Entry *entries, uint64_t hash, uint64_t now_s,
                        const QueryNote *note)
{
    uint32_t used = atomic_load_explicit(&log->used, memory_order_relaxed);
    uint32_t at = choose_place(log, used, note->container);
    uint64_t inherited = at < used ? log->heads[at].pages : 0;
    Label label = {
        .first_s = now_s,
        .container = note->container,
        .text_len = (uint16_t)note->text.len,
        .key_parts = note->key_parts,
        .is_exact = inherited == 0,
    };
    if (note->text.len > 0)
        memcpy(label.text, note->text.ptr, note->text.len);
    log->heads[at] = (Head){hash, inherited, note->container};
    entry_write(&entries[at], &label);
    if (at == used)
        atomic_store_explicit(&log->used, used + 1, memory_order_release);
    return at;
}

static uint64_t hash_of(const QueryLog *log, const QueryNote *note)
{
    HashKey salted = {log->key.k0 ^ note->container, log->key.k1 ^ note->key_parts};
    return hash_keyed(salted, note->text);
}

void query_log_add(QueryLog *log, uint64_t now_s, const QueryNote *note)
{
    ASSERT(note->text.len <= QUERY_LOG_TEXT_MAX);
    Entry *entries = entries_of(log);
    uint64_t hash = hash_of(log, note);
    uint32_t used = atomic_load_explicit(&log->used, memory_order_relaxed);
    uint32_t at = 0;
    while (at < used && log->heads[at].hash != hash)
        at++;
    if (at == used)
        at = add_new(log, entries, hash, now_s, note);
    Entry *entry = &entries[at];
    log->heads[at].pages += note->counts[QUERY_PAGES];
    for (size_t i = 0; i < QUERY_COUNTS; i++) {
        uint64_t before = atomic_load_explicit(&entry->counts[i], memory_order_relaxed);
        atomic_store_explicit(&entry->counts[i], before + note->counts[i], memory_order_relaxed);
    }
    atomic_store_explicit(&entry->last_s, now_s, memory_order_relaxed);
}

/* ---- reading ---- */

/* False if the writer changed it during each attempt: such an entry is one of the least frequent.
 */
static bool entry_read(const Entry *entry, Label *label, QueryRow *row)
{
    enum { ATTEMPTS = 8 };
    uint64_t words[LABEL_WORDS] = {0};
    for (int i = 0; i < ATTEMPTS; i++) {
        uint32_t before = atomic_load_explicit(&entry->sequence, memory_order_acquire);
        for (size_t w = 0; w < LABEL_WORDS; w++)
            words[w] = atomic_load_explicit(&entry->words[w], memory_order_acquire);
        for (size_t c = 0; c < QUERY_COUNTS; c++)
            row->counts[c] = atomic_load_explicit(&entry->counts[c], memory_order_acquire);
        row->last_s = atomic_load_explicit(&entry->last_s, memory_order_acquire);
        uint32_t after = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            memcpy(label, words, sizeof(*label));
            return label->text_len <= QUERY_LOG_TEXT_MAX;
        }
    }
    return false;
}

static size_t read_log(const QueryLog *log, uint32_t container, Arena *arena, QueryRow *out)
{
    const Entry *entries = atomic_load_explicit(&log->entries, memory_order_acquire);
    uint32_t used = atomic_load_explicit(&log->used, memory_order_acquire);
    size_t count = 0;
    Label label;
    for (uint32_t i = 0; entries != NULL && i < used; i++) {
        QueryRow *row = &out[count];
        if (!entry_read(&entries[i], &label, row) || label.container != container)
            continue;
        row->text = arena_copy(arena, slice_make(label.text, label.text_len));
        row->key_parts = label.key_parts;
        row->is_exact = label.is_exact != 0;
        row->first_s = label.first_s;
        count++;
    }
    return count;
}

static int compare_texts(const void *left, const void *right)
{
    const QueryRow *a = left;
    const QueryRow *b = right;
    int order = slice_compare(a->text, b->text);
    return order != 0 ? order : (int)a->key_parts - (int)b->key_parts;
}

static void join(QueryRow *row, const QueryRow *more)
{
    for (size_t i = 0; i < QUERY_COUNTS; i++)
        row->counts[i] += more->counts[i];
    row->is_exact = row->is_exact && more->is_exact;
    row->first_s = more->first_s < row->first_s ? more->first_s : row->first_s;
    row->last_s = more->last_s > row->last_s ? more->last_s : row->last_s;
}

/* By the count that is asked for, and by the text if it is the same. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const QueryCount *by = context;
    const QueryRow *a = left;
    const QueryRow *b = right;
    if (a->counts[*by] != b->counts[*by])
        return a->counts[*by] > b->counts[*by] ? -1 : 1;
    return compare_texts(left, right);
}

size_t query_log_read(const QueryLog *const *logs, size_t count, uint32_t container, QueryCount by,
                      Arena *arena, QueryRow **rows)
{
    size_t room = 1; /* an entry is read before it is known whether it is needed */
    for (size_t i = 0; i < count; i++)
        room += logs[i]->entries_max;
    QueryRow *found = ARENA_NEW_ARRAY(arena, QueryRow, room);
    size_t found_count = 0;
    for (size_t i = 0; i < count; i++)
        found_count += read_log(logs[i], container, arena, found + found_count);
    qsort(found, found_count, sizeof(QueryRow), compare_texts);
    size_t kept = 0;
    for (size_t i = 0; i < found_count; i++) {
        if (kept > 0 && compare_texts(&found[kept - 1], &found[i]) == 0)
            join(&found[kept - 1], &found[i]);
        else
            found[kept++] = found[i];
    }
    qsort_r(found, kept, sizeof(QueryRow), compare_rows, &by);
    *rows = found;
    return kept;
}
