/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operational keys for who reads a configuration without the daemon, which alone has their table:
 * their names begin with a capital, and some can have fewer values here than in RFC 7143.
 * test-keys compares this with the daemon's table.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "conf/conf.h"

static const struct {
    const char *name;
    const char *only;  /* of Yes and No; NULL: a number */
    unsigned max, rfc; /* here and there */
} limits[] = {
    {"MaxConnections", NULL, 1, 65535},
    {"MaxRecvDataSegmentLength", NULL, 1048576, 16777215},
    {"DefaultTime2Retain", NULL, 0, 3600},
    {"MaxOutstandingR2T", NULL, 16, 65535},
    {"ErrorRecoveryLevel", NULL, 0, 2},
    {"DataPDUInOrder", "Yes", 0, 0},
    {"DataSequenceInOrder", "Yes", 0, 0},
    {"IFMarker", "No", 0, 0},
    {"OFMarker", "No", 0, 0},
};

int
conf_key_any(const char *name, const char *value, char *err, size_t errsize, void *arg)
{
    uint64_t n;

    (void)arg;
    if (name[0] < 'A' || name[0] > 'Z')
        return -ENOENT;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (strcasecmp(limits[i].name, name) != 0)
            continue;
        if (limits[i].only) {
            if (strcasecmp(value, *limits[i].only == 'Y' ? "No" : "Yes") != 0)
                return 0;
            snprintf(err, errsize, "%s can only be %s here", limits[i].name, limits[i].only);
            return 1;
        }
        if (conf_parse_uint(value, 0, limits[i].rfc, &n) < 0 || n <= limits[i].max)
            return 0; /* what is wrong, the daemon says */
        snprintf(err, errsize, "%s can be at most %u here", limits[i].name, limits[i].max);
        return 1;
    }
    return 0;
}
