/* radix_testing_int.h - a radix tree beside a sorted array: for its test and its fuzz target. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "store/rocksdb/radix_int.h"

#include <stdlib.h>

enum { TAG_BYTES = 8 };

typedef struct Version {
    Slice key; /* shorter than 16 KB */
    uint64_t tag;
} Version;

static inline void *allocate_askew(void *ctx, size_t bytes)
{
    char *room = arena_alloc(ctx, bytes + 8);
    return room + bytes / 8 % 8; /* sometimes aligned */
}

static inline Slice target_of(Arena *arena, Version v)
{
    char *target = arena_alloc(arena, v.key.len + TAG_BYTES);
    if (v.key.len > 0)
        memcpy(target, v.key.ptr, v.key.len);
    memcpy(target + v.key.len, &v.tag, TAG_BYTES);
    return slice_make(target, v.key.len + TAG_BYTES);
}

static inline bool insert(Radix *radix, Version v)
{
    size_t len = v.key.len + TAG_BYTES;
    RadixEntry *entry = radix_entry_new(radix, len + 2);
    char *data = radix_data(entry);
    size_t at = 0;
    if (len >= 0x80)
        data[at++] = (char)(0x80 | (len & 0x7F));
    data[at++] = (char)(len >= 0x80 ? len >> 7 : len);
    if (v.key.len > 0)
        memcpy(data + at, v.key.ptr, v.key.len);
    memcpy(data + at + v.key.len, &v.tag, TAG_BYTES);
    return radix_insert(radix, entry);
}

static inline Version version_of(const RadixEntry *entry)
{
    const char *data = radix_read(entry);
    size_t len = (uint8_t)*data++;
    if (len >= 0x80)
        len = (len & 0x7F) | (size_t)(uint8_t)*data++ << 7;
    Version v = {.key = slice_make(data, len - TAG_BYTES)};
    memcpy(&v.tag, data + v.key.len, TAG_BYTES);
    return v;
}

static inline int compare_versions(const void *a, const void *b)
{
    const Version *left = a;
    const Version *right = b;
    int order = slice_compare(left->key, right->key);
    if (order != 0)
        return order;
    return left->tag > right->tag ? -1 : left->tag < right->tag;
}

typedef struct Model {
    Version *list; /* sorted */
    size_t count;
} Model;

static inline size_t model_find(const Model *model, const Version *v, bool *found)
{
    size_t low = 0;
    size_t high = model->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_versions(&model->list[middle], v) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < model->count && compare_versions(&model->list[low], v) == 0;
    return low;
}

static inline bool model_insert(Model *model, Version v)
{
    bool found = false;
    size_t at = model_find(model, &v, &found);
    if (found)
        return false;
    memmove(&model->list[at + 1], &model->list[at], sizeof(v) * (model->count - at));
    model->list[at] = v;
    model->count++;
    return true;
}

/* Whether the entry is the one at 'at', or NULL beyond both ends, also for -1. */
static inline bool is_at(const Model *model, const RadixEntry *entry, size_t at)
{
    if (at >= model->count || entry == NULL)
        return at >= model->count && entry == NULL;
    Version v = version_of(entry);
    return compare_versions(&v, &model->list[at]) == 0;
}

/* To the version or what comes before it, a step down, and up again. */
static inline bool agrees_before(const Radix *radix, const Model *model, Slice target, size_t at)
{
    RadixPath path;
    const RadixEntry *entry = radix_at_or_before(radix, target.ptr, target.len, &path);
    if (!is_at(model, entry, at))
        return false;
    if (entry == NULL)
        return true;
    entry = radix_prev(radix, entry, &path);
    if (!is_at(model, entry, at - 1))
        return false;
    return entry == NULL || is_at(model, radix_next(radix, entry, &path), at);
}

/* To the version or what comes behind it, and steps from there, with a path and without. */
static inline bool agrees_after(const Radix *radix, const Model *model, Slice target, size_t at)
{
    RadixPath path;
    const RadixEntry *entry = radix_at_or_after(radix, target.ptr, target.len, &path);
    if (!is_at(model, entry, at))
        return false;
    if (entry == NULL)
        return true;
    RadixPath unknown = {.count = 0};
    return is_at(model, radix_prev(radix, entry, &unknown), at - 1) &&
           is_at(model, radix_next(radix, entry, &path), at + 1);
}

static inline bool agrees_around(const Radix *radix, Arena *arena, const Model *model, Version v)
{
    bool found = false;
    size_t at = model_find(model, &v, &found);
    Slice target = target_of(arena, v);
    RadixPath path;
    const RadixEntry *entry = radix_at_or_after(radix, target.ptr, target.len, &path);
    bool is_same = entry != NULL && radix_is(entry, target.ptr, target.len);
    return is_same == found && agrees_after(radix, model, target, at) &&
           agrees_before(radix, model, target, found ? at : at - 1);
}

static inline bool agrees_from_end_to_end(const Radix *radix, const Model *model)
{
    size_t at = 0;
    RadixPath path;
    const RadixEntry *entry = radix_first(radix, &path);
    for (; entry != NULL; entry = radix_next(radix, entry, &path)) {
        if (!is_at(model, entry, at++))
            return false;
    }
    if (at != model->count)
        return false;
    entry = radix_last(radix, &path);
    for (; entry != NULL; entry = radix_prev(radix, entry, &path)) {
        if (!is_at(model, entry, --at))
            return false;
    }
    return at == 0;
}
