#!/usr/bin/env bash
# The core and the page operations on aarch64: built, and their tests run under qemu's emulation of a user's processor.
# About 5 minutes from nothing on two cores. Installs what it needs with rustup and, as root, with apt.
# Shuttle's tests stay out: it decides itself who runs next, so a schedule is the same on every architecture.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

target=aarch64-unknown-linux-gnu

setup() {
    local packages=()
    command -v aarch64-linux-gnu-gcc >/dev/null || packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    command -v qemu-aarch64 >/dev/null || packages+=(qemu-user)
    if ((${#packages[@]})); then
        apt-get update
        apt-get install --yes --no-install-recommends "${packages[@]}"
    fi
    # Said twice, it does nothing.
    rustup target add "$target"
}

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
# Emulation is some twenty times slower; ci/test.sh plays more cases.
export PROPTEST_CASES="${PROPTEST_CASES:-5}"

core_tests=()
for test in crates/core/tests/*.rs crates/core/tests/*/main.rs; do
    name=$(basename "${test%/main.rs}" .rs)
    [[ $name == shuttle* ]] || core_tests+=(--test "$name")
done

run "setup" setup
run "page operations" cargo test --package pageset-pageops --target "$target"
run "core" cargo test --package pageset-core --all-features --target "$target" --lib "${core_tests[@]}"
echo "ci/aarch64.sh: all legs passed in $SECONDS s"
