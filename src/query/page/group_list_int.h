/* group_list_int.h - groups that the index alone has given, of one target: what index_only.c makes,
 * and page.c adds up; and as bytes, from another node.
 *
 *     list    = | groups u32 | aggregates u32 | group* |
 *     group   = | key value | counted, one for each aggregate |
 *     counted = | spoiled u8 | count u64 | sum f64 | best value |
 *     value   = | type u8 | 8 bytes of a number, or length u32 and bytes of a string, or nothing |
 *
 * Ownership  A list lives in the arena that it was made in.
 */
#pragma once

#include "query/eval/eval_int.h"
#include "query/eval/query_run_int.h"

typedef struct Group {
    Value key;
    Counted *counted; /* one for each aggregate of the query */
} Group;

typedef struct GroupList {
    Group *groups;
    size_t count;
    size_t capacity;
} GroupList;

/* Adds an empty group. */
MUST_USE Status group_list_add(GroupList *list, Run *run, Arena *arena, size_t aggregates,
                               const Value *key, Group **out);

void group_list_write(const GroupList *list, size_t aggregates, Buf *out);

/* '*is_list' is false if the bytes are no list of groups with so many aggregates. */
MUST_USE Status group_list_read(Slice bytes, Run *run, Arena *arena, size_t aggregates,
                                GroupList *out, bool *is_list);
