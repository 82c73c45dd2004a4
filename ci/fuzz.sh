#!/usr/bin/env bash
# Every fuzz target for a while, with cargo-fuzz on a nightly toolchain. Installs both if they are missing.
# Takes SECONDS_EACH for each target, plus about 3 minutes of building from nothing.
#
#   ci/fuzz.sh [SECONDS_EACH] [TARGET...]     60 seconds and all targets if nothing is said
set -euo pipefail
cd "$(dirname "$0")/.."

seconds_each="${1:-60}"
shift || true
if [[ ! -f fuzz/Cargo.toml ]]; then
    echo "ci/fuzz.sh: there are no fuzz targets yet"
    exit 0
fi
if ! rustup run nightly rustc --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install cargo-fuzz --locked --version 0.13.2
fi

targets=("$@")
if ((${#targets[@]} == 0)); then
    mapfile -t targets < <(cargo +nightly fuzz list)
fi
for target in "${targets[@]}"; do
    echo "== $target, $seconds_each s"
    # A page allocator has no use for huge inputs; a hang is a failure.
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds_each" -timeout=20 -max_len=65536
done
echo "ci/fuzz.sh: ${#targets[@]} targets passed in $SECONDS s"
