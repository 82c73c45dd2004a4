#!/usr/bin/env bash
# The memory orderings of the fault engine and of our own allocator under loom: every outcome that the language allows, on a
# table of two levels with two entries each, and for pairs of operations at one pageblock's frames, of which each may be
# interrupted three times. About two minutes on two cores, after the build.
set -euo pipefail
cd "$(dirname "$0")/.."

RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" cargo test --release --package pageset-fault --test loom
RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" cargo test --release --package pageset-blocks --lib -- rows::races
echo "ci/loom.sh: passed in $SECONDS s"
