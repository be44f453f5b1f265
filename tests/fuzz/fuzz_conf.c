/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration text as it comes: parsed with the daemon's own checks; a tree or errors. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "conf/conf.h"
#include "target/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct conf_report r;

    conf_report_init(&r);
    struct conf *c = conf_parse("fuzz", (const char *)data, size, apply_checks(), &r);
    if (!c != (r.nerrors != 0))
        abort(); /* a tree comes out exactly when nothing was wrong */
    for (unsigned i = 0; i < r.n; i++) {
        if (r.v[i].is_error && (r.v[i].line == 0 || r.v[i].col == 0))
            abort(); /* an error in a text has a place */
    }
    for (unsigned i = 0; c && i < c->ntargets; i++) {
        for (unsigned k = 1; k < c->targets[i].nluns; k++) {
            if (c->targets[i].luns[k].number <= c->targets[i].luns[k - 1].number)
                abort();
        }
    }
    if (c) {
        char *text = conf_write(c, CONF_WRITE_SECRETS);
        struct conf *back = conf_parse("again", text, strlen(text), apply_checks(), &r);
        if (!back || !conf_same(c, back))
            abort(); /* what is written reads the same */
        secret_free_text(text);
        conf_free(back);
    }
    conf_free(c);
    conf_report_fini(&r);
    return 0;
}
