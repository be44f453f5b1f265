# SPDX-License-Identifier: BSD-2-Clause
"""Units in compressed memory: volatile, thin, limited, changed while they are in use; the verbs of
zram, and the kernel's zram devices where there are any."""

import contextlib
import os

from common import MIB, NAME, Skip, daemon
from lib import scsi
from lib.evtgt import Lun, Target
from lib.iscsi import Session
from verbs import ask, verb

BLK = 512


def one(*opts, size=64 * MIB, name="z"):
    return [Target("disk", [Lun(name, size, 1, kind="zram", opts=list(opts))])]


def login(d, **kw):
    s = Session(d.addr, NAME, **kw)
    s.login()
    return s


def settled(d):
    s = login(d)
    s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
    return s


def write(s, lba, data):
    return s.run(scsi.write10(lba, len(data) // BLK), write=data, lun=1)


def read(s, lba, n):
    return bytes(s.run(scsi.read10(lba, n), read=n * BLK, lun=1).good().data)


def unit(d):
    return ask(d, "zram show")["units"][0]


def serial(s):
    return bytes(s.run(scsi.inquiry(255, 0x80), read=255, lun=1).good().data)


def rewrite(d, old, new):
    with open(d.conf) as f:
        text = f.read()
    assert old in text, (old, text)
    with open(d.conf, "w") as f:
        f.write(text.replace(old, new))


# --- volatile ------------------------------------------------------------------------------------

def test_told_once_a_nexus(settings):
    with daemon(settings, one()) as d:
        s = login(d)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x29)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x28, 0)
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        s.logout()
        again = login(d, isid=s.isid)
        again.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x29)
        again.run(scsi.TEST_UNIT_READY, lun=1).good()
        other = login(d, initiator="iqn.2026-11.com.example:other")
        other.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x29)
        other.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x28, 0)
        assert "volatile" in verb(d, "lun list disk") and "zram:z" in verb(d, "lun list disk")
        assert "volatile" in verb(d, "zram show")
        with open(d.log) as f:
            assert "volatile name=z" in f.read()


def test_restart_loses_and_says_so(settings):
    with daemon(settings, one("volatile-ack on")) as d:
        s = login(d)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x29)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x28, 0)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(2, 4, 3)
        write(s, 0, b"x" * BLK).check(2, 4, 3)
        assert unit(d)["awaits_ack"] is True
        assert "acknowledged" in verb(d, "zram show")
        assert "nobody has acknowledged" in verb(d, "lun list disk")
        assert ask(d, "lun acknowledge disk 9", 1)["code"] == "no-lun"
        verb(d, "lun acknowledge disk 1", says="is ready, and empty")
        assert ask(d, "lun acknowledge disk 1", 1)["code"] == "invalid"
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x28, 0)
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        write(s, 0, b"x" * BLK).good()
        mine = serial(s)
        # switched on while it is in use it is of no account, nor is switching off
        verb(d, "lun set disk 1 volatile-ack=off")
        verb(d, "lun set disk 1 volatile-ack=on")
        assert read(s, 0, 1) == b"x" * BLK
        d.stop()
        d.start()
        s = login(d)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x29)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x28, 0)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(2, 4, 3)
        assert serial(s) == mine
        verb(d, "lun set disk 1 volatile-ack=off")
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        assert read(s, 0, 1) == bytes(BLK)


# --- live ----------------------------------------------------------------------------------------

def test_live_settings(settings):
    with daemon(settings, one()) as d:
        s = settled(d)
        data = scsi.pattern(256 * BLK, 3)
        write(s, 64, data).good()
        verb(d, "lun set disk 1 algorithm=zstd level=3 mem_limit=32M")
        u = unit(d)
        assert (u["algorithm"], u["level"], u["mem_limit"]) == ("zstd", 3, 32 * MIB)
        assert u["mm_stat"]["mem_limit"] == 32 * MIB
        write(s, 4096, data).good()
        assert read(s, 64, 256) == data and read(s, 4096, 256) == data
        assert unit(d)["objects_by_algorithm"]["zstd"] > 0
        for text, says in (("algorithm=arj", "lz4, lz4hc, zstd or deflate"), ("level=50", "0 to 22"),
                           ("algorithm=lz4", "lz4 has no levels"), ("size=32M", "only grows"),
                           ("size=100T", "hold at most 16 TiB"), ("size=65537K", "whole number of"),
                           ("path=/x", "wants a name"), ("path=y", "offline first"),
                           ("bsopts=a=b", "no bsopts"),
                           ("mem_limit=3", "from 1M on")):
            e = ask(d, "lun set disk 1 " + text, 1)
            assert says in e["message"], (text, e)
        verb(d, "lun set disk 1 removable=on")
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x3F, 3)
        assert "no path and no options" in ask(d, "lun set disk 1 path=y", 1)["message"]
        verb(d, "lun resize disk 1 +64M", says="128 MiB")
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x2A, 9)
        write(s, 128 * MIB // BLK - 256, data).good()
        assert read(s, 128 * MIB // BLK - 256, 256) == data
        verb(d, "lun set disk 1 algorithm=lz4 level=0 mem-limit=0")
        text = verb(d, "dump disk")
        assert "bs-type zram" in text and "size 134217728" in text and "algorithm lz4" in text


def test_reload(settings):
    with daemon(settings, one("algorithm lz4", "mem-limit 16M")) as d:
        s = settled(d)
        data = scsi.pattern(64 * BLK, 5)
        write(s, 0, data).good()
        rewrite(d, "algorithm lz4", "algorithm deflate")
        rewrite(d, "mem-limit 16M", "mem-limit 17M")
        rewrite(d, "size %d" % (64 * MIB), "size %d" % (80 * MIB))
        with open(d.conf) as f:
            text = f.read()
        with open(d.conf, "w") as f:
            f.write("zram-mem-limit 64M\n" + text)
        verb(d, "reload")
        u = unit(d)
        assert (u["algorithm"], u["mem_limit"], u["disksize"]) == ("deflate", 17 * MIB, 80 * MIB)
        assert ask(d, "zram show")["mem_limit"] == 64 * MIB
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x2A, 9)
        assert read(s, 0, 64) == data
        rewrite(d, "algorithm deflate", "algorithm deflate\nchunk-size 64K")
        verb(d, "reload", 1, "logged in there")
        assert read(s, 0, 64) == data and unit(d)["chunk_size"] == 4096
        verb(d, "reload --force")
        assert unit(d)["chunk_size"] == 65536
        t = settled(d)
        assert read(t, 0, 64) == bytes(64 * BLK)


def test_two_targets_share(settings):
    lun = [Lun("both", 8 * MIB, 1, kind="zram")]
    with daemon(settings, [Target("disk", lun), Target("two", [Lun("both", 8 * MIB, 1, kind="zram")])
                           ]) as d:
        a = settled(d)
        b = Session(d.addr, NAME.replace("disk", "two"))
        b.login()
        b.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        write(a, 0, b"s" * BLK).good()
        assert read(b, 0, 1) == b"s" * BLK and serial(a) == serial(b)


# --- space ---------------------------------------------------------------------------------------

def test_full(settings):
    with daemon(settings, one("mem-limit 4M")) as d:
        s = settled(d)
        n, good = 512, []
        for i in range(40):
            data = os.urandom(n * BLK)
            t = write(s, i * n, data)
            if t.status:
                t.check(7, 0x27, 7)
                break
            good.append(data)
        assert 8 < len(good) < 20, len(good)
        for i, data in enumerate(good):
            assert read(s, i * n, n) == data, i
        s.run(scsi.synchronize_cache10(), lun=1).good()
        assert unit(d)["io_stat"]["failed_writes"] > 0 and unit(d)["store"]["no_space"] > 0
        lst = scsi.unmap_list((0, 8 * n))
        s.run(scsi.unmap(len(lst)), write=lst, lun=1).good()
        write(s, 20000, os.urandom(n * BLK)).good()
        assert read(s, 0, n) == bytes(n * BLK)
        used = unit(d)["mm_stat"]["mem_used_total"]
        assert used <= 4 * MIB, used


# --- verbs ---------------------------------------------------------------------------------------

def test_verbs(settings):
    with daemon(settings, [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file")])]) as d:
        assert verb(d, "zram show") == "No LUNs in compressed memory.\n"
        for text, says in (("lun add disk zram:8M", "zram:NAME:SIZE"),
                           ("lun add disk zram:a:8X", "is no size"),
                           ("lun add disk zram:a:8M --create 8M", "only files are created"),
                           ("zram recompress disk 1", "--algorithm"), ("zram create", "--size"),
                           ("zram create --size 1M --compressed-writeback", "goes with --backing"),
                           ("zram create --size 1M --persist", "goes with --target"),
                           ("zram remove x", "wants")):
            verb(d, text, 2, () if says == "wants" else says)
        e = ask(d, "lun add disk zram:a/b:8M", 1)
        assert "wants a name" in e["message"]
        e = ask(d, "zram compact disk 1", 1)
        assert "not in compressed memory" in e["message"]
        verb(d, "lun add disk zram:fast:8M --set algorithm=lz4 --set chunk-size=64K",
             says="lost when the daemon ends")
        s = Session(d.addr, NAME)
        s.login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=2).good()
        for i in range(16):  # text, so that it compresses
            s.run(scsi.write10(i * 128, 128), write=b"%-64d" % i * 1024, lun=2).good()
        u = unit(d)
        assert (u["name"], u["lun"], u["chunk_size"], u["volatile"]) == ("fast", 2, 65536, True)
        for name in ("orig_data_size", "compr_data_size", "mem_used_total", "mem_limit",
                     "mem_used_max", "same_pages", "pages_compacted", "huge_pages",
                     "huge_pages_since"):
            assert name in u["mm_stat"], name
        for name in ("failed_reads", "failed_writes", "invalid_io", "notify_free"):
            assert name in u["io_stat"], name
        assert u["mm_stat"]["orig_data_size"] == MIB > u["mm_stat"]["compr_data_size"] > 0
        done = ask(d, "zram recompress disk 2 --algorithm zstd:19")
        assert done["seen"] >= 16 >= done["done"] > 0, done
        verb(d, "zram recompress disk 2 --algorithm zstd:19 --huge --idle 100")
        assert "arj" in ask(d, "zram recompress disk 2 --algorithm arj", 1)["message"]
        ask(d, "zram compact disk 2")
        assert bytes(s.run(scsi.read10(128, 128), read=65536, lun=2).good().data) == \
            b"%-64d" % 1 * 1024
        verb(d, "lun remove disk 2 --erase", 2, "leave --erase out")
        s.logout()
        verb(d, "lun remove disk 2", says="what was in it")
        assert ask(d, "zram show")["units"] == []


def test_kernel_zram(settings):
    if not os.path.exists("/sys/class/zram-control/hot_add") or os.geteuid() != 0:
        raise Skip("no zram in this kernel, or not root")
    with daemon(settings, [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file")])],
                args=("--user", "root")) as d, contextlib.ExitStack() as end:
        before = {x["device"] for x in ask(d, "zram list")["devices"]}
        e = ask(d, "zram create --size 16M --algorithm arj", 1)
        assert "no algorithm arj; it has" in e["message"], e
        e = ask(d, "zram create --size 16M --target nonsense", 1)
        assert e["code"] == "no-target"
        if not os.path.exists("/sys/block/zram0/backing_dev"):
            e = ask(d, "zram create --size 16M --backing /dev/x --compressed-writeback", 1)
            assert "no write-back" in e["message"], e
        assert {x["device"] for x in ask(d, "zram list")["devices"]} == before
        made = ask(d, "zram create --size 16M --algorithm lzo --mem-limit 8M")
        dev = made["device"]
        end.callback(lambda: os.path.exists("/sys/block/" + dev[5:]) and
                     verb(d, "zram remove " + dev))
        have = {x["device"]: x for x in ask(d, "zram list")["devices"]}[dev]
        assert (have["disksize"], have["comp_algorithm"]) == (16 * MIB, "lzo"), have
        assert have["mm_stat"]["mem_limit"] == 8 * MIB and dev in verb(d, "zram list")
        if not os.path.exists(dev):
            raise Skip("the kernel made %s, but nobody makes the node in /dev" % dev)
        verb(d, "lun add disk %s --set bs-type=blockio" % dev)
        s = Session(d.addr, NAME)
        s.login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=2).good()
        s.run(scsi.write10(0, 8), write=b"k" * 8 * BLK, lun=2).good()
        e = ask(d, "zram remove " + dev, 1)
        assert "in use" in e["message"], e
        s.logout()
        verb(d, "lun remove disk 2")
        verb(d, "zram remove " + dev, says="is gone")
        assert {x["device"] for x in ask(d, "zram list")["devices"]} == before
