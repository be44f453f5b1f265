# SPDX-License-Identifier: BSD-2-Clause
"""Which job runs when: of tests/run-all.

A job takes a share of a processor: its CPU time by its wall time.  Those that mostly wait run beside
those that compute, as long as the sum of the shares is about the number of processors; the longest
that is ready goes first, so that none is alone at the end."""

# Begin of a name, seconds, seconds of processor time, on two processors that have nothing else to
# do.  Only the order and what runs side by side depend on it; tests/run-all writes what it sees to
# logs/times (name, begin, end, CPU).  What works for a fixed time, as much as it can, counts as one
# processor.
COSTS = {
    "build-plain": (60, 115), "build-asan": (165, 165), "build-tsan": (130, 130),
    "build-fuzz": (105, 105),
    "initiator-vm": (430, 400),
    "unit-plain": (25, 20), "unit-asan": (35, 35), "unit-tsan": (95, 95), "distcheck": (110, 100),
    "wire-plain": (45, 30), "wire-asan": (80, 68), "wire-tsan": (130, 97),
    "conformance-plain": (20, 12), "conformance-asan": (28, 17), "conformance-tsan": (40, 30),
    "load-plain": (184, 184), "load-asan": (195, 195), "load-tsan": (215, 215),
    "admin-plain": (220, 39), "admin-asan": (290, 88), "admin-tsan": (400, 200),
    "live-asan": (48, 31), "live-tsan": (25, 15), "live-tsan-full": (240, 120),
    "isns-plain": (163, 16), "isns-asan": (172, 21),
    "powerloss": (25, 26), "kill9": (10, 3), "login-storm": (19, 13), "hang": (78, 2),
    "soak-asan": (115, 115), "soak-tsan": (180, 180),
    "boot-bios": (8, 4), "boot-uefi": (14, 9), "boot-ovmf": (200, 126),
    "initiator-chap": (1, 1), "initiator-qemu": (6, 5), "tshark": (4, 3), "fuzz": (87, 85),
    "quickstart": (57, 66),
}
UNKNOWN = (60, 60)
# The sum of shares may be that much more than the processors: a share is no even load, and what
# computes is a little slower then, but nothing stands still while something waits.
SLACK = 0.3


class Job:
    """needs: names of the jobs that must have ended well before it; rank: lower ones go first;
    whole: it fills all processors by itself."""

    def __init__(self, name, needs=(), rank=0, whole=False):
        self.name, self.needs, self.rank, self.whole = name, set(needs), rank, whole
        self.secs, self.cpu = max(((len(k), v) for k, v in COSTS.items() if name.startswith(k)),
                                  default=(0, UNKNOWN))[1]

    def share(self, cores):
        return cores if self.whole else self.cpu / self.secs


def pick(ready, running, cores):
    """The one of `ready` that is to start beside `running`, or None."""
    used = sum(j.share(cores) for j in running)
    if len(running) >= cores + 3:
        return None
    for job in sorted(ready, key=lambda j: (j.rank, -j.secs)):
        if not running or used + job.share(cores) <= cores + SLACK:
            return job
    return None


def simulate(jobs, cores, dt=0.5):
    """(seconds in all, [(begin, end, job)]): by the costs, processors shared out fairly."""
    left = {j: float(j.secs) for j in jobs}
    ready, running, ended, rows, now = list(jobs), {}, set(), [], 0.0
    names = {j.name for j in jobs}
    while ready or running:
        while True:
            can = [j for j in ready if not (j.needs & names) - ended]
            job = pick(can, running, cores)
            if job is None:
                break
            ready.remove(job)
            running[job] = now
        load = sum(j.cpu / j.secs for j in running)
        now += dt
        for job in list(running):
            left[job] -= dt * min(1, cores / load)
            if left[job] <= 0:
                ended.add(job.name)
                rows.append((running.pop(job), now, job))
    return now, rows
