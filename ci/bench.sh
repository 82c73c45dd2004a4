#!/usr/bin/env bash
# The benchmarks of the core's page sets, with criterion; results are kept in target/criterion and compared with
# those of the last run. About 5 minutes on a machine that does nothing else; on a busy one the numbers mean nothing.
#
#   ci/bench.sh                 all benchmarks
#   ci/bench.sh NAME            those whose names contain NAME
#   ci/bench.sh --test          each once, without measuring: checks that they run
set -euo pipefail
cd "$(dirname "$0")/.."

echo "machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)"
echo "commit:  $(git describe --always --dirty 2>/dev/null || echo unknown)"
echo "load:    $(cut -d ' ' -f 1-3 /proc/loadavg)"
cargo bench --package pageset-bench -- "$@"
echo "ci/bench.sh: done in $SECONDS s"
