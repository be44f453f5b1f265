/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One program, several command lines: by the name it is called with (tgtadm and others, links made
 * by `make install-compat`).
 */
#include "config.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/adm.h"
#include "tools/iet.h"

const char *adm_name = "evtgtadm";
void (*adm_dying)(int status, const char *text);

/* Programs that evtgtadm also is; every other name is evtgtadm itself. */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} programs[] = {
    {"tgtadm", tgtadm_main}, {"tgt-admin", tgt_admin_main}, {"tgt-setup-lun", tgt_setup_lun_main},
    {"tgtimg", tgtimg_main}, {"ietadm", ietadm_main},
};

void
adm_die(int status, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (adm_dying)
        adm_dying(status, text);
    fprintf(stderr, "%s: %s\n", adm_name, text);
    (void)fflush(NULL);
    _exit(status); /* what callers up the stack hold goes with the process */
}

int
main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

    if (argc > 0) {
        adm_name = slash ? slash + 1 : argv[0];
        argv[0] = (char *)(uintptr_t)adm_name; /* getopt_long's messages start with it */
    }
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(adm_name, programs[i].name) == 0)
            return programs[i].run(argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "iet-proc") == 0)
        return iet_proc_main(argc - 1, argv + 1);
    if (verbs_are_meant(argc, argv))
        return verbs_main(argc, argv);
    return tgtadm_main(argc, argv);
}
