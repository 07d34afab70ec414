/* main.c - the command line: finds the command and runs it. */
#include "base/slice.h"
#include "cli/advise.h"
#include "cli/backup.h"
#include "cli/check.h"
#include "cli/export_command.h"
#include "cli/import_command.h"
#include "cli/key_command.h"
#include "cli/options.h"
#include "cli/restore.h"
#include "cli/serve.h"
#include "cli/snapshot_command.h"
#include "cli/top.h"
#include "script/script_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

/* jemalloc looks for this name. Freed memory goes back to the system after one second, not ten: a
 * page of a query runs on any free thread, so soon every thread's part of the heap has held a large
 * one. The server starts the background thread that does it even while it is idle
 * (start_heap_thread). */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf =
    "max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0";

static void print_help(FILE *to)
{
    (void)fprintf(to,
                  "Orrery %s: a partitioned JSON document database that speaks the REST protocol\n"
                  "of Azure Cosmos DB for NoSQL.\n\n"
                  "Usage: orrery COMMAND [options]\n\n"
                  "Commands:\n"
                  "  serve      run the server ('orrery serve --help' lists its options)\n"
                  "  top        show live how much partitions and keys use\n"
                  "  advise     find the partition key that a container should have\n"
                  "  import     write the items in files to a container\n"
                  "  export     write the items of a container to a file\n"
                  "  check      verify that a data folder is consistent\n"
                  "  key        show and change the keys of the account\n"
                  "  backup     copy the data of a server, running or not\n"
                  "  restore    make a data folder of a backup\n"
                  "  snapshot   save the state of a database, and restore it in milliseconds\n"
                  "  version    print the version\n"
                  "  help       print this text\n\n"
                  "Example:\n"
                  "  orrery serve --data ./data --port 8081\n",
                  ORRERY_VERSION);
}

int main(int argc, char **argv)
{
    Slice command = argc < 2 ? SLICE("help") : slice_from_cstr(argv[1]);
    if (slice_equal(command, SLICE("serve")))
        return serve_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("check")))
        return check_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("key")))
        return key_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("top")))
        return top_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("backup")))
        return backup_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("restore")))
        return restore_main(argc - 2, argv + 2);
    if (slice_equal(command, SLICE("advise")))
        return advise_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("import")))
        return import_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("export")))
        return export_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("snapshot")))
        return snapshot_main(argc - 2, argv + 2, environ);
    if (slice_equal(command, SLICE("script-worker"))) /* not for people, so not in the help */
        return script_worker_main();
    if (slice_equal(command, SLICE("version")) || slice_equal(command, SLICE("--version"))) {
        (void)printf("orrery %s\n", ORRERY_VERSION);
        return EXIT_SUCCESS;
    }
    if (slice_equal(command, SLICE("help")) || slice_equal(command, SLICE("--help")) ||
        slice_equal(command, SLICE("-h"))) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_SUCCESS;
    }
    static const char *const commands[] = {"serve",   "top",  "advise", "import",  "export",
                                           "check",   "key",  "backup", "restore", "snapshot",
                                           "version", "help", NULL};
    const char *nearest = options_nearest(argv[1], commands);
    (void)fprintf(stderr, "orrery: there is no command '%s'; %s%s%s\n", argv[1],
                  nearest == NULL ? "'orrery help' lists them" : "did you mean '",
                  nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
    return EXIT_USAGE;
}
