#!/usr/bin/env bash
# A kernel on OSTD (kernel/ostd/kernel) boots on Linux's allocator, on pageset's own and on OSTD's own, in
# emulated PCs of 1, 2 and 4 CPUs with 512 MiB and 4 GiB. In each PC, it tests its allocator. Then the three
# allocators do the same work side by side, measured in instructions on one CPU and in time on four.
#
#   cargo xtask ci night kernel                everything
#   cargo xtask ci night kernel -- boot           only the tests
#   cargo xtask ci night kernel -- contest        only side by side
#
# Installs the toolchain of kernel/ostd/rust-toolchain.toml with rustup, cargo-osdk into the target directory,
# and QEMU as root with apt. Takes 15 minutes from nothing on two busy cores, half of this time for cargo-osdk
# and OSTD. The lines of JSON are in target/kernel/.
set -euo pipefail
cd "$(dirname "$0")/.."
source "ci/parts.sh"

osdk=0.19.0
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
work=$(realpath -m "${CARGO_TARGET_DIR:-target}/kernel")
# The base crate that cargo-osdk makes must lie below rust-toolchain.toml, so the kernel's target directory is its own.
unset CARGO_TARGET_DIR RUSTUP_TOOLCHAIN
export PATH=$PATH:$tools/bin
tests=(page-fault fault-engine-P1,V1,R1 fault-engine-P2,V7,R3 producer-consumer mass-exit out-of-memory interrupts)
# The clock counts instructions, so that no run differs from the next.
counted=(-icount shift=0,sleep=off -rtc clock=vm,base=2026-01-01 -seed 1)
# QEMU's exit code after `poweroff` has written to the debug-exit device.
passed=33 failed=65

setup() {
    if ! command -v qemu-system-x86_64 >/dev/null; then
        apt-get update
        apt-get install --yes --no-install-recommends qemu-system-x86
    fi
    local toolchain
    toolchain=$(sed -n 's/^channel = "\(.*\)"/\1/p' kernel/ostd/rust-toolchain.toml)
    if ! rustup run "$toolchain" rustc --version >/dev/null 2>&1; then
        rustup toolchain install "$toolchain" --profile minimal --component rust-src,llvm-tools-preview
    fi
    if [[ $(cargo-osdk osdk --version 2>/dev/null) != *"$osdk"* ]]; then
        cargo install cargo-osdk --locked --version "$osdk" --root "$tools"
    fi
    mkdir -p "$work"
}

# Builds the kernel that boots on an allocator, as $work/ALLOCATOR.elf.
build() {
    (cd kernel/ostd/kernel && cargo osdk build --target-arch x86_64 --release --no-default-features --features "$1")
    cp kernel/ostd/target/osdk/pageset-kernel/pageset-kernel-osdk-bin.elf "$work/$1.elf"
}

# emulate ALLOCATOR CPUS MEMORY COMMAND-LINE [QEMU'S OPTIONS...]: QEMU's exit code.
emulate() {
    local elf=$work/$1.elf cpus=$2 memory=$3 words=$4
    shift 4
    timeout 600 qemu-system-x86_64 -machine q35 -accel tcg -cpu max -smp "$cpus" -m "$memory" -no-reboot -display none -monitor none \
        -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=0x04 -kernel "$elf" -append "$words" "$@" 2>/dev/null
}

# Runs the tests of one machine. Checks that each test printed its line, and that the kernel reported success.
boot() {
    local lines=$work/boot-$1-$2-$3.jsonl status=0 name
    emulate "$1" "$2" "$3" test=all >"$lines" || status=$?
    cat "$lines"
    ((status == passed)) || { echo "the kernel ended with $status, not $passed" >&2; return 1; }
    for name in "${tests[@]}"; do
        grep -q "^{\"test\":\"$name\",.*}" "$lines" || { echo "no line of $name" >&2; return 1; }
    done
}

# Checks that QEMU's exit code says so if a kernel panics.
failures_are_noticed() {
    local status=0
    emulate linux 1 512M test=no-such-test >/dev/null || status=$?
    ((status == failed)) || { echo "a kernel that panics ended with $status, not $failed" >&2; return 1; }
}

# contest NAME CPUS UNIT [QEMU'S OPTIONS...]
contest() {
    local lines=$work/contest-$1.jsonl status=0 cpus=$2 unit=$3
    shift 3
    emulate linux "$cpus" 512M "test=contest unit=$unit" "$@" >"$lines" || status=$?
    cat "$lines"
    ((status == passed)) || { echo "the contest ended with $status, not $passed" >&2; return 1; }
    # Five contestants do six kinds of work. One of the five is the loop alone. For the other four, a line
    # says how many large blocks are left.
    (($(grep -c '^{"contest":"[^"]*",.*}' "$lines") == 34)) || { echo "not 34 lines" >&2; return 1; }
}

instructions_are_exact() {
    contest again 1 instructions "${counted[@]}" >/dev/null
    diff "$work/contest-instructions.jsonl" "$work/contest-again.jsonl"
}

what=${1:-all}
run "setup" setup
run "kernel on linux-6.18" build linux
if [[ $what == all || $what == boot ]]; then
    run "kernel on ours" build own
    run "kernel on ours with arrays" build own-with-arrays
    run "kernel on OSTD's own" build osdk
    run "failures are noticed" failures_are_noticed
    for memory in 512M 4G; do
        for cpus in 1 2 4; do
            for allocator in linux own own-with-arrays osdk; do
                run "$allocator, $cpus CPUs, $memory" boot "$allocator" "$cpus" "$memory"
            done
        done
    done
fi
if [[ $what == all || $what == contest ]]; then
    run "instructions" contest instructions 1 instructions "${counted[@]}"
    run "instructions are exact" instructions_are_exact
    # The guest is emulated on an unknown machine, so only ratios of times mean something.
    run "time, 4 CPUs" contest time 4 emulated-ticks
fi
echo "ci/kernel.sh: passed in $SECONDS s"
