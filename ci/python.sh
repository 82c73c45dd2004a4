#!/usr/bin/env bash
# The Python package: builds it, checks its types, runs its tests under every Python that it supports and that is here.
# About 6 minutes from nothing on two cores, 1 minute when everything is built. Runs what the book and README show of it, also in a
# notebook. Takes maturin, mypy, pytest and what the tests read tables with from PyPI.
#
#     ci/python.sh            with the optimisation of tests
#     ci/python.sh wheel      builds the wheel that is shipped instead, and tests that
#
# PYTHONS names the interpreters, if they are not in PATH as python3.11 and so on.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/legs.sh

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
profile=dev
[[ ${1:-} != wheel ]] || profile=dist
wheels=$target/wheels-$profile
requirements=(pytest numpy polars pandas pyarrow duckdb altair tqdm nbclient ipykernel matplotlib)

# Those that start, oldest first.
pythons() {
    local python
    for python in ${PYTHONS:-python3.11 python3.12 python3.13 python3.14}; do
        if "$python" --version >/dev/null 2>&1; then echo "$python"; fi
    done
}

# A virtual environment of this interpreter, with what is named. Its directory.
environment() {
    local python=$1 directory
    directory=$target/python/$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [[ -x $directory/bin/python ]] || "$python" -m venv "$directory"
    "$directory/bin/pip" install --quiet "${@:2}"
    echo "$directory"
}

mapfile -t pythons < <(pythons)
((${#pythons[@]})) || { echo "no Python from 3.11 on: install one, or set PYTHONS" >&2; exit 1; }
first=$(environment "${pythons[0]}" maturin mypy distributed "${requirements[@]}")
rm -rf "$wheels"
run "wheel" "$first/bin/maturin" build --manifest-path python/Cargo.toml --profile "$profile" --out "$wheels"
for python in "${pythons[@]}"; do
    directory=$(environment "$python" "${requirements[@]}")
    run "$python installs it" "$directory/bin/pip" install --quiet --no-deps --force-reinstall "$wheels"/*.whl
    run "$python tests" env --chdir=python "$directory/bin/python" -P -m pytest
done
run "types" env --chdir=python "$first/bin/mypy" -p pageset
run "types of the tests" env --chdir=python "$first/bin/mypy" tests
# Before Python 3.12 a class does not show that it has the buffer protocol.
hidden=$(mktemp)
printf '%s\n' pageset._native.Pages.__buffer__ pageset._native.Pages.__release_buffer__ >"$hidden"
run "types of the part in Rust" env --chdir=python "$first/bin/python" -P -m mypy.stubtest pageset \
    --mypy-config-file pyproject.toml --allowlist "$hidden" --ignore-unused-allowlist
rm "$hidden"
run "lints" cargo clippy --package pageset-python --package pageset-arrow --all-targets -- -D warnings
run "Arrow" cargo test --package pageset-arrow
echo "ci/python.sh: ${#pythons[@]} versions of Python passed in $SECONDS s"
