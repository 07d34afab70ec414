/* commands.c - see commands.h. */
#include "cli/commands.h"

#include "base/slice.h"
#include "cli/options.h"

#include <string.h>

static const Command *const COMMANDS[] = {
#define COMMAND_ROW(command) &(command),
#include "cli/commands.def"
#undef COMMAND_ROW
};

size_t commands_count(void)
{
    return ARRAY_COUNT(COMMANDS);
}

const Command *commands_at(size_t index)
{
    ASSERT(index < ARRAY_COUNT(COMMANDS));
    return COMMANDS[index];
}

const Command *commands_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(COMMANDS); i++) {
        if (strcmp(COMMANDS[i]->name, name) == 0)
            return COMMANDS[i];
    }
    return NULL;
}

void commands_print_unknown(const char *name, FILE *to)
{
    const char *names[ARRAY_COUNT(COMMANDS) + 1] = {NULL};
    for (size_t i = 0; i < ARRAY_COUNT(COMMANDS); i++)
        names[i] = COMMANDS[i]->name;
    const char *nearest = options_nearest(name, names);
    (void)fprintf(to, "orrery: there is no command '%.80s'; %s%s%s\n", name,
                  nearest == NULL ? "'orrery help' lists them" : "did you mean '",
                  nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
}
