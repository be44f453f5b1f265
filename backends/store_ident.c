/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a block device calls itself, as sysfs has it: SCSI disks have device/vendor, model and rev
 * and the page 80h, NVMe has device/model, firmware_rev and serial, virtio a serial beside them.
 * May block: helper threads, in an open.
 */
#include "config.h"

#include "backends/store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE_HEADER 4u /* SPC-4 7.8.1 */

/* Printable, without blanks at the ends; "" when there is nothing of the kind. */
static void
tidy(char *out, size_t size, const char *p, size_t n)
{
    size_t k = 0;

    while (n && (unsigned char)*p <= ' ')
        p++, n--;
    for (size_t i = 0; i < n && p[i] && k + 1 < size; i++)
        out[k++] = (char)(p[i] >= ' ' && p[i] <= '~' ? p[i] : ' ');
    while (k && out[k - 1] == ' ')
        k--;
    out[k] = '\0';
}

/* The first of these files that there is; true: out is not empty. */
static bool
first_line(const char *dir, const char *const *names, char *out, size_t size)
{
    char path[256], text[256];

    *out = '\0';
    for (; *names != NULL && *out == '\0'; names++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, *names);
        int n = store_read_line(path, text, sizeof(text));
        if (n > 0)
            tidy(out, size, text, (size_t)n);
    }
    return *out != '\0';
}

static bool
page_80(const char *dir, char *out, size_t size)
{
    char path[256];
    uint8_t page[256];

    *out = '\0';
    (void)snprintf(path, sizeof(path), "%s/device/vpd_pg80", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, page, sizeof(page));
    close(fd);
    if (n > (ssize_t)PAGE_HEADER && page[1] == 0x80) {
        size_t len = (size_t)page[2] << 8 | page[3];
        if (len > (size_t)n - PAGE_HEADER)
            len = (size_t)n - PAGE_HEADER;
        tidy(out, size, (const char *)page + PAGE_HEADER, len);
    }
    return *out != '\0';
}

void
store_ident(const char *dir, struct be_ident *out)
{
    static const char *const vendor[] = {"device/vendor", NULL};
    static const char *const model[] = {"device/model", NULL};
    static const char *const rev[] = {"device/rev", "device/firmware_rev", NULL};
    static const char *const serial[] = {"device/serial", "serial", NULL};

    memset(out, 0, sizeof(*out));
    if (!page_80(dir, out->serial, sizeof(out->serial)))
        (void)first_line(dir, serial, out->serial, sizeof(out->serial));
    if (!first_line(dir, model, out->product, sizeof(out->product)))
        return;
    (void)first_line(dir, rev, out->rev, sizeof(out->rev));
    /* a device on a PCI bus has a number there */
    if (!first_line(dir, vendor, out->vendor, sizeof(out->vendor)) ||
        strncmp(out->vendor, "0x", 2) == 0)
        out->vendor[0] = '\0';
}
