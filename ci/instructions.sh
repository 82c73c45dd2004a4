#!/usr/bin/env bash
# Instructions of the fast paths, compared with bench/instructions.golden (tolerance 1 %): about 20 seconds once it is
# built. Sequences are counted in the disassembly (objdump), everything else under valgrind; what is not installed is
# said. The counts are those of x86-64 and of the compiler that rust-toolchain.toml names.
#
#   ci/instructions.sh            compares
#   ci/instructions.sh --bless    writes the file
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(uname -m) != x86_64 ]]; then
    echo "ci/instructions.sh: NOT COUNTED: the counts are those of x86-64"
    exit 0
fi
if ! command -v objdump >/dev/null; then
    echo "ci/instructions.sh: NOT COUNTED: objdump is missing (package binutils)"
    exit 0
fi
# Flags of one's own would change the counts.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
cargo run --quiet --profile dist --package pageset-bench --bin instructions -- "$@"
echo "ci/instructions.sh: done in $SECONDS s"
