# SPDX-License-Identifier: BSD-2-Clause
"""OVMF's menus over a serial line, as far as iSCSI needs them: a terminal that knows what is on the
screen, and the steps of somebody who fills the forms in.

    menu = Menu(path of the serial line's socket, deadline)
    menu.attempt(port, iqn, account, target's account)     set up and saved; resets the machine
    menu.disks()                                           what the boot menu offers from it
    menu.boot(disk)"""

import re
import socket
import time

ROWS, COLS = 60, 132
DOWN, UP, ENTER, ESC = "\x1b[B", "\x1b[A", "\r", "\x1b"
HERE_IS_HOST = "10.0.2.2"  # 127.0.0.1 of this machine, from QEMU's user network


class Lost(Exception):
    """The menus are not as expected, or a key was lost."""


class Screen:
    """As much of a terminal as the firmware's menus need; `log`: all that came."""

    def __init__(self):
        self.x = self.y = 0
        self.ground = ""
        self.rest = self.log = ""
        self.clear()

    def clear(self):
        self.cells = [[(" ", "")] * COLS for _ in range(ROWS)]

    def feed(self, text):
        self.log += text
        text, self.rest = self.rest + text, ""
        i = 0
        while i < len(text):
            if text[i] != "\x1b":
                self.put(text[i])
                i += 1
                continue
            m = re.match(r"\x1b\[[=?]?([0-9;]*)([A-Za-z])", text[i:])
            if m:
                self.control(m.group(2), [int(v or 0) for v in m.group(1).split(";")])
                i += m.end()
            elif len(text) - i < 12:
                self.rest = text[i:]
                return
            else:
                i += 1

    def control(self, letter, args):
        if letter == "H" and len(args) == 2:
            self.y, self.x = min(args[0], ROWS) - 1, min(args[1], COLS) - 1
        elif letter == "J":
            self.clear()
        elif letter == "m":
            for v in args:
                if 40 <= v <= 47:
                    self.ground = v

    def put(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            self.y = min(self.y + 1, ROWS - 1)
        elif c == "\b":
            self.x = max(self.x - 1, 0)
        elif c >= " ":
            self.cells[self.y][self.x] = (c, self.ground)
            self.x = min(self.x + 1, COLS - 1)

    def lines(self):
        return ["".join(c for c, _ in row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(line for line in self.lines() if line.strip())

    def find(self, label):
        """Row of the menu line with this label, or None."""
        for y, line in enumerate(self.lines()):
            if re.match(r"\W{0,3} *" + re.escape(label), line):
                return y
        return None

    def row(self, label):
        y = self.find(label)
        return "" if y is None else self.lines()[y]

    def lit(self, label):
        """Whether that line is the highlighted one: a piece of it is on another ground."""
        y = self.find(label)
        return y is not None and any(c[1] != self.cells[y][1][1] for c in self.cells[y][2:54])


class Menu:
    def __init__(self, path, deadline):
        self.screen, self.deadline = Screen(), deadline
        self.sock = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.sock.connect(path)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise Lost("no serial line")
                time.sleep(0.05)

    # -- keys and waiting
    def pump(self, seconds, until=None):
        """Takes what comes; True when `until` holds."""
        end = min(time.monotonic() + seconds, self.deadline)
        while time.monotonic() < end:
            self.sock.settimeout(0.1)
            try:
                data = self.sock.recv(65536)
                if not data:
                    break
                self.screen.feed(data.decode("latin-1"))
                continue
            except socket.timeout:
                pass
            except OSError:
                break
            if until and until():
                return True
        if time.monotonic() >= self.deadline:
            raise AssertionError("the time is up:\n" + self.screen.text())
        return bool(until and until())

    def settle(self, quiet=0.3):
        """Until nothing has been drawn for so many seconds."""
        while True:
            before = len(self.screen.log)
            self.pump(quiet)
            if len(self.screen.log) == before:
                return

    def wait(self, what, until, seconds=15):
        if not self.pump(seconds, until):
            raise Lost("%s:\n%s" % (what, self.screen.text()))
        self.settle()

    def key(self, k, seconds=0.4):
        try:
            self.sock.sendall(k.encode())
        except OSError:
            raise Lost("the serial line has closed")
        self.pump(seconds)

    def go(self, label, tries=40):
        """Moves the highlight to a line."""
        for k in (DOWN, UP):
            for _ in range(tries):
                if self.screen.lit(label):
                    self.settle(0.6)  # a key before may be still on its way
                    if self.screen.lit(label):
                        return
                drawn = len(self.screen.log)
                self.key(k, 0.25)
                if len(self.screen.log) == drawn:
                    self.pump(2, lambda: len(self.screen.log) > drawn)
        raise Lost("no line %r:\n%s" % (label, self.screen.text()))

    def enter(self, label, title):
        self.go(label)
        self.key(ENTER, 0)
        self.wait("%r did not open %r" % (label, title), lambda: title in self.screen.text())

    # -- fields of a form
    def typed(self, label, value, shown=True):
        """A text field, in the box that opens over the page."""
        self.go(label)
        self.key(ENTER, 0)
        self.wait("no box for %r" % label, lambda: "type in your data" in self.screen.text())
        for c in value:
            self.key(c, 0.03)
        self.key(ENTER, 0)
        self.wait("the box for %r stays" % label,
                  lambda: "type in your data" not in self.screen.text())
        if shown and value[:10] not in self.screen.row(label):
            raise Lost("%r was not taken for %r" % (value, label))

    def number(self, label, value):
        self.go(label)
        self.key(ENTER, 0)
        self.wait("%r cannot be edited" % label, lambda: "Complete Entry" in self.screen.text())
        for c in "\b" * 6 + str(value):
            self.key(c, 0.05)
        self.key(ENTER, 0)
        self.wait("%s was not taken for %r" % (value, label),
                  lambda: "[%s]" % value in self.screen.row(label))

    def pick(self, label, value):
        """The other of two choices."""
        self.go(label)
        if "<%s>" % value in self.screen.row(label):
            return
        self.key(ENTER, 0)
        self.wait("no choice for %r" % label, lambda: "Complete Entry" in self.screen.text())
        self.key(DOWN, 0.6)
        self.key(ENTER, 0)
        self.wait("%r is not %r" % (label, value),
                  lambda: "<%s>" % value in self.screen.row(label))

    # -- places
    def front_page(self):
        for _ in range(200):
            self.key(ESC, 0)
            if self.pump(0.4, lambda: "Device Manager" in self.screen.text()):
                break
        else:
            raise Lost("no front page")
        self.settle(0.7)

    def save_and_reset(self):
        """An attempt is used from the next start on."""
        self.go("Save Changes")
        self.key(ENTER, 1.5)
        self.reset()

    def reset(self):
        """From the front page or a page under it."""
        for _ in range(6):
            if self.screen.find("Reset") is not None:
                break
            self.key(ESC, 1)
        self.go("Reset")
        self.screen.log = ""
        self.screen.clear()
        self.key(ENTER, 0.5)

    # -- what somebody does
    def attempt(self, port, iqn, account, target_account):
        self.front_page()
        self.enter("Device Manager", "Devices List")
        self.enter("iSCSI Configuration", "Initiator Name")
        self.typed("iSCSI Initiator Name", "iqn.2000-01.com.example:uefi")
        self.enter("Add an Attempt", "MAC")
        self.enter("MAC", "iSCSI Mode")
        self.pick("iSCSI Mode", "Enabled")
        self.go("Enable DHCP")
        self.key(" ", 0)
        self.wait("DHCP was not enabled", lambda: "[X]" in self.screen.row("Enable DHCP"))
        self.typed("Target Name", iqn)
        self.typed("Target Address", HERE_IS_HOST)
        self.number("Target Port", port)
        self.typed("Boot LUN", "0")
        self.pick("Authentication Type", "CHAP")
        self.pick("CHAP Type", "Mutual")
        self.typed("CHAP Name", account[0])
        self.typed("CHAP Secret", account[1], False)
        self.typed("Reverse CHAP Name", target_account[0])
        self.typed("Reverse CHAP Secret", target_account[1], False)
        self.save_and_reset()

    def disks(self):
        """The disks that the firmware found; it stays in the boot menu."""
        self.front_page()
        self.enter("Boot Manager", "Boot Manager Menu")
        self.settle(0.7)
        lines = [re.sub(r"^\W+", "", x[:54]).strip() for x in self.screen.lines()]
        return [x for x in lines
                if x.startswith("UEFI") and not re.search("PXE|HTTP|Shell", x)]

    def boot(self, disk):
        self.go(disk)
        self.screen.log = ""
        self.key(ENTER, 0)
