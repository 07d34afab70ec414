/* manual_page.c - see manual_page.h.
 *
 * Text goes through print_text, which escapes what roff would understand: a backslash, a hyphen
 * (that must stay one when it is copied), quotes, and a dot or an apostrophe at the beginning of a
 * line. Nothing is an argument of a macro, so that no text needs a second kind of quotes.
 */
#include "cli/manual_page.h"

#include "base/slice.h"
#include "cli/commands.h"

#include <string.h>

static void print_text(Slice text, FILE *to)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool begins_line = i == 0 || text.ptr[i - 1] == '\n';
        if (begins_line && (c == '.' || c == '\''))
            (void)fprintf(to, "\\&");
        switch (c) {
        case '\\':
            (void)fprintf(to, "\\e");
            break;
        case '-':
            (void)fprintf(to, "\\-");
            break;
        case '\'':
            (void)fprintf(to, "\\(aq");
            break;
        case '`':
            (void)fprintf(to, "\\(ga");
            break;
        case '^':
            (void)fprintf(to, "\\(ha");
            break;
        case '~':
            (void)fprintf(to, "\\(ti");
            break;
        default:
            (void)fputc(c, to);
        }
    }
}

static void print_cstr(const char *text, FILE *to)
{
    print_text(slice_from_cstr(text), to);
}

/* Empty lines separate paragraphs. */
static void print_paragraphs(const char *text, FILE *to)
{
    Slice rest = slice_from_cstr(text);
    while (rest.ptr != NULL) {
        Slice line = slice_cut(&rest, '\n');
        if (line.len == 0)
            (void)fprintf(to, ".PP");
        else
            print_text(line, to);
        (void)fprintf(to, "\n");
    }
}

/* Lines as they are. */
static void print_literally(const char *text, const char *prefix, FILE *to)
{
    Slice rest = slice_from_cstr(text);
    (void)fprintf(to, ".PP\n.RS 4\n.nf\n");
    while (rest.len > 0) {
        Slice line = slice_cut(&rest, '\n');
        print_cstr(prefix, to);
        print_text(line, to);
        (void)fprintf(to, "\n");
    }
    (void)fprintf(to, ".fi\n.RE\n");
}

static void print_option(const ArgumentRow *row, FILE *to)
{
    const char *fallback = argument_default(row);
    (void)fprintf(to, ".TP\n\\fB\\-\\-");
    print_cstr(row->name, to);
    (void)fprintf(to, "\\fR");
    if (row->placeholder[0] != '\0') {
        (void)fprintf(to, " \\fI");
        print_cstr(row->placeholder, to);
        (void)fprintf(to, "\\fR");
    }
    (void)fprintf(to, "\n");
    print_cstr(row->help, to);
    if (fallback != NULL) {
        (void)fprintf(to, " (");
        print_cstr(fallback, to);
        (void)fprintf(to, ")");
    }
    (void)fprintf(to, "\n");
}

static void print_words(const Command *command, FILE *to)
{
    CommandWord word;
    const char *heading = NULL;
    for (size_t i = 0; command->word != NULL && command->word(i, &word); i++) {
        if (heading == NULL || strcmp(word.heading, heading) != 0) {
            (void)fprintf(to, ".PP\n");
            print_cstr(word.heading, to);
            (void)fprintf(to, ":\n");
        }
        heading = word.heading;
        (void)fprintf(to, ".TP\n\\fB");
        print_cstr(word.word, to);
        (void)fprintf(to, "\\fR\n");
        print_cstr(word.help, to);
        (void)fprintf(to, "\n");
    }
    if (heading != NULL)
        (void)fprintf(to, ".PP\nOptions:\n");
}

static void print_command(const Command *command, FILE *to)
{
    (void)fprintf(to, ".SS orrery %s\n", command->name);
    print_paragraphs(command->about, to);
    print_literally(command->usage, "orrery ", to);
    print_words(command, to);
    for (size_t i = 0; command->options != NULL && i < command->options->count; i++)
        print_option(&command->options->rows[i], to);
    if (command->notes != NULL) {
        (void)fprintf(to, ".PP\n");
        print_paragraphs(command->notes, to);
    }
    if (command->examples != NULL) {
        (void)fprintf(to, ".PP\nExamples:\n");
        print_literally(command->examples, "", to);
    }
}

void manual_page_print(FILE *to)
{
    (void)fprintf(to,
                  ".\\\" Made by 'orrery help --man'.\n"
                  ".TH ORRERY 1 \"\" \"Orrery %s\" \"Orrery Manual\"\n"
                  ".SH NAME\n"
                  "orrery \\- JSON document database that speaks the protocol of Azure Cosmos DB "
                  "for NoSQL\n"
                  ".SH SYNOPSIS\n"
                  "\\fBorrery\\fR \\fICOMMAND\\fR [options]\n"
                  ".SH DESCRIPTION\n"
                  "Orrery is a partitioned JSON document database in one process, with its data in "
                  "one folder. Programs use it with the SDKs of Azure Cosmos DB for NoSQL, in "
                  "gateway mode.\n"
                  ".PP\n"
                  "The commands are:\n",
                  ORRERY_VERSION);
    for (size_t i = 0; i < commands_count(); i++) {
        (void)fprintf(to, ".TP\n\\fB%s\\fR\n", commands_at(i)->name);
        print_cstr(commands_at(i)->summary, to);
        (void)fprintf(to, "\n");
    }
    (void)fprintf(to, ".PP\n"
                      "Below, a default is in parentheses after the description of an option.\n"
                      ".SH COMMANDS\n");
    for (size_t i = 0; i < commands_count(); i++)
        print_command(commands_at(i), to);
    (void)fprintf(to, ".SH ENVIRONMENT\n"
                      ".TP\n\\fBORRERY_\\fR\\fINAME\\fR\n"
                      "Sets an option of \\fBorrery serve\\fR, with _ for \\-. "
                      "\\fBORRERY_KEY\\fR is also read by all commands that ask a server.\n"
                      ".SH FILES\n"
                      "These are of the Debian package.\n"
                      ".TP\n\\fI/etc/orrery/orrery.conf\\fR\n"
                      "options of the service, as lines of \\(dqname = value\\(dq\n"
                      ".TP\n\\fI/etc/orrery/key\\fR\n"
                      "its master key, which was made when the package was installed\n"
                      ".TP\n\\fI/var/lib/orrery\\fR\n"
                      "its data\n"
                      ".SH EXIT STATUS\n"
                      "0 on success, 1 if a command failed, 2 if it was called in a wrong way.\n"
                      ".SH SEE ALSO\n"
                      "\\fBsystemctl\\fR(1), \\fBjournalctl\\fR(1)\n");
}
