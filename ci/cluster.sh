#!/usr/bin/env bash
# A sweep of 2 000 runs on a Dask cluster of processes (a scheduler, four workers): a worker is killed, the scheduler is
# killed, a worker's disk is full, two sweeps share a directory. About 5 minutes on two cores. Needs ci/python.sh before it
# once, for the wheel; takes dask from PyPI; the full disk needs root.
#
#     ci/cluster.sh [RUNS]
#     ci/cluster.sh cost RUNS...     what a run costs more than in one process, at several sizes
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

target=${CARGO_TARGET_DIR:-$PWD/target}
wheel=$(find "$target"/wheels-* -name '*.whl' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -1 | cut -d' ' -f2-)
[[ -n $wheel ]] || { echo "no wheel in $target: run ci/python.sh wheel" >&2; exit 1; }
environment=$target/python/cluster
[[ -x $environment/bin/python ]] || python3 -m venv "$environment"
run "packages" "$environment/bin/pip" install --quiet distributed duckdb
run "wheel" "$environment/bin/pip" install --quiet --no-deps --force-reinstall "$wheel"
run "proof" "$environment/bin/python" -P ci/cluster/proof.py "${@:-2000}"
echo "ci/cluster.sh: passed in $SECONDS s"
