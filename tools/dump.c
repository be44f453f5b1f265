/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the tables of the code as the documentation shows them: `dump opcodes`, `dump keys`.
 * The makefile's `docs` target writes docs/opcodes.md and docs/keys.md with it, tests/lint/docs
 * compares.  Never installed; links the rooms whose tables it prints.  One thread.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "scsi/scsi.h"
#include "target/target.h"

static void
print_line(const char *s, void *arg)
{
    (void)arg;
    puts(s);
}

static void
dump_opcodes(void)
{
    puts("<!-- SPDX-License-Identifier: BSD-2-Clause; written by `make docs` -->\n"
         "# SCSI commands\n\n"
         "What REPORT SUPPORTED OPERATION CODES tells of a disk.  A command that is not here ends\n"
         "with CHECK CONDITION, INVALID COMMAND OPERATION CODE; a bit that a command does not use\n"
         "with INVALID FIELD IN CDB and a field pointer.  `thin`: only on logical units with\n"
         "thin provisioning.\n");
    scsi_ops_dump(print_line, NULL);
}

static void
dump_keys(void)
{
    puts(
        "<!-- SPDX-License-Identifier: BSD-2-Clause; written by `make docs` -->\n"
        "# Text keys\n\n"
        "The keys of login and text requests.  `Default` is what holds when a key is not\n"
        "negotiated, `Here` what evtgt offers or agrees to unless the target's configuration says\n"
        "otherwise.  Any other key is answered `NotUnderstood`.\n");
    keys_dump(print_line, NULL);
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "opcodes") == 0) {
        dump_opcodes();
    } else if (argc == 2 && strcmp(argv[1], "keys") == 0) {
        dump_keys();
    } else {
        fputs("usage: dump opcodes|keys\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
