/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every message of the parser: one input each, with its exact place and words.  The messages are
 * read out of the sources of conf/, so that a new one without a case here fails.
 */
#include "config.h"

#include <ctype.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "conf/conf.h"
#include "target/model.h"
#include "tests/unit/unit.h"

#define T                                                                                          \
    "<target iqn.2001-04.a:b>\n"                                                                   \
    "initiator-address ALL\n"
#define E "</target>\n"
#define B "<backing-store /x>\n"
#define F "</backing-store>\n"
#define Z "<backing-store z>\nbs-type zram\n"
#define P "<portal 1.2.3.4>\n"
#define Q "</portal>\n"

/* In an input \1 is a NUL, \2 70000 letters, \3 33000, \4 260, \5 1100, and %D the directory of the
 * files that cases name.  A message is `line:column: text`, of a warning `line:column: warning:
 * text`; one of another file begins with its name. */
static const struct {
    const char *input, *messages;
} cases[] = {
    {"worker 2\n",
     "1:1: unknown directive \"worker\" outside of any block; did you mean workers?\n"},
    {T "include ietd\n" E, "ietd:0:0: a file of IET or LIO cannot be included in a block\n"},
    {"vendor_id X\n",
     "1:1: vendor_id does not belong outside of any block; it stands in a <target> block\n"},
    {T "workers 2\n" E,
     "3:1: workers does not belong in a <target> block; it stands outside of any block\n"},
    {"workers 0\n", "1:9: workers wants a number from 1 to 64, not \"0\"\n"},
    {"workers\n", "1:8: workers wants a value\n"},
    {"workers 2\n"
     "workers 3\n",
     "2:1: workers is given twice; the first is at f:1:1\n"},
    {"<workers 2>\n"
     "</workers>\n",
     "1:1: workers is no block; write it as `workers value`\n"},
    {"placement everywhere\n", "1:11: placement wants spread or affine, not \"everywhere\"\n"},
    {"discovery-filter some\n",
     "1:18: discovery-filter wants name, portal, all or authenticated, not \"some\"\n"},
    {"ids lio\n", "1:5: ids wants evtgt, tgt or iet, not \"lio\"\n"},
    {"state-dir x\n", "1:11: state-dir wants an absolute path, not \"x\"\n"},
    {"user /x\n", "1:6: user wants NAME or NAME:GROUP, not \"/x\"\n"},
    {"default-driver iser\n", "1:16: default-driver: only iscsi is served, not \"iser\"\n"},
    {"ignore-errors yes\n", "1:15: warning: ignore-errors has no effect here\n"},
    {"autosave perhaps\n", "1:10: autosave wants on or off, not \"perhaps\"\n"},
    {"iSNS perhaps\n", "1:6: iSNS wants on or off, not \"perhaps\"\n"},
    {"dscp af44\n",
     "1:6: dscp wants a number from 0 to 63, cs0 to cs7, af11 to af43 or ef, not \"af44\"\n"},
    {"incomingdiscoveryuser a\n", "1:23: incomingdiscoveryuser wants a name and a secret\n"},
    {"account a\n", "1:9: account wants a name and a secret\n"},
    {"account a 0123456789ab\nincominguser a 0123456789ab\n",
     "1:1: warning: account a is bound at f:2:1: this line says nothing\n"},
    {"incominguser a @/nonexistent/secret\n",
     "1:16: incominguser: /nonexistent/secret: No such file or directory\n"},
    {"incominguser a @etc/x\n", "1:16: warning: incominguser: this is taken for the secret itself; "
                                "one in a file is written @/PATH, from the root\n"
                                "1:16: warning: incominguser: the secret has 6 bytes; one of less "
                                "than 12 can be found by trying (RFC 7143 9.2.1)\n"},
    {"incominguser a \"0123456789ab\n", "1:16: incominguser: a quote is not closed\n"},
    {"incominguser a \004\n", "1:16: incominguser: a secret holds at most 255 bytes\n"},
    {"incominguser \004 0123456789ab\n", "1:14: incominguser: a name holds at most 255 bytes\n"},
    {"incominguser a short\n", "1:16: warning: incominguser: the secret has 5 bytes; one of less "
                               "than 12 can be found by trying (RFC 7143 9.2.1)\n"},
    {"outgoinguser a 0123456789ab\n"
     "outgoinguser b 0123456789abc\n",
     "2:1: a second outgoing account; the first is at f:1:1\n"},
    {"outgoinguser a 0123456789ab iqn.a:i\n", "1:29: outgoinguser wants a name and a secret; only "
                                              "an incominguser can be limited to initiators\n"},
    {"incominguser a 0123456789ab\n"
     "incominguser a 0123456789ac\n",
     "2:1: account a is given twice; the first is at f:1:1\n"},
    {"incominguser a 0123456789ab laptop\n", "1:29: warning: incominguser: \"laptop\" fits no "
                                             "initiator: names begin with iqn., eui. or naa.\n"},
    {"incominguser a 0123456789ab\n"
     "outgoinguser b 0123456789ab\n",
     "2:1: the same secret for both directions (RFC 7143 9.2.1); the other is at f:1:1\n"},
    {"outgoinguser a 0123456789ab\n" T E, ""},
    {"outgoinguser a 0123456789ab\n" T "incominguser b 0123456789ab\n" E,
     "4:1: the same secret for both directions (RFC 7143 9.2.1); the other is at f:1:1\n"},
    {T "outgoinguser a 0123456789ab\n" E, "3:1: warning: an outgoing account without an incoming "
                                          "one has no effect: nobody is asked to authenticate\n"},
    {"incominguser a @/dev/null\n", "1:16: incominguser: /dev/null: no regular file\n"},
    {"chap-algorithms md4\n",
     "1:17: chap-algorithms wants a comma list of md5, sha1, sha256, sha3-256, not \"md4\"\n"},
    {"chap-legacy-sha1-7 perhaps\n", "1:20: chap-legacy-sha1-7 wants on or off, not \"perhaps\"\n"},
    {"iSNS On\n", "1:1: iSNS On wants an iSNSServerIP\n"},
    {"iSNSServerIP x\n", "1:14: iSNSServerIP: \"x\" is no address of an iSNS server: want a number "
                         "such as 192.0.2.1, 192.0.2.1:3205 or [2001:db8::1]:3205\n"
                         "1:1: warning: iSNSServerIP has no effect without `iSNS On`\n"},
    {"iSNSServerIP 1.2.3.4\n", "1:1: warning: iSNSServerIP has no effect without `iSNS On`\n"},
    {"iSNSAccessControl On\n",
     "1:1: iSNSAccessControl On wants `iSNS On`: nobody would say who may log in\n"},
    {"iSNSServerIP 1.2.3.4\n"
     "iSNSServerIP 1.2.3.4\n",
     "2:1: iSNSServerIP is given twice; the first is at f:1:1\n"
     "1:1: warning: iSNSServerIP has no effect without `iSNS On`\n"},
    {"syntax perl\n", "1:8: syntax wants tgt, not \"perl\"\n"},
    {"portal ::1:3260\n",
     "1:8: warning: portal: ::1:3260 is an address without a port; did you mean [::1]:3260?\n"},
    {"portal [::1]:3260\nportal 2001:db8::3260\n", ""},
    {"portal nowhere\n", "1:8: portal: \"nowhere\" is no numeric address; want 192.0.2.1:3260, "
                         "[2001:db8::1]:3260 or iface:NAME:3260\n"},
    {"portal 1.2.3.4\n"
     "portal 1.2.3.4\n",
     "2:1: portal is given twice; the first is at f:1:1\n"},
    {"portal 1.2.3.4\nportal none\n",
     "2:8: portal none means that there is no other portal, and no block\n"},
    {"portal none\nportal 1.2.3.4\n",
     "2:8: portal none means that there is no other portal, and no block\n"},
    {"<portal none>\ngroup 2\n" Q,
     "1:9: portal none means that there is no other portal, and no block\n"},
    {P "group x\n" Q, "2:7: group wants a number from 0 to 65535, not \"x\"\n"},
    {P "advertise a_b\n" Q, "2:11: advertise: \"a_b\" is neither a host name nor an address\n"},
    {"initiators-allow x\n", "1:18: initiators-allow wants an absolute path, not \"x\"\n"},
    {"initiators-allow /nonexistent/allow\n",
     "1:18: initiators-allow: cannot read /nonexistent/allow: No such file or directory\n"},
    {"initiators-deny %D/pipe\n", "1:17: initiators-deny: %D/pipe is no regular file\n"},
    {"initiators-allow %D/nul\n", "%D/nul:0:0: a NUL byte in it: this is not a text file\n"},
    {"initiators-allow %D/badallow\n", ""},
    {"initiators-allow %D/warnallow\n",
     "%D/warnallow:1:1: warning: 10.0.0.1/8 has bits set beyond its prefix; they are ignored\n"},
    {"initiators-deny %D/noend\n",
     "%D/noend:2:1: warning: the last line has no newline at its end: IET passes over it, here it "
     "counts\n"},
    {"initiators-deny %D/noname\n", "%D/noname:1:1: warning: no target has the name \"a\377\": "
                                    "name is not UTF-8; the line counts for nothing\n"},
    {"targets-allow /dev/null\n", "1:1: targets-allow wants initiators-allow or initiators-deny "
                                  "beside it; where one target is shown says its local-address\n"},
    {"target iqn.2001-04.a:b\n", "1:1: a target is a block: <target NAME> ... </target>\n"},
    {"<target \004>\n" E, "1:9: a target name holds at most 223 bytes\n"},
    {"<target foo>\n" E, "1:9: \"foo\" is no target name: name must begin with iqn., eui. or naa.\n"
                         "1:1: warning: target foo names no initiator: nobody can log in; add "
                         "`initiator-address ALL`, an address or an initiator-name\n"},
    {T E T E, "4:1: target iqn.2001-04.a:b is given twice; the first is at f:1:1\n"},
    {"<target iqn.2001-04.a:b>\n" E,
     "1:1: warning: target iqn.2001-04.a:b names no initiator: nobody can log in; add "
     "`initiator-address ALL`, an address or an initiator-name\n"},
    {"syntax tgt\n"
     "<target iqn.2001-04.a:b>\n" E,
     "2:1: warning: target iqn.2001-04.a:b names no initiator: everybody is admitted (syntax "
     "tgt)\n"},
    {T "controller_tid 1\n" E "<target iqn.2001-04.a:c>\n"
       "initiator-address ALL\n"
       "controller_tid 1\n" E,
     "5:1: controller_tid 1 is given twice; the first is target iqn.2001-04.a:b at f:1:1\n"},
    {T "portal-group x\n" E, "3:14: portal-group wants a number from 0 to 65535, not \"x\"\n"},
    {T "portal-group 2\n" E, "3:14: no portal is in group 2\n"},
    {T "portal 1.2.3.4\n" E,
     "3:8: there is no portal 1.2.3.4:3260; portals are declared outside of the targets\n"},
    {T "portal x\n" E, "3:8: portal: \"x\" is no numeric address; want 192.0.2.1:3260, "
                       "[2001:db8::1]:3260 or iface:NAME:3260\n"},
    {T "initiator-address nonsense\n" E,
     "3:19: initiator-address: \"nonsense\" is no address: ALL, an IPv4 or IPv6 address, one with "
     "/0../32 or /0../128, or iface:NAME\n"},
    {T "initiator-address 10.0.0.1/8\n" E, "3:19: warning: initiator-address: 10.0.0.1/8 has bits "
                                           "set beyond its prefix; they are ignored\n"},
    {T "initiator-name laptop\n" E, "3:16: warning: initiator-name: \"laptop\" fits no initiator: "
                                    "names begin with iqn., eui. or naa.\n"},
    {T "initiator-name iqn.[a\n" E,
     "3:16: initiator-name: initiator name \"iqn.[a\": a [ has no ]\n"},
    {T "<MaxBurstLength 1>\n"
       "</MaxBurstLength>\n" E,
     "3:1: MaxBurstLength is no block; write it as `MaxBurstLength value`\n"},
    {T "MaxBurstLength 1\n" E, "3:16: MaxBurstLength must be 512..16777215\n"},
    {T "alias \"My disk\n" E, "3:7: alias: a quote is not closed\n"},
    {T "<backing-store \"/x>\n" F E, "3:16: backing-store: a quote is not closed\n"
                                     "3:16: a backing store wants an absolute path\n"},
    {"syntax tgt\n" T "alias \"My disk\n" E,
     "4:7: warning: alias: a quote is not closed; it is a part of the value\n"},
    {T "alias My \"disk\n" E, ""},
    {T "MaxConnections 8\n" E, "3:16: warning: MaxConnections can be at most 1 here\n"},
    {"syntax tgt\n" T "DataPDUInOrder No\n" E,
     "4:16: warning: DataPDUInOrder can only be Yes here\n"},
    {T "MaxBurstLength 512\n"
       "MaxBurstLength 512\n" E,
     "4:1: MaxBurstLength is given twice; the first is at f:3:1\n"},
    {T "RedirectPort x\n" E, "3:14: RedirectPort: a number from 1 to 65535 is wanted, not \"x\"\n"},
    {T "discoverable perhaps\n" E, "3:14: discoverable wants yes or no, not \"perhaps\"\n"},
    {T "state up\n" E, "3:7: state wants ready or offline, not \"up\"\n"},
    {T "alias \004\n" E, "3:7: alias wants a text of 1 to 255 bytes\n"},
    {T "driver iser\n" E, "3:8: driver: only iscsi is served, not \"iser\"\n"},
    {T "lun 1\n"
       "backing-store /x\n"
       "backing-store /y\n" E,
     "3:1: lun for several backing stores; write <backing-store PATH> blocks, each with its own "
     "lun\n"},
    {T B "lun 1\n" F "<backing-store /y>\n"
         "lun 1\n" F E,
     "7:5: LUN 1 is given twice in this target; the first is at f:4:5\n"},
    {T "backing-store x\n" E, "3:15: a backing store wants an absolute path\n"},
    {T "backing-store /x\n"
       "backing-store /x\n" E,
     "4:1: /x is a logical unit of this target already, at f:3:1\n"},
    {T B F E "<target iqn.2001-04.a:c>\n"
             "initiator-address ALL\n" B "readonly on\n" F E,
     "8:1: /x is a logical unit at f:3:1 already, with other settings; give both the same "
     "settings, or `allow-in-use yes`\n"},
    {T B "scsi_sn 1\n" F "<backing-store /y>\n"
         "scsi_sn 1\n" F E,
     "7:9: two different logical units have the same scsi_sn; the other is at f:4:9: initiators "
     "would take them for one disk\n"},
    {T B "write-cache perhaps\n" F E, "4:13: write-cache wants on or off, not \"perhaps\"\n"},
    {T B "scsi_id \303\244\n" F E, "4:9: scsi_id may hold printable ASCII only\n"},
    {T B "scsi_id \004\n" F E, "4:9: scsi_id holds at most 63 characters, this has 260\n"},
    {T B "vendor_id 123456789\n" F E,
     "4:11: warning: vendor_id holds 8 characters: cut to \"12345678\"\n"},
    {T B "scsi_i x\n" F E,
     "4:1: unknown directive \"scsi_i\" in a <backing-store> block; did you mean scsi_id?\n"},
    {T B "bsopts \005\n" F E, "4:8: bsopts is longer than 1023 bytes\n"},
    {T B "bsopts a=b\n" F E, "3:1: fileio: there is no bsopts 'a'\n"},
    {T B "device-type tape\n" F E, "4:13: device-type: only disk is served, not \"tape\"\n"},
    {T B "bs-type sg\n" F E,
     "4:9: bs-type \"sg\" is not known; there are rdwr, fileio, aio, blockio, null, zram\n"},
    {T B "bsoflags x\n" F E, "4:10: bsoflags wants direct, sync or sync:direct, not \"x\"\n"},
    {T B "layer a b\n" F E, "4:7: layer wants NAME or NAME:options without blanks\n"},
    {T B "block-size 513\n" F E, "4:12: block-size wants 512 or 4096, not \"513\"\n"},
    {T B "rotation_rate 2\n" F E, "4:15: rotation_rate wants 0, 1 or 1025 to 65534, not \"2\"\n"},
    {T B "size 1X\n" F E, "4:6: size wants bytes, or a number with K, M, G or T, not \"1X\"\n"},
    {T B "size 1G\n" F E,
     "3:1: size is for bs-type null and zram only; a file or device has its own\n"},
    {T B "bs-type null\n" F E, "3:1: bs-type null wants a size, such as `size 1G`\n"},
    {T B "bs-type null\n"
         "size 513\n" F E,
     "3:1: size is not a whole number of blocks\n"},
    {T Z F E, "3:1: bs-type zram wants a size, such as `size 8G`\n"},
    {T "<backing-store /x>\nbs-type zram\nsize 8M\n" F E,
     "3:1: bs-type zram wants a name of letters, digits, dots, dashes and underscores in place of "
     "a "
     "path, such as `<backing-store scratch>`\n"},
    {T Z "size 5000\n" F E,
     "3:1: size is not a whole number of chunks (chunk-size, 4K unless said)\n"},
    {T Z "size 68K\nchunk-size 64K\n" F E,
     "3:1: size is not a whole number of chunks (chunk-size, 4K unless said)\n"},
    {T Z "size 8M\nbsoflags direct\n" F E,
     "3:1: bsoflags direct is for files and devices; zram is memory\n"},
    {T Z "size 8M\nbsopts a=b\n" F E, "3:1: zram: there is no bsopts 'a'\n"},
    {T Z "size 8M\nalgorithm arj\n" F E,
     "6:11: algorithm wants lz4, lz4hc, zstd or deflate, not \"arj\"\n"},
    {T Z "size 8M\nlevel 2\n" F E, "3:1: zram: lz4 has no levels\n"},
    {T Z "size 8M\nlevel 23\n" F E, "6:7: level wants a number from 0 to 22, not \"23\"\n"},
    {T Z "size 8M\nalgorithm lz4hc\nlevel 22\n" F E,
     "3:1: zram: lz4hc has levels from 1 to 12, not 22\n"},
    {T Z "size 8M\nchunk-size 2K\n" F E,
     "6:12: chunk-size wants 4K, 8K, 16K, 32K or 64K, not \"2K\"\n"},
    {T Z "size 8M\nmem-limit 1K\n" F E, "6:11: mem-limit wants bytes, or a number with K, M, G or "
                                        "T, from 1M on, or 0 for its default, "
                                        "not \"1K\"\n"},
    {"zram-mem-limit much\n",
     "1:16: zram-mem-limit wants bytes, or a number with K, M, G or T, from 1M on, or 0 for its "
     "default, not \"much\"\n"},
    {T Z "size 1024T\n" F E, "3:1: zram: chunks of 4096 bytes hold at most 16 TiB\n"},
    {T B "level 1\n" F E,
     "3:1: algorithm, level, chunk-size, mem-limit and volatile-ack are for bs-type zram only\n"},
    {T Z "size 8M\n" F Z "size 8M\n" F E,
     "7:1: z is a logical unit of this target already, at f:3:1\n"},
    {T B "naa 1\n" F E,
     "4:5: naa wants 16 hexadecimal digits that start with 2, 3 or 5, or 32 that start with 6\n"},
    {T B "eui 1\n" F E, "4:5: eui wants 16, 24 or 32 hexadecimal digits\n"},
    {T B "designator x 30\n" F E,
     "4:12: designator wants t10, t10-binary, eui, naa or name, and hexadecimal digits\n"},
    {T B "designator naa \004\n"
         "designator naa \004\n" F E,
     "5:12: designator: all together hold at most 200 bytes\n"},
    {T B "sense_format 2\n" F E,
     "4:14: sense_format wants 0 (fixed) or 1 (descriptor), not \"2\"\n"},
    {T B "path /y\n" F E, "4:1: path: a file gives a disk's path by backing-store\n"},
    {T B "params x=1\n" F E, "4:8: params: \"x\" is not known\n"},
    {T B "params x\n" F E, "4:8: params wants NAME=VALUE, not \"x\"\n"},
    {T B "mode_page x\n" F E, "4:11: mode_page wants PAGE:SUBPAGE:LENGTH:BYTE:... with as many "
                              "bytes (0 to 255) as LENGTH says, at most 64, or none; not \"x\"\n"},
    {T B "lun 16384\n" F E, "4:5: lun wants a number from 0 to 16383, not \"16384\"\n"},
    {"ids tgt\n" T B "scsi_id 0123456789012345678901234567890123456\n" F E,
     "4:1: ids tgt: scsi_id and scsi_sn hold at most 36 characters\n"},
    {"ids iet\n" T B "scsi_id 0123456789abcdefX\n" F E,
     "4:1: ids iet: scsi_id holds at most 16 characters, scsi_sn 32\n"},
    {"<target iqn.2001-04.a:b\n", "1:1: a block starts with <name value>: the \">\" is missing\n"},
    {"<worker 1>\n"
     "<worker 1>\n"
     "<worker 1>\n"
     "<worker 1>\n"
     "<worker 1>\n"
     "</worker>\n"
     "</worker>\n"
     "</worker>\n"
     "</worker>\n",
     "5:1: blocks are nested too deep\n"
     "1:1: unknown directive \"worker\" outside of any block; did you mean workers?\n"},
    {"<>\n", "1:1: a block without a name\n"},
    {T "</target\n" E, "3:1: a block ends with </name>: the \">\" is missing\n"},
    {E, "1:1: </target> closes a block that is not open in this file\n"},
    {T Q, "3:1: </portal> closes <target> of line 1; want </target>\n"},
    {T, "1:1: <target> is never closed; want </target>\n"},
    {"include\n", "1:1: include wants a file, a directory or a pattern\n"},
    {"include nothing\n", "1:9: cannot read nothing: No such file or directory\n"},
    {"include loop\n", "loop:1:9: files include each other more than 16 deep\n"},
    {"include many\n", "1:9: more than 4096 files\n"
                       "1:9: more than 4096 files\n"},
    {"alias \002\n", "1:1: the line is longer than 65536 bytes\n"},
    {"alias \003\n", "1:7: the value is longer than 32000 bytes\n"},
    {"work\001ers 1\n", "1:5: a NUL byte: this is not a text file\n"},
    {"= 1\n", "1:1: a directive without a name\n"},
    {"alias <<x\n", "1:7: <<x: no line \"x\" ends it\n"},
    {"alias <<\n", "1:7: << wants a word that ends the value\n"},
};

static char dir[] = "/tmp/conf-errors-XXXXXX";
static char *said[4096]; /* the texts of all messages */
static size_t nsaid;

static void
put(const char *name, const char *text, size_t len, mode_t mode)
{
    FILE *f = fopen(name, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fwrite(text, 1, len, f), len);
    fclose(f);
    CU_ASSERT_EQUAL(chmod(name, mode), 0);
}

/* The input with its marks replaced. */
static char *
expand(const char *in, size_t *len)
{
    static const size_t letters[] = {0, 0, 70000, 33000, 260, 1100};
    char *out = xmalloc(strlen(in) + 80000);
    size_t n = 0;

    for (; *in; in++) {
        if (*in == '\1') {
            out[n++] = 0;
        } else if ((unsigned char)*in < sizeof letters / sizeof *letters) {
            memset(out + n, 'a', letters[(unsigned char)*in]);
            n += letters[(unsigned char)*in];
        } else if (strncmp(in, "%D", 2) == 0) {
            memcpy(out + n, dir, sizeof dir - 1);
            n += sizeof dir - 1;
            in++;
        } else {
            out[n++] = *in;
        }
    }
    *len = n;
    return out;
}

static void
judge(const char *path, const char *input, const char *want)
{
    struct conf_report r;
    char *got = xstrdup("");

    conf_report_init(&r);
    conf_free(conf_read(path, apply_checks(), &r));
    for (unsigned i = 0; i < r.n; i++) {
        const struct conf_msg *m = &r.v[i];
        const char *file = strcmp(m->file, "f") == 0 ? "" : m->file;
        char *more = xasprintf("%s%s%s%u:%u: %s%s\n", got, file, *file ? ":" : "", m->line, m->col,
                               m->is_error ? "" : "warning: ", m->text);
        free(got);
        got = more;
        CU_ASSERT_FATAL(nsaid < sizeof said / sizeof *said);
        said[nsaid++] = xstrdup(m->text);
    }
    conf_report_fini(&r);
    for (char *p; (p = strstr(got, dir));) { /* as it is written in the table */
        memcpy(p, "%D", 2);
        memmove(p + 2, p + strlen(dir), strlen(p + strlen(dir)) + 1);
    }
    if (getenv("CONF_ERRORS_SHOW"))
        printf("@@%s@@\n", got);
    else if (strcmp(got, want) != 0)
        printf("input:\n%s--- said:\n%s--- expected:\n%s", input, got, want);
    CU_ASSERT_STRING_EQUAL(got, want);
    free(got);
}

static void
test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len;
        char *text = expand(cases[i].input, &len);
        put("f", text, len, 0600);
        judge("f", cases[i].input, cases[i].messages);
        free(text);
    }
}

/* What depends on the file itself. */
static void
test_modes(void)
{
    static const char text[] = "incominguser a 0123456789ab\n", tgt[] = "syntax tgt\n";
    struct conf_report r;
    char both[64];

    put("f", text, sizeof text - 1, 0640);
    judge("f", text,
          "1:16: f holds a secret and others may read or write it (mode 640): chmod 600 f, or keep "
          "the accounts in an included file of mode 600, or the secret alone in one and write "
          "@/PATH\n");
    snprintf(both, sizeof both, "%s%s", tgt, text);
    put("f", both, strlen(both), 0604);
    judge(
        "f", both,
        "2:16: warning: f holds a secret and others may read or write it (mode 604): chmod 600 f, "
        "or keep the accounts in an included file of mode 600, or the secret alone in one and "
        "write @/PATH\n");
    judge("nothing", "", "nothing:0:0: cannot read the file: No such file or directory\n");
    put("f", text, sizeof text - 1, 0600);
    if (geteuid() == 0 && chown("f", 12345, 0) == 0)
        judge("f", text,
              "1:16: f holds a secret and belongs to another user (uid 12345): chown it to root\n");
    else
        said[nsaid++] = xstrdup("f holds a secret and belongs to another user (uid 1): chown it to "
                                "root");
    unlink("f");
    conf_report_init(&r);
    conf_free(conf_parse("f", "include x\n", 10, apply_checks(), &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, "include is not allowed here");
    said[nsaid++] = xstrdup(r.v[0].text);
    conf_report_fini(&r);
}

/* --- the messages in the sources -------------------------------------------------------------- */

/* Texts that no file can bring about. */
static const char *const exempt[] = {
    "",                                 /* conf_report_add itself */
    "the configuration is more than *", /* test-conf-bundle */
    "this is no configuration in a bundle*",
    "ids iet: MD5 is not to be had*",   /* a host without MD5 */
    "more logical units than numbers*", /* 16384 of them */
    "\\* wants a text", /* of the admin socket: in a file a value is wanted before */
};

/* The string literals of a call that begins at s, put together, as a pattern of fnmatch; its end.
 */
static const char *
pattern_of(const char *s, char *out, size_t size)
{
    size_t k = 0;
    unsigned depth = 1;

    for (; *s && depth; s++) {
        if (*s == '(' || *s == ')') {
            depth += *s == '(' ? 1u : -1u;
        } else if (*s == '"') {
            for (s++; *s != '"' && k + 3 < size; s++) {
                if (*s == '%' && s[1] == '%') {
                    out[k++] = '%';
                    s++;
                } else if (*s == '%') {
                    out[k++] = '*';
                    while (!isalpha((unsigned char)*s) || strchr("lzh", *s))
                        s++;
                } else if (*s == '\\') {
                    out[k++] = '\\';
                    out[k++] = *++s;
                } else {
                    if (strchr("*?[", *s))
                        out[k++] = '\\';
                    out[k++] = *s;
                }
            }
        }
    }
    out[k] = 0;
    return s;
}

static bool
has_case(const char *pattern)
{
    if (strspn(pattern, "*: ") == strlen(pattern)) /* another's words */
        return true;
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++) {
        if (fnmatch(exempt[i], pattern, 0) == 0)
            return true;
    }
    for (size_t i = 0; i < nsaid; i++) {
        if (fnmatch(pattern, said[i], 0) == 0)
            return true;
    }
    return false;
}

/* How many messages a source has. */
static unsigned
look_at(const char *path)
{
    static const char *const calls[] = {"conf_report_add(", "snprintf(out->err,",
                                        "snprintf(out->warn,", "snprintf(err,"};
    char pattern[1024];
    unsigned n = 0;
    FILE *f = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    char *text = xcalloc(1, 200000);
    CU_ASSERT(fread(text, 1, 199999, f) > 0);
    fclose(f);
    for (char *p = text; *p; p++) { /* layout does not matter */
        while (*p == '(' && isspace((unsigned char)p[1]))
            memmove(p + 1, p + 2, strlen(p + 1));
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (const char *p = text; (p = strstr(p, calls[i]));) {
            p = pattern_of(p + strcspn(calls[i], "(") + 1, pattern, sizeof pattern);
            n++;
            if (!has_case(pattern)) {
                printf("%s: no case says: %s\n", path, pattern);
                CU_FAIL("a message without a case");
            }
        }
    }
    free(text);
    return n;
}

static char src[512];

static void
test_all_messages(void)
{
    char *pattern = xasprintf("%s/conf/*.c", src);
    unsigned n = 0;
    glob_t g;

    CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        /* other targets' syntaxes: test-syntax-errors */
        if (!strstr(g.gl_pathv[i], "/syntax"))
            n += look_at(g.gl_pathv[i]);
    }
    CU_ASSERT(n > 100); /* they were found at all */
    globfree(&g);
    free(pattern);
    for (size_t i = 0; i < nsaid; i++)
        free(said[i]);
}

static void
set_up(void)
{
    char name[32];

    put("nul", "a\0b\n", 4, 0600);
    put("badallow", "# x\n\nALL iqn.(\n", 15, 0600);
    put("warnallow", "ALL 10.0.0.1/8\n", 15, 0600);
    put("noend", "# x\nALL ALL", 11, 0600);
    CU_ASSERT_EQUAL(mkfifo("pipe", 0600), 0);
    put("noname", "a\377 ALL\n", 7, 0600);
    put("ietd", "Target iqn.2001-04.a:b\n", 23, 0600);
    put("loop", "include loop\n", 13, 0600);
    CU_ASSERT_EQUAL(mkdir("many", 0700), 0);
    for (unsigned i = 0; i < 4097; i++) {
        snprintf(name, sizeof name, "many/%u", i);
        put(name, "", 0, 0600);
    }
}

static void
tear_down(void)
{
    static const char *const names[] = {"pipe",  "nul",    "badallow", "warnallow",
                                        "noend", "noname", "loop",     "ietd"};
    char name[32];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    for (unsigned i = 0; i < 4097; i++) {
        snprintf(name, sizeof name, "many/%u", i);
        unlink(name);
    }
    CU_ASSERT_EQUAL(rmdir("many"), 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"files", set_up},
        {"cases", test_cases},
        {"modes and owners", test_modes},
        {"every message has a case", test_all_messages},
        {"no file stays", tear_down},
    };
    const char *srcdir = getenv("srcdir");
    char *top = realpath(srcdir ? srcdir : ".", NULL);

    if (!top || !mkdtemp(dir) || chdir(dir) < 0)
        return 1;
    snprintf(src, sizeof src, "%s", top);
    free(top);
    int rc = UNIT_RUN("conf-errors", tests);
    return rmdir(dir) < 0 ? 1 : rc;
}
