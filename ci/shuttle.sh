#!/usr/bin/env bash
# Concurrent use of the core, of the fault engine and of the pool's arrays under locks, under shuttle, which decides at
# every lock or atomic which thread runs next and reports the schedule of a failure. Runs the test targets whose names
# begin with "shuttle"; less than 20 minutes on two cores with 100000 schedules.
#
#   ci/shuttle.sh [SCHEDULES]
set -euo pipefail
cd "$(dirname "$0")/.."

export SHUTTLE_ITERATIONS="${1:-100000}"
for test in crates/*/tests/shuttle*.rs; do
    [[ -e $test ]] || continue
    package="pageset-$(basename "$(dirname "$(dirname "$test")")")"
    name=$(basename "$test" .rs)
    echo "== $package $name, $SHUTTLE_ITERATIONS schedules"
    # In crates that can, every atomic operation is a choice of shuttle's.
    flags="${RUSTFLAGS:-}"
    if grep -q "cfg(shuttle)" "crates/$(basename "$(dirname "$(dirname "$test")")")/Cargo.toml"; then
        flags="$flags --cfg shuttle"
    fi
    RUSTFLAGS="$flags" cargo test --release --package "$package" --all-features --test "$name"
done
# Pairs of operations at one pageblock's frames, in every order of their steps.
echo "== pageset-blocks, rows"
RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/shuttle" \
    cargo test --release --package pageset-blocks --all-features --lib -- rows::races
# The pool's arrays use shuttle's atomics in a build of their own.
echo "== pageset arrays, $SHUTTLE_ITERATIONS schedules"
RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/shuttle" \
    cargo test --release --package pageset --lib -- arrays::locked
echo "ci/shuttle.sh: passed in $SECONDS s"
