#!/usr/bin/env bash
# The tests of the pool and of the page operations under AddressSanitizer (accesses outside, after free) and
# ThreadSanitizer (data races), with a standard library that is instrumented too. Installs a nightly toolchain and its
# source if they are missing. About 15 minutes from nothing on two cores, 5 when everything is built.
#
#   ci/sanitizers.sh [address|thread]      both if nothing is said
#
# What instructions written by hand do is invisible to both; the page operations' tests therefore run between
# inaccessible pages.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
leg="setup"
trap 'status=$?; if ((status)); then echo "ci/sanitizers.sh: FAILED in: $leg" >&2; fi' EXIT

if ! rustup component list --toolchain nightly --installed 2>/dev/null | grep -qx rust-src; then
    rustup toolchain install nightly --profile minimal --component rust-src
fi

# Runs one package's tests under one sanitizer and prints the time.
run() {
    local sanitizer=$1
    shift
    leg="$sanitizer: $*"
    local start=$SECONDS
    echo "== $leg"
    RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=$sanitizer" RUSTDOCFLAGS="" \
        CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitizers/$sanitizer" \
        cargo +nightly test -Zbuild-std --target "$target" --package "$@"
    echo "== $leg: $((SECONDS - start)) s"
}

sanitizers=("$@")
if ((${#sanitizers[@]} == 0)); then
    sanitizers=(address thread)
fi
for sanitizer in "${sanitizers[@]}"; do
    # What the sanitizer inserts uses the registers that this test watches.
    run "$sanitizer" pageset-pageops --lib --tests -- --skip no_loop_changes_a_vector_register
    run "$sanitizer" pageset --lib --tests
done
leg="end"
echo "ci/sanitizers.sh: passed in $SECONDS s"
