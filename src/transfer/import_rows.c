/* import_rows.c - from files to items; see import_int.h. */
#include "base/mem.h"
#include "base/murmur.h"
#include "transfer/import_int.h"

enum { ROWS_PER_TURN = 500 }; /* answers are looked at in between */

/* Larger items go alone: with what bulk adds they could exceed the 2 MB of a body. */
#define BULK_ITEM_BYTES_MAX ((size_t)1 << 20)

static void list_text(Import *import)
{
    const ImportOptions *o = import->options;
    InputFile *file = ARENA_NEW(&import->arena, InputFile);
    *file = (InputFile){
        .path = o->text_name, .bytes = o->text.len, .begun = o->text, .is_only_begun = true};
    import->files = (InputList){.files = file, .count = 1, .bytes = o->text.len};
}

static Status list_files(Import *import, Error *err)
{
    const ImportOptions *o = import->options;
    TRY(input_list(&import->arena, o->sources, o->source_count, &import->files, err));
    for (size_t i = 0; i < import->files.count; i++) {
        if (strcmp(import->files.files[i].path, "-") != 0)
            continue;
        import->files.files[i].begun = o->stdin_begun;
        break; /* a second "-" has what follows */
    }
    return STATUS_OK;
}

Status import_rows_open(Import *import, Error *err)
{
    const ImportOptions *o = import->options;
    if (o->text.ptr != NULL)
        list_text(import);
    else
        TRY(list_files(import, err));
    TRY(row_mapping_parse(&import->arena, o->sets, o->set_count, o->id_from, &import->mapping,
                          err));
    arena_init(&import->row_arena, 64 << 10);
    buf_init(&import->row_text, 2 * ROW_BYTES_MAX);
    return STATUS_OK;
}

void import_rows_close(Import *import)
{
    input_close(import->input);
    row_reader_free(import->reader);
    arena_done(&import->row_arena);
    buf_done(&import->row_text);
    mem_free(import->held);
}

/* ---- files ---- */

static const char *file_path(const Import *import)
{
    return import->files.files[import->file].path;
}

static void next_file(Import *import)
{
    input_close(TAKE(import->input));
    row_reader_free(TAKE(import->reader));
    import->files_done += import->files.files[import->file].bytes;
    import->file++;
    import->row = 0;
    import->input_ended = false;
}

static WindowRow place_of(const Import *import, uint64_t line)
{
    return (WindowRow){
        .file = (uint32_t)import->file,
        .number = import->row,
        .line = line,
        .position =
            import->files_done + (import->input == NULL ? 0 : input_position(import->input)),
    };
}

static void reject(Import *import, uint64_t line, const char *reason, Slice text)
{
    WindowRow row = place_of(import, line);
    row_window_rejected(import->window, row_window_add(import->window, &row), reason, text);
}

/* A file that cannot be read is one reject, and the next file follows. */
static void give_up_file(Import *import, const Error *why)
{
    import->row++;
    reject(import, 0, why->message, SLICE_EMPTY);
    next_file(import);
}

/* Decides the format as soon as the first bytes tell. */
RowReader *import_open_reader(const ImportOptions *o, const char *path, Slice first, bool is_last)
{
    RowOptions options = {.format = o->format, .csv = o->csv};
    RowFormat named = row_format_of_name(slice_from_cstr(path), &options.csv);
    bool is_enough =
        is_last || first.len >= ROW_FORMAT_PEEK_BYTES || slice_find(first, '\n') < first.len;
    if (options.format == ROW_FORMAT_AUTO)
        options.format = named;
    if (options.format == ROW_FORMAT_AUTO && is_enough)
        options.format = row_format_of_bytes(first);
    return options.format == ROW_FORMAT_AUTO ? NULL : row_reader_new(&options);
}

/* ---- rows ---- */

static ImportItem *make_item(const Import *import, Slice epk, Slice key_text, Slice id, Slice text)
{
    size_t bytes = sizeof(ImportItem) + epk.len + key_text.len + id.len + text.len;
    /* Not mem_alloc, which would zero what is overwritten at once. */
    ImportItem *item = mem_realloc(NULL, bytes);
    *item = (ImportItem){0};
    char *at = (char *)(item + 1);
    const Slice from[] = {epk, key_text, id, text};
    Slice *to[] = {&item->epk, &item->key_text, &item->id, &item->text};
    for (size_t i = 0; i < ARRAY_COUNT(from); i++) {
        if (from[i].len > 0)
            memcpy(at, from[i].ptr, from[i].len);
        *to[i] = slice_make(at, from[i].len);
        at += from[i].len;
    }
    item->bytes = bytes;
    item->stage = import->options->only_changes ? IMPORT_COMPARE : IMPORT_WRITE;
    item->is_single = import->options->no_bulk || text.len > BULK_ITEM_BYTES_MAX ||
                      import->key.kind == PARTITION_NONE;
    return item;
}

/* The key by which the window tells items apart: 0 is none. */
static uint64_t key_hash(Slice key_text, Slice id)
{
    uint64_t parts[4];
    murmur3_128(key_text, parts);
    murmur3_128(id, parts + 2);
    uint64_t hash[2];
    murmur3_128(slice_make(parts, sizeof(parts)), hash);
    return hash[0] == 0 ? 1 : hash[0];
}

/* The text of an item: that of the row, if it stands there as it is. */
static Slice text_of(Import *import, const Row *row, Json item, bool is_changed)
{
    bool is_json = slice_starts_with(row->text, SLICE("{"));
    if (!is_changed && is_json)
        return row->text;
    buf_reset(&import->row_text);
    json_print(item, &import->row_text);
    return buf_view(&import->row_text);
}

static Status take_row(Import *import, const Row *row, Error *err)
{
    char id[ROW_ID_LEN];
    Json item;
    bool is_changed = false;
    Arena *arena = &import->row_arena;
    if (row->error.status != STATUS_OK) {
        *err = row->error;
        return err->status;
    }
    /* It hashes the whole row. */
    bool has_id = json_is(json_get(row->value, SLICE("id")), JSON_STRING);
    if (!has_id)
        row_id_make(slice_from_cstr(file_path(import)), import->row, row->text, id);
    TRY(row_mapping_apply(import->mapping, row->value,
                          has_id ? SLICE_EMPTY : slice_make(id, sizeof(id)), arena, &item,
                          &is_changed, err));
    Slice item_id = json_string(json_get(item, SLICE("id")));
    if (import->options->needs_ids && !has_id && slice_equal(item_id, slice_make(id, sizeof(id))))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "it has no id");
    PartitionKey key;
    Epk epk;
    partition_key_extract(&import->key, item, &key);
    TRY(partition_key_check(&key, err));
    epk_make(import->key.kind, &key, &epk);
    AUTO(buf_done) Buf epk_text, key_text;
    buf_init(&epk_text, 2 * EPK_BYTES_MAX);
    buf_init(&key_text, (size_t)64 << 10);
    container_epk_print(&epk, &epk_text);
    container_key_print(&key, KEY_TEXT_UTF8, &key_text);
    Slice text = text_of(import, row, item, is_changed);
    if (buf_full(&key_text) || (is_changed && buf_full(&import->row_text)))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the item is too large");
    import->held_row = place_of(import, row->line);
    import->held_row.key = key_hash(buf_view(&key_text), item_id);
    if (import->options->has_digest)
        import->held_row.hash = item_hash(item);
    import->held = make_item(import, buf_view(&epk_text), buf_view(&key_text),
                             import->options->only_changes ? item_id : SLICE_EMPTY, text);
    return STATUS_OK;
}

/* Queues the item that is held, unless its older version is still on its way. */
static bool release_held(Import *import)
{
    if (import->held == NULL)
        return true;
    if (row_window_has_key(import->window, import->held_row.key))
        return false;
    import->held->sequence = row_window_add(import->window, &import->held_row);
    import_queue(import, TAKE(import->held));
    return true;
}

/* Rows that an earlier run has finished are skipped. */
static bool is_done_before(const Import *import)
{
    return import->file == import->checkpoint.file && import->row <= import->checkpoint.row;
}

/* Handles a row that was found; its number is 'import->row'. */
static void handle_row(Import *import, const Row *row)
{
    Error err;
    if (take_row(import, row, &err) != STATUS_OK)
        reject(import, row->line, err.message, row->text);
    arena_reset(&import->row_arena);
}

/* Reads more of the file. STATUS_OK with a 'supply' other than SUPPLY_MORE if that has to wait. */
static Status fill(Import *import, Error *err)
{
    InputState state = INPUT_READY;
    TRY(input_fill(import->input, &state, err));
    import->input_ended = state == INPUT_END;
    import->supply = state == INPUT_WAIT ? SUPPLY_WAIT : SUPPLY_MORE;
    return STATUS_OK;
}

/* One step: opens a file, reads more of it, or takes a row. '*is_row' if it was a row. */
static Status step(Import *import, bool *is_row, Error *err)
{
    *is_row = false;
    if (import->input == NULL)
        return input_open(&import->files.files[import->file], &import->input, err);
    if (import->reader == NULL) {
        import->reader = import_open_reader(import->options, file_path(import),
                                            input_bytes(import->input), import->input_ended);
        return import->reader == NULL ? fill(import, err) : STATUS_OK;
    }
    Row row;
    size_t used = 0;
    /* The row that is about to be read may be one of those that are skipped. */
    import->row++;
    bool is_skipped = is_done_before(import);
    import->row--;
    RowResult result = row_reader_next(import->reader, is_skipped ? ROW_SKIP : ROW_PARSE,
                                       input_bytes(import->input), import->input_ended,
                                       &import->row_arena, &used, &row);
    if (result == ROW_READ) {
        import->row++;
        if (!is_skipped)
            handle_row(import, &row);
        *is_row = true;
    }
    input_skip(import->input, used); /* the row was a part of these bytes */
    if (result == ROW_MORE)
        return fill(import, err);
    if (result == ROW_END)
        next_file(import);
    return STATUS_OK;
}

void import_rows_read(Import *import)
{
    import->supply = SUPPLY_MORE;
    for (int rows = 0; rows < ROWS_PER_TURN && import->supply == SUPPLY_MORE;) {
        if (row_window_is_full(import->window) ||
            import->bytes_under_way >= IMPORT_BYTES_UNDER_WAY_MAX || !release_held(import)) {
            import->supply = SUPPLY_FULL;
            break;
        }
        if (import->file == import->files.count) {
            import->supply = SUPPLY_ENDED;
            break;
        }
        if (import->file < import->checkpoint.file) {
            next_file(import);
            continue;
        }
        Error why;
        bool is_row = false;
        if (step(import, &is_row, &why) != STATUS_OK)
            give_up_file(import, &why);
        rows += is_row ? 1 : 0;
    }
}
