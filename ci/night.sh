#!/usr/bin/env bash
# What is too long, or needs too much, for every commit: the examples of the help texts that need root or minutes, then the
# longer proofs, one after another. A proof that fails is named at the end, and does not stop the others. A night: about eight
# hours on two cores.
#
#   ci/night.sh                 everything, in the order below
#   ci/night.sh list            the parts and what they take
#   ci/night.sh PART...         these parts
#
# `faults` needs the Python package of the part `python`, and no huge page in use.
# Needs root for `examples-root`, `guest`, `faults`, `settings`, `record-cost`, `verdicts` and `advise`: those are left out without it, and the end says so.
set -uo pipefail
cd "$(dirname "$0")/.."

# In this order: what fails soonest first. Name, time on two cores, what it needs, command.
parts=(
    "examples|20 minutes||cargo test --release --package pageset-cli --test outside -- --ignored examples_that_take_minutes"
    "examples-root|3 minutes|root|cargo test --release --package pageset-cli --test outside -- --ignored examples_for_root"
    "instructions|1 minute||ci/instructions.sh"
    "deny|1 minute||ci/deny.sh"
    "loom|5 minutes||ci/loom.sh"
    "perfetto|3 minutes||ci/perfetto.sh"
    "browser|5 minutes||ci/browser.sh"
    "docs|5 minutes||ci/docs.sh"
    "python|10 minutes||ci/python.sh"
    "capi|20 minutes||ci/capi.sh"
    "kernel|15 minutes||ci/kernel.sh"
    "aarch64|10 minutes||ci/aarch64.sh"
    "guest|30 minutes|root|ci/guest.sh"
    "sanitizers|15 minutes||ci/sanitizers.sh"
    "shuttle|20 minutes||ci/shuttle.sh"
    "soak|10 minutes||ci/soak.sh"
    "faults|4 minutes|root|env PAGESET_PYTHON=$PWD/target/python/3.11/bin/python cargo test --workspace --exclude pageset-peers --exclude pageset-arrow --exclude pageset-python --no-fail-fast fault_ -- --ignored --test-threads 1"
    "settings|5 minutes|root|cargo test --release --package pageset-cli --test kernel -- --include-ignored --test-threads 1 advise::"
    "record-cost|10 minutes|root|ci/record-cost.sh"
    "verdicts|6 minutes|root|ci/verdicts.sh"
    "scale|5 minutes||ci/scale.sh"
    "first-minutes|1 minute|root|cargo test --release --package pageset-cli --test kernel -- --include-ignored first_"
    "advise|20 minutes|root|ci/advise.sh"
    "cluster|10 minutes||ci/cluster.sh"
    "miri|60 minutes||ci/miri.sh"
    "package|60 minutes||ci/package.sh"
    "fuzz|95 minutes||ci/fuzz.sh"
)

name_of() { echo "${1%%|*}"; }

if [[ ${1:-} == list ]]; then
    for part in "${parts[@]}"; do
        IFS='|' read -r name time needs command <<<"$part"
        printf '%-14s %-12s %-5s %s\n' "$name" "$time" "$needs" "$command"
    done
    exit 0
fi

for wanted in "$@"; do
    known=0
    for part in "${parts[@]}"; do [[ $(name_of "$part") == "$wanted" ]] && known=1; done
    ((known)) || { echo "ci/night.sh: no part $wanted; \`ci/night.sh list\` names all" >&2; exit 2; }
done

failed=() left_out=()
for part in "${parts[@]}"; do
    IFS='|' read -r name time needs command <<<"$part"
    if (($#)) && [[ " $* " != *" $name "* ]]; then continue; fi
    if [[ $needs == root && $EUID -ne 0 ]]; then
        left_out+=("$name")
        continue
    fi
    echo "== $name ($time): $command"
    start=$SECONDS
    if $command; then
        echo "== $name: passed in $((SECONDS - start)) s"
    else
        echo "== $name: FAILED after $((SECONDS - start)) s"
        failed+=("$name")
    fi
done

((${#left_out[@]})) && echo "ci/night.sh: left out, since they need root: ${left_out[*]}"
if ((${#failed[@]})); then
    echo "ci/night.sh: FAILED: ${failed[*]}" >&2
    exit 1
fi
echo "ci/night.sh: all passed in $SECONDS s"
