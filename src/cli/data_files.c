/* data_files.c - see data_files.h. */
#include "cli/data_files.h"

#include "store/store.h"

#define NAME_true(name) name,
#define NAME_false(name)

const char *const DATA_FILES[] = {
#define DATA_FILE(name, is_sent) name,
#include "cli/data_files.def"
#undef DATA_FILE
    NULL};

const char *const DATA_FILES_SENT[] = {
#define DATA_FILE(name, is_sent) NAME_##is_sent(name)
#include "cli/data_files.def"
#undef DATA_FILE
    NULL};

enum { NAME_LEN_MAX = 100 };

/* What the store's files are called. Nothing with a slash, nothing hidden. */
static bool is_plain(Slice name)
{
    bool is_good = name.len > 0 && name.len <= NAME_LEN_MAX && name.ptr[0] != '.' &&
                   !slice_equal(name, SLICE(STORE_INCOMPLETE_FILE));
    for (size_t i = 0; is_good && i < name.len; i++) {
        char c = name.ptr[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_';
    }
    return is_good;
}

bool data_file_is_known(Slice name)
{
    Slice folder = SLICE("store/");
    if (slice_starts_with(name, folder))
        return is_plain(slice_from(name, folder.len));
    for (size_t i = 0; DATA_FILES[i] != NULL; i++) {
        if (slice_equal(name, slice_from_cstr(DATA_FILES[i])))
            return true;
    }
    return false;
}
