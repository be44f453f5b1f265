/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every message about files of tgt, IET and LIO: one input each, with its exact place and words.
 * The messages are read out of the sources, tables included, so that a new one without a case
 * here fails. The files are those of a bundle: none of this machine is looked at.
 */
#include "config.h"

#include <ctype.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "conf/source.h"
#include "target/model.h"
#include "tests/unit/unit.h"

#define T "Target iqn.2001-04.a:b\n"
#define B                                                                                          \
    "<target iqn.2001-04.a:b>\n"                                                                   \
    "initiator-address ALL\n"
#define OBJECT                                                                                     \
    "{\"storage_objects\":[{\"plugin\":\"fileio\",\"name\":\"a\",\"dev\":\"/"                      \
    "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n"
#define TARGET "\"targets\":[{\"fabric\":\"iscsi\",\"wwn\":\"iqn.2003-01.a:b\",\"tpgs\":[{"
#define LUNS   "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/fileio/a\"}]"
#define UNUSED                                                                                     \
    "1:40: lost: name has no equivalent: no disk of an iSCSI target is made of this storage "      \
    "object; nothing is served\n"
#define NOBODY                                                                                     \
    "2:30: warning: target iqn.2003-01.a:b names no initiator: nobody can log in; add "            \
    "`initiator-address ALL`, an address or an initiator-name\n"
#define ALLOW                                                                                      \
    {                                                                                              \
        {                                                                                          \
            "initiators.allow", "ALL ALL\n"                                                        \
        }                                                                                          \
    }

/* `f` is read, with the files beside it; a text of NULL is one that cannot be read. A message is
 * `line:column: kind: text`; one of another file begins with its name. */
static const struct {
    const char *syntax, *text;
    struct {
        const char *path, *text;
    } files[2];
    const char *messages;
} cases[] = {
    {"iet-rules", T "Lun\n", ALLOW, "2:1: error: Lun wants a value\n"},
    {"iet-rules", T "Lun 0 Type=fileio\n", ALLOW,
     "2:1: error: Lun wants Path=FILE\n"
     "2:1: error: a backing store wants an absolute path\n"},
    {"iet-rules", T "Lun 0 Path=/a,Type=tape\n", ALLOW,
     "2:20: error: Type wants fileio, blockio or nullio, not \"tape\"\n"},
    {"iet-rules", T "Lun 0 Path=/a,IOMode=rw\n", ALLOW,
     "2:22: error: IOMode wants ro, wb or wt, not \"rw\"\n"},
    {"iet-rules", T "Lun 0 Path=/a,ro\n", ALLOW, "2:15: error: Lun wants NAME=VALUE, not \"ro\"\n"},
    {"iet-rules", T "Lun 0 Type=nullio\n", ALLOW,
     "2:1: error: Type=nullio wants Sectors=NUMBER\n"
     "2:1: error: bs-type null wants a size, such as `size 1G`\n"},
    {"iet-rules", T "Lun 0 Type=nullio,Sectors=x\n", ALLOW,
     "2:27: error: Sectors wants a number, not \"x\"\n"
     "2:1: error: Type=nullio wants Sectors=NUMBER\n"
     "2:1: error: bs-type null wants a size, such as `size 1G`\n"},
    {"iet-rules", T "Lun 0 Path=/a,Colour=red\n", ALLOW,
     "2:15: lost: Colour=red has no equivalent: IET has no such parameter and passed over it; take "
     "it out\n"},
    {"iet-rules", T "IncomingUser joe\n", ALLOW,
     "2:1: error: IncomingUser wants a name and a secret\n"},
    {"iet-rules", T "NOPInterval x\n", ALLOW,
     "2:13: error: NOPInterval wants a number of seconds, not \"x\"\n"},
    {"iet-rules",
     T "NOPInterval 10\n"
       "NOPTimeout 5\n",
     ALLOW,
     "3:1: lost: NOPTimeout 5 has no equivalent: a connection that does not answer is given up "
     "after 10 seconds, when the next ping is due\n"},
    {"iet-rules",
     T "OutgoingUser a 0123456789ab\n"
       "OutgoingUser b 0123456789abc\n",
     ALLOW,
     "2:1: lost: OutgoingUser has no equivalent: IET took the last one of several, at line 3; this "
     "one can go\n"
     "3:1: warning: an outgoing account without an incoming one has no effect: nobody is asked to "
     "authenticate\n"},
    {"iet-rules", T "MaxSessions 2\n", ALLOW,
     "2:1: lost: MaxSessions has no equivalent: it limited the sessions of one target; "
     "max-sessions limits those of the daemon\n"},
    {"iet-rules", T "Wthreads 8\n", ALLOW,
     "2:1: lost: Wthreads has no equivalent: it was the number of threads for one target; here "
     "workers serve all targets, see `workers`\n"},
    {"iet-rules", T "Type 0\n", ALLOW,
     "2:1: lost: Type has no equivalent: every target serves disks; take it out\n"},
    {"iet-rules", T "MaxXmitDataSegmentLength 8192\n", ALLOW,
     "2:1: lost: MaxXmitDataSegmentLength has no equivalent: it limited what is sent at once; the "
     "initiator's MaxRecvDataSegmentLength alone does here\n"},
    {"iet-rules", T "IFMarkInt 1\n", ALLOW,
     "2:1: lost: IFMarkInt has no equivalent: markers are not sent (RFC 7143 dropped them); take "
     "it out\n"},
    {"iet-rules", T "OFMarkInt 1\n", ALLOW,
     "2:1: lost: OFMarkInt has no equivalent: markers are not sent (RFC 7143 dropped them); take "
     "it out\n"},
    {"iet-rules", T "Bogus 1\n", ALLOW,
     "2:1: lost: \"Bogus\" has no equivalent: IET knows no such word and passed over the line; "
     "take it out\n"},
    {"iet-rules", "Lun 0 Path=/a\n", ALLOW,
     "1:1: lost: Lun has no equivalent: before the first Target, IET passed over it; put it below "
     "the Target that it is for\n"},
    {"iet",
     T,
     {{NULL, NULL}},
     "0:0: warning: neither initiators.allow nor initiators.deny: nobody is admitted, as IET "
     "1.4.19 has it; with syntax iet-0.4 everybody is\n"
     "1:1: warning: target iqn.2001-04.a:b names no initiator: nobody can log in; add "
     "`initiator-address ALL`, an address or an initiator-name\n"},
    {"iet-0.4",
     T,
     {{NULL, NULL}},
     "0:0: warning: no initiators.deny: everybody is admitted, as IET 0.4 has it; with syntax iet "
     "(1.4.19) initiators.allow says who is\n"},
    {"iet",
     T,
     {{"/etc/iet/initiators.allow", "ALL ALL\n"}, {"/etc/initiators.deny", "ALL ALL\n"}},
     "0:0: warning: /etc/iet/initiators.allow is in force too: IET looks there\n"
     "0:0: warning: /etc/initiators.deny is in force too: IET looks there\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL ALL\n"}, {"initiators.deny", NULL}},
     "initiators.deny:0:0: error: cannot read the file: Permission denied\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL ALL"}},
     "initiators.allow:1:1: warning: the last line has no newline at its end: IET passes over it, "
     "here it counts\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL ALL\n"}, {"targets.allow", "ALL 192.0.2.1,eth0\n"}},
     "targets.allow:1:15: error: targets.allow wants addresses or ALL, not \"eth0\"\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL ALL\n"}, {"targets.allow", "iqn.2001-04.a:c ALL\n"}},
     "targets.allow:0:0: warning: target iqn.2001-04.a:b is at no address: it is offline, as it is "
     "out of reach in IET\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL ALL\n"},
      {"targets.allow", "# x\n"
                        "iqn.2001-04.a:b \n"}},
     "targets.allow:2:1: warning: target iqn.2001-04.a:b is at no address: it is offline, as it is "
     "out of reach in IET\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL ^iqn[0-9]$\n"}},
     "initiators.allow:1:5: lost: \"^iqn[0-9]$\" has no equivalent for target iqn.2001-04.a:b: a "
     "regular expression; write an initiator-name with *, ? and [..]; it is not admitted\n"
     "1:1: warning: target iqn.2001-04.a:b names no initiator: nobody can log in; add "
     "`initiator-address ALL`, an address or an initiator-name\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL 10.0.0.1, iqn.a:i\n"}},
     "initiators.allow:1:15: lost: \"iqn.a:i\" has no equivalent for target iqn.2001-04.a:b: IET "
     "admits who has the address or the name, here both are wanted where both are given; name its "
     "address instead; it is not admitted\n"},
    {"iet-rules",
     T,
     {{"initiators.allow", "ALL 10.0.0.1\n"}, {"initiators.deny", "ALL 10.0.0.9\n"}},
     "initiators.deny:1:1: lost: initiators.deny has no equivalent for target iqn.2001-04.a:b: it "
     "admits everybody but some; only whom initiators.allow names is admitted: add who else is to "
     "be\n"},
    {"tgt",
     "ignore-errors yes\n"
     "control-port 1\n"
     "default-driver iser\n",
     {{NULL, NULL}},
     "1:1: lost: ignore-errors yes has no equivalent: an error ends the reading, and nothing is "
     "changed\n"
     "2:1: lost: control-port 1 has no equivalent: the admin socket is named by evtgtd --socket\n"
     "3:1: lost: default-driver iser has no equivalent: iSER is not served; the targets are served "
     "over TCP\n"},
    {"tgt",
     B "driver iser\n"
       "MaxXmitDataSegmentLength 8192\n"
       "IFMarkInt 1\n"
       "OFMarkInt 1\n"
       "</target>\n",
     {{NULL, NULL}},
     "3:1: lost: driver iser has no equivalent: iSER is not served; the target is served over TCP\n"
     "4:1: lost: MaxXmitDataSegmentLength 8192 has no equivalent: the initiator's "
     "MaxRecvDataSegmentLength alone limits what is sent\n"
     "5:1: lost: IFMarkInt 1 has no equivalent: markers are not sent (RFC 7143 dropped them)\n"
     "6:1: lost: OFMarkInt 1 has no equivalent: markers are not sent (RFC 7143 dropped them)\n"},
    {"tgt",
     B "RDMAExtensions Yes\n"
       "TargetRecvDataSegmentLength 8192\n"
       "InitiatorRecvDataSegmentLength 8192\n"
       "MaxOutstandingUnexpectedPDUs 0\n"
       "</target>\n",
     {{NULL, NULL}},
     "3:1: lost: RDMAExtensions Yes has no equivalent: iSER is not served\n"
     "4:1: lost: TargetRecvDataSegmentLength 8192 has no equivalent: iSER is not served\n"
     "5:1: lost: InitiatorRecvDataSegmentLength 8192 has no equivalent: iSER is not served\n"
     "6:1: lost: MaxOutstandingUnexpectedPDUs 0 has no equivalent: iSER is not served\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "device-type tape\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: device-type tape has no equivalent: tapes are not served; the unit is left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "device-type ssc\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: device-type ssc has no equivalent: tapes are not served; the unit is left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "device-type cd\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: device-type cd has no equivalent: CDs are not served; the unit is left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "device-type changer\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: device-type changer has no equivalent: changers are not served; the unit is left "
     "out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "device-type osd\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: device-type osd has no equivalent: object storage devices are not served; the "
     "unit is left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "device-type pt\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: device-type pt has no equivalent: commands are not passed through, serve the "
     "device by direct-store; left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "bs-type sg\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: bs-type sg has no equivalent: commands are not passed through, serve the device "
     "by direct-store; left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "bs-type bsg\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: bs-type bsg has no equivalent: commands are not passed through, serve the device "
     "by direct-store; left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "bs-type ssc\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: bs-type ssc has no equivalent: tapes are not served; the unit is left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "bs-type rbd\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: bs-type rbd has no equivalent: map the image (rbd map) and serve "
     "/dev/rbd/POOL/IMAGE; left out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "bs-type glfs\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: bs-type glfs has no equivalent: mount the volume and serve the file in it; left "
     "out\n"},
    {"tgt",
     B "<backing-store /x>\n"
       "bs-type sheepdog\n"
       "</backing-store>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: bs-type sheepdog has no equivalent: serve the volume as a block device; left "
     "out\n"},
    {"tgt",
     B "</target>\n"
       "<target iqn.2001-04.a:b>\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: warning: target iqn.2001-04.a:b is given twice: tgt takes both blocks for one; the "
     "first is at f:1:1\n"},
    {"tgt",
     B "backing-store /x\n"
       "backing-store /x\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: warning: backing-store /x is given twice; the first is at f:3:1\n"},
    {"tgt",
     B "outgoinguser a 0123456789ab\n"
       "outgoinguser b 0123456789abc\n"
       "</target>\n",
     {{NULL, NULL}},
     "4:1: lost: outgoinguser has no equivalent: tgt takes the first one of several; this one can "
     "go\n"
     "3:1: warning: an outgoing account without an incoming one has no effect: nobody is asked to "
     "authenticate\n"},
    {"tgt",
     B "initiator-name iqn.2001-04.a:i\n"
       "</target>\n",
     {{NULL, NULL}},
     "3:1: warning: tgt admits who has the address or the name; here both are wanted\n"},
    {"tgt",
     "<target iqn.2001-04.a:b>\n"
     "initiator-name iqn.2001-04.a:i\n"
     "</target>\n",
     {{NULL, NULL}},
     "2:1: warning: tgt admits everybody to a target without initiator-address, whatever "
     "initiator-name says; only these names are admitted here\n"},
    {"lio",
     "{",
     {{NULL, NULL}},
     "1:1: error: this is not the JSON of a saveconfig.json: string or '}' expected\n"},
    {"lio",
     "[]\n",
     {{NULL, NULL}},
     "1:1: error: this is not the JSON of a saveconfig.json: it is no object\n"},
    {"lio",
     OBJECT TARGET LUNS ",\n"
                        "\"portals\":[{\"port\":3260}]}]}]}\n",
     {{NULL, NULL}},
     "3:12: error: a portal wants an ip_address\n" NOBODY},
    {"lio",
     OBJECT TARGET LUNS ",\n"
                        "\"portals\":[{\"ip_address\":\"192.0.2.1\",\"port\":3260,\"iser\":true,"
                        "\"offload\":true}]}]}]}\n",
     {{NULL, NULL}},
     "3:50: lost: iser has no equivalent: iSER is not served; the portal is one of iSCSI over TCP\n"
     "3:62: lost: offload has no equivalent: the kernel's TCP is used\n" NOBODY},
    {"lio",
     OBJECT TARGET "\"tag\":1,\"enable\":true},{\"tag\":2,\"enable\":true}]}]}\n",
     {{NULL, NULL}},
     "2:86: lost: this has no equivalent: a target has one set of disks and of initiators; this "
     "portal group is left out: give it a target of its own\n" UNUSED NOBODY},
    {"lio",
     "{\"targets\":[{\"wwn\":\"iqn.2003-01.a:b\",\"tpgs\":[{\"tag\":1,\"portals\":[{\"ip_address\":"
     "\"192.0.2.1\"}]}]},\n"
     "{\"wwn\":\"iqn.2003-01.a:c\",\"tpgs\":[{\"tag\":2,\"portals\":[\n"
     "{\"ip_address\":\"192.0.2.1\"}]}]}]}\n",
     {{NULL, NULL}},
     "3:2: lost: ip_address has no equivalent: the address is in a group of another tag already; a "
     "portal has one tag here\n"
     "1:14: warning: target iqn.2003-01.a:b names no initiator: nobody can log in; add "
     "`initiator-address ALL`, an address or an initiator-name\n"
     "2:2: warning: target iqn.2003-01.a:c names no initiator: nobody can log in; add "
     "`initiator-address ALL`, an address or an initiator-name\n"},
    {"lio",
     OBJECT TARGET LUNS ",\"parameters\":{\"MaxXmitDataSegmentLength\":\"8192\",\"IFMarkInt\":"
                        "\"1\",\"OFMarkInt\":\"1\"}}]}]}\n",
     {{NULL, NULL}},
     "2:138: lost: MaxXmitDataSegmentLength has no equivalent: the initiator's "
     "MaxRecvDataSegmentLength alone limits what is sent\n"
     "2:172: lost: IFMarkInt has no equivalent: markers are not sent (RFC 7143 dropped them)\n"
     "2:188: lost: OFMarkInt has no equivalent: markers are not sent (RFC 7143 dropped "
     "them)\n" NOBODY},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"attributes\":{\"cache_dynamic_acls\":1,\"default_erl\":1,\"login_timeout\":9,\"netif_"
     "timeout\":3,\"t10_pi\":1,\"fabric_prot_type\":1}}]}]}\n",
     {{NULL, NULL}},
     "3:15: lost: cache_dynamic_acls has no equivalent: initiators need not be remembered\n"
     "3:38: lost: default_erl has no equivalent: write ErrorRecoveryLevel\n"
     "3:54: lost: login_timeout has no equivalent: login-timeout is one for the daemon\n"
     "3:72: lost: netif_timeout has no equivalent: there is no such wait\n"
     "3:90: lost: t10_pi has no equivalent: protection information is not served\n"
     "3:101: lost: fabric_prot_type has no equivalent: protection information is not "
     "served\n" NOBODY},
    {"lio",
     OBJECT "\"targets\":[{\"fabric\":\"qla2xxx\",\"wwn\":\"iqn.2003-01.a:b\",\"tpgs\":[{" LUNS
            "}]}]}\n",
     {{NULL, NULL}},
     "2:13: lost: fabric has no equivalent: only iSCSI is served; the target is left out\n" UNUSED},
    {"lio",
     OBJECT "\"targets\":[{\"fabric\":\"iscsi\",\"tpgs\":[{" LUNS "}]}]}\n",
     {{NULL, NULL}},
     "2:12: error: a target wants a wwn, which is its name\n" UNUSED},
    {"lio",
     OBJECT TARGET LUNS "}]}],\"fabric_modules\":[{\"name\":\"srpt\"}]}\n",
     {{NULL, NULL}},
     "2:147: lost: name has no equivalent: only iSCSI is served\n" NOBODY},
    {"lio",
     OBJECT TARGET "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/fileio/b\"}]}]}]}\n",
     {{NULL, NULL}},
     "2:82: error: there is no storage object /backstores/fileio/b\n" UNUSED NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"fileio\",\"name\":\"a\",\"write_back\":true,\"wwn\":"
     "\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n" TARGET LUNS "}]}]}\n",
     {{NULL, NULL}},
     "1:21: error: a storage object of fileio wants a dev\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"fileio\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true}],\n" TARGET LUNS "}]}]}\n",
     {{NULL, NULL}},
     "1:21: lost: the object has no wwn: LIO gives it one at each start; the disk has an identity "
     "of its own here\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"ramdisk\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n" TARGET
     "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/ramdisk/a\"}]}]}]}\n",
     {{NULL, NULL}},
     "1:22: lost: plugin has no equivalent: a disk in memory; put a file into /dev/shm and serve "
     "that; the disk is left out\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"pscsi\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n" TARGET
     "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/pscsi/a\"}]}]}]}\n",
     {{NULL, NULL}},
     "1:22: lost: plugin has no equivalent: commands are not passed through to a device; serve it "
     "as a block device, or with direct-store; the disk is left out\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"user\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n" TARGET
     "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/user/a\"}]}]}]}\n",
     {{NULL, NULL}},
     "1:22: lost: plugin has no equivalent: programs behind tcmu-runner are not used; serve the "
     "volume as a block device (rbd map, qemu-nbd); the disk is left out\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"tape\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n" TARGET
     "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/tape/a\"}]}]}]}\n",
     {{NULL, NULL}},
     "1:22: lost: plugin has no equivalent: this kind of storage object is not known; left "
     "out\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"fileio\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\",\"alua_tpgs\":[{"
     "\"alua_access_state\":1}]}],\n" TARGET LUNS "}]}]}\n",
     {{NULL, NULL}},
     "1:138: lost: this has no equivalent: all paths are alike (no ALUA groups); take it "
     "out\n" NOBODY},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"fileio\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\",\n"
     "\"attributes\":{\"emulate_rest_reord\":1,\"emulate_ua_intlck_ctrl\":1,\"emulate_tas\":0,"
     "\"enforce_pr_isids\":0,\"force_pr_aptpl\":1,\"pi_prot_type\":1,\"pi_prot_format\":1,\"pi_"
     "prot_verify\":1,\"alua_support\":0,\"pgr_support\":0,\"emulate_pr\":0}}],\n" TARGET LUNS
     "}]}]}\n",
     {{NULL, NULL}},
     "2:15: lost: emulate_rest_reord has no equivalent: commands are ordered as the standard says\n"
     "2:38: lost: emulate_ua_intlck_ctrl has no equivalent: unit attentions are not interlocked\n"
     "2:65: lost: emulate_tas has no equivalent: aborted commands end with TASK ABORTED, as by "
     "default\n"
     "2:81: lost: enforce_pr_isids has no equivalent: there is no such switch\n"
     "2:102: lost: force_pr_aptpl has no equivalent: there is no such switch\n"
     "2:121: lost: pi_prot_type has no equivalent: protection information is not served\n"
     "2:138: lost: pi_prot_format has no equivalent: protection information is not served\n"
     "2:157: lost: pi_prot_verify has no equivalent: protection information is not served\n"
     "2:176: lost: alua_support has no equivalent: all paths are alike\n"
     "2:193: lost: pgr_support has no equivalent: there is no such switch\n"
     "2:209: lost: emulate_pr has no equivalent: there is no such switch\n"
     "3:30: warning: target iqn.2003-01.a:b names no initiator: nobody can log in; add "
     "`initiator-address ALL`, an address or an initiator-name\n"},
    {"lio",
     OBJECT TARGET LUNS ",\n"
                        "\"attributes\":{\"authentication\":1},\n"
                        "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{"
                        "\"index\":0,\"tpg_lun\":0}]}]}]}]}\n",
     {{NULL, NULL}},
     "4:15: lost: node_wwn has no equivalent: authentication is wanted and there is no account: "
     "LIO refuses it every login; it is not admitted\n" NOBODY},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":0}"
     "],\"chap_userid\":\"u\",\"chap_password\":\"0123456789ab\"}]}]}]}\n",
     {{NULL, NULL}},
     "3:84: lost: chap_userid has no equivalent: authentication is off, LIO does not ask for this "
     "account; write it as incominguser to have it asked for\n"},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"attributes\":{\"authentication\":1},\n"
     "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":0}"
     "],\"chap_userid\":\"u\",\"chap_password\":\"0123456789ab\"},{\"node_wwn\":\"iqn.2000-01.a:"
     "j\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":0}],\n"
     "\"attributes\":{\"authentication\":0}}]}]}]}\n",
     {{NULL, NULL}},
     "4:135: lost: node_wwn has no equivalent: the others must authenticate, this one need not; a "
     "target asks all of them or none; it is not admitted\n"},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"attributes\":{\"authentication\":1},\n"
     "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":0}"
     "],\"chap_userid\":\"u\",\"chap_password\":\"0123456789ab\",\"chap_mutual_userid\":\"m\","
     "\"chap_mutual_password\":\"0123456789abc\"},{\"node_wwn\":\"iqn.2000-01.a:j\",\"mapped_"
     "luns\":[{\"index\":0,\"tpg_lun\":0}],\"chap_userid\":\"w\",\"chap_password\":"
     "\"0123456789ab\",\"chap_mutual_userid\":\"n\",\"chap_mutual_password\":\"0123456789abc\"}]}]}"
     "]}\n",
     {{NULL, NULL}},
     "4:317: lost: chap_mutual_userid has no equivalent: a target proves itself by one account to "
     "all; the first is taken\n"},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":0}"
     "]},{\"node_wwn\":\"iqn.2000-01.a:j\",\"mapped_luns\":[]}]}]}]}\n",
     {{NULL, NULL}},
     "3:86: lost: node_wwn has no equivalent: it sees other disks than the first initiator; all "
     "see the same here; it is not admitted: give it a target of its own\n"},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[]}]}]}]}\n",
     {{NULL, NULL}},
     "2:72: lost: index has no equivalent: no initiator sees this disk; it is left out\n" UNUSED},
    {"lio",
     OBJECT TARGET LUNS
     ",\n"
     "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":0}"
     "],\n"
     "\"attributes\":{\"dataout_timeout\":1,\"dataout_timeout_retries\":1,\"default_erl\":1,"
     "\"nopin_timeout\":1,\"nopin_response_timeout\":1,\"random_datain_pdu_offsets\":1,\"random_"
     "datain_seq_offsets\":1,\"random_r2t_offsets\":1}}]}]}]}\n",
     {{NULL, NULL}},
     "4:15: lost: dataout_timeout has no equivalent: there is no such setting\n"
     "4:35: lost: dataout_timeout_retries has no equivalent: there is no such setting\n"
     "4:63: lost: default_erl has no equivalent: write ErrorRecoveryLevel in the target\n"
     "4:79: lost: nopin_timeout has no equivalent: nop_interval is one for the target\n"
     "4:97: lost: nopin_response_timeout has no equivalent: nop_count is one for the target\n"
     "4:124: lost: random_datain_pdu_offsets has no equivalent: data are sent in order\n"
     "4:154: lost: random_datain_seq_offsets has no equivalent: data are sent in order\n"
     "4:184: lost: random_r2t_offsets has no equivalent: data are asked for in order\n"},
    {"lio",
     OBJECT TARGET LUNS ",\n"
                        "\"attributes\":{\"generate_node_acls\":1,\"authentication\":1}}]}]}\n",
     {{NULL, NULL}},
     "3:38: lost: authentication has no equivalent: authentication is wanted and there is no "
     "account: LIO refuses every login; the target is offline\n"},
    {"lio",
     OBJECT TARGET LUNS ",\n"
                        "\"attributes\":{\"generate_node_acls\":1},\n"
                        "\"node_acls\":[{\"node_wwn\":\"iqn.2000-01.a:i\",\"mapped_luns\":[{"
                        "\"index\":0,\"tpg_lun\":0}]}]}]}]}\n",
     {{NULL, NULL}},
     "3:15: lost: generate_node_acls has no equivalent: there are rights for some initiators and "
     "others for everybody else; only those that are named are admitted\n"},
    {"lio",
     "{\"storage_objects\":[{\"plugin\":\"fileio\",\"name\":\"a\",\"dev\":\"/"
     "a\",\"write_back\":true,\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"},{\"plugin\":"
     "\"block\",\"name\":\"c\",\"dev\":\"/"
     "c\",\"wwn\":\"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63\"}],\n" TARGET LUNS "}]}]}\n",
     {{NULL, NULL}},
     "1:144: lost: name has no equivalent: no disk of an iSCSI target is made of this storage "
     "object; nothing is served\n" NOBODY},
};

static char *said[512];
static size_t nsaid;

static void
add_file(json_t *files, const char *path, const char *text)
{
    json_t *f = text ? json_pack("{s:s, s:s, s:b, s:i, s:i, s:i}", "path", path, "text", text,
                                 "regular", 1, "mode", 0600, "uid", 0, "gid", 0)
                     : json_pack("{s:s, s:i}", "path", path, "error", 13); /* EACCES */
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    json_array_append_new(files, f);
}

static char *
told(const struct conf_report *r)
{
    char *got = xstrdup("");

    for (unsigned i = 0; i < r->n; i++) {
        const struct conf_msg *m = &r->v[i];
        const char *file = strcmp(m->file, "f") == 0 ? "" : m->file;
        char *more =
            xasprintf("%s%s%s%u:%u: %s: %s\n", got, file, *file ? ":" : "", m->line, m->col,
                      m->is_error  ? "error"
                      : m->is_loss ? "lost"
                                   : "warning",
                      m->text);
        free(got);
        got = more;
        CU_ASSERT_FATAL(nsaid < sizeof said / sizeof *said);
        said[nsaid++] = xstrdup(m->text);
    }
    return got;
}

static void
judge(size_t i)
{
    json_t *files = json_array();
    struct conf_report r;
    char err[200] = "";

    add_file(files, "f", cases[i].text);
    for (size_t k = 0; k < 2 && cases[i].files[k].path; k++)
        add_file(files, cases[i].files[k].path, cases[i].files[k].text);
    json_t *j =
        json_pack("{s:i, s:s, s:s, s:b, s:i, s:o, s:[]}", "version", 1, "name", "f", "syntax",
                  cases[i].syntax, "memory", 0, "uid", 0, "files", files, "lists");
    struct conf_bundle *b = conf_bundle_unpack(j, err, sizeof err);
    if (!b)
        printf("%s\n", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    conf_report_init(&r);
    struct conf *c = conf_read_bundle(b, apply_checks(), &r);
    CU_ASSERT_EQUAL(!c, r.nerrors != 0);
    char *got = told(&r);
    if (getenv("CONF_ERRORS_SHOW"))
        printf("@@%s@@\n", got);
    else if (strcmp(got, cases[i].messages) != 0)
        printf("input:\n%s--- said:\n%s--- expected:\n%s", cases[i].text, got, cases[i].messages);
    CU_ASSERT_STRING_EQUAL(got, cases[i].messages);
    free(got);
    conf_free(c);
    conf_report_fini(&r);
    conf_bundle_free(b);
    json_decref(j);
}

static void
test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        judge(i);
}

/* --- the messages in the sources -------------------------------------------------------------- */

static bool
has_case(const char *pattern)
{
    for (size_t i = 0; i < nsaid; i++) {
        if (fnmatch(pattern, said[i], 0) == 0)
            return true;
    }
    return false;
}

/* The literal at s (behind its quote), and those that follow it, added to a pattern of fnmatch. */
static const char *
literal(const char *s, char *out, size_t size)
{
    size_t k = strlen(out);

    for (;;) {
        for (; *s && *s != '"' && k + 4 < size; s++) {
            if (*s == '%') {
                out[k++] = '*';
                while (s[1] && strchr("0123456789.lzh", s[1]))
                    s++;
                s++;
            } else {
                if (strchr("*?[", *s) || *s == '\\')
                    out[k++] = '\\';
                s += *s == '\\';
                out[k++] = *s;
            }
        }
        const char *next = s + (*s == '"');
        next += strspn(next, " \n");
        if (*next != '"' || k + 4 >= size)
            break;
        s = next + 1;
    }
    out[k++] = '*';
    out[k] = '\0';
    return s + (*s == '"');
}

/* Words that somebody is to read have blanks and no sign that only code has. */
static bool
is_message(const char *pattern)
{
    unsigned blanks = 0, letters = 0;

    for (const char *p = pattern; *p; p++) {
        blanks += *p == ' ';
        letters += isalpha((unsigned char)*p) != 0;
    }
    return blanks > 0 && letters > 9;
}

static unsigned
look_at(const char *path)
{
    char pattern[1024], *text = xcalloc(1, 200000);
    unsigned n = 0;
    FILE *f = fopen(path, "r");

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT(fread(text, 1, 199999, f) > 0);
    fclose(f);
    for (const char *p = text; *p;) {
        if (strncmp(p, "/*", 2) == 0) {
            p = strstr(p, "*/");
            CU_ASSERT_PTR_NOT_NULL_FATAL(p);
            p += 2;
        } else if (*p == '\'') { /* a character */
            p += p[1] == '\\' ? 4 : 3;
        } else if (*p == '"') {
            memcpy(pattern, "*", 2);
            p = literal(p + 1, pattern, sizeof pattern);
            if (!is_message(pattern))
                continue;
            n++;
            if (!has_case(pattern)) {
                printf("%s: no case says: %s\n", path, pattern);
                CU_FAIL("a message without a case");
            }
        } else {
            p++;
        }
    }
    free(text);
    return n;
}

static void
test_all_messages(void)
{
    const char *srcdir = getenv("srcdir");
    char *pattern = xasprintf("%s/conf/syntax*.c", srcdir ? srcdir : ".");
    unsigned n = 0;
    glob_t g;

    CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        n += look_at(g.gl_pathv[i]);
    CU_ASSERT(n > 70); /* they were found at all */
    globfree(&g);
    free(pattern);
    for (size_t i = 0; i < nsaid; i++)
        free(said[i]);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"cases", test_cases},
        {"every message has a case", test_all_messages},
    };
    return UNIT_RUN("syntax-errors", tests);
}
