# Scripts that have several parts read this file. `run NAME COMMAND...` runs a part and prints its time. If a
# part fails, the script prints its name last.

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
