/* journal_testing_int.h - for tests of the journal: short ways to join, append and expect. */
#pragma once

#include "base/buf.h"
#include "base/testing.h"
#include "journal/journal_int.h"

static const uint8_t TEST_SECRET[JOURNAL_SECRET_BYTES] = {1, 2, 3, 4};

static inline uint64_t after_ms(uint64_t ms)
{
    return clock_monotonic_us(clock_real()) + ms * 1000;
}

static inline JournalMember join_as(Journal *journal, const char *name, uint64_t of_folder)
{
    JournalMember member = {0};
    JournalJoin join = {.name = slice_from_cstr(name),
                        .address = SLICE("127.0.0.1:1"),
                        .advertise = SLICE("http://127.0.0.1:2/"),
                        .region = SLICE("here"),
                        .incarnation_of_folder = of_folder};
    assert_ok(journal_join(journal, &join, &member, err));
    return member;
}

static inline void create_space(Journal *journal, uint64_t space)
{
    JournalSelf self = journal_self(journal);
    JournalNewSpace one = {.space = space, .node = self.node, .incarnation = self.incarnation};
    assert_ok(journal_create_spaces(journal, JOURNAL_LANE_NODE, &one, 1, err));
}

static inline JournalOwner owner_of(Journal *journal, uint64_t space)
{
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_ok(
        journal_owners(journal, JOURNAL_LANE_NODE, &space, 1, &test_arena, &owners, &count, err));
    assert_int_equal(count, 1);
    return owners[0];
}

static inline JournalAppend make_append(uint64_t space, const JournalPlace *before, uint64_t epoch,
                                        const char *text)
{
    return (JournalAppend){
        .space = space, .before = *before, .epoch = epoch, .bytes = slice_from_cstr(text)};
}

/* Appends one entry and moves '*place' if it is done. */
static inline AppendOutcome append_text(Journal *journal, uint64_t space, JournalPlace *place,
                                        const char *text, uint64_t ms)
{
    JournalAppend one = make_append(space, place, place->epoch, text);
    Error err = {0};
    Status status = journal_append(journal, JOURNAL_LANE_APPEND_0, &one, 1, after_ms(ms), &err);
    assert_true((status == STATUS_OK) == (one.outcome != APPEND_PENDING));
    if (one.outcome == APPEND_DONE)
        *place = one.after;
    return one.outcome;
}

/* All entries after 'seq', one after the other with '|' between them. */
static inline Slice log_text(Journal *journal, uint64_t space, uint64_t seq)
{
    JournalEntries entries = {0};
    assert_ok(journal_read(journal, JOURNAL_LANE_FOLLOW, space, seq, 1 << 20, &test_arena, &entries,
                           err));
    Buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < entries.count; i++) {
        if (i > 0)
            buf_byte(&text, '|');
        buf_slice(&text, entries.items[i].bytes);
    }
    Slice copy = arena_copy(&test_arena, buf_view(&text));
    buf_done(&text);
    return copy;
}
