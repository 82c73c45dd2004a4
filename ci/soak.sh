#!/usr/bin/env bash
# The user-space pool under torture for a while: threads on changing CPUs, frees by other threads, trims, resizes and
# forks in the middle, with restartable sequences and with locks; every page carries its owner's pattern. Release build.
#
#   ci/soak.sh            ten minutes
#   ci/soak.sh SECONDS    for about so long; 8 is a smoke test
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-600}"
cargo test --release --package pageset --test torture --test fork --no-run
start=$SECONDS
# The three tortures of a round run at once.
each=$((seconds < 60 ? seconds : 60))
rounds=0
while ((SECONDS - start < seconds)); do
    PAGESET_SOAK_SECONDS=$each cargo test --release --package pageset --test torture -- --nocapture
    cargo test --release --package pageset --test fork
    rounds=$((rounds + 1))
done
echo "ci/soak.sh: $rounds rounds passed in $((SECONDS - start)) s"
