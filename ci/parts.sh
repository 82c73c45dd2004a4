# Read by scripts that have several parts. `run NAME COMMAND...` runs a part and prints its time. If a part fails, its name is the
# last thing that the script prints.

part="setup"
trap 'status=$?; if ((status)); then echo "FAILED in: $part" >&2; fi' EXIT
run() {
    part=$1
    shift
    local start=$SECONDS
    echo "== $part: $*"
    "$@"
    echo "== $part: $((SECONDS - start)) s"
}
