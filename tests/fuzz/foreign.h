/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzzers of other targets' files share: a text is read in one syntax, written, read. */
#ifndef TESTS_FUZZ_FOREIGN_H
#define TESTS_FUZZ_FOREIGN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "conf/conf.h"
#include "conf/source.h"
#include "target/model.h"

static inline void
foreign_one(enum conf_syntax syntax, const uint8_t *data, size_t size)
{
    struct conf_report r;

    conf_report_init(&r);
    struct conf_bundle *b = conf_bundle_text("fuzz", syntax, (const char *)data, size);
    struct conf *c = conf_read_bundle(b, apply_checks(), &r);
    if (!c != (r.nerrors != 0))
        abort();
    conf_report_fini(&r);
    if (c) {
        conf_report_init(&r);
        char *text = conf_write(c, CONF_WRITE_SECRETS);
        struct conf *again = conf_parse("again", text, strlen(text), apply_checks(), &r);
        if (!again) {
            for (unsigned i = 0; i < r.n; i++)
                fprintf(stderr, "%u:%u: %s\n", r.v[i].line, r.v[i].col, r.v[i].text);
            fprintf(stderr, "%s", text);
            abort(); /* what was taken can be written */
        }
        char *second = conf_write(again, CONF_WRITE_SECRETS);
        if (strcmp(text, second) != 0)
            abort();
        secret_free_text(text);
        secret_free_text(second);
        conf_free(again);
        conf_report_fini(&r);
    }
    conf_free(c);
    conf_bundle_free(b);
}

#endif
