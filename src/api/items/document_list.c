/* document_list.c - lists of items, page by page, on a worker.
 *
 * The range of EPKs that is asked for is walked over the physical partitions that serve it, in
 * order. A page ends when it has enough items or bytes, or when it has looked at enough entries
 * (I5): items that have expired take time too. So a page may be empty, with a token
 * (document_position_int.h) for the next one. Items that were not changed in between are neither
 * lost nor repeated. A page has items of one node of a cluster: it ends before a range of another
 * one, to which the next page goes.
 */
#include "api/core/throttle_int.h"
#include "api/items/document_handlers_int.h"
#include "api/items/document_page_int.h"
#include "api/items/document_position_int.h"

typedef struct ListPage {
    DocumentPage page;
    DocumentPosition place; /* where the page begins, and then where the next one does */
    ScanBudget budget;
    bool is_full; /* there is more after 'place' */
} ListPage;

/* Counts what was printed after 'before', or takes it back because the page would be too large. The
 * first item always stays, so that every page makes progress. */
static bool keep(PageAnswer *answer, size_t before)
{
    Buf *text = &answer->text;
    bool fits = text->len <= PAGE_BYTES_MAX - ENVELOPE_BYTES_MAX && !buf_full(text);
    if (answer->count > 0 && !fits) {
        text->len = before;
        text->full = false;
        return false;
    }
    answer->count++;
    return true;
}

/* False ends the page before the item. */
static bool print(DocumentPage *page, const Item *item)
{
    PageAnswer *answer = &page->answer;
    if (answer->count == page->items_max)
        return false;
    size_t before = answer->text.len;
    if (answer->count > 0)
        buf_byte(&answer->text, ',');
    item_print(page->container->schema, item, &answer->text);
    return keep(answer, before);
}

/* Bounds of a page that continues a list by number after its logical partition has grown. */
#define GROWN_ITEMS_MAX ((uint64_t)20000)
#define GROWN_BYTES_MAX ((size_t)16 << 20)

/* The items of one partition that a page visits: from a scan, or collected and sorted before. */
typedef struct RangeItems {
    PartitionScan *scan; /* NULL if they are in 'list' */
    ItemList list;
    size_t next;
    uint64_t lsn; /* of the partition, when they were read */
    Arena arena;  /* of the list */
} RangeItems;

static void range_items_done(RangeItems *items)
{
    partition_scan_close(items->scan);
    arena_done(&items->arena);
}
DEFINE_AUTO_VALUE(RangeItems, range_items_done)

/* Whether the page shows the items of one key by number, which it does if they are few. */
static bool is_by_number_of_key(const ListPage *list)
{
    return list->place.order == SCAN_BY_NUMBER && list->place.is_of_key;
}

static Status collect(ListPage *list, const PartitionRange *range, const ScanOptions *options,
                      RangeItems *items, bool *fits)
{
    bool is_first = list->place.piece_count == 0;
    ScanBudget budget = list->budget;
    uint64_t entries_max = is_first ? COLLECT_ITEMS_MAX : GROWN_ITEMS_MAX;
    budget.entries = budget.entries < entries_max ? budget.entries : entries_max;
    ScanOptions by_epk = *options;
    by_epk.order = SCAN_BY_EPK;
    by_epk.at = SLICE_EMPTY;
    by_epk.budget = &budget;
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(handle_scan_open(container_handle(list->page.container, range),
                         list->page.container->schema, &by_epk, &scan, &list->page.answer.error));
    TRY(partition_scan_lsn(scan, &items->lsn, &list->page.answer.error));
    uint64_t from = options->at.len == 0 ? 0 : be64_get(options->at.ptr);
    return partition_scan_collect(scan, from, is_first ? COLLECT_BYTES_MAX : GROWN_BYTES_MAX,
                                  &items->arena, &items->list, fits, &list->page.answer.error);
}

/* A logical partition that turns out to be large is shown by EPK. If an earlier page has shown it
 * by number, it stays by number: the scan then looks at all numbers of the physical partition. */
static Status range_items_open(ListPage *list, const PartitionRange *range,
                               const ScanOptions *options, RangeItems *items)
{
    ScanOptions scanned = *options;
    if (is_by_number_of_key(list)) {
        bool fits = false;
        TRY(collect(list, range, options, items, &fits));
        if (fits)
            return STATUS_OK;
        if (list->place.piece_count == 0)
            list->place.order = SCAN_BY_EPK;
        scanned.order = list->place.order;
    }
    TRY(handle_scan_open(container_handle(list->page.container, range),
                         list->page.container->schema, &scanned, &items->scan,
                         &list->page.answer.error));
    return partition_scan_lsn(items->scan, &items->lsn, &list->page.answer.error);
}

static Status range_items_next(ListPage *list, RangeItems *items, Item *item, bool *found)
{
    if (items->scan != NULL)
        return partition_scan_next(items->scan, item, found, &list->page.answer.error);
    *found = items->next < items->list.count;
    if (*found)
        *item = items->list.items[items->next++];
    return STATUS_OK;
}

/* The position of the item that was returned last. */
static Slice range_items_position(const RangeItems *items, Arena *arena)
{
    if (items->scan != NULL)
        return arena_copy(arena, partition_scan_position(items->scan));
    if (items->next == 0)
        return SLICE_EMPTY;
    char *number = arena_alloc(arena, SCAN_NUMBER_BYTES);
    be64_put(number, items->list.items[items->next - 1].number);
    return slice_make(number, SCAN_NUMBER_BYTES);
}

/* Walks one partition; if the page ends there, 'position' is where. A partition that has nothing
 * left to spend turns the page away if it is the first, and otherwise ends it. */
static Status walk_range(ListPage *list, const PartitionRange *range, const ScanOptions *options,
                         Slice *position)
{
    DocumentPage *page = &list->page;
    PartitionHandle *partition = container_handle(page->container, range);
    bool is_admitted = true;
    if (page->bill.count > 0)
        is_admitted = throttle_has_credit(page->request, partition, document_page_now_us(page));
    else if (!page->bill.is_admitted)
        TRY(document_page_admit(page, range));
    page->bill.is_admitted = true;
    AUTO(range_items_done) RangeItems items = {0};
    arena_init(&items.arena, ARENA_LARGE_BYTES);
    TRY(range_items_open(list, range, options, &items));
    RangeCharge *reads = NULL;
    if (is_admitted) {
        document_page_session_at(page, range, items.lsn);
        reads = document_page_charge_of(page, range);
    }
    const ChargeModel *model = page->request->api->options.charges;
    bool found = true;
    while (found) {
        Item item;
        TRY(range_items_next(list, &items, &item, &found));
        if (found && !(is_admitted && print(page, &item))) {
            list->is_full = true;
            break;
        }
        if (found)
            reads->charge += charge_read(model, item.bytes);
    }
    list->is_full = list->is_full || (items.scan != NULL && partition_scan_is_paused(items.scan));
    *position = range_items_position(&items, page->request->arena);
    return STATUS_OK;
}

/* Whether everything in the range is before the place at which a list by EPK goes on. */
static bool is_passed(const ScanOptions *options, const PartitionRange *range)
{
    return options->order == SCAN_BY_EPK && options->at.len > 0 &&
           slice_compare(range->max_bytes, options->at) <= 0;
}

/* Where the page ends before a range of which it has read nothing. */
static Slice begin_of(const ScanOptions *options, const PartitionRange *range)
{
    static const char first[SCAN_NUMBER_BYTES] = {0};
    if (options->order == SCAN_BY_EPK)
        return slice_compare(range->min_bytes, options->at) > 0 ? range->min_bytes : options->at;
    return options->at.len > 0 ? options->at : slice_make(first, sizeof(first));
}

/* Whether the page ends before the range: another node serves it, and the next page is asked
 * there. The first range of a page is always asked for, so that such a request goes to its owner.
 */
static bool ends_before(const ListPage *list, const PartitionRange *range)
{
    return list->page.bill.is_admitted && !document_page_is_local(&list->page, range);
}

/* Walks the piece 'index' of the page's place, which begins at 'from', over all the partitions that
 * have something of it; the last piece is what comes after the others. */
static Status walk_piece(ListPage *list, size_t index, Slice from)
{
    const DocumentPosition *place = &list->place;
    const DocumentExtent *extent = &list->page.extent;
    const Container *container = list->page.container;
    bool is_last = index == place->piece_count;
    Slice to = is_last ? extent->epk_to : place->pieces[index].to;
    ScanOptions options = {
        .order = place->order,
        .epk_from = slice_compare(from, extent->epk_from) > 0 ? from : extent->epk_from,
        .epk_to = slice_compare(to, extent->epk_to) < 0 ? to : extent->epk_to,
        .at = is_last ? place->at : place->pieces[index].at,
        .budget = &list->budget,
    };
    if (slice_compare(options.epk_from, options.epk_to) >= 0)
        return STATUS_OK;
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (!document_extent_overlaps(range, options.epk_from, options.epk_to) ||
            is_passed(&options, range))
            continue;
        Slice position;
        list->is_full = ends_before(list, range);
        if (list->is_full)
            position = begin_of(&options, range);
        else
            TRY(walk_range(list, range, &options, &position));
        if (list->is_full) {
            document_position_advance(&list->place, index, range->min_bytes, range->max_bytes,
                                      position);
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static Status walk(ListPage *list)
{
    size_t count = list->place.piece_count;
    Slice from = list->place.from;
    for (size_t i = 0; i <= count && !list->is_full; i++) {
        Slice next = i < count ? list->place.pieces[i].to : SLICE_EMPTY;
        TRY(walk_piece(list, i, from));
        from = next;
    }
    return STATUS_OK;
}

static Status run(DocumentPage *page)
{
    ListPage *list = CONTAINER_OF(page, ListPage, page);
    const Api *api = page->request->api;
    list->budget = (ScanBudget){
        .entries = api->limits.entries_max,
        .deadline_us = page->clock.deadline_us,
        .clock = &page->clock.pauses,
    };
    TRY(walk(list));
    PageBill *bill = &page->bill;
    for (size_t i = 0; i < bill->count; i++) {
        Charge *charge = &bill->charges[i].charge; /* of the reads, so far */
        *charge = document_read_charge(page->request, charge_feed(api->options.charges, *charge));
        bill->sum += *charge;
    }
    if (list->is_full)
        page->answer.continuation = document_position_print(page->request->arena, &list->place);
    return STATUS_OK;
}

Status documents_list(ApiRequest *r, Error *err)
{
    if (request_header(r, "a-im").len > 0)
        return documents_changes(r, err);
    ListPage *list = ARENA_NEW(r->arena, ListPage);
    TRY(document_page_init(&list->page, r, run, err));
    list->place.order = list->page.extent.is_fine ? SCAN_BY_EPK : SCAN_BY_NUMBER;
    const DocumentExtent *extent = &list->page.extent;
    bool is_of_key = extent->has_key && extent->key.count == r->container->partition_key.path_count;
    if (is_of_key) { /* until they turn out to be too many: range_items_open */
        list->place.order = SCAN_BY_NUMBER;
        list->place.is_of_key = true;
    }
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    if (token.len > 0 && is_of_key)
        TRY(document_position_parse_of_key(r->arena, token, &list->place, err));
    else if (token.len > 0)
        TRY(document_position_parse(r->arena, list->place.order, token, &list->place, err));
    return document_page_post(&list->page, err);
}
