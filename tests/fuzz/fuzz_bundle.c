/* SPDX-License-Identifier: BSD-2-Clause */
/* What a tool sends as a configuration: JSON as it comes; what is a bundle is packed the same again
 * and is read without looking at a file; what is read is written so that it reads the same. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "conf/source.h"
#include "target/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
written_again(const struct conf *c)
{
    struct conf_report r;

    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        if (c->access[i].path)
            return; /* its file was in the bundle only */
    }
    conf_report_init(&r);
    char *text = conf_write(c, CONF_WRITE_SECRETS);
    struct conf *back = conf_parse("again", text, strlen(text), apply_checks(), &r);
    if (!back || !conf_same(c, back))
        abort();
    conf_free(back);
    secret_free_text(text);
    conf_report_fini(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[256] = "";
    struct conf_report r;
    json_t *j = json_loadb((const char *)data, size, 0, NULL);

    if (!j)
        return 0;
    struct conf_bundle *b = conf_bundle_unpack(j, err, sizeof err);
    if (!b == !*err)
        abort(); /* a bundle, or why it is none */
    if (b) {
        json_t *once = conf_bundle_pack(b);
        struct conf_bundle *back = conf_bundle_unpack(once, err, sizeof err);
        json_t *twice = back ? conf_bundle_pack(back) : NULL;
        if (!twice || !json_equal(once, twice))
            abort();
        json_decref(once);
        json_decref(twice);
        conf_bundle_free(back);
        conf_report_init(&r);
        struct conf *c = conf_read_bundle(b, apply_checks(), &r);
        if (!c != (r.nerrors != 0))
            abort();
        if (c)
            written_again(c);
        conf_free(c);
        conf_report_fini(&r);
    }
    conf_bundle_free(b);
    json_decref(j);
    return 0;
}
