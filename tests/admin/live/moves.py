# SPDX-License-Identifier: BSD-2-Clause
"""Random changes of a running daemon, and the model of what must be there afterwards.

A move makes one call by one of the ways there are (a plain verb, tgtadm's form, the protocol) and knows
what must come of it: then it changes the model, or the call must be refused and nothing changes."""

import copy
import json
import os
import random
import subprocess

from conf_tool import Refused, ask, bundle
from common import MIB, program
from live import parse
from lib.evtgt import IQN, free_port

ADDRESSES = ["10.0.0.0/8", "192.0.2.0/24", "198.51.100.7", "2001:db8::/32", "ALL"]
NAMES = ["iqn.2001-04.a:*", "iqn.2001-04.b:c", "eui.0123456789abcdef"]
TARGETS = [IQN + "t%d" % i for i in range(10)]
USERS = ["u%d" % i for i in range(6)]
# a target's settings: name, directive, values, the one that is not written
SETTINGS = [
    ("alias", "alias", ["x", "Backups of the office", 'a "b" #1', ""], ""),
    ("state", "state", ["offline", "ready"], "ready"),
    ("discoverable", "discoverable", ["no", "yes"], "yes"),
    ("nop_interval", "nop_interval", ["0", "7", "3600"], None),
    ("nop_count", "nop_count", ["1", "9"], None),
    ("MaxQueueCmd", "MaxQueueCmd", ["16", "64", "128"], "128"),
    ("MaxBurstLength", "MaxBurstLength", ["262144", "1048576", "16776192"], "16776192"),
    ("InitialR2T", "InitialR2T", ["Yes", "No"], "No"),
    ("ImmediateData", "ImmediateData", ["Yes", "No"], "Yes"),
    ("HeaderDigest", "HeaderDigest", ["CRC32C", "None", "None,CRC32C"], "None,CRC32C"),
    ("DataDigest", "DataDigest", ["CRC32C", "None"], "None,CRC32C"),
    ("MaxOutstandingR2T", "MaxOutstandingR2T", ["1", "8", "16"], "16"),
    ("RedirectAddress", "RedirectAddress", ["192.0.2.1", "192.0.2.9"], None),
]
WRONG_SETTINGS = ["MaxBurstLength=5", "state=asleep", "nop_count=0", "nonsense=1", "MaxQueueCmd=0",
                  "HeaderDigest=MD5", "DefaultTime2Retain=7x"]
LUN_SETTINGS = [
    ("vendor_id", ["ME", "ACME"], None), ("product_id", ["disk", "tape"], None),
    ("product_rev", ["1.0", "2"], None), ("online", ["off", "on"], "on"),
    ("readonly", ["on", "off"], "off"), ("removable", ["on", "off"], "off"),
    ("sense_format", ["0", "1"], "0"), ("rotation_rate", ["1", "7200"], None),
    ("lbppbe", ["0", "3"], None), ("optimal_xfer_len", ["8", "2048"], None),
]
WRONG_LUN_SETTINGS = ["rotation_rate=7", "sense_format=2", "nonsense=1", "lbppbe=99", "online=maybe"]
SYSTEM = [
    ("nop_interval", ["5", "20"], None), ("nop_count", ["2", "4"], None),
    ("discovery-filter", ["name", "portal", "all"], "name"),
    ("chap-algorithms", ["md5,sha1", "sha256", "md5"], None),
    ("chap-legacy-sha1-7", ["on", "off"], "off"),
    ("iSNSServerIP", ["127.0.0.1:9", "127.0.0.2:9"], None),
]
WRONG_SYSTEM = [("nop_count", "0"), ("discovery-filter", "some"), ("chap-algorithms", "rot13")]


def set_opt(opts, name, value, usual=None):
    opts.pop(name, None)
    if value != usual:
        opts[name] = [value]


class Moves:
    neighbour = IQN + "neighbour"

    def __init__(self, d, conf, seed):
        self.d, self.conf, self.rng = d, conf, random.Random(seed)
        self.secrets = {}  # accounts that are there: user, secret
        self.created = {}  # those that came with a target and stay when it goes
        self.count, self.refused, self.serial, self.story = {}, 0, 0, []
        self.files = [self.file("f%d.img" % i) for i in range(12)]
        os.makedirs(d.path("include"), exist_ok=True)

    # --- helpers ---------------------------------------------------------------------------------

    def file(self, name, size=MIB):
        path = self.d.path(name)
        with open(path, "wb") as f:
            f.truncate(size)
        return path

    def pick(self, v):
        return self.rng.choice(sorted(v)) if v else None

    def chance(self, p):
        return self.rng.random() < p

    def next(self):
        self.serial += 1
        return self.serial

    def mine(self):
        """The targets that moves may change."""
        return [n for n in self.conf["targets"] if n in TARGETS]

    def any_target(self):
        """One that is there, mostly."""
        return self.rng.choice(TARGETS) if self.chance(0.1) or not self.mine() else self.pick(self.mine())

    def target(self, name):
        return self.conf["targets"].get(name)

    def tid(self, name):
        t = self.target(name)
        return int(t["opts"]["controller_tid"][0]) if t else 9999

    def free_files(self):
        used = {l["path"][0] for t in self.conf["targets"].values() for l in t["luns"].values()}
        return [f for f in self.files if f not in used]

    def do(self, fails, verb=None, old=None, raw=None, text=""):
        """One call, by one of the ways that are given.  fails: it must be refused.  True when it
        was done; its data are in self.data."""
        ways = [w for w in (("verb", verb), ("tgtadm", old), ("raw", raw)) if w[1]]
        way, what = self.rng.choice(ways)
        self.data, why = None, None
        self.story.append("%s %r%s" % (way, what, " (to be refused)" if fails else ""))
        if way == "raw":
            try:
                self.data = ask(self.d, what[0], what[1], **what[2])
            except Refused as e:
                why = str(e)
        else:
            args = [str(a) for a in what]
            args = args + ["--json"] if way == "verb" else ["--lld", "iscsi"] + args
            out = subprocess.run([self.d.set.adm] + args, capture_output=True, text=True, input=text,
                                 timeout=60, env=dict(os.environ, EVTGT_SOCKET=self.d.sock))
            if out.returncode:
                why = "status %d: %s" % (out.returncode, out.stderr.strip())
            elif way == "verb":
                self.data = json.loads(out.stdout)["data"]
        if bool(why) != bool(fails):
            raise AssertionError("%s: %s" % (self.story[-1], why or "it was done"))
        self.refused += bool(why)
        return not why

    # --- targets ---------------------------------------------------------------------------------

    def move_target_new(self):
        name = self.rng.choice(TARGETS)
        tids = {self.tid(n) for n in self.conf["targets"]}
        tid = self.rng.randrange(1, 40)
        fails = name in self.conf["targets"] or tid in tids
        if self.do(fails, old=["--op", "new", "--mode", "target", "--tid", tid, "-T", name],
                   raw=("target", "new", {"tid": tid, "name": name})):
            self.conf["targets"][name] = {"opts": {"controller_tid": [str(tid)]}, "luns": {}}

    def move_target_create(self):
        """With a unit, a rule and an account, or not at all."""
        name, path = self.rng.choice(TARGETS), self.pick(self.free_files())
        bad = self.chance(0.2)
        if not path:
            return
        lun, rule, user = self.rng.randrange(9), self.rng.choice(ADDRESSES), "c%d" % self.next()
        secret = "created-%s-secret" % user
        args = ["target", "create", name, "--lun", "%s,lun=%d" % (path, lun), "--allow", rule,
                "--account", user, "--password-file", "-"]
        if bad:
            args += ["--lun", "/nonexistent/x"]
        if self.do(bad or name in self.conf["targets"], verb=args, text=secret + "\n"):
            tid = self.data["tid"]
            assert tid not in {self.tid(n) for n in self.conf["targets"]}, tid
            self.conf["targets"][name] = {
                "opts": {"controller_tid": [str(tid)], "initiator-address": [rule],
                         "incominguser": ["%s %s" % (user, secret)]},
                "luns": {lun: {"path": [path]}}}
            self.created[user] = secret

    def move_target_delete(self):
        if len(self.mine()) < 4 and self.chance(0.8):
            return
        name = self.any_target()
        tid = self.tid(name)
        if self.do(not self.target(name), verb=["target", "delete", name],
                   old=["--op", "delete", "--mode", "target", "--tid", tid],
                   raw=("target", "delete", {"tid": tid})):
            del self.conf["targets"][name]

    def move_target_in_use(self):
        """Somebody is logged in there all the time; the load pauses between its rounds."""
        name = IQN + "watched"
        self.do(True, verb=["target", "delete", name],
                old=["--op", "delete", "--mode", "target", "--tid", self.tid(name)],
                raw=("target", "delete", {"tid": self.tid(name)}))

    def move_target_set(self):
        name = self.any_target()
        some = self.rng.sample(SETTINGS, self.rng.randrange(1, 4))
        some = [(n, d, self.rng.choice(v), usual) for n, d, v, usual in some]
        pairs = ["%s=%s" % (n, v) for n, _, v, _ in some]
        fails = not self.target(name)
        if self.chance(0.2):  # all or nothing
            pairs.append(self.rng.choice(WRONG_SETTINGS))
            fails = True
        params = dict(p.split("=", 1) for p in pairs)
        old = None
        if len(pairs) == 1:
            n, v = pairs[0].split("=", 1)
            old = ["--op", "update", "--mode", "target", "--tid", self.tid(name), "-n", n, "-v", v]
        if self.do(fails, verb=["target", "set", name] + pairs, old=old,
                   raw=("target", "update", {"tid": self.tid(name), "params": params})):
            for _, directive, value, usual in some:
                set_opt(self.target(name)["opts"], directive, value, usual)

    def move_rule(self):
        name = self.any_target()
        kind, rule = self.rng.choice([("initiator-address", r) for r in ADDRESSES] +
                                     [("initiator-name", r) for r in NAMES])
        t, add = self.target(name), self.chance(0.6)
        have = bool(t) and rule in t["opts"].get(kind, [])
        op = "bind" if add else "unbind"
        arg = "address" if kind == "initiator-address" else "initiator"
        if self.do(not t or have == add,
                   verb=["acl", "allow" if add else "deny", name, "--" + arg, rule],
                   old=["--op", op, "--mode", "target", "--tid", self.tid(name),
                        "-I" if arg == "address" else "-Q", rule],
                   raw=("target", op, {"tid": self.tid(name), arg: rule})):
            if add:
                parse.put(t["opts"], kind, rule)
            else:
                self.drop(t["opts"], kind, rule)

    @staticmethod
    def drop(opts, name, value):
        opts[name].remove(value)
        if not opts[name]:
            del opts[name]

    # --- logical units ---------------------------------------------------------------------------

    def move_lun_add(self):
        name = self.neighbour if self.chance(0.2) else self.any_target()
        t, lun = self.target(name), self.rng.randrange(2, 12)
        fails = not t or lun in t["luns"]
        path = self.pick(self.free_files())
        if self.chance(0.1):
            path, fails = "/nonexistent/x", True
        if not path:
            return
        tid = self.tid(name)
        if self.chance(0.3) and path != "/nonexistent/x":
            ok = self.do(fails, verb=["lun", "add", name, "null:2M", "--lun", lun],
                         raw=("logicalunit", "new", {"tid": tid, "lun": lun, "params": {
                             "bs-type": "null", "size": "2M"}}))
            opts = {"path": ["none"], "bs-type": ["null"], "size": ["2097152"]}
        else:
            ok = self.do(fails, verb=["lun", "add", name, path, "--lun", lun],
                         old=["--op", "new", "--mode", "logicalunit", "--tid", tid, "--lun", lun, "-b",
                              path],
                         raw=("logicalunit", "new", {"tid": tid, "lun": lun, "params": {
                             "backing-store": path}}))
            opts = {"path": [path]}
        if ok:
            t["luns"][lun] = opts

    def any_lun(self):
        """A target and one of its units, or a number that is none; never one that is under load."""
        name = self.neighbour if self.chance(0.2) else self.any_target()
        t = self.target(name)
        free = [n for n in t["luns"] if n != 1 or name in TARGETS] if t else []
        return name, t, self.pick(free) if free and not self.chance(0.1) else 77

    def move_lun_remove(self):
        name, t, lun = self.any_lun()
        if self.do(not t or lun not in t["luns"], verb=["lun", "remove", name, lun, "--force"],
                   old=["--op", "delete", "--mode", "logicalunit", "--tid", self.tid(name), "--lun",
                        lun],
                   raw=("logicalunit", "delete", {"tid": self.tid(name), "lun": lun})):
            del t["luns"][lun]

    def move_lun_set(self):
        name, t, lun = self.any_lun()
        some = self.rng.sample(LUN_SETTINGS, self.rng.randrange(1, 4))
        some = [(n, self.rng.choice(v), usual) for n, v, usual in some]
        if self.chance(0.3):
            some.append(("scsi_sn", "SN%d" % self.next(), None))
        pairs = ["%s=%s" % (n, v) for n, v, _ in some]
        fails = not t or lun not in t["luns"]
        if self.chance(0.2):
            pairs.append(self.rng.choice(WRONG_LUN_SETTINGS))
            pairs = [p for p in pairs if p.split("=")[0] != pairs[-1].split("=")[0]] + pairs[-1:]
            fails = True
        params = dict(p.split("=", 1) for p in pairs)
        if self.do(fails, verb=["lun", "set", name, lun] + pairs,
                   old=["--op", "update", "--mode", "logicalunit", "--tid", self.tid(name), "--lun",
                        lun, "--params", ",".join(pairs)],
                   raw=("logicalunit", "update", {"tid": self.tid(name), "lun": lun,
                                                  "params": params})):
            for n, v, usual in some:
                set_opt(t["luns"][lun], n, v, usual)

    def move_lun_resize(self):
        name, t, lun = self.any_lun()
        if not t or lun not in t["luns"] or t["luns"][lun]["path"] == ["none"]:
            self.do(True, verb=["lun", "resize", name, lun, "+1M"])
            return
        path = t["luns"][lun]["path"][0]
        size = os.path.getsize(path) + MIB
        if self.chance(0.2):
            self.do(True, verb=["lun", "resize", name, lun, "1K"])  # that is less
        elif "online" not in t["luns"][lun]:
            self.do(False, verb=["lun", "resize", name, lun, "+1M"])
            assert os.path.getsize(path) == size, path
            luns = {l["lun"]: l for l in ask(self.d, "target", "show", tid=self.tid(name))
                    ["targets"][0]["luns"]}
            assert luns[lun]["blocks"] * luns[lun]["block_size"] == size, luns[lun]

    def move_lun_path(self):
        """Another store: refused while the unit is online, unless its medium is removable."""
        name, t, lun = self.any_lun()
        path = self.pick(self.free_files())
        if not path or not t or lun not in t["luns"] or t["luns"][lun]["path"] == ["none"]:
            return
        opts = t["luns"][lun]
        fails = "online" not in opts and "removable" not in opts
        missing = not fails and self.chance(0.2)
        if missing:
            path = "/nonexistent/x"
        if self.do(fails or missing, verb=["lun", "set", name, lun, "path=" + path, "online=on"],
                   old=["--op", "update", "--mode", "logicalunit", "--tid", self.tid(name), "--lun",
                        lun, "--params", "path=%s,online=1" % path],
                   raw=("logicalunit", "update", {"tid": self.tid(name), "lun": lun,
                                                  "params": {"path": path, "online": "1"}})):
            opts["path"] = [path]
            opts.pop("online", None)

    # --- accounts --------------------------------------------------------------------------------

    def move_account_new(self):
        user = self.rng.choice(USERS)
        secret = "secret-%d-of-%s" % (self.next(), user)
        if self.do(user in self.secrets, verb=["account", "add", user, "--password-file", "-"],
                   old=["--op", "new", "--mode", "account", "--user", user, "--password", secret],
                   raw=("account", "new", {"user": user, "password": secret}), text=secret + "\n"):
            self.secrets[user] = secret

    def places(self):
        """Where accounts can be bound: name (None: discovery), options, directives in and out."""
        return [(None, self.conf["globals"], "incomingdiscoveryuser", "outgoingdiscoveryuser")] + \
            [(n, self.target(n)["opts"], "incominguser", "outgoinguser") for n in sorted(self.mine())]

    def note_unbound(self):
        """Accounts that are bound nowhere stand outside of targets."""
        bound = {v.split()[0] for _, opts, way_in, way_out in self.places()
                 for key in (way_in, way_out) for v in opts.get(key, [])}
        self.conf["globals"].pop("account", None)
        for user, secret in sorted({**self.secrets, **self.created}.items()):
            if user not in bound:
                parse.put(self.conf["globals"], "account", "%s %s" % (user, secret))

    def move_account_bind(self):
        name, opts, way_in, way_out = self.rng.choice(self.places())
        user, out = self.rng.choice(USERS), self.chance(0.3)
        there = {k: [v.split()[0] for v in opts.get(k, [])] for k in (way_in, way_out)}
        if user in there[way_in if out else way_out]:
            return  # one secret for both ways
        fails = user not in self.secrets or user in there[way_in] or (out and there[way_out])
        args = {"user": user, "outgoing": out}
        old = ["--op", "bind", "--mode", "account", "--user", user]
        verb = ["account", "bind", user] + ([name] if name else ["--discovery"])
        if name:
            args["tid"] = self.tid(name)
            old += ["--tid", self.tid(name)]
        if out:
            old, verb = old + ["--outgoing"], verb + ["--outgoing"]
        if self.do(fails, verb=verb, old=old, raw=("account", "bind", args)):
            parse.put(opts, way_out if out else way_in, "%s %s" % (user, self.secrets[user]))

    def move_account_unbind(self):
        name, opts, way_in, way_out = self.rng.choice(self.places())
        out = self.chance(0.3)
        key = way_out if out else way_in
        lines = [v for v in opts.get(key, []) if v.split()[0] in self.secrets]
        if not lines:
            return
        line = self.pick(lines)
        user = line.split()[0]
        args = {"user": user, "outgoing": out}
        if name:
            args["tid"] = self.tid(name)
        verb = ["account", "unbind", user] + ([name] if name else ["--discovery"])
        if self.do(False, verb=verb + (["--outgoing"] if out else []),
                   raw=("account", "unbind", args)):
            self.drop(opts, key, line)

    def move_account_delete(self):
        user = self.rng.choice(USERS)
        if self.chance(0.5):
            return
        if self.do(user not in self.secrets, verb=["account", "remove", user],
                   old=["--op", "delete", "--mode", "account", "--user", user],
                   raw=("account", "delete", {"user": user})):
            del self.secrets[user]
            for _, opts, way_in, way_out in self.places():
                for key in (way_in, way_out):
                    for line in [v for v in opts.get(key, []) if v.split()[0] == user]:
                        self.drop(opts, key, line)

    # --- portals, the daemon ---------------------------------------------------------------------

    def extra_portals(self):
        return [p for p in self.conf["portals"] if p != "127.0.0.1:%d" % self.d.port]

    def move_portal(self):
        extra = self.extra_portals()
        if len(extra) > 3 or (extra and self.chance(0.4)):
            p = self.pick(extra)
            if self.do(False, verb=["portal", "remove", p], raw=("portal", "delete", {"portal": p})):
                del self.conf["portals"][p]
        elif extra and self.chance(0.2):
            p = self.pick(extra)
            self.do(True, verb=["portal", "add", p], raw=("portal", "new", {"portal": p}))
        else:
            p, group = "127.0.0.1:%d" % free_port(), self.rng.randrange(1, 5)
            opts = {} if group == 1 else {"group": [str(group)]}
            if self.do(False, verb=["portal", "add", p, "--group", group],
                       raw=("portal", "new", {"portal": p, "group": group})):
                self.conf["portals"][p] = opts

    def move_target_portal(self):
        name = self.any_target()
        t, add = self.target(name), self.chance(0.6)
        have = bool(t) and "portal-group" in t["opts"]
        if self.do(not t or have == add, raw=("target", "bind" if add else "unbind", {
                "tid": self.tid(name), "portal_group": 1})):
            if add:
                t["opts"]["portal-group"] = ["1"]
            else:
                del t["opts"]["portal-group"]

    def move_system(self):
        if self.chance(0.2):
            name, value = self.rng.choice(WRONG_SYSTEM)
            usual, fails = None, True
        else:
            name, values, usual = self.rng.choice(SYSTEM)
            value, fails = self.rng.choice(values), False
        if self.do(fails, old=["--op", "update", "--mode", "sys", "--name", name, "--value", value],
                   raw=("system", "update", {"name": name, "value": value})):
            set_opt(self.conf["globals"], name, value, usual)

    # --- whole configurations --------------------------------------------------------------------

    def altered(self, conf, names, whole=False):
        """`conf` with some of the targets changed as a person would who edits the file."""
        conf = copy.deepcopy(conf)
        for name in names:
            t = conf["targets"][name]
            for n, directive, values, usual in self.rng.sample(SETTINGS, 2):
                set_opt(t["opts"], directive, self.rng.choice(values), usual)
            for lun in list(t["luns"]):
                opts = t["luns"][lun]
                if self.chance(0.2) and "path" in opts:
                    del t["luns"][lun]
                elif self.chance(0.4):
                    set_opt(opts, "vendor_id", self.rng.choice(["ME", "YOU"]))
            t["opts"]["initiator-address"] = sorted(self.rng.sample(ADDRESSES, 2))
            if self.chance(0.5):
                t["luns"][self.rng.randrange(100, 200)] = {
                    "path": ["none"], "bs-type": ["null"], "size": [str(self.next() * MIB)]}
        if whole:
            set_opt(conf["globals"], "nop_interval", self.rng.choice(["5", "20"]))
        return conf

    def some(self):
        return self.rng.sample(sorted(self.mine()), min(len(self.mine()), self.rng.randrange(1, 4)))

    def move_reload(self):
        self.note_unbound()
        new = self.altered(self.conf, self.some(), True)
        text, bad = parse.write(new), self.chance(0.2)
        with open(self.d.conf, "w") as f:
            f.write(text + ("nonsense 1\n" if bad else ""))
        pretend = not bad and self.chance(0.2)
        ask(self.d, "config", "forget")  # what is saved would lie over the file (test_saved.py)
        if self.do(bad, verb=["reload"] + (["--pretend"] if pretend else []),
                   raw=("config", "reload", {"pretend": pretend})) and not pretend:
            self.conf = new

    def move_apply(self):
        names = self.some()
        new, bad = self.altered(self.conf, names), self.chance(0.2)
        text = "".join(parse.write_target(n, new["targets"][n]) for n in names)
        if bad:
            text += "<target iqn.2001-04.a:bad>\n    state asleep\n</target>\n"
        pretend = not bad and self.chance(0.2)
        if names and self.do(bad, raw=("config", "apply", {
                "bundle": bundle(text), "targets": names, "pretend": pretend})) and not pretend:
            self.conf = new

    def move_apply_add(self):
        name = self.rng.choice(TARGETS)
        tid = self.rng.randrange(100, 200)
        t = {"opts": {"controller_tid": [str(tid)], "initiator-address": ["ALL"]}, "luns": {
            1: {"path": ["none"], "bs-type": ["null"], "size": ["4194304"]}}}
        fails = name in self.conf["targets"] or tid in {self.tid(n) for n in self.conf["targets"]}
        if self.do(fails, raw=("config", "apply", {"bundle": bundle(parse.write_target(name, t)),
                                                   "add": True})):
            self.conf["targets"][name] = t

    def move_tgt_admin(self):
        """A target whose file a program wrote, as Cinder does."""
        name = self.pick(self.mine())
        if not name:
            return
        new = self.altered(self.conf, [name])
        with open(self.d.path("one.conf"), "w") as f:
            os.chmod(f.name, 0o600)
            f.write("ids evtgt\n" + parse.write_target(name, new["targets"][name]))
        self.story.append("tgt-admin --update " + name)
        program(self.d, "tgt-admin", "-c", self.d.path("one.conf"), "--update", name, check=0,
                timeout=60)
        self.conf = new
        self.target(name)["opts"]["ids"] = ["evtgt"]  # the file's, as it goes on without the file

    # --- what is saved ---------------------------------------------------------------------------

    def move_save(self):
        name = self.pick(self.mine())
        if name and self.chance(0.5):
            self.do(False, verb=["save", name],
                    raw=("config", "save", {"targets": [name]}))
        else:
            self.do(False, verb=["save"], raw=("config", "save", {}))

    def move_forget(self):
        name = self.pick(self.mine())
        if name:
            self.do(False, verb=["forget"], raw=("config", "forget", {}))

    def move_persist(self):
        name = self.pick(self.mine())
        if name and self.do(False, verb=["target", "set", name, "alias=kept", "--persist"]):
            set_opt(self.target(name)["opts"], "alias", "kept")

    # --- the run ---------------------------------------------------------------------------------

    WEIGHTS = {"lun_add": 6, "lun_remove": 2, "lun_set": 6, "target_set": 5, "rule": 5, "lun_path": 3,
               "account_new": 3, "account_bind": 4, "target_new": 3, "target_create": 3,
               "target_in_use": 1}

    def step(self):
        names = sorted(n[5:] for n in dir(self) if n.startswith("move_"))
        name = self.rng.choices(names, [self.WEIGHTS.get(n, 2) for n in names])[0]
        before = len(self.story)
        getattr(self, "move_" + name)()
        if len(self.story) == before:
            return False  # there was nothing to do
        self.count[name] = self.count.get(name, 0) + 1
        return True
