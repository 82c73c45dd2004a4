#!/usr/bin/env bash
# Measures the bytes of code that a kernel links at least (`bench/size`), for x86_64-unknown-none at opt-level
# z. Measures `pageset-blocks`, `pageset-blocks` with its feature `units`, `pageset-core`, and `pageset-core`
# with its feature `lab`. Fails if one of the four grew beyond the bytes below. `pageset-blocks` without `units` and `pageset-core` should have at
# most 30720 bytes.
#
#   cargo xtask ci night size              all figures
#   cargo xtask ci night size -- 40           and the 40 largest functions of each
#
# Needs binutils and the target: rustup target add x86_64-unknown-none.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}/size")
program=$CARGO_TARGET_DIR/x86_64-unknown-none/release/pageset-size
kept="-u boot -u page_alloc -u page_free --gc-sections --entry=boot"
status=0
for row in "blocks 29800" "units 33450" "core 25110" "lab 39900"; do
    read -r allocator most <<<"$row"
    cargo rustc --quiet --manifest-path bench/size/Cargo.toml --release --target x86_64-unknown-none --features "$allocator" \
        -- -C link-args="$kept"
    bytes=$(size -A "$program" | awk '$1 == ".text" { print $2 }')
    echo "$allocator: $bytes bytes of .text, at most $most"
    ((bytes > 4096 && bytes <= most)) || { echo "$allocator is too large, or the linker kept nothing" >&2; status=1; }
    [[ -z ${1:-} ]] || nm --print-size --size-sort --reverse-sort --radix=d --demangle "$program" | grep -i ' t ' | sed -n "1,$1p"
done
exit $status
