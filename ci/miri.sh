#!/usr/bin/env bash
# The core's, our own allocator's and the pool's tests under miri, which finds undefined behaviour that tests alone do not
# show. The allocators have no unsafe code; this checks that its dependencies and the tests' locks are used rightly and that nothing overflows on
# the way. The pool's runs with memory from the heap and arrays under locks, since miri has neither mmap nor rseq.
#
#   ci/miri.sh            every part, with fewer and smaller cases, as many parts at once as there are cores
#   ci/miri.sh --smoke    the smallest unit tests, and an allocator in statics used by four threads; about 1 minute
#   ci/miri.sh --pool     the pool's unit tests and a small torture; 2 minutes
#   ci/miri.sh NAME...    the core's tests whose names contain a NAME
#
# The golden vectors stay out: they are thousands of recorded steps, hours under miri, over code that other tests run.
# So do shuttle's tests: shuttle switches stacks itself, which miri cannot follow.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

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

core=(--package pageset-core --all-features)
# Tests from outside are run by module. Not `reviewers`, and not the target `no_heap`, which move thousands of frames:
# hours; nor `decisions`.
left_out=(--skip reviewers:: --skip decisions::)

# The command of one part, by its name.
part() {
    local miri=(cargo +nightly miri test)
    case $1 in
        unit) "${miri[@]}" "${core[@]}" --lib -- --skip golden --skip vectors --skip bad_page ;;
        bad_page) "${miri[@]}" "${core[@]}" --lib -- bad_page ;;
        # A machine of 32 bits, where counts are narrower.
        32_bit) "${miri[@]}" "${core[@]}" --lib --target i686-unknown-linux-gnu -- count:: ids:: zone::span zone::gauges bad_page ;;
        pool_unit) "${miri[@]}" --package pageset --lib ;;
        pool_torture) "${miri[@]}" --package pageset --test torture ;;
        blocks_unit) "${miri[@]}" --package pageset-blocks --lib ;;
        # Four threads on all operations.
        blocks_threads) "${miri[@]}" --package pageset-blocks --test outside -- threads:: errors:: ;;
        # The portable kernel; others are not known to miri, and say that they are skipped.
        pageops)
            "${miri[@]}" --package pageset-pageops --lib &&
                "${miri[@]}" --package pageset-pageops --test outside -- bytes:: poison::
            ;;
        # Finds of old, each under all policies on thousands of frames, stay out: hours.
        model) "${miri[@]}" "${core[@]}" --test outside -- model::every_policy ;;
        # Both fill a zone frame by frame, and look at all events each time.
        examples) "${miri[@]}" "${core[@]}" --test outside -- examples:: --skip examples::e14 --skip examples::e15 ;;
        *) "${miri[@]}" "${core[@]}" --test outside -- "$1::" ;;
    esac
}

# Runs one part, keeps what it says in a file, and prints its time; or all it said, if it failed.
timed_part() {
    local log="$CARGO_TARGET_DIR/logs/$1.log"
    local start=$SECONDS
    mkdir -p "$CARGO_TARGET_DIR/logs"
    # A filter that fits no test proves nothing.
    if part "$1" >"$log" 2>&1 && ! grep -q '^running 0 tests' "$log"; then
        echo "== $1: $((SECONDS - start)) s"
    else
        cat "$log"
        echo "== $1: FAILED after $((SECONDS - start)) s"
        return 1
    fi
}

case ${1:-} in
    --part)
        timed_part "$2"
        exit
        ;;
    --smoke)
        cargo +nightly miri test "${core[@]}" --lib -- ids:: frame:: storage:: zone::span zone::gauges
        part statics
        ;;
    --pool)
        timed_part pool_unit
        timed_part pool_torture
        ;;
    "")
        # Built first, by one at a time, so that the times of the parts are those of their tests.
        cargo +nightly miri test --quiet "${core[@]}" --lib --test outside --no-run
        cargo +nightly miri test --quiet --package pageset --lib --test torture --no-run
        cargo +nightly miri test --quiet --package pageset-blocks --lib --test outside --no-run
        cargo +nightly miri test --quiet --package pageset-pageops --lib --test outside --no-run
        cargo +nightly miri test --quiet "${core[@]}" --lib --target i686-unknown-linux-gnu --no-run
        echo "== building: $SECONDS s"
        # The long ones first.
        printf '%s\n' unit pageops invariants block_of model examples bad_page 32_bit pool_torture pool_unit errors statics \
            interrupts blocks_threads blocks_unit | CARGO_TARGET_DIR="${CARGO_TARGET_DIR%/miri}" xargs -P "$(nproc)" -n 1 "$self" --part
        ;;
    *) cargo +nightly miri test "${core[@]}" --lib --test outside -- "$@" "${left_out[@]}" ;;
esac
echo "ci/miri.sh: passed in $SECONDS s"
