#!/usr/bin/env bash
# The core's unit tests under miri, which finds undefined behaviour that tests alone do not show. The core has no unsafe
# code; this checks that its dependencies are used rightly and that nothing overflows on the way.
#
#   ci/miri.sh            all unit tests but those that replay long vectors, which take hours here and run the same
#                         code as the others; fewer random cases; about 10 minutes on two cores
#   ci/miri.sh --smoke    the smallest modules only; 10 seconds once it is built
#   ci/miri.sh NAME...    the tests whose names contain a NAME
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal --component miri --component rust-src
fi

filters=("$@")
if [[ ${1:-} == --smoke ]]; then
    filters=(ids:: frame:: storage::)
elif (($# == 0)); then
    filters=(--skip golden --skip vectors)
fi

# Unit tests leak the tables that they lend to the allocator, which has no heap of its own to leak: leaks are ignored.
# Random tests write their failures to disk, which isolation forbids; 4 cases instead of 256, since miri is about a
# hundred times slower than the machine.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-ignore-leaks"
export PROPTEST_CASES="${PROPTEST_CASES:-4}"
# Miri's build of the standard library and of the crates stays apart from the ordinary one.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
cargo +nightly miri test --package pageset-core --all-features --lib -- "${filters[@]}"
echo "ci/miri.sh: passed in $SECONDS s"
