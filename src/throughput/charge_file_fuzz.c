/* charge_file_fuzz.c - any bytes as a calibration file: refused with a line, or a model in which a
 * larger item never costs less. */
#include "throughput/charge.h"

static void check_model(const ChargeModel *model)
{
    Charge read = 0;
    Charge write = 0;
    for (size_t bytes = 1; bytes < (size_t)1 << 40; bytes += bytes / 3 + 1) {
        ASSERT(charge_read(model, bytes) >= read);
        ASSERT(charge_create(model, bytes, 0) >= write);
        read = charge_read(model, bytes);
        write = charge_create(model, bytes, 0);
    }
    QueryWork much = {
        .index_keys = UINT64_MAX, .items = UINT64_MAX, .item_bytes = 1, .results = UINT64_MAX};
    ASSERT(charge_query(model, &much) >= charge_query(model, &(QueryWork){0}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ChargeModel model;
    Error err;
    if (charge_model_parse(slice_make(data, size), &model, &err) == STATUS_OK)
        check_model(&model);
    else
        ASSERT(err.status == STATUS_BAD_REQUEST && err.message[0] != '\0');
    return 0;
}
