/* SPDX-License-Identifier: BSD-2-Clause */
/* Long options of another program cut short, with ours beside them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/longopt.h"
#include "tests/unit/unit.h"

static const struct option theirs[] = {
    {"password", required_argument, NULL, 'p'},
    {"params", required_argument, NULL, 'P'},
    {"sid", required_argument, NULL, 's'},
    {"force", no_argument, NULL, 'F'},
    {NULL, 0, NULL, 0},
};
static const struct option own[] = {
    {"password-file", required_argument, NULL, 256},
    {"socket", required_argument, NULL, 257},
    {"forget", no_argument, NULL, 258},
    {NULL, 0, NULL, 0},
};

/* "letter or number=value ", ? for what is refused; at the end what is no option. */
static void
parse(const char *line, char *out, size_t size)
{
    char copy[200], *rest = copy, *argv[16] = {copy}, name[] = "test";
    int argc = 1, c;
    size_t n = 0;

    snprintf(copy, sizeof copy, "%s", line);
    argv[0] = name;
    while (argc < 15 && (argv[argc] = strsep(&rest, " ")))
        argc++;
    argv[argc] = NULL;
    optind = 0; /* as if never called */
    opterr = 0;
    out[0] = '\0';
    while ((c = longopt_next(argc, argv, "p:P:s:F", theirs, own)) != -1) {
        optarg = c == '?' ? NULL : optarg;
        n += (size_t)(c < 256 ? snprintf(out + n, size - n, "%c", c)
                              : snprintf(out + n, size - n, "%d", c));
        n += (size_t)snprintf(out + n, size - n, "%s%s ", optarg ? "=" : "", optarg ? optarg : "");
    }
    for (; optind < argc; optind++)
        n += (size_t)snprintf(out + n, size - n, "%s ", argv[optind]);
}

static void
test_lines(void)
{
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"--pass x", "p=x "},
        {"--passw=x", "p=x "},
        {"--password x", "p=x "},
        {"--password-file x", "256=x "},
        {"--password-f=x", "256=x "},
        {"--s 1 --so 2 --socket=3", "s=1 257=2 257=3 "},
        {"--pa x", "? x "}, /* as it was before ours */
        {"--par x", "P=x "},
        {"--fo --force --forg", "F F 258 "},
        {"--none --s 1", "? s=1 "},
        {"--par --s --s 1", "P=--s s=1 "}, /* a value is none */
        {"a --s 1 - b --pass x", "s=1 p=x a - b "},
        {"-Fs1 --pass x", "F s=1 p=x "},
        {"-F -- --s 1", "F --s 1 "},
        {"--", ""},
        {"--s", "? "},
        {"--force=x", "? "},
    };
    char got[300];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parse(rows[i].line, got, sizeof got);
        if (strcmp(got, rows[i].want) != 0)
            printf("%s: %s\n", rows[i].line, got);
        CU_ASSERT_STRING_EQUAL(got, rows[i].want);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {{"lines", test_lines}};
    return UNIT_RUN("longopt", tests);
}
