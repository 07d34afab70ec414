/* script_process_int.h - one worker process, seen from the server.
 *
 *     STARTED ---greeting---> READY ---failure of any kind---> LOST
 *
 * Nothing can be sent to a process that is LOST: its owner ends it. Whatever it does, a wait for it
 * ends at the moment that the caller gives.
 *
 * Ownership  The pool, or the runner or session that has taken the process from it.
 * script_process_free kills. Threads    One at a time.
 */
#pragma once

#include "script/script_frame_int.h"

#include <sys/types.h>

typedef enum ProcessState { PROCESS_STARTED, PROCESS_READY, PROCESS_LOST } ProcessState;

typedef struct ScriptProcess ScriptProcess;
struct ScriptProcess {
    ScriptProcess *next; /* the pool's list of idle ones */
    ProcessState state;
    pid_t pid;
    int fd;
    uint64_t memory_bytes_max;
    uint64_t checked_us;    /* when its memory was last looked at */
    uint64_t idle_since_us; /* the pool's */
    Buf in;                 /* the frame that was received last */
    Buf out;                /* the frame to be sent */
};

/* How a wait for a process has ended. */
typedef enum ProcessEvent {
    PROCESS_FRAME,
    PROCESS_TIMEOUT,
    PROCESS_TOO_MUCH_MEMORY,
    PROCESS_DIED, /* or sent what is not a frame */
} ProcessEvent;

/* 'command' as in ScriptPoolOptions. The process is ended by the system when this thread ends.
 * STATUS_UNAVAILABLE. */
MUST_USE Status script_process_start(const char *const *command, uint64_t memory_bytes_max,
                                     bool shows_stderr, ScriptProcess **out, Error *err);

/* Kills the process. Accepts NULL. */
void script_process_free(ScriptProcess *process);
DEFINE_AUTO(ScriptProcess *, script_process_free)

/* Waits for the greeting, if it has not come yet. STATUS_UNAVAILABLE with the worker's reason,
 * STATUS_TIMEOUT. */
MUST_USE Status script_process_greet(ScriptProcess *process, uint64_t until_us, Error *err);

/* Sends process->out and empties it. False if the process is LOST now. */
MUST_USE bool script_process_send(ScriptProcess *process, uint64_t until_us);

/* Waits for a frame, until the system's monotonic clock shows 'until_us'. With all events but
 * PROCESS_FRAME the process is LOST. The payload is valid until the next call. */
MUST_USE ProcessEvent script_process_receive(ScriptProcess *process, uint64_t until_us,
                                             FrameType *type, Slice *payload);

/* False for an idle process that has died, or says something although nobody asked. */
bool script_process_is_quiet(const ScriptProcess *process);

uint64_t script_process_cpu_us(const ScriptProcess *process);
uint64_t script_process_memory_bytes(const ScriptProcess *process);
