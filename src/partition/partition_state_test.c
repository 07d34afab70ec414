/* partition_state_test.c - the life of a partition, arrow by arrow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/defs.h"
#include "partition/partition_state_int.h"

typedef enum Step {
    WATCH,
    FENCE,
    UNFENCE,
    UNWATCH,
    RETIRE,
    HOLD,
    UNHOLD,
    DROP,
    END_DROP,
    STOP,
    STOP_GONE,
} Step;

/* Returns false if a drop or a stop came first. */
static bool take(_Atomic PartitionState *state, Step step)
{
    switch (step) {
    case WATCH:
        return state_watch(state);
    case FENCE:
        return state_fence(state);
    case UNFENCE:
        return state_unfence(state);
    case UNWATCH:
        state_unwatch(state);
        break;
    case RETIRE:
        state_retire(state);
        break;
    case HOLD:
        return state_hold(state);
    case UNHOLD:
        state_unhold(state);
        break;
    case DROP:
        state_drop(state);
        break;
    case END_DROP:
        state_end_drop(state);
        break;
    case STOP:
        state_stop(state, false);
        break;
    case STOP_GONE:
        state_stop(state, true);
        break;
    }
    return true;
}

static void each_step_leads_where_the_drawing_says(void **ctx)
{
    (void)ctx;
    static const struct {
        PartitionState from;
        Step step;
        PartitionState to;
    } rows[] = {
        {PARTITION_SERVING, WATCH, PARTITION_WATCHED},
        {PARTITION_WATCHED, FENCE, PARTITION_FENCED},
        {PARTITION_FENCED, UNFENCE, PARTITION_WATCHED},
        {PARTITION_WATCHED, UNWATCH, PARTITION_SERVING},
        {PARTITION_FENCED, RETIRE, PARTITION_RETIRED},
        {PARTITION_SERVING, DROP, PARTITION_DROPPING},
        {PARTITION_WATCHED, DROP, PARTITION_DROPPING},
        {PARTITION_FENCED, DROP, PARTITION_DROPPING},
        {PARTITION_SERVING, HOLD, PARTITION_HELD},
        {PARTITION_HELD, UNHOLD, PARTITION_SERVING},
        {PARTITION_HELD, DROP, PARTITION_DROPPING},
        {PARTITION_DROPPING, END_DROP, PARTITION_DROPPED},
        {PARTITION_SERVING, STOP, PARTITION_STOPPED},
        {PARTITION_WATCHED, STOP, PARTITION_STOPPED},
        {PARTITION_FENCED, STOP, PARTITION_STOPPED},
        {PARTITION_HELD, STOP, PARTITION_STOPPED},
        {PARTITION_SERVING, STOP_GONE, PARTITION_RETIRED},
        {PARTITION_HELD, STOP_GONE, PARTITION_RETIRED},
        {PARTITION_STOPPED, RETIRE, PARTITION_RETIRED}, /* the move has ended all the same */
        /* Without effect. */
        {PARTITION_DROPPING, STOP, PARTITION_DROPPING},
        {PARTITION_DROPPED, STOP, PARTITION_DROPPED},
        {PARTITION_RETIRED, STOP, PARTITION_RETIRED},
        {PARTITION_RETIRED, RETIRE, PARTITION_RETIRED}, /* a stop has retired it */
        {PARTITION_STOPPED, STOP_GONE, PARTITION_STOPPED},
        {PARTITION_STOPPED, DROP, PARTITION_STOPPED},
        {PARTITION_STOPPED, END_DROP, PARTITION_STOPPED},
        {PARTITION_STOPPED, UNWATCH, PARTITION_STOPPED},
        {PARTITION_STOPPED, UNHOLD, PARTITION_STOPPED},
        {PARTITION_SERVING, UNWATCH, PARTITION_SERVING},
        {PARTITION_RETIRED, UNWATCH, PARTITION_RETIRED},
        {PARTITION_DROPPING, UNWATCH, PARTITION_DROPPING},
        {PARTITION_DROPPED, UNWATCH, PARTITION_DROPPED},
        {PARTITION_RETIRED, DROP, PARTITION_RETIRED},
        {PARTITION_DROPPING, DROP, PARTITION_DROPPING},
        {PARTITION_DROPPED, DROP, PARTITION_DROPPED},
        {PARTITION_RETIRED, END_DROP, PARTITION_RETIRED},
        {PARTITION_DROPPING, UNHOLD, PARTITION_DROPPING},
        {PARTITION_DROPPED, UNHOLD, PARTITION_DROPPED},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        _Atomic PartitionState state;
        atomic_init(&state, rows[i].from);
        assert_true(take(&state, rows[i].step));
        assert_int_equal(atomic_load(&state), rows[i].to);
    }
}

static void what_is_moved_is_not_held(void **ctx)
{
    (void)ctx;
    static const PartitionState states[] = {PARTITION_WATCHED, PARTITION_FENCED, PARTITION_RETIRED};
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        _Atomic PartitionState state;
        atomic_init(&state, states[i]);
        assert_false(state_hold(&state));
        assert_int_equal(atomic_load(&state), states[i]);
    }
}

static void a_drop_or_stop_that_came_first_stays(void **ctx)
{
    (void)ctx;
    static const PartitionState states[] = {PARTITION_DROPPING, PARTITION_DROPPED,
                                            PARTITION_STOPPED};
    static const Step steps[] = {WATCH, FENCE, UNFENCE, HOLD};
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(steps); k++) {
            _Atomic PartitionState state;
            atomic_init(&state, states[i]);
            assert_false(take(&state, steps[k]));
            assert_int_equal(atomic_load(&state), states[i]);
        }
    }
}

static void messages_are_refused_from_a_drop_on_and_applied_up_to_its_turn(void **ctx)
{
    (void)ctx;
    static const struct {
        PartitionState state;
        bool accepts;
        bool applies;
    } rows[] = {
        {PARTITION_SERVING, true, true},   {PARTITION_WATCHED, true, true},
        {PARTITION_FENCED, true, true}, /* once it is served again */
        {PARTITION_DROPPING, false, true}, {PARTITION_DROPPED, false, false},
        {PARTITION_RETIRED, false, false}, {PARTITION_STOPPED, false, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(state_accepts_messages(rows[i].state), rows[i].accepts);
        assert_int_equal(state_applies_messages(rows[i].state), rows[i].applies);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_leads_where_the_drawing_says),
        cmocka_unit_test(what_is_moved_is_not_held),
        cmocka_unit_test(a_drop_or_stop_that_came_first_stays),
        cmocka_unit_test(messages_are_refused_from_a_drop_on_and_applied_up_to_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
