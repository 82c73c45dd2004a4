#!/usr/bin/env bash
# Forecasts against this machine: six loads under five settings, three times each, recorded in turn (ci/advise/record.py). Each
# recording forecasts the load under each other setting; each recording made there is one truth. Prints a table in Markdown:
# coverage by load, setting, width, and by whether the machine was quiet.
# Needs root, tracefs, a cgroup v2 and python3. Recording takes about 15 minutes on an idle machine; a busy machine measures its
# other work, too, and each recording that was not quiet is made twice.
#
#   ci/advise.sh              into a folder that is removed
#   ci/advise.sh FOLDER       the same, and keeps the recordings
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package pageset-cli
cargo build --release --package pageset-replay --example coverage
release=${CARGO_TARGET_DIR:-target}/release
"$release/pageset" record --check

if (($#)); then
    folder=$1
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi

# All recordings first: forecasts are work, too.
recorded=$(python3 ci/advise/record.py "$release/pageset" "$folder")
echo "$recorded. $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)."
"$release/examples/coverage" "$folder" --rows
