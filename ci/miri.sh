#!/usr/bin/env bash
# The core's and the pool's tests under miri, which finds undefined behaviour that tests alone do not show. The core has
# no unsafe code; this checks that its dependencies and the tests' locks are used rightly and that nothing overflows on
# the way. The pool's runs with memory from the heap and arrays under locks, since miri has neither mmap nor rseq.
#
#   ci/miri.sh            every test but the golden vectors and those of bad pages (about 6 minutes each: name them),
#                         fewer and smaller cases; half an hour on two cores
#                         that do nothing else, by far most of it for the core
#   ci/miri.sh --smoke    the smallest unit tests, and an allocator in statics used by four threads; about 1 minute
#   ci/miri.sh --pool     the pool's unit tests and a small torture; 2 minutes
#   ci/miri.sh NAME...    the tests whose names contain a NAME
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal --component miri --component rust-src
fi

# Unit tests leak the tables that they lend to the allocator, which has no heap of its own to leak: leaks are ignored.
# Random tests write their failures to disk, which isolation forbids; few cases, since miri is some hundred times slower
# than the machine.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-ignore-leaks"
export PROPTEST_CASES="${PROPTEST_CASES:-1}"
# Miri's build of the standard library and of the crates stays apart from the ordinary one.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"

miri() {
    cargo +nightly miri test --package pageset-core --all-features "$@"
}

pool() {
    cargo +nightly miri test --package pageset --lib --test torture
}

# Shuttle switches stacks itself, which miri cannot follow: its tests stay out.
tests=(--test errors --test statics --test no_heap --test examples --test invariants --test model --test reviewers)
if [[ ${1:-} == --smoke ]]; then
    miri --lib -- ids:: frame:: storage:: zone::span zone::gauges
    miri --test statics
elif [[ ${1:-} == --pool ]]; then
    pool
elif (($# == 0)); then
    miri --lib "${tests[@]}" -- --skip golden --skip vectors --skip bad_page
    pool
    # The portable kernel; others are not known to miri, and say that they are skipped. Half a minute.
    cargo +nightly miri test --package pageset-pageops --lib --test bytes --test poison
else
    miri --lib "${tests[@]}" -- "$@"
fi
echo "ci/miri.sh: passed in $SECONDS s"
