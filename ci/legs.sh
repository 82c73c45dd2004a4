# Read by the other scripts: `run NAME COMMAND...` runs one leg and prints its time; if it fails, its name is the last
# thing said.

leg="setup"
trap 'status=$?; if ((status)); then echo "ci/$(basename "$0"): FAILED in: $leg" >&2; fi' EXIT

run() {
    leg=$1
    shift
    local start=$SECONDS
    echo "== $leg: $*"
    "$@"
    echo "== $leg: $((SECONDS - start)) s"
}
