/* definition_conflict.c - conflictResolutionPolicy. */
#include "catalog/definition_int.h"

enum { CONFLICT_LAST_WRITER, CONFLICT_CUSTOM };
static const Slice CONFLICT_MODES[] = {SLICE_INIT("LastWriterWins"), SLICE_INIT("Custom")};

Status definition_check_conflict_resolution(Arena *arena, Json in, Json *out, Error *err)
{
    const char *what = "conflictResolutionPolicy";
    TRY(body_want_object(in, what, err));
    size_t mode;
    Slice path, procedure;
    TRY(body_read_word(in, SLICE("mode"), what, WORDS(CONFLICT_MODES), CONFLICT_LAST_WRITER, &mode,
                       err));
    TRY(body_read_text(in, SLICE("conflictResolutionPath"), what, SLICE_EMPTY, &path, err));
    TRY(body_read_text(in, SLICE("conflictResolutionProcedure"), what, SLICE_EMPTY, &procedure,
                       err));
    if (mode == CONFLICT_LAST_WRITER && procedure.len > 0)
        return REFUSE(err, "LastWriterWins conflict resolution mode should not have conflict "
                           "resolution procedure set.");
    if (mode == CONFLICT_CUSTOM && path.len > 0)
        return REFUSE(err, "Custom conflict resolution mode should not have conflict resolution "
                           "path set.");
    PropertyPath parsed;
    size_t position;
    bool is_property = property_path_parse(arena, path, &parsed, &position) && parsed.count == 1;
    if (mode == CONFLICT_LAST_WRITER && path.len > 0 && !is_property)
        return REFUSE(err,
                      "Invalid path '%.*s' for last writer wins conflict resolution. Name a "
                      "property of the item itself, like '/version'.",
                      SHOWN(path));
    if (mode == CONFLICT_LAST_WRITER && path.len == 0)
        path = SLICE("/_ts");

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("mode"), CONFLICT_MODES[mode]);
    body_add_text(&b, SLICE("conflictResolutionPath"), path);
    body_add_text(&b, SLICE("conflictResolutionProcedure"), procedure);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}
