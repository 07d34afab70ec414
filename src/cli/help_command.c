/* help_command.c - see help_command.h. */
#include "cli/help_command.h"

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

typedef struct HelpArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/help_options.def"
#undef ARGUMENT_ROW
} HelpArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(HelpArguments, field, name, kind, placeholder, fallback, help),
#include "cli/help_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"help", ROWS, ARRAY_COUNT(ROWS)};

const Command HELP_COMMAND = {
    .name = "help",
    .summary = "list the commands, or explain one: orrery help COMMAND",
    .usage = "help [COMMAND]\n"
             "help --man\n"
             "help --completion SHELL",
    .about = "Lists the commands, or explains one of them with all its options, as 'orrery COMMAND "
             "--help' does.",
    .options = &TABLE,
    .operands = "COMMAND",
    .notes = "The exit code is 0, or 2 if there is no such command.",
    .examples = "orrery help serve\n"
                "orrery help --man | man -l -\n"
                "source <(orrery help --completion bash)\n",
    .main = help_main,
};

const Command VERSION_COMMAND = {
    .name = "version",
    .summary = "print the version",
    .usage = "version",
    .about = "Prints the version of the program.",
    .main = version_main,
};

void help_print_commands(FILE *to)
{
    (void)fprintf(to,
                  "Orrery %s: a partitioned JSON document database that speaks the REST protocol\n"
                  "of Azure Cosmos DB for NoSQL.\n\n"
                  "Usage: orrery COMMAND [options]\n\n"
                  "Commands:\n",
                  ORRERY_VERSION);
    for (size_t i = 0; i < commands_count(); i++)
        (void)fprintf(to, "  %-10s %s\n", commands_at(i)->name, commands_at(i)->summary);
    (void)fprintf(to, "\n'orrery help COMMAND' explains a command and lists its options.\n\n"
                      "Examples:\n"
                      "  orrery serve --data ./data --port 8081\n"
                      "  orrery help serve\n");
}

static int explain(const char *name)
{
    const Command *command = commands_find(name);
    if (command == NULL) {
        commands_print_unknown(name, stderr);
        return EXIT_USAGE;
    }
    command_print_help(command, stdout);
    return EXIT_SUCCESS;
}

/* What does not go together. */
static Status check(const HelpArguments *a, const ArgumentList *names, Error *err)
{
    size_t asked = (a->man ? 1 : 0) + (a->completion != NULL ? 1 : 0) + names->count;
    if (asked > 1)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "give one COMMAND, or --man, or --completion");
    if (a->completion != NULL && strcmp(a->completion, "bash") != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--completion must be bash, not '%.80s'", a->completion);
    return STATUS_OK;
}

int help_main(int argc, char *const *argv, char *const *environment)
{
    (void)environment;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    HelpArguments a = {0};
    ArgumentList names = {0};
    bool help = false;
    Error err;
    Status status = arguments_parse(&TABLE, &arena, argc, argv, &a, &names, &help, &err);
    if (status == STATUS_OK && help)
        return explain("help");
    if (status == STATUS_OK)
        status = check(&a, &names, &err);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_USAGE;
    }
    if (names.count > 0)
        return explain(names.items[0]);
    if (a.man)
        manual_page_print(stdout);
    else if (a.completion != NULL)
        completion_print_bash(stdout);
    else
        help_print_commands(stdout);
    /* What is installed is made of this. */
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "orrery: cannot write the text: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

int version_main(int argc, char *const *argv, char *const *environment)
{
    (void)environment;
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0))
        return explain("version");
    (void)printf("orrery %s\n", ORRERY_VERSION);
    return EXIT_SUCCESS;
}
