/* commands.h - the list of all commands. */
#pragma once

#include "cli/command.h"

#define COMMAND_ROW(command) extern const Command command;
#include "cli/commands.def"
#undef COMMAND_ROW

size_t commands_count(void);
const Command *commands_at(size_t index);

/* NULL if there is no command of that name. */
const Command *commands_find(const char *name);

/* Prints that there is no such command, with a hint. */
void commands_print_unknown(const char *name, FILE *to);
