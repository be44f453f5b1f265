# SPDX-License-Identifier: BSD-2-Clause
"""What every block of a region must hold.

A block carries its address, its writer and a code, repeated every 16 bytes, so that a lost, stale,
torn or misplaced block shows.  Code 0 is a block of zeros; an odd code is a block that WRITE SAME
laid down (the address is all ones, for it is the same everywhere).  A write that was not answered
(aborted, its session gone) leaves a block with several possible contents; the first read decides,
and from then on it must stay, because what was aborted must not land later."""

import struct

_HEAD = struct.Struct(">QII")
ANYWHERE = 2**64 - 1


class Bad(AssertionError):
    """A block holds what it must not."""


def block(lba, who, code, bs):
    if code == 0:
        return bytes(bs)
    return _HEAD.pack(ANYWHERE if code & 1 else lba, who, code) * (bs // 16)


def describe(data, lba):
    """What a wrong block seems to be."""
    if not any(data):
        return "zeros"
    heads = {data[i:i + 16] for i in range(0, len(data), 16)}
    parts = []
    for h in sorted(heads)[:4]:
        at, who, code = _HEAD.unpack(h)
        where = "" if at in (lba, ANYWHERE) else " of block %d" % at
        parts.append("writer %d code %d%s" % (who, code, where))
    return ("torn: " if len(heads) > 1 else "") + ", ".join(parts)


class Region:
    """`count` blocks from `first`, written by one client only."""

    def __init__(self, who, first, count, bs):
        self.who, self.first, self.count, self.bs = who, first, count, bs
        self.codes = [0] * count
        self.maybe = {}   # index: set of codes
        self.gen = 0

    def next_code(self, same=False):
        self.gen += 1
        return self.gen * 2 + (1 if same else 0)

    def data(self, lba, n, code):
        return b"".join([block(a, self.who, code, self.bs) for a in range(lba, lba + n)])

    def expected(self, lba, n):
        """For settled ranges."""
        i = lba - self.first
        return b"".join([block(lba + k, self.who, c, self.bs)
                         for k, c in enumerate(self.codes[i:i + n])])

    def settled(self, lba, n):
        if not self.maybe:
            return True
        i = lba - self.first
        return not any(k in self.maybe for k in range(i, i + n))

    def possible(self, i):
        return self.maybe.get(i) or {self.codes[i]}

    def wrote(self, lba, n, code):
        i = lba - self.first
        self.codes[i:i + n] = [code] * n
        if self.maybe:
            for k in range(i, i + n):
                self.maybe.pop(k, None)

    def may_have_written(self, lba, n, code):
        i = lba - self.first
        for k in range(i, i + n):
            self.maybe[k] = self.possible(k) | {code}

    def unsettled_at(self):
        """Address of a block that nobody has read since its write was not answered, or None."""
        return self.first + next(iter(self.maybe)) if self.maybe else None

    def check(self, lba, data, what):
        """Compares and settles what was open."""
        n, bs, i = len(data) // self.bs, self.bs, lba - self.first
        if self.settled(lba, n) and data == self.expected(lba, n):
            return
        for k in range(n):
            got = bytes(data[k * bs:(k + 1) * bs])
            may = self.possible(i + k)
            for code in may:
                if got == block(lba + k, self.who, code, bs):
                    self.codes[i + k] = code
                    self.maybe.pop(i + k, None)
                    break
            else:
                raise Bad("%s: block %d holds %s; writer %d, code %s was due" % (
                    what, lba + k, describe(got, lba + k), self.who,
                    " or ".join(map(str, sorted(may)))))
