# SPDX-License-Identifier: BSD-2-Clause
"""Rows that are not run, each with its reason.  A row that gets a test must leave these tables:
the runner refuses an id that is in both."""

_ERL = "ErrorRecoveryLevel is negotiated to 0: levels 1 and 2 are not built yet"
_MC = "MaxConnections is negotiated to 1: several connections a session are not built yet"

# Counted as skipped: something the target is to have.
NOT_BUILT = {}

# Not counted: the negotiated result rules the row out, or there is nothing to test from the wire.
NOT_APPLICABLE = {}
NOT_APPLICABLE.update({i: _ERL for i in (
    "E-01 E-02 E-03 E-04 E-05 E-06 E-07 E-08 E-10 E-11 E-12 E-14 E-15").split()})
NOT_APPLICABLE.update({i: _MC for i in "M-01 M-03 M-04 M-06 M-07 M-09 M-11 M-12".split()})
NOT_APPLICABLE.update({
    "K-01": "PERSISTENT RESERVE OUT is not built yet",
    "K-02": "PERSISTENT RESERVE OUT is not built yet",
    "K-03": "PERSISTENT RESERVE OUT is not built yet",
    "BR-43": "PERSISTENT RESERVE OUT is not built yet",
    "BR-45": "EXTENDED COPY is not built yet",
    "BR-57": "a rule for configuration tools: evtgtadm does not look at paths itself",
    "BR-61": "which targets an update touches is a matter of evtgtadm's tests",
})
