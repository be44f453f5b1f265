# SPDX-License-Identifier: BSD-2-Clause
"""Plots of bench as SVG, by gnuplot."""
import os
import subprocess


def beside(path, more):
    stem, ext = os.path.splitext(path)
    return stem + more + ext


def gnuplot(path, size, script):
    head = 'set terminal svg size %s\nset output "%s"\n' % (size, path)
    subprocess.run(["gnuplot"], input=head + script + "\n", text=True, check=True)


def bars(figures, path):
    """figures: {workload: {server: rate}}; a bar each."""
    names = list(next(iter(figures.values())))
    data = "".join('"%s" %s\n' % (w, " ".join("%.3f" % v[n] for n in names))
                   for w, v in figures.items())
    gnuplot(path, "1000,420",
            "set style data histograms\nset style fill solid\nset yrange [0:*]\n"
            'set ylabel "rate, null = 1"\nset xtics rotate by -30\n$d << EOD\n%sEOD\nplot ' % data
            + ", ".join('$d using %d:xtic(1) title "%s"' % (i + 2, n)
                        for i, n in enumerate(names)))


def depths(figures, path):
    """figures: {server: {depth: {iops, p50, p99}}}; throughput above, latency below."""
    data = "".join("$%s << EOD\n%sEOD\n" % (n, "".join(
        "%d %.1f %.2f %.2f\n" % (qd, d["iops"], d["p50"], d["p99"]) for qd, d in f.items()))
        for n, f in figures.items())
    rates = ", ".join('$%s using 1:2 with linespoints lc %d title "%s"' % (n, i + 1, n)
                      for i, n in enumerate(figures))
    times = ", ".join('$%s using 1:%d with linespoints lc %d dt %d title "%s %s"' % (
        n, c, i + 1, c - 2, n, what)
        for i, n in enumerate(figures) for c, what in ((3, "p50"), (4, "p99")))
    gnuplot(path, "900,900",
            data + "set multiplot layout 2,1\nset logscale x 2\nset key outside\nset grid\n"
            'set xlabel "queue depth"\nset yrange [0:*]\nset ylabel "4k reads a second"\nplot '
            + rates + '\nset logscale y\nset yrange [*:*]\nset ylabel "microseconds"\nplot '
            + times + "\nunset multiplot")
