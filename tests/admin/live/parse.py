# SPDX-License-Identifier: BSD-2-Clause
"""A small reader and writer of evtgt.conf(5), written from the manual and not from conf/: what the
daemon dumps is judged by it.

A configuration is {"globals": OPTS, "portals": {name: OPTS}, "targets": {name: {"opts": OPTS, "luns":
{number: OPTS}}}}; OPTS has each directive's values as a sorted list.  A unit's path is its value "path"."""


def unquote(v):
    v = v.strip()
    if len(v) > 1 and v[0] == v[-1] == '"':
        out, i, v = [], 0, v[1:-1]
        while i < len(v):
            i += v[i] == "\\" and v[i + 1:i + 2] in ('"', "#", "\\")
            out.append(v[i])
            i += 1
        return "".join(out)
    return v.replace("\\#", "#")


def quote(v):
    if v and all(c.isalnum() or c in "-_.:,/*[]" for c in v):
        return v
    return '"%s"' % v.replace('"', '\\"').replace("#", "\\#")





def put(opts, name, value):
    opts.setdefault(name, []).append(value)
    opts[name].sort()


class Wrong(Exception):
    pass


def parse(text):
    conf = {"globals": {}, "portals": {}, "targets": {}}
    stack = [(None, conf["globals"], None)]
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        kind, opts, owner = stack[-1]
        if line.startswith("</"):
            if line != "</%s>" % kind:
                raise Wrong("line %d: %s ends a block %s" % (number, line, kind))
            stack.pop()
            if kind == "backing-store":
                lun = opts.pop("lun")
                luns = stack[-1][2]["luns"]
                if len(lun) != 1 or int(lun[0]) in luns:
                    raise Wrong("line %d: a unit without, or with another's, number" % number)
                luns[int(lun[0])] = opts
            continue
        if line.startswith("<"):
            name, value = line.strip("<>").split(None, 1)
            value = unquote(value)
            if name == "portal" and kind is None and value not in conf["portals"]:
                conf["portals"][value] = new = {}
                stack.append((name, new, None))
            elif name == "target" and kind is None and value not in conf["targets"]:
                conf["targets"][value] = t = {"opts": {}, "luns": {}}
                stack.append((name, t["opts"], t))
            elif name == "backing-store" and kind == "target":
                stack.append((name, {"path": [value]}, None))
            else:
                raise Wrong("line %d: %s" % (number, line))
            continue
        name, _, value = line.partition(" ")
        value = unquote(value)
        if name == "portal" and kind is None:
            if value in conf["portals"]:
                raise Wrong("line %d: %s twice" % (number, line))
            conf["portals"][value] = {}
        else:
            put(opts, name, value)
    if len(stack) != 1:
        raise Wrong("a block %s is open at the end" % stack[-1][0])
    return conf


def lines(opts, depth):
    # an account's line has words of its own: it is plain
    return ["%s%s %s" % ("    " * depth, k, v if "user" in k else quote(v))
            for k, values in opts.items() for v in values]


def write_target(name, t):
    out = ["<target %s>" % name] + lines(t["opts"], 1)
    for number, opts in sorted(t["luns"].items()):
        rest = {k: v for k, v in opts.items() if k != "path"}
        out += ["    <backing-store %s>" % quote(opts["path"][0]), "        lun %d" % number]
        out += lines(rest, 2) + ["    </backing-store>"]
    return "\n".join(out + ["</target>", ""])


def write(conf):
    out = lines(conf["globals"], 0)
    for name, opts in conf["portals"].items():
        out += ["<portal %s>" % name] + lines(opts, 1) + ["</portal>"]
    return "\n".join(out + [write_target(n, t) for n, t in conf["targets"].items()]) + "\n"


def differences(a, b, where=""):
    """What of `a` and `b` differs, as lines."""
    if isinstance(a, dict) and isinstance(b, dict):
        out = []
        for k in sorted(set(a) | set(b), key=str):
            if k not in a or k not in b:
                out.append("%s/%s: %s" % (where, k, "only in the dump: %r" % (b[k],) if k in b else
                                          "not in the dump: %r" % (a[k],)))
            else:
                out += differences(a[k], b[k], "%s/%s" % (where, k))
        return out
    return [] if a == b else ["%s: %r, in the dump %r" % (where, a, b)]
