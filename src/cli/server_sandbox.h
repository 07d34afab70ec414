/* server_sandbox.h - the server gives up what it never needs, before it serves anybody.
 *
 * After server_sandbox_enter the process, and every process that it starts, can write only to the
 * files and folders that were named, and start no program but its own (Landlock); cannot gain
 * rights from a program (no_new_privs); cannot use the parts of the kernel that a server has no
 * business with, such as mounts, modules, tracing, and namespaces (seccomp); and leaves no dump of
 * its memory behind when it ends badly. Reading is not restricted: certificates are replaced by new
 * files in folders that cannot be known, and libraries are loaded when they are first needed.
 *
 * A kernel, or a container, that does not offer one of these leaves it out.
 *
 * Threads    The calling thread and those it starts from then on. To be called before others exist.
 */
#pragma once

#include "base/defs.h"

typedef struct SandboxState {
    bool no_new_privs;
    bool seccomp;
    int landlock;       /* version of the kernel's interface; 0 if it is off */
    int landlock_error; /* why it is off: an errno, or 0 if the kernel's version is too old */
    int seccomp_error;
    int threads_before; /* besides the caller: those are not restricted by Landlock; 0 is right */
} SandboxState;

/* 'writable' are paths of files and folders, ended by NULL; those that do not exist are left out. A
 * path that is a link stands for what it leads to. */
SandboxState server_sandbox_enter(const char *const *writable);
