#!/usr/bin/env bash
# Opens pages of `pageset report` in a browser without a screen. Checks that a page fetches nothing and reports no
# error, and that zoom, hover and keys change the page. Checks that every number in a table equals the number in
# the page's JSON, and that hostile names stay text. Prints how long a page of 512 CPUs and 10 million
# events takes to open. Takes about 2 minutes when everything is built.
#
#     cargo xtask ci night browser                 check
#     cargo xtask ci night browser -- pictures DIR    pictures of the bundled recording's page instead, as README and book have them
#
# Needs chromium (Debian: apt-get install chromium) and node. Installs playwright-core, which drives chromium,
# from npm.
set -euo pipefail
cd "$(dirname "$0")/.."

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[[ -n $chromium ]] || { echo "no chromium: install it (Debian: apt-get install chromium), or set CHROMIUM" >&2; exit 1; }
command -v npm >/dev/null || { echo "no npm: install node" >&2; exit 1; }
target=${CARGO_TARGET_DIR:-$PWD/target}
driver=$target/browser
mkdir -p "$driver"
[[ -d $driver/node_modules/playwright-core ]] ||
    npm install --silent --no-audit --no-fund --prefix "$driver" playwright-core@1.65.1
cp ci/browser/*.mjs "$driver/"

cargo build --release --package pageset-cli
pageset=$target/release/pageset
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$pageset" report -o "$pages/bundled.html"

if [[ ${1:-} == pictures ]]; then
    directory=$(realpath "${2:?say where the pictures go}")
    CHROMIUM=$chromium node "$driver/pictures.mjs" "$pages/bundled.html" "$directory"
    exit
fi

cargo build --release --package pageset-trace --example wide
wide() {
    "$target/release/examples/wide" "$pages/$1.pgtrace" "$1" "$2"
    "$pageset" report "$pages/$1.pgtrace" -o "$pages/$1.html"
}
wide 64 1000000
wide 512 10000000
"$pageset" report data/pairs/k61_tmpfs_*_r1.pgtrace data/traces/k61_2c_tcp.pgtrace -o "$pages/fleet.html"
CHROMIUM=$chromium node "$driver/check.mjs" "$pages"/{bundled,64,512,fleet}.html
