/* SPDX-License-Identifier: BSD-2-Clause */
/* The main of a CUnit program: one suite, a table of tests, exit status 1 when one fails. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define UNIT_SECONDS 300 /* a program that hangs fails */

struct unit_test {
    const char *name;
    void (*fn)(void);
};

static inline int
unit_run(const char *suite, const struct unit_test *tests, size_t n)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(UNIT_SECONDS);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    if (!s)
        return 1;
    for (size_t i = 0; i < n; i++)
        if (!CU_add_test(s, tests[i].name, tests[i].fn))
            return 1;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed == 0 ? 0 : 1;
}

#define UNIT_RUN(suite, tests) unit_run((suite), (tests), sizeof(tests) / sizeof((tests)[0]))

#endif
