/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each directive once, in what it needs around it: for whatever must lose none of them.
 * test-conf-write looks whether one of conf/table.c is missing here.
 */
#ifndef TESTS_CONF_GIVEN_H
#define TESTS_CONF_GIVEN_H

#include <stdbool.h>

#define T "<target iqn.2001-04.a:b>\n"
#define E "</target>\n"
#define B "<backing-store /x>\n"
#define F "</backing-store>\n"

/* Each directive with a value that is not the default, so that one that is not shown fails. */
static const struct {
    const char *name, *before, *line, *after;
    const char *instead; /* else nothing */
    bool unjudged;
} given[] = {
    {"portal", "", "portal 1.2.3.4:3261\nportal [::1]:3260\nportal iface:eth0", ""},
    {"portal", "", "portal none", ""},
    {"portal", "portal 1.2.3.4\n" T, "portal 1.2.3.4:3260", E},
    {"group", "<portal 1.2.3.4>\n", "group 7", "</portal>\n"},
    {"advertise", "<portal 1.2.3.4>\n", "advertise san.example.com:1", "</portal>\n"},
    {"workers", "", "workers 3", ""},
    {"busy-poll", "", "busy-poll 0", ""},
    {"placement", "", "placement affine", ""},
    {"state-dir", "", "state-dir \"/a # b \"", ""},
    {"user", "", "user evtgt:disk", ""},
    {"autosave", "", "autosave off", ""},
    {"initiators-allow", "", "initiators-allow /dev/null", ""},
    {"initiators-deny", "", "initiators-deny /dev/null", ""},
    {"targets-allow", "initiators-deny /dev/null\n", "targets-allow /dev/null", ""},
    {"discovery-filter", "", "discovery-filter authenticated", ""},
    {"login-timeout", "", "login-timeout 16", ""},
    {"max-half-open", "", "max-half-open 100", ""},
    {"max-half-open-per-address", "", "max-half-open-per-address 50", ""},
    {"tcp-keepalive-idle", "", "tcp-keepalive-idle 0", ""},
    {"tcp-keepalive-interval", "", "tcp-keepalive-interval 5", ""},
    {"tcp-keepalive-count", "", "tcp-keepalive-count 3", ""},
    {"tcp-user-timeout", "", "tcp-user-timeout 60", ""},
    {"nop_interval", "", "nop_interval 9", ""},
    {"nop_count", "", "nop_count 9", ""},
    {"dscp", "", "dscp af31", ""},
    {"max-sessions", "", "max-sessions 64", ""},
    {"shutdown-timeout", "", "shutdown-timeout 10", ""},
    {"redirect-timeout", "", "redirect-timeout 3", ""},
    {"iSNS", "iSNSServerIP 127.0.0.1\n", "iSNS On", ""},
    {"iSNSServerIP", "", "iSNSServerIP 127.0.0.1\niSNSServerIP 127.0.0.2", ""},
    {"iSNSServer", "", "iSNSServer 127.0.0.1", ""},
    {"iSNSServerPort", "", "iSNSServerPort 3206", ""},
    {"iSNSAccessControl", "iSNS On\niSNSServerIP 127.0.0.1\n", "iSNSAccessControl On", ""},
    {"incomingdiscoveryuser", "", "incomingdiscoveryuser a 0123456789ab iqn.*", ""},
    {"outgoingdiscoveryuser", "", "outgoingdiscoveryuser b 0123456789ab", ""},
    {"login-failure-delay", "", "login-failure-delay 0", ""},
    {"chap-algorithms", "", "chap-algorithms 8,md5", ""},
    {"chap-legacy-sha1-7", "", "chap-legacy-sha1-7 off", ""},
    {"chap-algorithms", T, "chap-algorithms sha1,sha256", E},
    {"chap-legacy-sha1-7", T, "chap-legacy-sha1-7 on", E},
    {"incominguser", "", "incominguser a 0123456789ab\nincominguser b 0123456789ac", ""},
    {"outgoinguser", "", "outgoinguser \"a b\" \"0123 # 456789ab\"", ""},
    {"incominguser", T, "incominguser a 0123456789ab iqn.x* iqn.[a-f]", E},
    {"outgoinguser", T, "outgoinguser a 0123456789ab", E},
    {"backing-store", T, "backing-store \"/a b\"\nbacking-store /c#d", E},
    {"ids", "", "ids tgt", T "backing-store /a\nbacking-store /b\n" E},
    {"ids", T B "scsi_id X\n" F, "ids iet", E},
    {"ids", "", "ids iet", T "backing-store /a\nbacking-store /b\n" E},
    {"direct-store", T, "direct-store /dev/sda", E, .instead = "backing-store /dev/sda"},
    {"portal-group", T, "portal-group 1", E},
    {"initiator-address", T, "initiator-address 10.0.0.0/8\ninitiator-address ::1", E},
    {"initiator-name", T, "initiator-name iqn.a*\ninitiator-name iqn.[!a-f]", E},
    {"local-address", T, "local-address iface:eth1", E},
    {"discoverable", T, "discoverable no", E},
    {"controller_tid", T, "controller_tid 77", E},
    {"alias", T, "alias \" it's \\\"\xc3\xa4\\\" = \\# \\\\ \"", E},
    {"state", T, "state offline", E},
    {"MaxQueueCmd", T, "MaxQueueCmd 64", E},
    {"nop_interval", T, "nop_interval 0", E},
    {"nop_count", T, "nop_count 2", E},
    {"RedirectAddress", T, "RedirectAddress 1.2.3.4", E},
    {"RedirectPort", T "RedirectAddress 1.2.3.4\n", "RedirectPort 3261", E},
    {"RedirectReason", T "RedirectAddress 1.2.3.4\n", "RedirectReason Permanent", E},
    {"RedirectCallback", T, "RedirectCallback /bin/x \"a b\"", E},
    {"redirect-initiator", T,
     "redirect-initiator iqn.a* 1.2.3.4:3261 Permanent\nredirect-initiator iqn.a:b here", E},
    {"HeaderDigest", T, "HeaderDigest CRC32C", E},
    {"InitialR2T", T, "InitialR2T Yes", E},
    {"write-cache", T B, "write-cache off", F E},
    {"scsi_id", T B, "scsi_id \" a\\\"b# \"", F E},
    {"scsi_sn", T B, "scsi_sn =x", F E},
    {"naa", T B, "naa 3000000000000001", F E},
    {"eui", T B, "eui 0123456789abcdef01234567", F E},
    {"designator", T B, "designator naa 6001\ndesignator t10 4142\ndesignator name 61", F E},
    {"scsi_sn_width", T B, "scsi_sn_width 36", F E},
    {"vendor_id", T B, "vendor_id \"'a'\"", F E},
    {"product_id", T B, "product_id \"<<a b>\"", F E},
    {"product_rev", T B, "product_rev \"a/*\"", F E},
    {"sense_format", T B, "sense_format 1", F E},
    {"removable", T B, "removable on", F E},
    {"online", T B, "online off", F E},
    {"readonly", T B, "readonly yes", F E},
    {"lbppbe", T B, "lbppbe 0", F E},
    {"la_lba", T B, "la_lba 1", F E},
    {"optimal_xfer_gran", T B, "optimal_xfer_gran 8", F E},
    {"optimal_xfer_len", T B, "optimal_xfer_len 4294967294", F E},
    {"thin-provisioning", T B, "thin-provisioning on", F E},
    {"thin_provisioning", T B, "thin_provisioning 1", F E},
    {"rotation_rate", T B, "rotation_rate 0", F E},
    {"bs-type", T B, "bs-type aio", F E},
    {"bsoflags", T B, "bsoflags direct:sync", F E},
    {"allow-in-use", T B, "allow-in-use yes", F E},
    {"block-size", T B, "block-size 4096", F E},
    {"size", T "<backing-store \"\">\nbs-type null\n", "size 10G", F E, .instead = "size 1G"},
    {"bsopts", T B, "bsopts \"a=b;c=d # e\"", F E, .unjudged = true},
    {"layer", T B, "layer delay:ms=20,op=read\nlayer error:op=write", F E},
    {"lun", T B, "lun 0", F E},
    {"mode_page", T B,
     "mode_page 0x30:0:2:1:2\nmode_page 8:0:18:0x10:0:0:0:0:0:0:0:0:0:0:20:0:0:0:0:0:0", F E},
    {"params", T B, "params vendor_id=a,removable=1", F E},
};
#define GIVEN (sizeof given / sizeof *given)

#endif
