/* secret_mem_test.c - what the kernel says about the memory of keys. */
#include "base/secret_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Whether the flags of the mapping at 'p' have the word 'flag'. */
static bool has_flag(const void *p, const char *flag)
{
    char line[512];
    bool is_ours = false;
    bool found = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned long begin = 0;
        unsigned long end = 0;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) /* NOLINT(cert-err34-c): hex is exact */
            is_ours = (uintptr_t)p >= begin && (uintptr_t)p < end;
        if (is_ours && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    (void)fclose(file);
    return found;
}

static void it_is_zeroed_and_stays_out_of_core_dumps(void **state)
{
    (void)state;
    char *p = secret_alloc(5000);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(p[i], 0);
    assert_true(has_flag(p, " dd"));
    memset(p, 'k', 5000);
    secret_free(p, 5000);
    secret_free(NULL, 1);
}

static void wiping_leaves_zeros(void **state)
{
    (void)state;
    char text[] = "secret";
    secret_wipe(text, 3);
    assert_memory_equal(text, "\0\0\0ret", 7);
    secret_wipe(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_zeroed_and_stays_out_of_core_dumps),
        cmocka_unit_test(wiping_leaves_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
