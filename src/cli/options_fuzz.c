/* options_fuzz.c - any arguments, environment and configuration file: understood or refused.
 *
 * An input is three pieces with an empty line between them: arguments, environment, file.
 */
#include "cli/options.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 32 };

/* The lines up to an empty one; what could name a file of this machine is left out. */
static size_t take_words(Arena *arena, Slice *rest, char *words[WORDS_MAX + 3])
{
    size_t count = 0;
    while (rest->ptr != NULL && count < WORDS_MAX) {
        Slice line = slice_cut(rest, '\n');
        if (line.len == 0)
            break;
        char *word = arena_cstr(arena, line);
        bool names_file = strcasestr(word, "config") != NULL || strcasestr(word, "file") != NULL ||
                          strcasestr(word, "charges") != NULL;
        if (!names_file)
            words[count++] = word;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice rest = slice_make(data, size);
    char *arguments[WORDS_MAX + 3];
    char *environment[WORDS_MAX + 3];
    size_t count = take_words(&arena, &rest, arguments);
    environment[take_words(&arena, &rest, environment)] = NULL;
    int fd = memfd_create("config", MFD_CLOEXEC);
    ASSERT(fd >= 0);
    bool has_file = rest.len > 0 && memmem(rest.ptr, rest.len, "key-file", 8) == NULL;
    if (has_file) {
        ssize_t written = write(fd, rest.ptr, rest.len);
        ASSERT(written == (ssize_t)rest.len);
        static char option[] = "--config";
        arguments[count++] = option;
        Slice path = arena_format(&arena, "/proc/self/fd/%d", fd);
        arguments[count++] = arena_cstr(&arena, path);
    }
    ServeOptions options;
    bool help = false;
    Error err = {0};
    Status status =
        options_parse(&arena, (int)count, arguments, environment, &options, &help, &err);
    if (status != STATUS_OK) {
        ASSERT(err.message[0] != '\0');
    } else if (!help) {
        ASSERT(options.threads > 0);
        ASSERT(options.connections_max > 0);
        ASSERT(options.data[0] != '\0');
        ASSERT((options.cert == NULL) == (options.cert_key == NULL));
    }
    (void)close(fd);
    return 0;
}
