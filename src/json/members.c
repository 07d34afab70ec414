/* members.c - see members_int.h.
 *
 * Few members, which is the usual object, are sorted by insertion; many by merging runs of that
 * length, because a client can send an object of half a million members.
 */
#include "json/members_int.h"

#include "base/encoding.h"

static uint64_t name_prefix(Slice name)
{
    const uint8_t *p = (const uint8_t *)name.ptr;
    if (name.len >= 8)
        return be64_get(p);
    if (name.len >= 4) {
        /* The two halves overlap; what they share is shifted out of the second. */
        uint64_t tail = (uint64_t)be32_get(p + name.len - 4) << (8 * (8 - name.len));
        return (uint64_t)be32_get(p) << 32 | (uint32_t)tail;
    }
    uint64_t prefix = 0;
    for (size_t i = 0; i < name.len; i++)
        prefix |= (uint64_t)p[i] << (56 - 8 * i);
    return prefix;
}

static int compare_names(const uint8_t *base, const Member *a, const Member *b)
{
    if (LIKELY(a->prefix != b->prefix))
        return a->prefix < b->prefix ? -1 : 1;
    return slice_compare(load_string(base + a->offset), load_string(base + b->offset));
}

static void sort_few(const uint8_t *base, Member *members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        Member member = members[i];
        size_t at = i;
        while (at > 0 && compare_names(base, &member, &members[at - 1]) < 0) {
            members[at] = members[at - 1];
            at--;
        }
        members[at] = member;
    }
}

/* Merges from[0, middle) and from[middle, count) into 'to'. */
static void merge(const uint8_t *base, const Member *from, size_t middle, size_t count, Member *to)
{
    size_t left = 0;
    size_t right = middle;
    for (size_t i = 0; i < count; i++) {
        bool take_left = right == count ||
                         (left < middle && compare_names(base, &from[left], &from[right]) <= 0);
        to[i] = from[take_left ? left++ : right++];
    }
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void sort_many(const uint8_t *base, Member *members, Member *scratch, size_t count)
{
    for (size_t i = 0; i < count; i += MEMBERS_FEW)
        sort_few(base, members + i, smaller(MEMBERS_FEW, count - i));
    Member *from = members;
    Member *to = scratch;
    for (size_t run = MEMBERS_FEW; run < count; run *= 2) {
        for (size_t i = 0; i < count; i += 2 * run)
            merge(base, from + i, smaller(run, count - i), smaller(2 * run, count - i), to + i);
        Member *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != members)
        memcpy(members, from, count * sizeof(*members));
}

bool members_sort(const uint8_t *base, Member *members, Member *scratch, size_t count)
{
    for (size_t i = 0; i < count; i++)
        members[i].prefix = name_prefix(load_string(base + members[i].offset));
    if (count <= MEMBERS_FEW)
        sort_few(base, members, count);
    else
        sort_many(base, members, scratch, count);
    for (size_t i = 1; i < count; i++) {
        if (UNLIKELY(compare_names(base, &members[i - 1], &members[i]) == 0))
            return false;
    }
    return true;
}
