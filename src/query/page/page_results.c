/* page_results.c - the rows of a page, printed until it is full. */
#include "query/page/page_int.h"

enum { CLOCK_RESULTS = 64 }; /* between two looks at the clock */

static Status too_large(Error *err)
{
    return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                     "A result of the query is larger than a page may be.");
}

static Status print_row(const PageResults *results, Run *run, const Item *item, const Value *row)
{
    bool is_item = item != NULL && row->type == JSON_OBJECT && row->json.at != NULL &&
                   row->json.at == item->document.at;
    if (is_item) {
        item_print(results->request->options->schema, item, results->text);
        return STATUS_OK;
    }
    Json json = value_json(run->scratch, run->scratch, row);
    if (json.at == NULL && row->type == JSON_STRING) /* more than JSON_BUILD_BYTES_MAX */
        return too_large(run->err);
    json_print(json, results->text);
    return STATUS_OK;
}

static bool is_full(const PageResults *results)
{
    size_t count = results->out->count;
    return count >= results->request->options->items_max ||
           (count > 0 && count % CLOCK_RESULTS == 0 && page_request_is_late(results->request));
}

static bool fits(const PageResults *results)
{
    size_t bytes = results->text->len - results->text_before;
    bool is_within = bytes <= results->request->options->bytes_max || results->out->count == 0;
    return is_within && !buf_full(results->text);
}

static void cut_text(PageResults *results, size_t len)
{
    ASSERT(len >= results->text_before);
    results->text->len = len;
    results->text->full = false;
}

Status page_results_take(void *context, Run *run, const Value *row, RowAnswer *answer)
{
    Page *page = context;
    PageResults *results = &page->results;
    const PageCursor *cursor = &page->reader.cursor;
    if (is_full(results)) {
        *answer = ROW_REFUSED;
        return STATUS_OK;
    }
    size_t before = results->text->len;
    if (results->out->count > 0)
        buf_byte(results->text, ',');
    meter_begin(&results->printing);
    TRY(print_row(results, run, cursor->has_item ? &cursor->current->item : NULL, row));
    meter_end(&results->printing, 0);
    if (!fits(results)) {
        if (results->out->count == 0)
            return too_large(run->err);
        cut_text(results, before);
        *answer = ROW_REFUSED;
        return STATUS_OK;
    }
    results->out->count++;
    page_work_add_result(&page->work,
                         cursor->has_item ? cursor->current->target_index : PAGE_ALL_TARGETS,
                         results->text->len - before);
    return run_charge_value(run, row);
}

void page_results_again(void *context)
{
    Page *page = context;
    cut_text(&page->results, page->results.text_before);
    page->results.out->count = 0;
    page_work_clear_results(&page->work);
}
