/* stop_signal_test.c - the first signal is an event, the second one ends the process. */
#include "transfer/stop_signal.h"

#include "base/testing.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void the_first_is_an_event_and_the_second_ends_the_process(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < ARRAY_COUNT(signals); i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            int fd = -1;
            Error err;
            if (stop_signal_open(&fd, &err) != STATUS_OK || raise(signals[i]) != 0)
                _exit(3);
            struct pollfd ready = {.fd = fd, .events = POLLIN};
            if (poll(&ready, 1, 60000) != 1)
                _exit(4);
            stop_signal_taken(fd);
            (void)raise(signals[i]);
            _exit(5);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_an_event_and_the_second_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
