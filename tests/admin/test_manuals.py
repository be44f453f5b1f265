# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages: mandoc finds nothing, and the options of each page are those of the program, both ways."""

import glob
import os
import re
import shutil
import subprocess

from common import Skip

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(name):
    with open(os.path.join(TOP, name)) as f:
        return f.read()


def test_pages_are_clean(settings):
    del settings
    if not shutil.which("mandoc"):
        raise Skip("mandoc is not installed")
    pages = sorted(glob.glob(os.path.join(TOP, "docs/*.[58]")))
    assert len(pages) >= 8, pages
    out = subprocess.run(["mandoc", "-Tlint", "-Wwarning"] + pages, capture_output=True, text=True, timeout=30)
    lines = [x for x in out.stdout.splitlines() if "referenced manual not found" not in x]
    assert not lines and not out.stderr, "\n".join(lines) + out.stderr


def table(source, start, end="{NULL"):
    """The names in a table of `struct option` of a source."""
    text = read(source)
    text = text[text.index(start):]
    text = text[:text.index(end)].replace("\\\n", " ")
    got = set(re.findall(r'"([a-z][\w-]+)", *(?:no|required|optional)_argument', text))
    assert got, text
    return got


def page(name, start=None, end=None):
    """The long options that macros of a page (or of a part of it) name."""
    text = read("docs/" + name)
    text = text[text.index(start):] if start else text
    text = text[:text.index(end, 5)] if end else text
    words = [w for line in text.splitlines() if line[:1] == "." and "Fl" in line and line[:3] != ".Bl"
             for w in re.findall(r"(?<=\s)-([a-z][a-z_-]+)(?=\s|$)", line)]
    return set(words)


OTHERS = ".Sh UNDER OTHER NAMES"


def programs():
    common = table("target/main_args.h", "define MAIN_COMMON_LONGS", "/* main_args.c")
    shared = page("evtgtd.8", OTHERS, ".Ss tgtd")
    tgtadm = (table("tools/tgtadm.c", "tgt_longs[]") | table("tools/tgtadm.c", "own_longs[]"))
    yield "evtgtd", table("target/main_args.c", "longs[]") | common, page("evtgtd.8", end=OTHERS)
    yield ("tgtd", table("target/main_compat.c", "tgtd_longs[]") | common,
                   shared | page("evtgtd.8", ".Ss tgtd", ".Ss ietd"))
    yield ("ietd", table("target/main_compat.c", "ietd_longs[]") | common,
                   shared | page("evtgtd.8", ".Ss ietd", ".Sh"))
    yield "tgtadm", tgtadm, page("tgtadm.8")
    yield "evtgtadm", tgtadm, page("evtgtadm.8", ".Sh OPTIONS OF TGTADM", ".Sh CONVERT")
    yield ("ietadm", table("tools/ietadm.c", "iet_longs[]") | table("tools/ietadm.c", "own_longs[]")
                     | {"write", "follow"}, page("ietadm.8"))  # those two are iet-proc's
    yield "tgt-admin", table("tools/tgt_admin.c", "longs[]"), page("tgt-admin.8")
    yield "tgtimg", table("tools/tgtimg.c", "longs[]"), page("tgtimg.8")


def test_options_are_those_of_the_pages(settings):
    del settings
    wrong = []
    for program, has, told in programs():
        wrong += ["%s: --%s is not in its page" % (program, x) for x in sorted(has - told)]
        wrong += ["%s: its page has --%s, which it does not take" % (program, x) for x in sorted(told - has)]
    assert not wrong, "\n".join(wrong)


def test_letters_of_setup_lun(settings):
    del settings
    letters = set(re.search(r'tgt_setup_lun_letters\[\] = "([^"]+)"', read("tools/tgt_setup_lun.c")).group(1)) - {":", "+"}
    told = set(re.findall(r"^\.It Fl (\w)", read("docs/tgt-setup-lun.8"), re.M))
    assert letters == told, (letters, told)


# Directives that evtgt has beyond those of tgt's files.
OWN = set("""ids syntax portal portal-group group advertise target workers busy-poll placement user state-dir autosave
    initiators-allow initiators-deny targets-allow discovery-filter login-timeout max-half-open
    max-half-open-per-address tcp-keepalive-idle tcp-keepalive-interval tcp-keepalive-count tcp-user-timeout
    nop_interval nop_count dscp max-sessions shutdown-timeout redirect-timeout iSNSServer login-failure-delay
    chap-algorithms chap-legacy-sha1-7 local-address discoverable alias state MaxQueueCmd RedirectAddress
    RedirectPort RedirectReason RedirectCallback redirect-initiator naa eui designator scsi_sn_width
    thin-provisioning thin_provisioning rotation_rate size layer algorithm comp_algorithm level chunk-size
    mem-limit mem_limit volatile-ack zram-mem-limit account""".split())


def items(name):
    """What the items of a page describe."""
    lines = re.findall(r"^\.It (Ic .*)$", read("docs/" + name), re.M)
    return set(w for line in lines for w in re.split(r" (?:Ar|Cm|Op|Ns)\b", line)[0].split()[1:] if w != ",")


def rows(source, start):
    text = read(source)
    text = text[text.index(start):]
    return re.findall(r'\{"([^"]+)", ([^,]+),', text[:text.index("\n};")])


def test_page_of_tgts_file(settings):
    """Each directive of the table is in the page or known to be ours; what has no counterpart is named."""
    del settings
    told, table_rows = items("targets.conf.5"), {n for n, _ in rows("conf/table.c", "directive table[]")}
    assert told <= table_rows, told - table_rows
    assert not told & OWN and OWN <= table_rows, (told & OWN, OWN - table_rows)
    assert table_rows - OWN == told, table_rows - OWN - told
    text = read("docs/targets.conf.5")
    for name, value in rows("conf/syntax_tgt.c", "} foreign[] = {"):
        assert name in told, name
        if value != "NULL":
            assert re.search(r"^\.Cm .*\b%s\b" % value.strip('"'), text, re.M), (name, value)


def test_page_of_iets_file(settings):
    del settings
    words = {n for n, _ in rows("conf/syntax_iet.c", "iet_word words[]")}
    assert items("ietd.conf.5") == words, items("ietd.conf.5") ^ words
    text = read("docs/ietd.conf.5")
    for name in re.findall(r'strcasecmp\(key, "(\w+)"\)', read("conf/syntax_iet.c")):
        assert re.search(r"\b%s\b" % name, text), name
