#!/usr/bin/env bash
# The tests of the pool, of the page operations and (threads) of our own allocator under AddressSanitizer (accesses outside,
# after free) and ThreadSanitizer (data races), with a standard library that is instrumented too. Installs a nightly toolchain and its
# source if they are missing. About 15 minutes from nothing on two cores, 5 when everything is built.
#
#   ci/sanitizers.sh [address|thread]      default: both
#
# What instructions written by hand do is invisible to both. So the page operations' tests run between inaccessible pages,
# and ThreadSanitizer looks at the pool without restartable sequences: everything goes through its locked arrays.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

target=x86_64-unknown-linux-gnu

if ! rustup component list --toolchain nightly --installed 2>/dev/null | grep -qx rust-src; then
    rustup toolchain install nightly --profile minimal --component rust-src
fi

# Runs one package's tests under one sanitizer.
sanitized() {
    local sanitizer=$1
    shift
    run "$sanitizer" env RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=$sanitizer" \
        CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitizers/$sanitizer" \
        cargo +nightly test -Zbuild-std --target "$target" --package "$@"
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
    sanitized "$sanitizer" pageset-pageops --lib --tests -- --skip no_loop_changes_a_vector_register
    if [[ $sanitizer == thread ]]; then
        export PAGESET_RSEQ=0
        # Our own allocator's threads share nothing but atomics.
        PAGESET_ROUNDS="${PAGESET_ROUNDS:-2000}" sanitized thread pageset-blocks --test outside -- threads
    fi
    # A sanitizer's own memory does not fit into the address space that the first of these leaves, and the second counts it.
    sanitized "$sanitizer" pageset --lib --tests --no-fail-fast -- \
        --skip exhausted_address_space_is_said --skip tables_that_are_not_used_take_no_memory
done
echo "ci/sanitizers.sh: passed in $SECONDS s"
