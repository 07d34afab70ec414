/* charge.c - see charge.h. */
#include "throughput/charge.h"

#include "base/encoding.h"

/* A bound, so that a few of them can be added without overflow; no charge is as large. */
#define MICRO_MAX ((uint64_t)1 << 60)

#define MICRO_PER_UNIT ((uint64_t)1000000)
#define MICRO_PER_CENT (MICRO_PER_UNIT / 100)

/* ---- the model ---- */

enum {
    READ_COUNT = 0
#define CHARGE_READ_SIZE(kilobytes, units) +1
#include "throughput/charge.def"
    ,
    WRITE_COUNT = 0
#define CHARGE_WRITE_SIZE(kilobytes, units) +1
#include "throughput/charge.def"
};
static_assert(READ_COUNT <= CHARGE_SIZES_MAX && WRITE_COUNT <= CHARGE_SIZES_MAX,
              "a model has room for the published sizes");

#define MICRO(units)               (uint64_t)((units) * (double)MICRO_PER_UNIT + 0.5)
#define SIZE_ROW(kilobytes, units) {(kilobytes)*1024, MICRO(units)},

static const ChargeModel PUBLISHED = {
    .read.rows =
        {
#define CHARGE_READ_SIZE SIZE_ROW
#include "throughput/charge.def"
        },
    .read.count = READ_COUNT,
    .write.rows =
        {
#define CHARGE_WRITE_SIZE SIZE_ROW
#include "throughput/charge.def"
        },
    .write.count = WRITE_COUNT,
#define CHARGE_CONSTANT(field, name, units, per, why) .field = MICRO(units),
#include "throughput/charge.def"
};

const ChargeModel *charge_model_default(void)
{
    return &PUBLISHED;
}

/* ---- arithmetic ---- */

static uint64_t times(uint64_t count, uint64_t micro)
{
    uint64_t product = 0;
    bool is_too_much = __builtin_mul_overflow(count, micro, &product);
    return is_too_much || product > MICRO_MAX ? MICRO_MAX : product;
}

static uint64_t per_kb(uint64_t bytes, uint64_t micro)
{
    return times(bytes, micro) / 1024;
}

static Charge to_charge(uint64_t micro)
{
    return (micro + MICRO_PER_CENT / 2) / MICRO_PER_CENT;
}

/* The line through the two rows around 'bytes', or through the last two; flat below the first. */
static uint64_t by_size(const ChargeSizes *sizes, uint64_t bytes)
{
    size_t high = 0;
    while (high + 1 < sizes->count && bytes > sizes->rows[high].bytes)
        high++;
    if (high == 0)
        return sizes->rows[0].micro;
    const ChargeSize *to = &sizes->rows[high];
    const ChargeSize *from = to - 1;
    uint64_t width = to->bytes - from->bytes;
    uint64_t rise = to->micro - from->micro;
    uint64_t beyond = bytes - from->bytes;
    return from->micro + times(beyond, rise / width) + times(beyond, rise % width) / width;
}

/* ---- items ---- */

Charge charge_read(const ChargeModel *model, size_t bytes)
{
    return to_charge(by_size(&model->read, bytes));
}

Charge charge_create(const ChargeModel *model, size_t bytes, uint32_t terms)
{
    return to_charge(by_size(&model->write, bytes) + times(terms, model->index_term));
}

/* A removal is a write, too: of the item and of each of its terms. */
Charge charge_delete(const ChargeModel *model, size_t bytes, uint32_t terms)
{
    return charge_create(model, bytes, terms);
}

static uint64_t replace_micro(const ChargeModel *model, size_t before, size_t after, uint32_t terms)
{
    return by_size(&model->write, before) + by_size(&model->write, after) +
           times(terms, model->index_term);
}

Charge charge_replace(const ChargeModel *model, size_t bytes_before, size_t bytes_after,
                      uint32_t terms)
{
    return to_charge(replace_micro(model, bytes_before, bytes_after, terms));
}

Charge charge_patch(const ChargeModel *model, size_t bytes_before, size_t bytes_after,
                    uint32_t terms, size_t operations)
{
    return to_charge(replace_micro(model, bytes_before, bytes_after, terms) +
                     times(operations, model->patch_operation));
}

Charge charge_failed(const ChargeModel *model)
{
    return to_charge(model->failed);
}

/* ---- pages ---- */

Charge charge_feed(const ChargeModel *model, Charge reads)
{
    Charge least = to_charge(model->feed_partition);
    return reads > least ? reads : least;
}

Charge charge_query(const ChargeModel *model, const QueryWork *work)
{
    return to_charge(
        model->query_partition + times(work->index_keys, model->query_index_key) +
        times(work->items, model->query_item) + per_kb(work->item_bytes, model->query_item_kb) +
        times(work->user_calls, model->query_call) + times(work->results, model->query_result) +
        per_kb(work->result_bytes, model->query_result_kb));
}

Charge charge_strong(const ChargeModel *model, Charge charge)
{
    return (times(charge, model->strong_read) + MICRO_PER_UNIT / 2) / MICRO_PER_UNIT;
}

/* ---- the rest ---- */

Charge charge_metadata_read(const ChargeModel *model)
{
    return to_charge(model->metadata_read);
}

Charge charge_plan(const ChargeModel *model, size_t bytes)
{
    uint64_t micro = per_kb(bytes, model->plan_kb);
    return to_charge(micro > model->metadata_read ? micro : model->metadata_read);
}

Charge charge_metadata_write(const ChargeModel *model)
{
    return to_charge(model->metadata_write);
}

Charge charge_metadata_query(const ChargeModel *model)
{
    return to_charge(model->metadata_query);
}

Charge charge_script(const ChargeModel *model)
{
    return to_charge(model->script_run);
}

size_t charge_print(Charge charge, char out[CHARGE_TEXT_MAX])
{
    size_t len = u64_print(charge / 100, out);
    unsigned part = (unsigned)(charge % 100);
    if (part == 0)
        return len;
    out[len++] = '.';
    out[len++] = (char)('0' + part / 10);
    out[len++] = (char)('0' + part % 10);
    return len;
}
