/* completion.c - see completion.h.
 *
 * The script has one function. Bash cuts "--name=value" into three words, so the option of a value
 * is the word before it, or the one before "=". Everything printed here comes from tables of this
 * program, whose names and words have no character that a shell would understand.
 */
#include "cli/completion.h"

#include "base/slice.h"
#include "cli/commands.h"

#include <string.h>

const CompletionChoice COMPLETION_CHOICES[] = {
    {"completion", "bash"},
    {"compress", "auto none gzip zstd"},
    {"consistency", "Strong BoundedStaleness Session ConsistentPrefix Eventual"},
    {"durability", "sync relaxed"},
    {"format", "auto jsonl json csv"},
    {"log-level", "error warn info debug"},
    {"merge", "auto always never"},
};
const size_t COMPLETION_CHOICE_COUNT = ARRAY_COUNT(COMPLETION_CHOICES);

static void print_commands(FILE *to)
{
    for (size_t i = 0; i < commands_count(); i++)
        (void)fprintf(to, "%s%s", i == 0 ? "" : " ", commands_at(i)->name);
}

static const char *choices_of(const char *option)
{
    for (size_t i = 0; i < COMPLETION_CHOICE_COUNT; i++) {
        if (strcmp(COMPLETION_CHOICES[i].option, option) == 0)
            return COMPLETION_CHOICES[i].words;
    }
    return NULL;
}

/* What a placeholder such as FILE stands for, as the call that offers it. */
static void print_offer(const char *placeholder, FILE *to)
{
    bool is_folder = strcmp(placeholder, "DIR") == 0 || strcmp(placeholder, "DATA") == 0;
    if (strcmp(placeholder, "FILE") == 0) {
        (void)fprintf(to, "_orrery_paths -f");
    } else if (is_folder) {
        (void)fprintf(to, "_orrery_paths -d");
    } else if (strcmp(placeholder, "COMMAND") == 0) {
        (void)fprintf(to, "_orrery_words '");
        print_commands(to);
        (void)fprintf(to, "'");
    } else if (strchr(placeholder, '|') != NULL) {
        (void)fprintf(to, "_orrery_words '");
        for (const char *c = placeholder; *c != '\0'; c++)
            (void)fputc(*c == '|' ? ' ' : *c, to);
        (void)fprintf(to, "'");
    } else {
        (void)fprintf(to, ":"); /* anything: nothing can be offered */
    }
}

/* The values of the options of a command. */
static void print_values(const Command *command, FILE *to)
{
    for (size_t i = 0; command->options != NULL && i < command->options->count; i++) {
        const ArgumentRow *row = &command->options->rows[i];
        const char *choices = choices_of(row->name);
        if (row->kind == ARGUMENT_FLAG)
            continue;
        (void)fprintf(to, "    '%s --%s') ", command->name, row->name);
        if (choices != NULL)
            (void)fprintf(to, "_orrery_words '%s'", choices);
        else
            print_offer(row->placeholder, to);
        (void)fprintf(to, "; return ;;\n");
    }
}

/* The words of the first list of a command. */
static void print_words(const Command *command, FILE *to)
{
    CommandWord word;
    const char *heading = NULL;
    (void)fprintf(to, "_orrery_words '");
    for (size_t i = 0; command->word(i, &word); i++) {
        heading = heading == NULL ? word.heading : heading;
        if (strcmp(word.heading, heading) == 0)
            (void)fprintf(to, "%s%s", i == 0 ? "" : " ", word.word);
    }
    (void)fprintf(to, "'");
}

static void print_options(const Command *command, FILE *to)
{
    (void)fprintf(to, "    %s)\n        if [[ $cur = -* ]]; then _orrery_words '", command->name);
    for (size_t i = 0; command->options != NULL && i < command->options->count; i++)
        (void)fprintf(to, "--%s ", command->options->rows[i].name);
    (void)fprintf(to, "--help'; else ");
    if (command->operands == NULL && command->word != NULL)
        print_words(command, to);
    else
        print_offer(command->operands == NULL ? "" : command->operands, to);
    (void)fprintf(to, "; fi ;;\n");
}

void completion_print_bash(FILE *to)
{
    (void)fprintf(to,
                  "# Completion of orrery for bash, made by 'orrery help --completion bash'.\n\n"
                  "_orrery_words()\n{\n"
                  "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n}\n\n"
                  "_orrery_paths()\n{\n"
                  "    compopt -o filenames 2>/dev/null\n"
                  "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n}\n\n"
                  "_orrery()\n{\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} option=\n"
                  "    COMPREPLY=()\n"
                  "    if ((COMP_CWORD == 1)); then\n"
                  "        _orrery_words '");
    print_commands(to);
    (void)fprintf(to, "'\n"
                      "        return\n"
                      "    fi\n"
                      "    # --name=value is three words.\n"
                      "    option=${COMP_WORDS[COMP_CWORD - 1]}\n"
                      "    if [[ $option = '=' ]]; then\n"
                      "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
                      "    elif [[ $cur = '=' ]]; then\n"
                      "        cur=\n"
                      "    fi\n"
                      "    case \"$command $option\" in\n");
    for (size_t i = 0; i < commands_count(); i++)
        print_values(commands_at(i), to);
    (void)fprintf(to, "    esac\n    case $command in\n");
    for (size_t i = 0; i < commands_count(); i++)
        print_options(commands_at(i), to);
    (void)fprintf(to, "    esac\n}\n\ncomplete -F _orrery orrery\n");
}
