"""Records six loads under five settings, three times each, into a folder: `record.py PAGESET FOLDER`.

A recording is called `live_LOAD_SETTING_rN.pgtrace`. It is quiet if everything but the load and its recorder used less than
2 % of the CPU time meanwhile: /proc/stat, less what their control group used. One that was not quiet is made once more, and if
it is not quiet then either, it is kept and called `live_LOAD_SETTING_rN.busy.pgtrace`. Before each recording the load runs
once unrecorded, so that page sets are where this load and this setting leave them. Needs root, tracefs and a mounted cgroup v2.
"""

import os
import subprocess
import sys
import tempfile
import time

QUIET = 0.02
ROUNDS = 3
FAULTS = """
import mmap, os
for child in range(2):
    if os.fork() == 0:
        for _ in range(3):
            memory = mmap.mmap(-1, 64 << 20)
            for at in range(0, len(memory), 4096):
                memory[at] = 1
            memory.close()
        os._exit(0)
for child in range(2):
    os.wait()
"""


def loads(work):
    with open(f"{work}/faults.py", "w") as file:
        file.write(FAULTS)
    return {
        # Two processes touch 64 MiB each, three times.
        "faults": f"python3 {work}/faults.py",
        "tcp": "python3 ci/sockets.py 16384",
        "pipes": "for i in 1 2 3 4; do head -c 100000000 /dev/zero | cat | tail -c 1 >/dev/null; done",
        "forks": "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done",
        "copies": f"cp -r /usr/share/doc {work}/copy && rm -r {work}/copy",
        "sort": "seq 1 500000 | sort -R | sort -n | tail -1 >/dev/null",
    }


FRACTION, MINIMUM = (
    "/proc/sys/vm/percpu_pagelist_high_fraction",
    "/proc/sys/vm/min_free_kbytes",
)


def read(path):
    with open(path) as file:
        return file.read()


def write(path, value):
    with open(path, "w") as file:
        file.write(str(value))


class Group:
    """A control group of cgroup v2: what its processes used, whatever became of them."""

    def __init__(self):
        mounts = [line.split() for line in read("/proc/mounts").splitlines()]
        where = next((mount[1] for mount in mounts if mount[2] == "cgroup2"), None)
        if where is None:
            sys.exit(
                "ci/advise/record.py: no cgroup v2 is mounted: mount -t cgroup2 none FOLDER"
            )
        self.path = f"{where}/pageset-advise-{os.getpid()}"
        os.mkdir(self.path)

    def enter(self):
        write(f"{self.path}/cgroup.procs", os.getpid())

    def used_s(self):
        fields = dict(
            line.split() for line in read(f"{self.path}/cpu.stat").splitlines()
        )
        return int(fields["usage_usec"]) / 1e6

    def remove(self):
        os.rmdir(self.path)


def busy_s():
    """Seconds for which this machine's CPUs were not idle."""
    fields = [int(field) for field in read("/proc/stat").splitlines()[0].split()[1:8]]
    user, nice, system, _idle, _iowait, irq, softirq = fields
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def record(pageset, command, path, group):
    """Makes one recording; what part of the CPU time other processes used."""
    began, busy, used = time.monotonic(), busy_s(), group.used_s()
    made = [pageset, "record", "--force", "-o", path, "--", "sh", "-c", command]
    subprocess.run(
        made,
        check=True,
        preexec_fn=group.enter,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds = (time.monotonic() - began) * os.cpu_count()
    others = (busy_s() - busy) - (group.used_s() - used)
    return max(others, 0.0) / seconds


def main():
    pageset, folder = sys.argv[1:]
    began = time.monotonic()
    before = {path: read(path).strip() for path in (FRACTION, MINIMUM)}
    settings = {
        name: {FRACTION: fraction}
        for name, fraction in [("f0", 0), ("f8", 8), ("f64", 64), ("f512", 512)]
    }
    settings["m4"] = {FRACTION: 0, MINIMUM: 4 * int(before[MINIMUM])}
    group, made, busy = Group(), 0, 0
    with tempfile.TemporaryDirectory() as work:
        try:
            for number in range(1, ROUNDS + 1):
                for load, command in loads(work).items():
                    for setting, values in settings.items():
                        for path, value in (before | values).items():
                            write(path, value)
                        subprocess.run(
                            ["sh", "-c", command],
                            check=True,
                            stdout=subprocess.DEVNULL,
                        )
                        path = f"{folder}/live_{load}_{setting}_r{number}"
                        for _attempt in range(2):
                            others = record(
                                pageset, command, f"{path}.pgtrace", group
                            )
                            if others < QUIET:
                                break
                        else:
                            os.rename(f"{path}.pgtrace", f"{path}.busy.pgtrace")
                            busy += 1
                        made += 1
                        print(
                            f"{path.split('/')[-1]}: others used {100 * others:.1f} % of the CPU time",
                            file=sys.stderr,
                            flush=True,
                        )
        finally:
            for path, value in before.items():
                write(path, value)
            group.remove()
    load = " ".join(read("/proc/loadavg").split()[:3])
    print(
        f"{made} recordings in {time.monotonic() - began:.0f} s, {busy} of them busy; load average {load}"
    )


if __name__ == "__main__":
    main()
