#!/usr/bin/env bash
# The project's tests, as the README's test command and CI run them: formatting, lints, tests, the bare-metal builds of
# what runs there, documentation. About 5 and a half minutes from nothing on two cores, 1 minute when everything is built.
# Installs what it needs with rustup; the longer proofs are the other scripts of this directory.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

targets=(x86_64-unknown-none riscv64gc-unknown-none-elf)
# The allocators alone: they need no atomics of 64 bits.
targets_32=(riscv32imac-unknown-none-elf thumbv7em-none-eabi)

# What is built from nothing is not built again step by step: the compiler need not prepare for it.
[[ -d ${CARGO_TARGET_DIR:-target}/debug ]] || export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

# The toolchain, components and targets are those of rust-toolchain.toml.
setup() {
    if ! command -v rustup >/dev/null; then
        echo "no rustup: using $(rustc --version) as it is"
        return
    fi
    local toolchain
    toolchain=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    if ! rustup run "$toolchain" rustc --version >/dev/null 2>&1; then
        rustup toolchain install "$toolchain" --profile minimal
    fi
    local installed
    installed=$(rustup component list --toolchain "$toolchain" --installed)
    for component in rustfmt clippy; do
        grep -q "^$component" <<<"$installed" || rustup component add --toolchain "$toolchain" "$component"
    done
    for target in "${targets[@]}" "${targets_32[@]}"; do
        grep -qx "rust-std-$target" <<<"$installed" || rustup target add --toolchain "$toolchain" "$target"
    done
}

run "setup" setup
run "format" cargo fmt --all --check
# pageset-peers builds seven allocators in C and C++; bench/peers/README.md says how it is tested.
# pageset-arrow takes as long to build as all the rest, and pageset-python needs Python: ci/python.sh tests both. What else the
# README's build leaves out is tested all the same.
workspace=(--workspace --exclude pageset-peers --exclude pageset-arrow --exclude pageset-python --features pageset-cli/xz,pageset-trace/xz)
run "lints" cargo clippy "${workspace[@]}" --all-targets -- -D warnings
# The examples are linted above; to link them too takes 10 s. What the documentation shows is run below.
run "tests, built" cargo test "${workspace[@]}" --lib --bins --tests --no-run

# What needs no test's result. It runs beside the tests, some of which wait most of their time.
builds() {
    local target
    for target in "${targets[@]}"; do
        run "core on $target" cargo build --package pageset-core --target "$target"
        run "core with a heap on $target" cargo build --package pageset-core --target "$target" --all-features
        run "blocks on $target" cargo build --package pageset-blocks --target "$target"
        run "page operations on $target" cargo build --package pageset-pageops --target "$target"
        run "fault engine on $target" cargo build --package pageset-fault --target "$target"
    done
    for target in "${targets_32[@]}"; do
        run "core with a heap on $target" cargo build --package pageset-core --target "$target" --all-features
        # All features but `observed`, which needs std.
        run "blocks with a heap on $target" cargo build --package pageset-blocks --target "$target" --features alloc,line-counts
    done
    run "programs of the documentation" ci/snippets.sh
    run "instructions" ci/instructions.sh
    export RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings"
    run "documentation" cargo doc "${workspace[@]}" --no-deps
}
log=$(mktemp)
# Cargo builds one thing at a time: the tests look first whether they are built.
(sleep 5 && builds) >"$log" 2>&1 &
beside=$!
# The tests of the running kernel wait most of their time, so they run beside all others.
kernel_log=$(mktemp)
cargo test "${workspace[@]}" --test kernel >"$kernel_log" 2>&1 &
kernel=$!
run "tests" cargo test "${workspace[@]}" --lib --bins --test '[!k]*'
leg="tests of the running kernel"
wait "$kernel" && status=0 || status=$?
cat "$kernel_log" && rm "$kernel_log"
((status == 0)) || exit "$status"
run "examples in documentation" cargo test "${workspace[@]}" --doc
leg="builds beside the tests"
wait "$beside" && status=0 || status=$?
cat "$log" && rm "$log"
((status == 0)) || exit "$status"
echo "ci/test.sh: all legs passed in $SECONDS s"
