/* charge_file_test.c - calibration files. */
#include "throughput/charge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static ChargeModel parse(const char *text)
{
    ChargeModel model;
    Error err;
    if (charge_model_parse(slice_from_cstr(text), &model, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return model;
}

static void an_empty_file_changes_nothing(void **state)
{
    (void)state;
    static const char *const files[] = {"", "\n\n", "# nothing\r\n", "  \t \n#x = 1"};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        ChargeModel model = parse(files[i]);
        assert_memory_equal(&model, charge_model_default(), sizeof(model));
    }
}

static void what_is_not_said_stays_as_it_is(void **state)
{
    (void)state;
    ChargeModel model = parse("index-term = 0.15 # less\r\n"
                              "\n"
                              "  read 1KB=0.9\n"
                              "strong-read = 3.5");
    assert_int_equal(charge_create(&model, 1024, 10), 495 + 150);
    assert_int_equal(charge_read(&model, 1024), 90);
    assert_int_equal(charge_read(&model, 128 << 10), 995);
    assert_int_equal(charge_strong(&model, 100), 350);
    assert_int_equal(charge_failed(&model), 100);
}

static void every_row_has_a_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {
#define CHARGE_CONSTANT(field, name, units, per, why) {name, offsetof(ChargeModel, field)},
#include "throughput/charge.def"
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[80];
        (void)snprintf(text, sizeof(text), "%s = 17.000001", rows[i].name);
        ChargeModel model = parse(text);
        ChargeModel expected = *charge_model_default();
        uint64_t micro = 17000001;
        memcpy((char *)&expected + rows[i].offset, &micro, sizeof(micro));
        assert_memory_equal(&model, &expected, sizeof(model));
    }
}

static void sizes_are_replaced_and_added_in_their_order(void **state)
{
    (void)state;
    ChargeModel model = parse("write 100KB = 40\nread 100KB = 8\nread 64KB = 6\nwrite 512B = 3\n"
                              "read 3MB = 500.5\n");
    assert_int_equal(charge_read(&model, 100 << 10), 800);
    assert_int_equal(charge_read(&model, 64 << 10), 600);
    assert_int_equal(charge_read(&model, 82 << 10), 700);
    assert_int_equal(charge_read(&model, 3 << 20), 50050);
    assert_int_equal(charge_create(&model, 100 << 10, 0), 4000);
    assert_int_equal(charge_create(&model, 1, 0), 300);
    assert_int_equal(charge_create(&model, 768, 0), 398);
    assert_int_equal(charge_create(&model, 1024, 0), 495);
}

static void what_cannot_be_meant_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"index-terms = 1", "line 1: there is no charge 'index-terms'"},
        {"\n\nreads 1KB = 1", "line 3: there is no charge 'reads 1KB'"},
        {"failed", "line 1: expected 'name = number', found 'failed'"},
        {"failed = ", "line 1: '' is not a number"},
        {"# x\nfailed = -1", "line 2: '-1' is not a number"},
        {"failed = 1e3", "line 1: '1e3' is not a number"},
        {"failed = 1.", "line 1: '1.' is not a number"},
        {"failed = .5", "line 1: '.5' is not a number"},
        {"failed = 1.2.3", "line 1: '1.2.3' is not a number"},
        {"failed = 0.0000001", "line 1: '0.0000001' is not a number"},
        {"failed = 1000001", "line 1: '1000001' is not a number"},
        {"failed = nan", "line 1: 'nan' is not a number"},
        {"failed = 1 RU", "line 1: '1 RU' is not a number"},
        {"failed = 1\nfailed = 1", "line 2: 'failed' is there twice"},
        {"read 1KB = 1\nread 1024B = 1", "line 2: 'read 1024B' is there twice"},
        {"read 1 = 1", "line 1: '1' is not a size"},
        {"read = 1", "line 1: '' is not a size"},
        {"read 0KB = 1", "line 1: '0KB' is not a size"},
        {"write -1KB = 1", "line 1: '-1KB' is not a size"},
        {"write 1GB = 1", "line 1: '1GB' is not a size"},
        {"read 1KB = 1.5", "line 1: to read 2048 bytes would cost less than 1024 bytes"},
        {"\nwrite 2MB = 1", "line 2: to write 2097152 bytes would cost less than 1048576 bytes"},
        {"read 3KB = 1.2\nread 4KB = 1.1", "line 2: to read 4096 bytes would cost less"},
        {"read 4KB = 1.1\nread 3KB = 1.2", "line 2: to read 4096 bytes would cost less"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ChargeModel model;
        Error err;
        assert_int_equal(charge_model_parse(slice_from_cstr(rows[i].text), &model, &err),
                         STATUS_BAD_REQUEST);
        if (strncmp(err.message, rows[i].message, strlen(rows[i].message)) != 0)
            fail_msg("'%s': %s", rows[i].text, err.message);
    }
}

static void a_file_has_bounds(void **state)
{
    (void)state;
    static char text[CHARGE_FILE_BYTES_MAX + 1];
    memset(text, '#', sizeof(text));
    ChargeModel model;
    Error err;
    assert_int_equal(charge_model_parse(slice_make(text, sizeof(text) - 1), &model, &err),
                     STATUS_OK);
    assert_int_equal(charge_model_parse(slice_make(text, sizeof(text)), &model, &err),
                     STATUS_BAD_REQUEST);
    int len = 0;
    for (int i = 0; i < CHARGE_SIZES_MAX; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "read %dMB = 1000\n", i + 3);
    assert_int_equal(charge_model_parse(slice_make(text, (size_t)len), &model, &err),
                     STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "more than 64 sizes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_changes_nothing),
        cmocka_unit_test(what_is_not_said_stays_as_it_is),
        cmocka_unit_test(every_row_has_a_name),
        cmocka_unit_test(sizes_are_replaced_and_added_in_their_order),
        cmocka_unit_test(what_cannot_be_meant_is_refused_with_its_line),
        cmocka_unit_test(a_file_has_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
