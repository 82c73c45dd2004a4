#!/usr/bin/env bash
# Forecasts against this machine: six loads, three settings each. `pageset advise --apply` records a load three times, makes
# the setting, records it three times again, puts the setting back, and compares. Prints a table in Markdown.
# Needs root, tracefs and python3; takes about 10 minutes on an idle machine. A busy machine measures its other work, too.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release
pageset=${CARGO_TARGET_DIR:-target}/release/pageset
"$pageset" record --check

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Two processes touch 64 MiB each, three times.
cat >"$work/faults.py" <<'PY'
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
PY
load() {
    case $1 in
        faults) echo "python3 $work/faults.py" ;;
        tcp) echo "python3 ci/sockets.py 32768" ;;
        pipes) echo 'for i in 1 2 3 4 5 6 7 8; do head -c 100000000 /dev/zero | cat | tail -c 1 >/dev/null; done' ;;
        forks) echo 'i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done' ;;
        copies) echo "cp -r /usr/share/doc $work/copy && rm -r $work/copy" ;;
        sort) echo 'seq 1 1500000 | sort -R | sort -n | tail -1 >/dev/null' ;;
    esac
}

echo "| load | setting | was | is | predicted | interval | noise | inside |"
echo "|---|---|---:|---:|---:|---|---:|---:|"
for name in faults tcp pipes forks copies sort; do
    for setting in vm.percpu_pagelist_high_fraction=8 vm.percpu_pagelist_high_fraction=512 vm.min_free_kbytes=270336; do
        "$pageset" advise --apply "$setting" --times 3 --yes -f json -- sh -c "$(load $name)" 2>>"$work/errors" |
            python3 -c '
import json, sys
visits = [c for c in json.load(sys.stdin)["against"]["changes"] if c["quantity"] == "visits"][0]
low, high = visits["interval"]
covered, compared = visits["covered"]
print("| {} | `{}` | {:.0f} | {:.0f} | {:.0f} | {:.0f}-{:.0f} | {:.0f} % | {}/{} |".format(
    *sys.argv[1:], visits["from"], visits["to"], visits["predicted"], low, high, 100 * visits["noise"], covered, compared))
' "$name" "$setting"
    done
done
