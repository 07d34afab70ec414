/* entry_format_fuzz.c - any bytes as an entry: what is read can be written, and is read again the
 * same. */
#include "store/replicated/entry_format_int.h"

#include "base/mem.h"

static bool join(Slice existing, const Slice *operands, size_t count, bool is_partial, Buf *out)
{
    (void)is_partial;
    buf_slice(out, existing);
    for (size_t i = 0; i < count; i++)
        buf_slice(out, operands[i]);
    return true;
}

static bool is_empty(Slice value)
{
    return value.len == 0;
}

static const StoreMerge KIND = {.kind = '~', .merge = join, .is_empty = is_empty};

enum { SPACE = 9 };

typedef struct Contents {
    Tree tree;
    Buf merges;
} Contents;

static void contents_done(Contents *contents)
{
    tree_done(&contents->tree);
    buf_done(&contents->merges);
}
DEFINE_AUTO_VALUE(Contents, contents_done)

static Status read_into(Slice bytes, Contents *contents)
{
    Error err;
    *contents = (Contents){.tree = {0}};
    buf_init(&contents->merges, SIZE_MAX);
    static const EntryKnown known = {JOURNAL_FORMAT, &KIND};
    Status status = entry_read(bytes, &known, SPACE, &contents->tree, &contents->merges, &err);
    ASSERT(status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_NOT_IMPLEMENTED);
    return status;
}

static void compare(void *ctx, TreeEntry *entry)
{
    const TreeEntry *found = tree_find(ctx, tree_entry_key(entry));
    ASSERT(found != NULL);
    ASSERT(found->deleted == entry->deleted);
    ASSERT(slice_equal(tree_entry_value(found), tree_entry_value(entry)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(contents_done) Contents contents;
    if (read_into(slice_make(data, size), &contents) != STATUS_OK)
        return 0;
    EntryWriter *writer = MEM_NEW(EntryWriter);
    entry_writer_init(writer);
    EngineWrites writes = {contents.tree, buf_view(&contents.merges)};
    entry_add(writer, &writes);
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, JOURNAL_ENTRY_BYTES_MAX);
    Error err;
    Status status = entry_finish(writer, JOURNAL_FORMAT, &bytes, &err);
    entry_writer_done(writer);
    mem_free(writer);
    ASSERT(status == STATUS_OK);

    AUTO(contents_done) Contents again;
    status = read_into(buf_view(&bytes), &again);
    ASSERT(status == STATUS_OK);
    ASSERT(again.tree.count == contents.tree.count);
    tree_each(&again.tree, compare, &contents.tree);
    ASSERT(slice_equal(buf_view(&again.merges), buf_view(&contents.merges)));
    return 0;
}
