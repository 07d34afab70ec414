/* manual_page.h - the manual page orrery(1), from commands.def and the tables of the commands. */
#pragma once

#include <stdio.h>

/* In the language of the man macros of roff. */
void manual_page_print(FILE *to);
