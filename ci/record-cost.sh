#!/usr/bin/env bash
# Measures what `pageset record --counts` and `pageset record` cost a page-fault loop. Each round runs the
# loop without a recorder, with counts, and with a full recording, in an order that changes from round to
# round. The recorder has run for some seconds when the loop begins. Prints the loop's run time and CPU time,
# and how much both grow: the median of the rounds' ratios, with the 95 % interval of a bootstrap. The ratios
# compare runs of one round, so that they suffer little if the machine's speed changes between rounds. Needs
# root, tracefs, cc and python3.
#
#   cargo xtask ci night record-cost             40 rounds of about 12 s
#   cargo xtask ci night record-cost -- ROUNDS      so many rounds
#
# PASSES (default 25) says how often the loop touches 64 MiB. KINDS (default "bare counts full") says which
# runs a round has. PAGESET names a program to use in place of the one that is built here.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-40} passes=${PASSES:-25} kinds=${KINDS:-bare counts full} lead=3

if [[ -z ${PAGESET:-} ]]; then
    cargo build --release --package pageset-cli
    PAGESET=${CARGO_TARGET_DIR:-target}/release/pageset
fi
"$PAGESET" record --check >/dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/loop.c" <<'C'
// Touches 64 MiB page by page and gives them back, pass by pass. Prints its run time and CPU time in seconds.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }
int main(int count, char **words) {
    struct timespec begin, end;
    struct rusage usage;
    (void)count;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int pass = 0; pass < atoi(words[1]); pass++) {
        size_t bytes = 64 << 20;
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 1;
        // Huge pages would go past the page sets.
        madvise(memory, bytes, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < bytes; at += 4096) ((volatile char *)memory)[at] = 1;
        munmap(memory, bytes);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    getrusage(RUSAGE_SELF, &usage);
    FILE *out = fopen(words[2], "a");
    fprintf(out, "%s %f %f\n", words[3], end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9,
            seconds(usage.ru_utime) + seconds(usage.ru_stime));
    return fclose(out);
}
C
cc -O2 -o "$work/loop" "$work/loop.c"

# The recorder runs longer than the loop, so that neither its beginning nor its end is measured.
run() {
    local loop=("$work/loop" "$passes" "$work/times" "$1") recorder=()
    case $1 in
        counts) recorder=("$PAGESET" record --counts) ;;
        full) recorder=("$PAGESET" record) ;;
    esac
    if ((${#recorder[@]})); then
        env --default-signal=INT "${recorder[@]}" --force -o "$work/$1.pgtrace" >/dev/null &
    fi
    sleep "$lead"
    taskset --cpu-list "$(($(nproc) - 1))" "${loop[@]}"
    if ((${#recorder[@]})); then
        kill -INT $!
        wait $!
    fi
}
orders=("bare counts full" "full bare counts" "counts full bare" "bare full counts" "counts bare full" "full counts bare")
run bare && : >"$work/times"
for ((round = 0; round < rounds; round++)); do
    for kind in ${orders[round % ${#orders[@]}]}; do
        [[ " $kinds " != *" $kind "* ]] || run "$kind"
    done
done

echo "CPU: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, Linux $(uname -r)"
echo "load average at the end: $(cut -d' ' -f1 /proc/loadavg); $rounds rounds of $passes passes"
python3 - "$work/times" <<'PY'
import random, statistics, sys
times = {}
for line in open(sys.argv[1]):
    kind, wall, cpu = line.split()
    times.setdefault(kind, []).append((float(wall), float(cpu)))
random.seed(1)
def more(recorded, bare):
    percent = [100 * (one / other - 1) for one, other in zip(recorded, bare)]
    again = sorted(statistics.median(random.choices(percent, k=len(percent))) for _ in range(2000))
    return f"{statistics.median(percent):+.1f} % | {again[50]:+.1f} to {again[1949]:+.1f}"
print("| run | run time, s | more | 95 % | CPU time, s | more | 95 % |")
print("|---|---:|---:|---:|---:|---:|---:|")
for kind in (kind for kind in ("bare", "counts", "full") if kind in times):
    row = [kind]
    for which in (0, 1):
        own, bare = ([run[which] for run in times[name]] for name in (kind, "bare"))
        row.append(f"{statistics.median(own):.2f}")
        row.append(" | " if kind == "bare" else more(own, bare))
    print("| " + " | ".join(row) + " |")
PY
