# SPDX-License-Identifier: BSD-2-Clause
"""Clients at the same time: different targets (none is lost), one target (some serial order)."""

import concurrent.futures
import json
import os
import random
import subprocess
import threading

from conf_tool import Refused, ask, dump
from common import daemon, file, program
from lib.evtgt import IQN, Lun, Target
from live import parse

N = 10


def together(jobs):
    """Runs all at once; their results, in order."""
    gate = threading.Barrier(len(jobs))

    def one(job):
        gate.wait()
        return job()
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        return [f.result() for f in [pool.submit(one, j) for j in jobs]]


def verb(d, *args, text=""):
    out = subprocess.run([d.set.adm] + [str(a) for a in args], capture_output=True, text=True,
                         input=text, timeout=120, env=dict(os.environ, EVTGT_SOCKET=d.sock))
    return out.returncode, out.stdout + out.stderr


def cinder(d, i, rnd):
    """A target's own file in the directory, and the update that Cinder calls."""
    name, path = IQN + "volume-%d" % i, d.path("v%d.img" % i)
    with open(os.path.join(d.path("volumes"), "volume-%d" % i), "w") as f:
        f.write("<target %s>\n    backing-store %s\n    driver iscsi\n    incominguser user%d "
                "secret-of-%d-%d\n    write-cache on\n</target>\n" % (name, path, i, i, rnd))
        os.chmod(f.name, 0o600)
    out = program(d, "tgt-admin", "--conf", d.path("tgt.conf"), "--update", name, timeout=120)
    return out.returncode, out.stdout + out.stderr


def mixed(d, i):
    """A target of its own by plain verbs: a change each, all of them must last."""
    name = IQN + "mixed-%d" % i
    for args, text in ((["target", "create", name, "--allow", "10.0.%d.0/24" % i], ""),
                       (["lun", "add", name, "null:1M", "--lun", i], ""),
                       (["account", "add", "mixed%d" % i, "--password-file", "-", "--target", name],
                        "secret-of-mixed-%d\n" % i),
                       (["target", "set", name, "alias=number %d" % i], ""),
                       (["acl", "allow", name, "iqn.2001-04.a:%d" % i], ""),
                       (["portal", "list"], "")):
        rc, out = verb(d, *args, text=text)
        if rc:
            return rc, "%s: %s" % (" ".join(str(a) for a in args), out)
    return 0, ""


def check_all_there(d, rnd):
    conf = parse.parse(dump(d, secrets=True))
    for i in range(N):
        t = conf["targets"][IQN + "volume-%d" % i]
        assert t["opts"]["incominguser"] == ["user%d secret-of-%d-%d" % (i, i, rnd)], t
        assert [l["path"] for l in t["luns"].values()] == [[d.path("v%d.img" % i)]], t
        t = conf["targets"][IQN + "mixed-%d" % i]
        tid = t["opts"].pop("controller_tid")
        assert len(tid) == 1, t
        assert t == {"opts": {"initiator-address": ["10.0.%d.0/24" % i], "alias": ["number %d" % i],
                              "initiator-name": ["iqn.2001-04.a:%d" % i],
                              "incominguser": ["mixed%d secret-of-mixed-%d" % (i, i)]},
                     "luns": {i: {"path": ["none"], "bs-type": ["null"], "size": ["1048576"]}}}, t
    assert len(conf["targets"]) == 2 * N + 1, sorted(conf["targets"])


def test_different_targets(settings, seed):
    """Ten updates and ten series of plain verbs, at once: all succeed, none is lost; then the
    updates again with other secrets."""
    with daemon(settings, [Target("steady", [Lun("a.img", 1 << 20, 1, kind="file")])]) as d:
        os.mkdir(d.path("volumes"))
        with open(d.path("tgt.conf"), "w") as f:
            f.write("syntax tgt\ninclude %s/*\n" % d.path("volumes"))
        for i in range(N):
            file(d, "v%d.img" % i)
        for rnd in range(3):
            jobs = [lambda i=i: cinder(d, i, rnd) for i in range(N)]
            if rnd == 0:
                jobs += [lambda i=i: mixed(d, i) for i in range(N)]
            for rc, out in together(jobs):
                assert rc == 0, "status %d: %s" % (rc, out)
            check_all_there(d, rnd)


# --- one target -------------------------------------------------------------------------------

class Thing:
    """Something that is there or not; every client makes it and takes it away. In a serial order
    the makings and takings that were done take turns."""

    def __init__(self, name, make, take, exists, missing):
        self.name, self.make, self.take = name, make, take
        self.exists, self.missing = exists, missing
        self.made = self.taken = 0


def things(path):
    t = {"tid": 7}
    return [
        Thing("rule", ("target", "bind", {**t, "address": "10.0.0.1"}),
              ("target", "unbind", {**t, "address": "10.0.0.1"}), "rule-exists", "no-rule"),
        Thing("name", ("target", "bind", {**t, "initiator": "iqn.2001-04.a:x"}),
              ("target", "unbind", {**t, "initiator": "iqn.2001-04.a:x"}), "rule-exists", "no-rule"),
        Thing("unit", ("logicalunit", "new", {**t, "lun": 3, "params": {"backing-store": path}}),
              ("logicalunit", "delete", {**t, "lun": 3}), "lun-exists", "no-lun"),
        Thing("null unit", ("logicalunit", "new", {**t, "lun": 4, "params": {
            "bs-type": "null", "size": "1M"}}),
              ("logicalunit", "delete", {**t, "lun": 4}), "lun-exists", "no-lun"),
        Thing("account", ("account", "new", {"user": "u", "password": "secret-of-u-u"}),
              ("account", "delete", {"user": "u"}), "account-exists", "no-account"),
        Thing("target", ("target", "new", {"tid": 8, "name": IQN + "eight"}),
              ("target", "delete", {"tid": 8}), "target-exists", "no-target"),
    ]


def client(d, all_things, seed, turns, lock):
    rng = random.Random(seed)
    for _ in range(turns):
        thing, making = rng.choice(all_things), rng.random() < 0.5
        mode, op, args = thing.make if making else thing.take
        try:
            ask(d, mode, op, **args)
            with lock:
                thing.made += making
                thing.taken += not making
        except Refused as e:
            want = thing.exists if making else thing.missing
            assert e.code == want, "%s %s: %s" % (op, thing.name, e)


def test_one_target(settings, seed):
    """Ten clients that want the opposite of each other: what is done takes turns."""
    turns = 60 if settings.weight < 4 else 25
    with daemon(settings, [Target("steady", [Lun("a.img", 1 << 20, 1, kind="file")])]) as d:
        ask(d, "target", "new", tid=7, name=IQN + "seven")
        all_things, lock = things(file(d, "u.img")), threading.Lock()
        together([lambda i=i: client(d, all_things, seed * 100 + i, turns, lock) for i in range(N)])
        t = [x for x in ask(d, "target", "show")["targets"] if x["tid"] == 7][0]
        conf = parse.parse(dump(d, secrets=True))
        opts, luns = conf["targets"][IQN + "seven"]["opts"], conf["targets"][IQN + "seven"]["luns"]
        there = {"rule": "initiator-address" in opts, "name": "initiator-name" in opts,
                 "unit": 3 in luns, "null unit": 4 in luns,
                 "account": "u" in json.dumps(ask(d, "account", "show")["accounts"]),
                 "target": IQN + "eight" in conf["targets"]}
        for thing in all_things:
            assert thing.made + thing.taken, "%s was never changed" % thing.name
            assert thing.made - thing.taken == there[thing.name], "%s: made %d times, taken %d, %s" % (
                thing.name, thing.made, thing.taken, "there" if there[thing.name] else "not there")
        assert {l["lun"] for l in t["luns"]} - {0} == set(luns), t


def test_target_under_them(settings, seed):
    """Nine clients change a target that the tenth deletes and makes: each answer fits."""
    turns = 60 if settings.weight < 4 else 25
    fits = {"no-target", "rule-exists", "no-rule", "lun-exists", "no-lun", "target-exists"}
    with daemon(settings, [Target("steady", [Lun("a.img", 1 << 20, 1, kind="file")])]) as d:
        def change(i):
            rng = random.Random(seed * 100 + i)
            for _ in range(turns):
                mode, op, args = rng.choice([x for t in things(d.path("a.img"))[:2] +
                                             things(d.path("a.img"))[3:4] for x in (t.make, t.take)])
                if i == 0:
                    mode, op, args = rng.choice([("target", "delete", {"tid": 7}), (
                        "target", "new", {"tid": 7, "name": IQN + "seven"})])
                try:
                    ask(d, mode, op, **args)
                except Refused as e:
                    assert e.code in fits, e
        together([lambda i=i: change(i) for i in range(N)])
        conf = parse.parse(dump(d, secrets=True))
        assert IQN + "steady" in conf["targets"], conf
        verb(d, "target", "list")


TESTS = [test_different_targets, test_one_target, test_target_under_them]
