#!/usr/bin/env bash
# Checks that Perfetto's own code reads the files that `pageset convert --to perfetto` writes. Runs the SQL of
# the book's page over recordings, and compares the answers with `pageset stat` and `pageset replay`. Needs
# python3 with venv, and installs `perfetto` from PyPI into a directory of its own. Takes a minute when the
# command is built.
#
# The package has the protos, and downloads the trace processor. If the download fails, the script parses the
# files with the protos, fills tables of the same names, and runs the SQL with sqlite3. It prints which of the
# two it used.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release
pageset=${CARGO_TARGET_DIR:-target}/release/pageset
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=${PERFETTO_PYTHON:-}
if [[ -z $python ]]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet 'perfetto==0.59.1'
    python=$work/venv/bin/python
fi

cat >"$work/check.py" <<'PY'
import collections, json, re, sqlite3, sys

page, pftrace, stat, replay = sys.argv[1:]

def queries():
    blocks = re.findall(r"```sql\n-- (.*?)\n(.*?)```", open(page).read(), re.S)
    return {title.strip(): sql for title, sql in blocks}

def trace_processor():
    from perfetto.trace_processor import TraceProcessor
    processor = TraceProcessor(trace=pftrace)
    def ask(sql):
        answer = processor.query(sql)
        return [tuple(getattr(row, name) for name in answer.column_names) for row in answer]
    return ask

def by_the_protos():
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(open(pftrace, "rb").read())
    clocks, names, events, tracks = {}, {}, [], {}
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            interned = packet.interned_data
            lists = (interned.event_categories, interned.event_names, interned.debug_annotation_names)
            names[sequence] = [{entry.iid: entry.name for entry in entries} for entries in lists]
            clocks[sequence] = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}[64]
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            if packet.timestamp_clock_id == 6:
                at = packet.timestamp
            else:
                at = clocks[sequence] = clocks[sequence] + packet.timestamp
            events.append((at, len(events), names[sequence], packet.track_event))
    events.sort(key=lambda event: event[:2])
    slices, counters, facts, open_slices = [], [], [], collections.defaultdict(list)
    Type = perfetto_trace_pb2.TrackEvent.Type
    for at, _, (categories, events_named, keys), event in events:
        args = {}
        for fact in event.debug_annotations:
            args["debug." + keys[fact.name_iid]] = getattr(fact, fact.WhichOneof("value"))
        if event.type in (Type.TYPE_SLICE_BEGIN, Type.TYPE_INSTANT):
            name, category = events_named[event.name_iid], categories[event.category_iids[0]]
            slices.append([len(slices), at, 0, event.track_uuid, category, name, len(facts)])
            facts.append(args)
            if event.type == Type.TYPE_SLICE_BEGIN:
                open_slices[event.track_uuid].append(slices[-1])
        elif event.type == Type.TYPE_SLICE_END:
            begun = open_slices[event.track_uuid].pop()
            begun[2] = at - begun[1]
            facts[begun[6]].update(args)
        elif event.type == Type.TYPE_COUNTER:
            counters.append((at, event.track_uuid, event.counter_value))
    assert not any(open_slices.values()), "a slice does not end"
    tables = sqlite3.connect(":memory:")
    tables.create_function("EXTRACT_ARG", 2, lambda number, key: facts[number].get(key))
    tables.execute("CREATE TABLE track (id, name, parent_id)")
    tables.execute("CREATE TABLE slice (id, ts, dur, track_id, category, name, arg_set_id)")
    tables.execute("CREATE TABLE counter (ts, track_id, value)")
    rows = [(uuid, track.name, track.parent_uuid or None) for uuid, track in tracks.items() if uuid < 1 << 63]
    tables.executemany("INSERT INTO track VALUES (?, ?, ?)", rows)
    tables.executemany("INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?, ?)", slices)
    tables.executemany("INSERT INTO counter VALUES (?, ?, ?)", counters)
    return lambda sql: tables.execute(sql).fetchall()

try:
    ask, reader = trace_processor(), "Perfetto's trace processor"
except Exception as error:
    print(f"  no trace processor ({type(error).__name__}): the protos of the package, and sqlite3", file=sys.stderr)
    ask, reader = by_the_protos(), "Perfetto's protos, and sqlite3"

stat, replay = json.load(open(stat)), json.load(open(replay))
kernel, rows = stat["kernel"], replay["rows"]
moved = [("recorded kernel", name, kernel[key]["count"], kernel[key]["sum"])
         for name, key in (("refill", "refills"), ("drain", "drains"))]
moved += [(row["policy"], name, row[count], row[pages]) for row in rows
          for name, count, pages in (("refill", "refills", "refilled_pages"), ("drain", "drains", "drained_pages"))]
# `stat` says null for waits that a recording may leave out.
waits = [(name, kernel[key]) for name, key in (("other", "other_wait_ns"), ("spinning", "spin_wait_ns")) if kernel[key]]
expected = {
    "refills and drains": sorted(row for row in moved if row[2] > 0),
    "pages allocated and freed by each CPU": sorted(
        (f"CPU {cpu['cpu']} pages {what}", cpu[key]) for cpu in stat["cpus"]["each"]
        for what, key in (("allocated", "allocated_pages"), ("freed", "freed_pages")) if cpu[key] > 0),
    "ticks": [(kernel["vmstat_ticks"],)],
    "waits for locks": [(name, its["count"], its["sum"]) for name, its in waits if its["count"] > 0],
}
asked = queries()
assert set(expected) <= set(asked), sorted(asked)
for title, sql in asked.items():
    answer = [tuple(int(value) if isinstance(value, float) else value for value in row) for row in ask(sql)]
    if title in expected and answer != expected[title]:
        sys.exit(f"{title}: {answer}, expected {expected[title]}")
    print(f"  {title}: {len(answer)} rows{', as expected' if title in expected else ''}")
print(f"  read by {reader}")
PY

for name in k618_2c_make_lua_j4 k612_2c_tcp k612_8c_unix_stream k612_4c_2node_numa_tcp; do
    trace=data/traces/$name.pgtrace
    "$pageset" convert "$trace" "$work/$name.pftrace" --to perfetto -p linux-6.6,linux-6.12 >/dev/null
    "$pageset" stat "$trace" -f json -o "$work/$name.stat.json"
    "$pageset" replay "$trace" -p linux-6.6,linux-6.12 -f json -o "$work/$name.replay.json"
    echo "$name"
    "$python" "$work/check.py" docs/book/src/guide/perfetto.md \
        "$work/$name.pftrace" "$work/$name.stat.json" "$work/$name.replay.json"
done
echo "ci/perfetto.sh: all answers are those of pageset"
