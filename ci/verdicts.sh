#!/usr/bin/env bash
# Checks whether the verdict of `pageset advise` agrees with measured time, for three loads: page faults while
# page sets are small, sockets, and a build. The script records each load. Then it switches the setting that
# the verdict names on and off by turns, and measures the CPU time of the load. If the verdict names no
# setting, the script takes one that makes page sets large. At the end it restores the setting. Prints a table
# in Markdown, with the machine. Needs root, tracefs, python3 and cc. Takes 6 minutes. On a busy machine, the
# result means nothing.
#
#   cargo xtask ci night verdicts -- [ROUNDS]      alternating runs under each setting (7)
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release
export PAGESET=${CARGO_TARGET_DIR:-$PWD/target}/release/pageset
"$PAGESET" record --check

WORK=$(mktemp -d)
export WORK
fraction=/proc/sys/vm/percpu_pagelist_high_fraction
before=$(cat $fraction)
trap 'echo "$before" >$fraction; rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM HUP

# Measure the cost of a visit now, because a measurement of another day may differ.
export XDG_STATE_HOME=$WORK/state
"$PAGESET" bench machine >&2

rounds=${1:-7} python3 - <<'PY'
import json, os, pathlib, resource, statistics, subprocess, sys

pageset, work, rounds = os.environ["PAGESET"], pathlib.Path(os.environ["WORK"]), int(os.environ["rounds"])
fraction = pathlib.Path("/proc/sys/vm/percpu_pagelist_high_fraction")
before = fraction.read_text()

(work / "faults.py").write_text("""
import mmap
memory = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for _ in range(60):
    memory.madvise(mmap.MADV_POPULATE_WRITE)
    memory.madvise(mmap.MADV_DONTNEED)
""".replace("mmap.MADV_POPULATE_WRITE", "23"))
for number in range(40):
    body = "".join(f"int f{number}_{i}(int x) {{ return x * {i} + (x >> {i % 31}); }}\n" for i in range(400))
    (work / f"part{number}.c").write_text("#include <stdio.h>\n#include <stdlib.h>\n" + body)

LOADS = [
    ("page faults, page sets small", "100000", ["python3", f"{work}/faults.py"]),
    ("sockets", before, ["python3", "ci/sockets.py", "131072"]),
    ("a build", before, ["sh", "-c", f"ls {work}/part*.c | xargs -P 2 -n 1 sh -c 'cc -O1 -c $0 -o /dev/null'"]),
]

def cpu_seconds(command):
    """CPU time of a command and what it started, user and system."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime

def verdict(said):
    """Its answer, the setting to try, and the saving that is promised, in % of CPU time."""
    forecasts, forecast = said["forecasts"], said["verdict"].get("forecast")
    if forecast is not None:
        chosen = forecasts[forecast]
        low, high = chosen["saved_percent"]
        return "Yes", chosen["settings"].split("=")[1], f"{low:.1f} to {high:.1f}"
    most = said["findings"]["spending"]["most_percent"]
    return "No", "8", "-" if most is None else f"at most {most:.2f}"

print("| load | verdict | tried | promised, % of CPU time | before, CPU s | after, CPU s | saved, % (each pair) |")
print("|---|---|---|---|---|---|---|")
for name, start, command in LOADS:
    fraction.write_text(start)
    said = json.loads(subprocess.run([pageset, "advise", "-f", "json", "--", *command],
                                     check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    answer, value, promised = verdict(said)
    cpu_seconds(command)
    times = {start: [], value: []}
    for _ in range(rounds):
        for setting in times:
            fraction.write_text(setting)
            times[setting].append(cpu_seconds(command))
    fraction.write_text(before)
    saved = [100 * (1 - after / once) for once, after in zip(times[start], times[value])]
    def shown(values, digits):
        return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
    print(f"| {name} | {answer} | `high_fraction={value}` | {promised} | {shown(times[start], 2)} | {shown(times[value], 2)} "
          f"| {shown(saved, 1)} |", flush=True)
PY
echo
echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) CPUs, Linux $(uname -r), load average $(cut -d' ' -f1 /proc/loadavg), commit $(git describe --always --dirty)"
