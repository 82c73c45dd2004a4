#!/usr/bin/env bash
# The tests of the pool and of the page operations under AddressSanitizer (accesses outside, after free) and
# ThreadSanitizer (data races), with a standard library that is instrumented too. Installs a nightly toolchain and its
# source if they are missing. About 15 minutes from nothing on two cores, 5 when everything is built.
#
#   ci/sanitizers.sh [address|thread]      both if nothing is said
#
# What instructions written by hand do is invisible to both. So the page operations' tests run between inaccessible pages,
# and ThreadSanitizer looks at the pool without restartable sequences: everything goes through its locked arrays.
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

# Tests whose children die of an access to what is not there look at the signal.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:handle_segv=0:handle_sigbus=0"
# Children of a process with threads go on.
export TSAN_OPTIONS="${TSAN_OPTIONS:-}:die_after_fork=0:handle_segv=0"

sanitizers=("$@")
if ((${#sanitizers[@]} == 0)); then
    sanitizers=(address thread)
fi
for sanitizer in "${sanitizers[@]}"; do
    # What the sanitizer inserts uses the registers that this test watches.
    run "$sanitizer" pageset-pageops --lib --tests -- --skip no_loop_changes_a_vector_register
    if [[ $sanitizer == thread ]]; then
        export PAGESET_RSEQ=0
    fi
    # A sanitizer's own memory does not fit into the address space that this test leaves.
    run "$sanitizer" pageset --lib --tests --no-fail-fast -- --skip exhausted_address_space_is_said
done
leg="end"
echo "ci/sanitizers.sh: passed in $SECONDS s"
