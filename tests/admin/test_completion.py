# SPDX-License-Identifier: BSD-2-Clause
"""Completion: what `complete` offers, and the scripts in the shells themselves; the manual has every
verb and option of the table, and no other."""

import os
import re
import shutil
import subprocess

from common import MIB, NAME, Skip, daemon
from lib.evtgt import IQN, Lun, Target
from test_manuals import table
from verbs import run, verb

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TWO = [Target("disk", [Lun("a.img", MIB, 1, kind="file")]), Target("other", [])]


def offered(d, *words):
    out = run(d, "complete", *words)
    assert out.returncode == 0 and not out.stderr, out
    return [line.split("\t")[0] for line in out.stdout.splitlines()]


def verbs(d):
    """{verb: (arguments, options)} from the help."""
    found = {}
    for line in verb(d, "help").splitlines():
        m = re.match(r"  ((?:target|lun|acl|account|portal|session|zram) [\w-]+|[\w-]+) ?(.*?)  +\S", line + "  .")
        if not m:
            continue
        text = verb(d, "help " + m.group(1))
        found[m.group(1)] = (m.group(2).strip(), re.findall(r"^  (--[\w-]+)", text, re.M))
    assert len(found) > 30, found
    return found


def test_candidates(settings):
    with daemon(settings, TWO) as d:
        first = offered(d, "")
        assert len(first) == len(set(first)), first
        assert first == list(dict.fromkeys(v.split()[0] for v in verbs(d))), first
        assert offered(d, "tar") == ["target"]
        assert offered(d, "target", "") == ["create", "delete", "list", "show", "set"]
        assert offered(d, "target", "delete", "") == [NAME, IQN + "other"]
        assert offered(d, "target", "delete", "x", "") == []
        assert offered(d, "target", "delete", "--fo") == ["--force"]
        assert offered(d, "lun", "add", NAME, "") == ["@files"]
        assert offered(d, "lun", "add", NAME, "p", "--lun", "") == []
        assert offered(d, "account", "add", "u", "--target", "") == [NAME, IQN + "other"]
        assert offered(d, "account", "add", "u", "--password-file", "") == ["@files"]
        assert offered(d, "completion", "") == ["bash", "zsh", "fish"]
        assert offered(d, "completion", "z") == ["zsh"]
        assert offered(d, "status", "") == []
        assert offered(d, "save", NAME, "") == [NAME, IQN + "other"]
        assert offered(d, "nonsense", "") == []
        assert "account" in offered(d, "help", "")
        for name, (_, options) in verbs(d).items():
            assert sorted(offered(d, *name.split(), "-")) == sorted(options), name


def test_without_a_daemon_nothing_is_offered(settings):
    out = subprocess.run([settings.adm, "complete", "target", "show", ""], capture_output=True,
                         text=True, timeout=20, env=dict(os.environ, EVTGT_SOCKET="/nonexistent/s"))
    assert (out.returncode, out.stdout, out.stderr) == (0, "", ""), out


def shell(d, name, line, code, of=""):
    """What this shell offers for the line; code: makes it print that, a candidate a line."""
    program = shutil.which(name)
    if not program:
        raise Skip(name + " is not installed")
    script = d.path("completion." + name)
    with open(script, "w") as f:
        f.write(verb(d, "completion %s %s" % (name, of)))
    env = dict(os.environ, EVTGT_SOCKET=d.sock, LINE=line, SCRIPT=script, HOME=d.dir, TERM="dumb",
               PATH=os.path.dirname(os.path.abspath(d.set.adm)) + ":" + os.environ["PATH"])
    out = subprocess.run([program] + code, capture_output=True, text=True, timeout=30, env=env,
                         stdin=subprocess.DEVNULL, cwd=d.dir)
    assert out.returncode == 0, out
    return [x for x in out.stdout.splitlines() if x]


BASH = ["-c", 'source "$SCRIPT"; COMP_LINE=$LINE; COMP_POINT=${#LINE}; complete -p evtgtadm >&2; '
              '_evtgtadm; printf "%s\\n" "${COMPREPLY[@]}"']
FISH = ["-c", 'source $SCRIPT; complete -C "$LINE"']
# zsh completes on a terminal only: what the function would describe is printed instead
ZSH = ["-fc", 'words=(${=LINE}); [[ $LINE == *" " ]] && words+=(""); CURRENT=${#words}; '
              '_describe() { print -rl -- ${(P)2}; }; _files() { print @files; true; }; '
              'compdef() { :; }; source $SCRIPT; _evtgtadm']


def first_words(lines, end="\t"):
    """end: what parts a candidate from its explanation, a regular expression."""
    return [re.split(end, x)[0].replace("\\:", ":") for x in lines]


ZSH_END = r"(?<!\\):"


def try_shell(settings, name, code, colon):
    with daemon(settings, TWO) as d:
        got = first_words(shell(d, name, "evtgtadm tar", code))
        assert got == ["target"], got
        got = first_words(shell(d, name, "evtgtadm target de", code))
        assert got == ["delete"], got
        got = first_words(shell(d, name, "evtgtadm target delete --fo", code))
        assert got == ["--force"], got
        got = first_words(shell(d, name, "evtgtadm target delete ", code))
        assert got == [NAME, IQN + "other"], got
        got = first_words(shell(d, name, "evtgtadm target delete " + IQN + "ot", code))
        assert got == [colon], got
        got = shell(d, name, "evtgtadm check a.i", code)
        assert got and ("a.img" in got[0] or got == ["@files"]), got


def test_bash(settings):
    try_shell(settings, "bash", BASH, "other")  # readline has parted the word at the colon


def test_fish(settings):
    try_shell(settings, "fish", FISH, IQN + "other")


def test_zsh(settings):
    if not shutil.which("zsh"):
        raise Skip("zsh is not installed")
    with daemon(settings, TWO) as d:
        got = first_words(shell(d, "zsh", "evtgtadm target delete ", ZSH), ZSH_END)
        assert got == [NAME, IQN + "other"], got
        assert first_words(shell(d, "zsh", "evtgtadm completion ", ZSH)) == ["bash", "zsh", "fish"]
        assert shell(d, "zsh", "evtgtadm check ", ZSH) == ["@files"]
        got = shell(d, "zsh", "evtgtadm target delete --fo", ZSH)
        assert got == ["--force:ends its sessions"], got


# --- the programs that evtgtadm also is -----------------------------------------------------------

OLD = {"tgtadm": ("tools/tgtadm.c", "tgt_longs[]", "own_longs[]"), "tgt-admin": ("tools/tgt_admin.c", "longs[]"),
       "tgtimg": ("tools/tgtimg.c", "longs[]"), "ietadm": ("tools/ietadm.c", "iet_longs[]", "own_longs[]")}


def test_options_of_the_old_names(settings):
    with daemon(settings, TWO) as d:
        def of(*words):
            out = run(d, "complete-of", *words)
            assert out.returncode == 0 and not out.stderr, out
            return [x.split("\t")[0] for x in out.stdout.splitlines()]

        for name, (source, *tables) in OLD.items():
            want = set().union(*(table(source, t) for t in tables))
            assert set(of(name, "-")) == {"--" + x for x in want}, name
        assert set(of("tgt-setup-lun", "")) == {"-" + x for x in "dnbBtCh"}
        assert of("tgtadm", "--mo") == ["--mode"] and of("nonsense", "-") == []
        for option in ("--mode", "-m"):
            assert of("tgtadm", "--lld", "iscsi", option, "tar") == ["target"]
        assert of("tgtadm", "--mode", "target", "--op", "un") == ["unbind", "undrain"]
        assert of("tgtadm", "--backing-store", "") == ["@files"] == of("tgt-admin", "-c", "")
        assert of("tgt-admin", "--update", "") == ["ALL", NAME, IQN + "other"]
        assert of("tgtadm", "--tid", "") == [] == of("tgtadm", "--tid=1", "x")
        assert of("tgt-setup-lun", "-t", "") == ["iscsi"] and of("tgtimg", "--op", "") == ["new"]
        for shell_name in ("bash", "zsh", "fish"):
            for name in list(OLD) + ["tgt-setup-lun"]:
                text = verb(d, "completion %s %s" % (shell_name, name))
                assert "evtgtadm complete-of %s " % name in text and "@N" not in text and "@A" not in text
        verb(d, "completion bash nonsense", 2, "nonsense")


def test_old_names_in_shells(settings):
    with daemon(settings, TWO) as d:
        for name, start, want in (("tgtadm", "--contr", "--control-port"), ("tgt-admin", "--contr", "--control-port"),
                                  ("tgtadm", "--mode log", "logicalunit"), ("tgt-setup-lun", "-t is", "iscsi")):
            bash = ["-c", 'source "$SCRIPT"; COMP_LINE=$LINE; COMP_POINT=${#LINE}; complete -p %s >&2; _%s; '
                          'printf "%%s\\n" "${COMPREPLY[@]}"' % (name, name)]
            got = shell(d, "bash", name + " " + start, bash, name)
            assert got == [want], got
            if shutil.which("fish"):
                got = first_words(shell(d, "fish", name + " " + start, FISH, name))
                assert got == [want], got


# --- the manual ----------------------------------------------------------------------------------

def manual():
    """{verb: options} of docs/evtgtadm.8: an item `.It Ic VERB ...` in the sections of verbs, and the
    `Fl -option` of it and of the text up to the next."""
    found, name = {}, None
    with open(os.path.join(TOP, "docs/evtgtadm.8")) as f:
        text = f.read()
    part = text[text.index(".Sh VERBS"):text.index(".Sh OPTIONS OF TGTADM")]
    for line in part.splitlines():
        m = re.match(r"\.It Ic ([\w -]+?)(?: (?:Ar|Op|Oo|Fl|Cm)\b.*)?$", line)
        if m:
            name = m.group(1)
            found.setdefault(name, set())
        if name:
            found[name] |= set("--" + o for o in re.findall(r"Fl -([\w-]+)", line))
        if line.startswith(".El"):
            name = None
    return found


COMMON = {"--json", "--socket", "--help", "--persist"}


def test_manual_and_table_agree(settings):
    with daemon(settings, TWO) as d:
        table, man = verbs(d), manual()
        assert sorted(table) == sorted(man), set(table) ^ set(man)
        for name, (_, options) in table.items():
            assert man[name] - COMMON == set(options) - COMMON, (name, man[name] ^ set(options))


def test_examples_are_right(settings):
    """Every line of an example names a verb and options that are there."""
    with daemon(settings, TWO) as d:
        table = verbs(d)
        for name in table:
            text = verb(d, "help " + name)
            for line in text[text.index("Examples:"):].splitlines()[1:] if "Examples:" in text else ():
                words = line.split()
                assert words[0] == os.path.basename(d.set.adm), line
                assert " ".join(words[1:]).startswith(name), line
                for o in re.findall(r"(--[\w-]+)", line):
                    assert o in table[name][1], line
