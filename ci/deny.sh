#!/usr/bin/env bash
# Licences, advisories and sources of all dependencies, against deny.toml. Seconds, once cargo-deny is there.
# It is not installed here, because building it takes longer than all tests together.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
    echo "ci/deny.sh: cargo-deny is missing; install it with:" >&2
    echo "    cargo install cargo-deny --locked --version 0.20.2" >&2
    exit 1
fi
# The advisory database comes from the network; without it the other checks still say something.
if cargo deny fetch db; then
    cargo deny --workspace check
else
    echo "ci/deny.sh: no advisory database: advisories are NOT checked" >&2
    cargo deny --workspace check bans licenses sources
fi
