#!/usr/bin/env bash
# Torture for a while. The user-space pool: threads on changing CPUs, frees by other threads, trims, resizes and
# forks in the middle, with restartable sequences and with locks; every page carries its owner's pattern. Our own
# allocator: four threads on all operations, two of them as one CPU; each frame has one owner. Release build.
#
#   ci/soak.sh            ten minutes
#   ci/soak.sh SECONDS    for about so long; 8 is a smoke test
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-600}"
cargo test --release --package pageset --test torture --test fork --no-run
cargo test --release --package pageset-blocks --test outside --no-run
start=$SECONDS
# The three tortures of the pool in a round run at once; our own allocator's follows, half as long.
each=$((seconds < 90 ? seconds * 2 / 3 : 60))
rounds=0
while ((SECONDS - start < seconds)); do
    PAGESET_SOAK_SECONDS=$each cargo test --release --package pageset --test torture -- --nocapture
    cargo test --release --package pageset --test fork
    PAGESET_SOAK_SECONDS=$((each / 2)) cargo test --release --package pageset-blocks --test outside -- threads
    rounds=$((rounds + 1))
done
echo "ci/soak.sh: $rounds rounds passed in $((SECONDS - start)) s"
