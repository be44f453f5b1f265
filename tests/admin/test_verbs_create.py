# SPDX-License-Identifier: BSD-2-Clause
"""target create: all of it or nothing, names, LUNs with their files, accounts, portals."""

import os
import re

from common import MIB, NAME, daemon
from lib.evtgt import IQN
from verbs import ask, run, verb


def test_create(settings):
    with daemon(settings) as d:
        data = ask(d, "target create backup --lun x.img,create=5M --lun null:1G,lun=7,readonly "
                      "--allow 127.0.0.0/8 --allow-initiator iqn.2001-04.a:* --account mac "
                      "--generate-password --set MaxBurstLength=65536 --portal 127.0.0.1:%d" % d.port,
                   more=["--alias", 'My "disk" #1'])
        assert data["name"] == IQN + "backup", data  # as the target that is there
        assert re.fullmatch(r"[\w-]{16}", data["password"])
        assert data["luns"] == [{"lun": 1, "path": d.path("x.img")}, {"lun": 7, "path": ""}]
        t = ask(d, "target show backup")["target"]
        assert t["addresses"] == ["127.0.0.0/8"] and t["initiators"] == ["iqn.2001-04.a:*"]
        assert t["accounts"] == [{"user": "mac", "outgoing": False}]
        assert t["alias"] == 'My "disk" #1' and ["MaxBurstLength", "65536"] in t["keys"]
        assert [l["lun"] for l in t["luns"]] == [1, 7] and t["luns"][0]["thin"]
        assert t["portals"] and os.path.getsize(d.path("x.img")) == 5 * MIB
        verb(d, "target create iqn.2001-04.whole:name", says=("Nobody may log in yet", "no LUN yet"))


def test_refusals_name_the_option(settings):
    """What was wished on the command line is told in its words, not in those of a file."""
    with daemon(settings) as d:
        for options, says in (("--allow 10.0.0.300", '--allow: "10.0.0.300" is no address'),
                              ("--allow-initiator iqn.2001-04.a:\x01", "--allow-initiator: "),
                              ("--set MaxBurstLength=1", "MaxBurstLength "),
                              ("--portal nonsense:x", "--portal: "),
                              ("--lun none.img", d.path("none.img") + ": No such file")):
            out = run(d, "target", "create", IQN + "bad", *options.split())
            assert out.returncode == 1 and says in out.stderr, (options, out)
            for word in ("initiator-address", "initiator-name", "target create:1", "target create:2"):
                assert word not in out.stderr, (options, out)
            if "--allow" not in options:
                assert "add --allow ALL, --allow ADDRESS or --allow-initiator NAME" in out.stderr, out
            assert says in ask(d, "target create bad " + options, 1)["message"]


def test_nothing_is_left_of_a_failure(settings):
    with daemon(settings) as d:
        before = verb(d, "target list --names")
        verb(d, "target create disk --lun y.img,create=1M", 1, ("already exists", "removed again"))
        verb(d, "target create bad --lun y.img,create=1M,nonsense", 1, ("nonsense", "removed again"))
        verb(d, "target create bad --lun y.img,create=1M --lun none.img --allow nonsense/99", 1)
        verb(d, "target create bad --lun y.img,create=1M --lun y.img,create=1M", 1, "is there already")
        verb(d, "target create bad --outgoing-account o", 2, "go together")
        verb(d, "target create bad --generate-password", 2, "go with --account")
        verb(d, "target create bad<", 2, "no name of a target")
        verb(d, "target create bad --account u --password-file -", 1, "cannot be written",
             stdin='a b"c#d-12345678\n')
        assert verb(d, "target list --names") == before == NAME + "\n"
        assert not os.path.exists(d.path("y.img"))
