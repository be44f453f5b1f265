/* SPDX-License-Identifier: BSD-2-Clause */
/* store_ident: what sysfs says of SCSI, NVMe and virtio disks, and nonsense. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/store.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/store-ident-XXXXXX";

static void
put(const char *name, const char *text, size_t len)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fwrite(text, 1, len, f), len);
    fclose(f);
}

static void
line(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void
clear(void)
{
    static const char *const names[] = {"device/vendor", "device/model",        "device/rev",
                                        "device/serial", "device/firmware_rev", "device/vpd_pg80",
                                        "serial"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
}

static void
is(const char *vendor, const char *product, const char *rev, const char *serial)
{
    struct be_ident id;
    store_ident(dir, &id);
    CU_ASSERT_STRING_EQUAL(id.vendor, vendor);
    CU_ASSERT_STRING_EQUAL(id.product, product);
    CU_ASSERT_STRING_EQUAL(id.rev, rev);
    CU_ASSERT_STRING_EQUAL(id.serial, serial);
    clear();
}

static void
test_kinds(void)
{
    is("", "", "", "");
    /* SCSI: fields are filled with blanks */
    line("device/vendor", "SEAGATE \n");
    line("device/model", "ST4000NM0023    \n");
    line("device/rev", "0004\n");
    put("device/vpd_pg80", "\0\x80\0\x0a  Z1Z0ABCD", 14);
    is("SEAGATE", "ST4000NM0023", "0004", "Z1Z0ABCD");
    /* NVMe: longer than INQUIRY has room for, no vendor */
    line("device/model", "Samsung SSD 990 PRO 2TB                 \n");
    line("device/firmware_rev", "4B2QJXD7\n");
    line("device/serial", "S7KHNJ0W123456A     \n");
    is("", "Samsung SSD 990", "4B2Q", "S7KHNJ0W123456A");
    /* virtio: the vendor is a number of the bus */
    line("device/vendor", "0x1af4\n");
    line("serial", "disk-1\n");
    is("", "", "", "disk-1");
}

static void
test_nonsense(void)
{
    put("device/vpd_pg80",
        "\0\x83\0\x04"
        "abcd",
        8); /* another page */
    is("", "", "", "");
    put("device/vpd_pg80",
        "\0\x80\0\xff"
        "abcd",
        8); /* says more than there is */
    line("device/model", "a\tb\xff"
                         "c\n");
    is("", "a b c", "", "abcd");
    put("device/vpd_pg80", "\0\x80\0\0", 4);
    line("device/model", "   \n");
    line("device/vendor", "X\n");
    is("", "", "", "");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"kinds of disks", test_kinds},
        {"nonsense", test_nonsense},
    };
    char sub[64];
    if (!mkdtemp(dir))
        return 1;
    snprintf(sub, sizeof sub, "%s/device", dir);
    if (mkdir(sub, 0700) != 0)
        return 1;
    int rc = UNIT_RUN("store-ident", tests);
    return rmdir(sub) != 0 || rmdir(dir) != 0 ? 1 : rc;
}
