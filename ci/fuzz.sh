#!/usr/bin/env bash
# Runs every fuzz target, with cargo-fuzz on a nightly toolchain. Installs both if they are missing. A target
# of operations runs for 30 minutes or 10^8 executions, and a parser for 5 minutes or 10^7 executions. Each
# target runs on one core, and as many run at a time as there are cores. The script takes 90 minutes on two
# cores, and 5 minutes more to build. At the end, it prints the table for fuzz/README.md.
#
#   cargo xtask ci night fuzz                          all targets, for so long
#   cargo xtask ci night fuzz -- SECONDS [TARGET...]      these targets (all, if none is named), for so many seconds each
set -euo pipefail
cd "$(dirname "$0")/.."

operations_seconds=1800 operations_executions=100000000
parser_seconds=300 parser_executions=10000000
if (($# > 0)); then
    operations_seconds=$1 parser_seconds=$1
    shift
fi

if ! rustup run nightly rustc --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install cargo-fuzz --locked --version 0.13.2
fi

# Start the longest targets first, so that no core waits for another core at the end.
targets=("$@")
if ((${#targets[@]} > 0)); then
    for target in "${targets[@]}"; do
        cargo +nightly fuzz build "$target"
    done
else
    cargo +nightly fuzz build
    mapfile -t targets < <(cargo +nightly fuzz list | sort | sed -n '/_operations$/p')
    mapfile -t -O "${#targets[@]}" targets < <(cargo +nightly fuzz list | sort | sed '/_operations$/d')
fi

logs=target/fuzz-logs
mkdir -p "$logs"
echo "commit $(git describe --always --dirty 2>/dev/null || echo unknown), $(nproc) cores"

# Unpacks files without their first bytes, because the target adds these bytes itself.
headless() {
    local bytes=$2 directory=fuzz/corpus/$1-start file
    mkdir -p "$directory"
    for file in "${@:3}"; do
        # `xz -f` copies files that are not packed.
        xz -dcf "$file" | tail -c +$((bytes + 1)) >"$directory/$(basename "$file" .xz)"
    done
    echo "$directory"
}

# Collects files that the parser accepts, as a corpus under the name of the target.
seeds() {
    case $1 in
        simulated_machine) echo machines ;;
        sweep_plan | study_file | fitted_parameters) echo studies ;;
        ftrace | perf_script | trace_cmd | native | any_trace) echo data/formats ;;
        ring_page | event_format) echo lab/trace/tests/kernel ;;
        trace_dat) headless "$1" 10 data/formats/trace-cmd-*.dat* ;;
        perf_data) headless "$1" 8 data/formats/perf.data.xz ;;
    esac
}

fuzz() {
    local target=$1 seconds=$parser_seconds executions=$parser_executions
    if [[ $target == *_operations ]]; then
        seconds=$operations_seconds executions=$operations_executions
    fi
    local corpus=fuzz/corpus/$target
    mkdir -p "$corpus"
    local dirs=("$corpus") start bytes_max=65536
    start=$(seeds "$target")
    [[ -n $start ]] && dirs+=("$start")
    # Start from one complete file, because these formats list their contents far behind the beginning.
    case $target in
        trace_dat) bytes_max=131072 ;;
        perf_data) bytes_max=524288 ;;
    esac
    echo "== $target: $seconds s or $executions executions"
    # A page allocator has no use for huge inputs. A hang is a failure.
    if ! cargo +nightly fuzz run "$target" "${dirs[@]}" -- -max_total_time="$seconds" -runs="$executions" -timeout=20 \
        -max_len="$bytes_max" -print_final_stats=1 >"$logs/$target.log" 2>&1; then
        echo "== $target: FAILED; the end of $logs/$target.log:"
        tail -n 30 "$logs/$target.log"
        return 1
    fi
    echo "== $target: $(sed -n 's/^Done //p' "$logs/$target.log")"
}

# Run as many targets at a time as there are cores. A target that fails does not stop the others.
failed=0
for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= $(nproc))); do
        wait -n || failed=1
    done
    fuzz "$target" &
done
while (($(jobs -rp | wc -l) > 0)); do
    wait -n || failed=1
done

echo
echo "| target | executions | seconds | executions/s | finds |"
echo "|---|---:|---:|---:|---:|"
for target in "${targets[@]}"; do
    done_line=$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 \2/p' "$logs/$target.log" | tail -n 1)
    if [[ -z $done_line ]]; then
        echo "| \`$target\` | | | | 1 |"
        continue
    fi
    read -r executions seconds <<<"$done_line"
    echo "| \`$target\` | $executions | $seconds | $((executions / (seconds > 0 ? seconds : 1))) | 0 |"
done
((failed == 0)) || exit 1
echo "ci/fuzz.sh: ${#targets[@]} targets passed in $SECONDS s"
