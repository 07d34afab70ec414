/* partition_check_index.c - the index against the items: sums first, then pairs. See
 * partition_check.c. */
#include "index/set.h"
#include "index/terms.h"
#include "partition/partition_check_int.h"

static CheckBucket *bucket_of(CheckBucket *buckets, uint64_t number)
{
    return &buckets[number % CHECK_BUCKETS];
}

static bool is_bad(const Check *check, uint64_t number)
{
    const CheckBucket *a = &check->of_items[number % CHECK_BUCKETS];
    const CheckBucket *b = &check->of_index[number % CHECK_BUCKETS];
    return a->sum != b->sum || a->count != b->count;
}

static bool is_enough(const Check *check)
{
    return check->totals.findings > CHECK_FINDINGS_MAX;
}

static uint64_t hash_term(const Check *check, TermPath path, Slice value)
{
    HashKey key = {check->secret[0].k0 ^ path, check->secret[0].k1};
    return hash_keyed(key, value);
}

static void add_pair(const Check *check, CheckBucket *buckets, uint64_t term, uint64_t number)
{
    uint64_t pair[] = {term, number};
    CheckBucket *bucket = bucket_of(buckets, number);
    bucket->sum += hash_keyed(check->secret[1], slice_make(pair, sizeof(pair)));
    bucket->count++;
}

static const IndexPolicy *policy_of(const Check *check, const Item *item)
{
    if (item->is_unindexed)
        return NULL;
    return item->number <= check->index_position ? check->index->new_policy
                                                 : check->index->old_policy;
}

/* The numbers of a stored chunk; false if it is damaged. */
static bool open_chunk(Arena *arena, Slice key, Slice value, TermPath *path, Slice *term,
                       NumberSet *out)
{
    uint64_t high = 0;
    Error err;
    SetBuilder *builder = set_builder_new(arena);
    bool good = term_key_read(key, path, term, &high) &&
                set_builder_add_value(builder, high, value, &err) == STATUS_OK;
    if (good)
        set_builder_finish(builder, out);
    return good;
}

static Status look_up_term(Check *check, const Term *term, uint64_t number, bool *found, Error *err)
{
    AUTO(buf_done) Buf key;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    term_key(&key, term->path, term->value, number >> SET_CHUNK_BITS);
    /* Not in the arena of the item, which may have very many terms. */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, SET_BITMAP_BYTES * 2);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound where = STORE_ABSENT;
    TRY(store_get(check->partition->host->store, check->snapshot, check->partition->space,
                  buf_view(&key), STORE_READ_ANY, &value, &where, err));
    TermPath path;
    Slice unused;
    NumberSet set;
    *found = where == STORE_FOUND &&
             open_chunk(&arena, buf_view(&key), value.data, &path, &unused, &set) &&
             set_has(&set, number);
    return STATUS_OK;
}

/* Whether it is unknown if the item is in samples: see index_state_int.h. */
static bool is_unsure(const Check *check, const Item *item)
{
    IndexSamples samples = check->index->samples;
    return samples == SAMPLES_UNSURE ||
           (samples == SAMPLES_TO_POSITION && item->number > check->index_position);
}

/* Samples that the item may lack count if it has them, because then they must go with it. */
static Status drop_absent_samples(Check *check, uint64_t number, TermList *list, Error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool found = true;
        if (list->terms[i].is_sample)
            TRY(look_up_term(check, &list->terms[i], number, &found, err));
        if (found)
            list->terms[kept++] = list->terms[i];
    }
    list->count = kept;
    return STATUS_OK;
}

static Status list_terms(Check *check, const Item *item, TermList *out, Error *err)
{
    const IndexPolicy *policy = policy_of(check, item);
    TermSystem system = {.ts_s = item->ts_s};
    *out = (TermList){.count = 0};
    if (policy == NULL)
        return STATUS_OK;
    terms_of(&check->arena, policy, check->index_key, item->document, &system, out);
    return is_unsure(check, item) ? drop_absent_samples(check, item->number, out, err) : STATUS_OK;
}

Status check_add_item(Check *check, const Item *item, Error *err)
{
    TermList list;
    TRY(list_terms(check, item, &list, err));
    for (size_t i = 0; i < list.count; i++)
        add_pair(check, check->of_items, hash_term(check, list.terms[i].path, list.terms[i].value),
                 item->number);
    check->totals.terms += list.count;
    return STATUS_OK;
}

static Status visit_chunk(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    TermPath path;
    Slice term;
    NumberSet set;
    if (!open_chunk(&check->arena, key, value, &path, &term, &set)) {
        check_found(check, "a chunk of the index of %zu bytes is damaged", value.len);
        return STATUS_OK;
    }
    uint64_t hash = hash_term(check, path, term);
    SetWalk walk = set_walk_up(&set, 0);
    uint64_t number = 0;
    while (set_walk_next(&walk, &number))
        add_pair(check, check->of_index, hash, number);
    return STATUS_OK;
}

/* ---- for what differs ---- */

static Status visit_bad_item(Check *check, Slice key, Slice value, Error *err)
{
    Item item;
    Error ignored;
    if (is_enough(check) || item_decode(value, &item, &ignored) != STATUS_OK ||
        !is_bad(check, item.number))
        return STATUS_OK;
    CheckedItem *c = ARENA_NEW(&check->arena, CheckedItem);
    if (!check_open_item(check, key, value, c))
        return STATUS_OK; /* has been found */
    TermList list;
    TRY(list_terms(check, &c->item, &list, err));
    size_t missing = 0;
    for (size_t i = 0; i < list.count; i++) {
        bool found = false;
        TRY(look_up_term(check, &list.terms[i], item.number, &found, err));
        missing += found ? 0 : 1;
    }
    if (missing > 0)
        check_found(check, "item '%.*s' (%llu) is missing under %zu of its %zu terms",
                    SLICE_CUT(c->id, 100), (unsigned long long)item.number, missing, list.count);
    return STATUS_OK;
}

/* The item with a number, if it has terms. */
static Status find_item(Check *check, uint64_t number, CheckedItem *out, bool *found, Error *err)
{
    uint8_t key[9] = {KEY_NUMBER};
    be64_put(key + 1, number);
    Slice place;
    Slice epk;
    Slice id;
    Slice bytes;
    Key item_key;
    TRY(check_get(check, slice_make(key, sizeof(key)), &place, found, err));
    if (!*found)
        return STATUS_OK;
    TRY(location_decode(place, &epk, &id, err));
    key_item(&item_key, epk, id);
    TRY(check_get(check, key_slice(&item_key), &bytes, found, err));
    *found = *found && check_open_item(check, key_slice(&item_key), bytes, out) &&
             out->item.number == number;
    return STATUS_OK;
}

static bool has_term(const TermList *list, TermPath path, Slice value)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const Term *term = &list->terms[middle];
        int order =
            term->path != path ? (term->path < path ? -1 : 1) : slice_compare(term->value, value);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static Status check_pair(Check *check, TermPath path, Slice value, uint64_t number, Error *err)
{
    CheckedItem *c = ARENA_NEW(&check->arena, CheckedItem);
    bool found = false;
    TRY(find_item(check, number, c, &found, err));
    if (!found) {
        check_found(check, "the index names item %llu, which is not there",
                    (unsigned long long)number);
        return STATUS_OK;
    }
    TermList list;
    TRY(list_terms(check, &c->item, &list, err));
    if (!has_term(&list, path, value))
        check_found(check,
                    "item '%.*s' (%llu) is in the index under a term of path %016llx that it has "
                    "not",
                    SLICE_CUT(c->id, 100), (unsigned long long)number, (unsigned long long)path);
    return STATUS_OK;
}

static Status visit_bad_chunk(Check *check, Slice key, Slice value, Error *err)
{
    TermPath path;
    Slice term;
    NumberSet set;
    AUTO(arena_done) Arena arena; /* the check's own is for each item in turn */
    arena_init(&arena, SET_BITMAP_BYTES * 2);
    if (is_enough(check) || !open_chunk(&arena, key, value, &path, &term, &set))
        return STATUS_OK; /* has been found */
    SetWalk walk = set_walk_up(&set, 0);
    uint64_t number = 0;
    while (!is_enough(check) && set_walk_next(&walk, &number)) {
        if (is_bad(check, number))
            TRY(check_pair(check, path, term, number, err));
        arena_reset(&check->arena);
    }
    return STATUS_OK;
}

Status check_index(Check *check, Error *err)
{
    TRY(check_walk(check, KEY_TERM, visit_chunk, err));
    size_t bad = 0;
    for (uint64_t i = 0; i < CHECK_BUCKETS; i++)
        bad += is_bad(check, i) ? 1 : 0;
    if (bad == 0)
        return STATUS_OK;
    uint64_t before = check->totals.findings;
    TRY(check_walk(check, KEY_ITEM, visit_bad_item, err));
    TRY(check_walk(check, KEY_TERM, visit_bad_chunk, err));
    if (check->totals.findings == before)
        check_found(check, "the index and the items differ");
    return STATUS_OK;
}
