/* main.c - the command line: finds the command and runs it. */
#include "cli/commands.h"
#include "cli/help_command.h"
#include "script/script_worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

/* jemalloc looks for this name. Freed memory goes back to the system after one second, not ten: a
 * page of a query runs on any free thread, so soon every thread's part of the heap has held a large
 * one. The server starts the background thread that does it even while it is idle
 * (start_heap_thread). */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf =
    "max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0";

int main(int argc, char **argv)
{
    if (argc < 2) {
        help_print_commands(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "script-worker") == 0) /* not for people, so not in the help */
        return script_worker_main();
    if (strcmp(name, "--version") == 0)
        name = "version";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    const Command *command = commands_find(name);
    if (command != NULL)
        return command->main(argc - 2, argv + 2, environ);
    commands_print_unknown(name, stderr);
    return EXIT_USAGE;
}
