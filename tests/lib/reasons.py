# SPDX-License-Identifier: BSD-2-Clause
"""What of a suite's output tells why it failed: a line a failed test, the assertion in it.

    for line in failures(text): ...

The suites say it in several ways: `FAIL name - reason`; `FAIL name - Traceback ...` with the
exception some lines below; automake's `FAIL: name` with the test's log below; a sanitizer's report."""

import re

FAIL = re.compile(r"\s*(?:FAIL|ERROR|XPASS)\b:?\s*(.*)")
EXCEPTION = re.compile(r"\s*(?:[\w.]+\.)?(\w*(?:Error|Exception|Failed|Silent|Closed|Expired|Lost|"
                       r"Interrupt|Exit))\b(.*)")
PLACE = re.compile(r'\s*File "(?:.*/)?([^/"]+)", line (\d+)')
# What says more than the line with FAIL: CUnit's list, sanitizers, a compiler, make, assert().
TELLING = re.compile(r"\s*\d+\. \S+:\d+\s+- |.*\b\w+Sanitizer:|.*runtime error:|.*: (?:fatal )?error: |"
                     r"make(?:\[\d+\])?: \*\*\* |.*[Aa]ssertion .*failed")
REASON_MAX = 200


def short(line):
    line = " ".join(line.split())
    return line if len(line) <= REASON_MAX else line[:REASON_MAX - 3] + "..."


def exception(lines, at):
    """The exception of the traceback that begins in line `at`, with the place where it was raised."""
    place = ""
    for i, line in enumerate(lines[at + 1:at + 80], at + 1):
        m = PLACE.match(line)
        if m:
            place = "%s:%s: " % m.groups()
            continue
        m = EXCEPTION.match(line)
        if m and line[:1] != " ":
            kind = "" if m.group(1) == "AssertionError" else m.group(1)
            what = (kind + m.group(2)).strip(": ")
            if not what or what.endswith(":"):  # no words, or they begin in the next line
                what += " " + (lines[i + 1].strip() if i + 1 < len(lines) else "") \
                    if what else lines[i - 1].strip() if lines[i - 1].strip("^~ ") else \
                    lines[i - 2].strip()
            return place + what
        if FAIL.match(line) and line[:1] != " ":
            break
    return place.rstrip(": ")


def telling(lines):
    return next((line for line in lines if TELLING.match(line)), None)


def test_log(lines, name):
    """Of what tests/lib/make-check and distcheck print below `--- NAME.log`."""
    for i, line in enumerate(lines):
        if line.startswith("--- ") and name in line:
            end = next((k for k in range(i + 1, len(lines)) if lines[k].startswith("--- ")),
                       len(lines))
            return telling(lines[i + 1:end]) or next(
                (x for x in reversed(lines[i + 1:end]) if x.strip()), None)
    return None


def failures(text):
    """One line a failed test: its name and its reason.  Empty: nothing in the text says it."""
    lines = text.splitlines()
    found = []
    for i, line in enumerate(lines):
        m = FAIL.match(line)
        if not m or line.lstrip().startswith("ERROR: Ad") or re.match(r"\s*(FAIL|ERROR|XPASS):\s+\d+$",
                                                                      line):
            continue  # automake's summary counts
        what = m.group(1)
        if "Traceback (most recent" in what:
            what = what.replace("Traceback (most recent call last):", exception(lines, i))
        elif re.match(r"(FAIL|ERROR|XPASS): ", line):
            log = test_log(lines, what)
            what += " - " + log.strip() if log else ""
        elif i + 1 < len(lines) and re.match(r"\s+\| ", lines[i + 1]):
            what += " - " + lines[i + 1].strip(" |")  # the guest's
        found.append(short(what))
    if not found:
        for i, line in enumerate(lines):
            if line.startswith("Traceback (most recent"):
                found = [short(exception(lines, i))]
    if not found:
        one = telling(lines)
        found = [short(one)] if one else []
    return list(dict.fromkeys(found))


def skips(text):
    """{reason: [names]}"""
    out = {}
    for line in text.splitlines():
        m = re.match(r"\s*SKIP:? (\S+)(?:.*? - | )(.*)", line)
        if m:
            out.setdefault(m.group(2).strip(), []).append(m.group(1))
    return out
