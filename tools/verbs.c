/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of plain verbs: help, usage errors, completion and the manual's test are made of it.
 * A new verb is a row here, its function, and its place in docs/evtgtadm.8.
 */
#include "config.h"

#include "tools/verb.h"

#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL, false                                                                    \
    }

/* clang-format off */
#define O_FORCE(help) {"force", NULL, help, false}

static const struct verb_opt o_target_create[] = {
    {"lun", "PATH[,NAME=VALUE...]", "a file or device, null:SIZE or zram:NAME:SIZE, as a LUN; after "
     "commas lun=N, readonly, create=SIZE (then also full), and any other directive of a LUN", true},
    {"allow", "ADDRESS", "admits this address, net (10.0.0.0/24), iface:NAME or ALL", true},
    {"allow-initiator", "IQN", "admits this initiator name or pattern", true},
    {"account", "USER", "demands CHAP: initiators prove themselves as USER", false},
    {"password-file", "FILE", "the password of --account: first line of FILE; - is standard input", false},
    {"generate-password", NULL, "makes a password for --account and shows it once", false},
    {"outgoing-account", "USER", "the target proves itself as USER", false},
    {"outgoing-password-file", "FILE", "the password of --outgoing-account", false},
    {"alias", "TEXT", "a name for people", false},
    {"portal", "ADDRESS:PORT", "only at this portal", true},
    {"set", "NAME=VALUE", "any other directive of a target", true},
    {"force", NULL, "serves stores that are in use too", false},
    END,
};
static const struct verb_opt o_target_delete[] = {
    O_FORCE("ends its sessions"), END,
};
static const struct verb_opt o_target_list[] = {
    {"names", NULL, "only the names, one a line", false}, END,
};
static const struct verb_opt o_target_show[] = {
    {"keys", NULL, "also the operational keys", false}, END,
};
static const struct verb_opt o_lun_add[] = {
    {"lun", "N", "its number; without it the first free one from 1", false},
    {"create", "SIZE", "makes the file first; it must not be there yet", false},
    {"thin", NULL, "the file takes space as it is written, and UNMAP gives it back (default)", false},
    {"full", NULL, "all space is reserved now", false},
    {"readonly", NULL, "initiators cannot write", false},
    {"set", "NAME=VALUE", "any other directive of a LUN (evtgt.conf(5))", true},
    O_FORCE("serves it even if it is in use"), END,
};
static const struct verb_opt o_lun_remove[] = {
    {"keep", NULL, "leaves the file as it is (default)", false},
    {"erase", NULL, "deletes the file, or overwrites the device with zeroes", false},
    {"yes", "[PATH]", "does not ask; for a device it must name it", false},
    O_FORCE("even if initiators are logged in, commands at work, or removal prevented"), END,
};
static const struct verb_opt o_lun_resize[] = {
    {"thin", NULL, "what is new takes space as it is written", false},
    {"full", NULL, "what is new is reserved now (default unless the LUN is thin)", false},
    {"shrink", NULL, "cuts the file off: what is beyond is lost", false}, END,
};
static const struct verb_opt o_acl[] = {
    {"address", "ADDRESS", "a rule that is an address", true},
    {"initiator", "IQN", "a rule that is an initiator name or pattern", true},
    {"local", "ADDRESS", "an address of this host at which the target is reached", true}, END,
};
static const struct verb_opt o_account_add[] = {
    {"password-file", "FILE", "the first line of FILE; - is standard input", false},
    {"generate-password", NULL, "makes one and shows it once", false},
    {"initiator", "IQN", "only initiators of this name or pattern may use it", true},
    {"target", "TARGET", "binds it there at once", false},
    {"discovery", NULL, "binds it to discovery at once", false},
    {"outgoing", NULL, "the target proves itself with it", false}, END,
};
static const struct verb_opt o_account_bind[] = {
    {"discovery", NULL, "of discovery instead of a target", false},
    {"outgoing", NULL, "the target's own account", false}, END,
};
static const struct verb_opt o_portal_add[] = {
    {"group", "N", "portal group tag, 1 unless said", false},
    {"advertise", "HOST:PORT", "what initiators are told instead", false}, END,
};
static const struct verb_opt o_session_kill[] = {
    {"target", "TARGET", "only there", false}, END,
};
static const struct verb_opt o_drain[] = {
    {"to", "ADDRESS[:PORT]", "sends new logins there", false},
    {"deadline", "SECONDS", "then sessions are dropped; 30 unless said", false}, END,
};
static const struct verb_opt o_zram_create[] = {
    {"size", "SIZE", "of the device", false},
    {"algorithm", "NAME", "what it compresses with; without it the kernel's default", false},
    {"level", "N", "of the algorithm", false},
    {"mem-limit", "SIZE", "memory it may take", false},
    {"backing", "DEVICE", "a block device for write-back", false},
    {"compressed-writeback", NULL, "writes back compressed", false},
    {"target", "TARGET", "serves it there at once, by blockio", false}, END,
};
static const struct verb_opt o_zram_recompress[] = {
    {"algorithm", "NAME[:LEVEL]", "with what: zstd:9", false},
    {"huge", NULL, "what is kept as it is because it did not compress", false},
    {"idle", "SECONDS", "what was neither read nor written for so long", false}, END,
};
static const struct verb_opt o_convert[] = {
    {"from", "auto|tgt|iet|iet-0.4|iet-rules|lio|evtgt", "what FILE is; without it that is found out", false},
    {"to", "FILE", "writes there (mode 0600); a file that exists is not replaced", false},
    {"no-secrets", NULL, "leaves passwords out, and says where", false}, END,
};
static const struct verb_opt o_reload[] = {
    {"pretend", NULL, "only shows what would change", false},
    O_FORCE("also what is in use"), END,
};
static const struct verb_opt o_dump[] = {
    {"secrets", NULL, "with passwords", false}, END,
};
static const struct verb_opt o_saving[] = {
    {"globals", NULL, "what stands outside of targets, and TARGETs only if named", false}, END,
};
static const struct verb_opt o_save_all[] = {
    {"secrets", NULL, "with passwords", false},
    O_FORCE("replaces FILE"), END,
};
static const struct verb_opt o_restore_all[] = {
    {"pretend", NULL, "only checks and shows what would change", false},
    {"yes", NULL, "does not ask", false},
    O_FORCE("ends sessions that are there"), END,
};

static const struct verb table[] = {
    {"status", "", "how the daemon, its targets and LUNs are", NULL,
     "status\nstatus --json", 0, NULL, verb_status},

    {"target create", "IQN", "makes a target, with all it needs, in one step",
     "Either all of it is done or nothing. A name that does not start with iqn., eui. or naa. is\n"
     "completed: before it stands what all targets have before their colon, else iqn., this year\n"
     "and month, and the host's name backwards. A target without --allow and --allow-initiator\n"
     "admits nobody; with both, both must fit.",
     "target create backup --lun /srv/backup.img,create=500G --allow 192.168.1.0/24 --account mac "
     "--generate-password\n"
     "target create iqn.2026-11.com.example:scratch --lun /dev/vg0/scratch --lun /srv/cd.iso,readonly "
     "--allow ALL",
     VF_CHANGES, o_target_create, verb_target_create},
    {"target delete", "TARGET", "takes a target away; its files stay", NULL,
     "target delete backup\ntarget delete backup --force --persist", VF_CHANGES, o_target_delete,
     verb_target_delete},
    {"target list", "", "all targets", NULL, "target list\ntarget list --names", 0, o_target_list,
     verb_target_list},
    {"target show", "TARGET", "who is admitted, LUNs and sessions of a target", NULL,
     "target show backup\ntarget show backup --keys", 0, o_target_show, verb_target_show},
    {"target set", "TARGET NAME=VALUE...", "changes settings of a target, all or none",
     "Operational keys (MaxBurstLength, HeaderDigest, ...), state, alias, discoverable, nop_interval,\n"
     "nop_count, MaxQueueCmd, RedirectAddress and its kin; see evtgt.conf(5).",
     "target set backup state=offline\ntarget set backup HeaderDigest=CRC32C DataDigest=CRC32C",
     VF_CHANGES, NULL, verb_target_set},

    {"lun add", "TARGET PATH", "adds a file or device to a target as a LUN",
     "PATH null:SIZE is a disk that keeps nothing, zram:NAME:SIZE one in compressed memory, whose contents\n"
     "end with the daemon. A store that is mounted or otherwise in use is\n"
     "refused, with who uses it. A file that --create made is removed again when the daemon refuses.",
     "lun add backup /srv/more.img --create 500G\nlun add scratch zram:fast:8G --set algorithm=zstd\n"
     "lun add backup /dev/vg0/disk --lun 5 --readonly",
     VF_CHANGES, o_lun_add, verb_lun_add},
    {"lun remove", "TARGET LUN", "takes a LUN away",
     "The file or device stays as it is, unless there is --erase. With initiators logged in to the target\n"
     "it is refused, with who they are. --erase refuses a file that another LUN uses too, and a symbolic\n"
     "link, whose file would stay.",
     "lun remove backup 1\nlun remove backup 1 --erase\n"
     "lun remove scratch 1 --erase --yes=/dev/vg0/scratch",
     VF_CHANGES, o_lun_remove, verb_lun_remove},
    {"lun resize", "TARGET LUN [SIZE]", "makes a LUN larger; +SIZE: by so much",
     "Without SIZE: has the daemon notice what a device, or a file, has become. Initiators are told.",
     "lun resize backup 1 1T\nlun resize backup 1 +100G\nlun resize scratch 1",
     0, o_lun_resize, verb_lun_resize},
    {"lun list", "[TARGET]", "LUNs with their size, state and store",
     "What several initiators may write without a reservation is told, here and by target show.",
     "lun list\nlun list backup --json", 0, NULL, verb_lun_list},
    {"lun set", "TARGET LUN NAME=VALUE...", "changes settings of a LUN, all or none",
     "vendor_id, product_id, product_rev, scsi_id, scsi_sn, naa, eui, sense_format, removable, online,\n"
     "readonly, thin_provisioning, rotation_rate and others; see evtgt.conf(5).",
     "lun set backup 1 readonly=on\nlun set backup 1 vendor_id=ACME product_id=Disk",
     VF_CHANGES, NULL, verb_lun_set},
    {"lun acknowledge", "TARGET LUN", "has a LUN with volatile-ack be ready though it is empty",
     "A LUN in memory (bs-type zram) with volatile-ack is not ready after a start until somebody has\n"
     "said that way to know that what was in it is lost.",
     "lun acknowledge backup 1", 0, NULL, verb_lun_acknowledge},

    {"acl allow", "TARGET [RULE...]", "admits initiators: an address, a net, ALL, or a name",
     "A RULE that starts with iqn., eui. or naa., or has * or ?, is a name; else it is an address.\n"
     "When a target has both kinds, one of each must fit. All rules are added or none.",
     "acl allow backup 192.168.1.0/24\nacl allow backup iqn.1998-01.com.example:laptop",
     VF_CHANGES, o_acl, verb_acl_allow},
    {"acl deny", "TARGET [RULE...]", "takes rules back; sessions stay", NULL,
     "acl deny backup 192.168.1.0/24", VF_CHANGES, o_acl, verb_acl_deny},
    {"acl list", "TARGET", "who is admitted", NULL, "acl list backup", 0, NULL, verb_acl_list},

    {"account add", "USER", "makes a CHAP account",
     "Without --password-file and --generate-password the password is asked for on the terminal.",
     "account add mac --generate-password --target backup\n"
     "account add mac --password-file /etc/evtgt/mac.secret",
     VF_CHANGES, o_account_add, verb_account_add},
    {"account remove", "USER", "takes an account away, everywhere", NULL, "account remove mac",
     VF_CHANGES, NULL, verb_account_remove},
    {"account list", "", "accounts and where they count", NULL, "account list", 0, NULL,
     verb_account_list},
    {"account bind", "USER [TARGET]", "has an account count at a target, or in discovery", NULL,
     "account bind mac backup\naccount bind mac --discovery", VF_CHANGES, o_account_bind,
     verb_account_bind},
    {"account unbind", "USER [TARGET]", "takes that back", NULL, "account unbind mac backup",
     VF_CHANGES, o_account_bind, verb_account_unbind},

    {"portal add", "ADDRESS[:PORT]", "listens at an address, or at iface:NAME[:PORT]", NULL,
     "portal add 192.168.1.10\nportal add iface:eth1:3260 --group 2", VF_CHANGES, o_portal_add,
     verb_portal_add},
    {"portal remove", "ADDRESS[:PORT]", "listens there no longer; connections stay", NULL,
     "portal remove 192.168.1.10", VF_CHANGES, NULL, verb_portal_remove},
    {"portal list", "", "where initiators are heard", NULL, "portal list", 0, NULL, verb_portal_list},

    {"session list", "[TARGET]", "initiators that are logged in", NULL,
     "session list\nsession list backup", 0, NULL, verb_session_list},
    {"session kill", "SESSION", "throws an initiator out",
     "SESSION is a number (sid) or the initiator's name: then all its sessions end.\n"
     "It may log in again as long as a rule admits it; what is printed says how to change that.",
     "session kill iqn.1998-01.com.example:laptop\nsession kill 17 --target backup",
     0, o_session_kill, verb_session_kill},

    {"zram show", "", "LUNs in compressed memory: what is in them and what it takes",
     "With --json all counters, under the names of the kernel's zram: mm_stat, io_stat.",
     "zram show\nzram show --json", 0, NULL, verb_zram_show},
    {"zram compact", "TARGET LUN", "gives back memory that overwriting and discards left unused",
     "The daemon does so by itself every few seconds, when it is worth it.", "zram compact backup 1",
     0, NULL, verb_zram_compact},
    {"zram recompress", "TARGET LUN", "compresses what is there with another algorithm",
     "--algorithm is wanted. With --huge or --idle only such chunks, else all; the data path goes on.",
     "zram recompress backup 1 --algorithm zstd:9 --idle 3600", 0, o_zram_recompress,
     verb_zram_recompress},
    {"zram list", "", "zram devices of the kernel", NULL, "zram list\nzram list --json", VF_LOCAL,
     NULL, verb_zram_list},
    {"zram create", "", "makes a zram device of the kernel, and serves it",
     "--size is wanted. What this kernel's zram lacks (an algorithm, write-back) is named, and nothing\n"
     "is made. Only root can. Use bs-type zram for compressed memory of the daemon instead.",
     "zram create --size 8G --algorithm zstd\n"
     "zram create --size 8G --backing /dev/vg0/wb --compressed-writeback --target scratch",
     VF_CHANGES, o_zram_create, verb_zram_create},
    {"zram remove", "DEVICE", "takes a zram device of the kernel away, with what is in it", NULL,
     "zram remove /dev/zram1", VF_LOCAL, NULL, verb_zram_remove},

    {"drain", "[TARGET]", "empties a target, or the daemon, of sessions", NULL,
     "drain backup --to 192.168.1.11 --deadline 60\ndrain", 0, o_drain, verb_drain},
    {"undrain", "[TARGET]", "ends that", NULL, "undrain backup", 0, NULL, verb_undrain},

    {"check", "[FILE]", "checks a configuration file, without a daemon",
     "Every error and warning with file, line and column, as evtgtd -t.",
     "check\ncheck /etc/evtgt/new.conf --json", VF_LOCAL, NULL, verb_check},
    {"convert", "FILE...", "writes configurations of tgt, IET and LIO as ours",
     "What has no equivalent is named line by line. Exit status: 0 nothing was lost, 3 written with\n"
     "losses, 1 nothing was written, 2 wrong usage.",
     "convert --to /etc/evtgt/evtgt.conf /etc/iet/ietd.conf\nconvert /etc/tgt/targets.conf",
     VF_LOCAL | VF_RAW | VF_OWN, o_convert, verb_convert},
    {"reload", "", "reads the configuration again; what did not change is not touched",
     "All or nothing; what is in use is named and refused without --force.",
     "reload --pretend\nreload", 0, o_reload, verb_reload},
    {"dump", "[TARGET]", "what runs now, as text of evtgt.conf(5)",
     "Without --secrets passwords are left out, and a comment says so.",
     "dump\ndump backup --secrets > backup.conf", 0, o_dump, verb_dump},
    {"save", "[TARGET...]", "keeps what runs now over restarts; all, or these targets", NULL,
     "save\nsave backup\nsave --globals", 0, o_saving, verb_save},
    {"forget", "[TARGET...]", "forgets what was saved; all, or of these targets",
     "What runs stays; the next reload or start takes the configuration file's word again.",
     "forget backup\nforget --globals", 0, o_saving, verb_forget},
    {"saved", "", "what is saved, and since when", NULL, "saved", 0, NULL, verb_saved},
    {"save-all", "FILE", "writes the whole set-up to one file, for another machine",
     "Configuration, identities of disks, saved mode pages; passwords only with --secrets. Mode 0600.",
     "save-all evtgt.json --secrets", 0, o_save_all, verb_save_all},
    {"restore-all", "FILE", "makes this daemon what save-all wrote",
     "Replaces the configuration and identities; initiators see the same disks. FILE - is standard input.",
     "restore-all evtgt.json --pretend\nrestore-all evtgt.json --persist", VF_CHANGES,
     o_restore_all, verb_restore_all},

    {"completion", "bash|zsh|fish [PROGRAM]", "prints the completion script of a shell",
     "PROGRAM is another name that evtgtadm goes by: tgtadm, tgt-admin, tgt-setup-lun, tgtimg, ietadm.",
     "completion bash > /etc/bash_completion.d/evtgtadm\n"
     "completion bash tgtadm > /etc/bash_completion.d/tgtadm", VF_LOCAL | VF_RAW, NULL, verb_completion},
    {"help", "[VERB] [VERB]", "help for all, a group, or one verb", NULL, "help lun add",
     VF_LOCAL | VF_RAW, NULL, verb_help},
    {"complete", "", "", NULL, NULL, VF_HIDDEN, NULL, verb_complete},
    {"complete-of", "", "", NULL, NULL, VF_HIDDEN, NULL, verb_complete_of},
};

static const struct {
    unsigned with, without; /* flags */
    struct verb_opt opt;
} common[] = {
    {VF_CHANGES, 0, {"persist", NULL, "also saves it: it outlives the daemon (see `help save`)", false}},
    {0, VF_RAW, {"json", NULL, "prints JSON", false}},
    {0, VF_LOCAL, {"socket", "PATH", "the daemon's admin socket (default $EVTGT_SOCKET, else " RUNDIR
     "/evtgtd.sock)", false}},
    {0, 0, {"help", NULL, "prints this", false}},
};
/* clang-format on */

const struct verb *
verb_at(unsigned i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const struct verb_opt *
verb_common(const struct verb *v, unsigned i)
{
    for (unsigned k = 0; k < sizeof common / sizeof *common; k++) {
        if (common[k].with && !(v->flags & common[k].with))
            continue;
        if (v->flags & common[k].without)
            continue;
        if (i-- == 0)
            return &common[k].opt;
    }
    return NULL;
}
