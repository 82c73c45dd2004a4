#!/usr/bin/env bash
# Measures the cost of each verb that reads a recording, by the length of the recording: CPU time, time,
# memory, and events in each second of CPU time. A program makes the recordings of a server with 64 CPUs and
# two nodes (`lab/trace/examples/server.rs`). So their costs mean something, but their verdicts do not. For
# comparison, the script also measures `grep -c` on the same text and `zstd -t` on the same packed text.
# Prints a table in Markdown. With 1 and 10 million events, it takes 3 minutes on two cores and 2 GB below
# $TMPDIR. With 50 million events, it takes 12 minutes and 7 GB. Needs python3, zstd and grep.
#
#   cargo xtask ci night scale                      1 and 10 million events
#   cargo xtask ci night scale -- 1000000 50000000     so many
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package pageset-cli --features xz
cargo build --release --package pageset-trace --example server
target=${CARGO_TARGET_DIR:-$PWD/target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PAGESET=$target/release/pageset SERVER=$target/release/examples/server WORK=$work
python3 - "${@:-1000000}" $([[ $# -gt 0 ]] || echo 10000000) <<'PY'
import os, pathlib, subprocess, sys, time

pageset, server, work = os.environ["PAGESET"], os.environ["SERVER"], pathlib.Path(os.environ["WORK"])
native, text, packed = work / "r.pgtrace", work / "r.txt", work / "r.txt.zst"

def rows(events):
    """What is run, with its name."""
    native_ = str(native)
    yield "`stat` of `.pgtrace`", [pageset, "stat", native_]
    yield "`replay`, one policy", [pageset, "replay", "-p", "linux-6.18", native_]
    yield "`replay --all`, 28 policies", [pageset, "replay", "--all", native_]
    yield "`advise`", [pageset, "advise", native_]
    yield "`verify`", [pageset, "verify", native_]
    yield "`report`", [pageset, "report", native_, "--force", "-o", str(work / "r.html")]
    yield "`convert --to perfetto`", [pageset, "convert", native_, str(work / "r.pf"), "--to", "perfetto", "--force"]
    yield "`stat` of text", [pageset, "stat", str(text)]
    yield "`convert` of text", [pageset, "convert", str(text), str(work / "c.pgtrace"), "--layout", f"{text}.toml", "--force"]
    yield "`stat` of packed text", [pageset, "stat", str(packed)]
    yield "*`grep -c` of text*", ["grep", "-c", "mm_page_alloc:", str(text)]
    yield "*`zstd -t` of packed text*", ["zstd", "-q", "-t", str(packed)]

def run(command):
    """Seconds, CPU seconds and resident MiB of a command."""
    begin = time.monotonic()
    # Do not write to /dev/null, because grep would then end at the first line that it finds.
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(command)}: {said.decode()}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

print("| events | what | time, s | CPU s | resident, MiB | events a CPU s |")
print("|---:|---|---:|---:|---:|---:|")
for events in map(int, sys.argv[1:]):
    for out in (native, text):
        subprocess.run([server, str(out), str(events)], check=True)
    subprocess.run(["zstd", "-q", "-f", str(text), "-o", str(packed)], check=True)
    for name, command in rows(events):
        seconds, cpu, resident = run(command)
        print(f"| {events / 1e6:.0f} M | {name} | {seconds:.1f} | {cpu:.1f} | {resident:.0f} | {events / max(cpu, 1e-3) / 1e6:.1f} M |", flush=True)
PY
echo
echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) CPUs, Linux $(uname -r), load average $(cut -d' ' -f1 /proc/loadavg), commit $(git describe --always --dirty)"
