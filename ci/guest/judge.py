"""Says whether the steps of a guest went as they should: `judge.py DIRECTORY`, where ci/guest/init left its results."""

import json
import pathlib
import re
import sys

results = pathlib.Path(sys.argv[1])
FAILS = {
    "unmounted": "the kernel's tracing files are not mounted; run `mount -t tracefs nodev /sys/kernel/tracing` as root",
    "locked_down": "the kernel is locked down (confidentiality), which forbids tracing",
}
failures = []


def read(name):
    return (results / name).read_text(errors="replace").strip()


def expect(what, is_so):
    if not is_so:
        failures.append(what)


def percent(part):
    return 100 * part["exact"] / part["observed"] if part["observed"] else 0.0


for path in sorted(results.glob("*.status")):
    step = path.stem
    said = read(f"{step}.err")
    if step in FAILS:
        expect(f"{step} is refused: {said}", read(path.name) == "1" and FAILS[step] in said)
    else:
        expect(f"{step} succeeds: {said}", read(path.name) == "0")

expect("there is nothing but pageset, busybox and two scripts",
       sorted(read("files.out").split()) == ["/bin/busybox", "/bin/pageset", "/init", "/load"])
expect("the help has its verbs", all(verb in read("help.out") for verb in ("record", "stat", "advise")))
stat = json.loads(read("stat.out"))
verify = json.loads(read("verify.out"))
kinds = stat["events"]
record = read("record.out")
print(record)
print(f"kernel {read('kernel')}: {sum(kinds.values())} events: " + ", ".join(f"{kind} {n}" for kind, n in kinds.items()))
refills, drains = verify["refills"], verify["drains"]
print(f"verify under {verify['policy']}: refills {percent(refills):.2f} % of {refills['observed']}, "
      f"drains {percent(drains):.2f} % of {drains['observed']}, mismatches {verify['mismatches']}, "
      f"undetermined {verify['undetermined']}")
expect("events are recorded", kinds.get("mm_page_alloc", 0) > 10_000)
expect("nothing is lost", "Lost events: 0." in record)
# Linux 6.12 refills up to 2016 pages at once, so that one of its few refills is more than a percent.
expect("99 % of the refills are right, or all but one",
       refills["observed"] - refills["exact"] <= max(1, refills["observed"] // 100))
# A drain that ended early is counted apart, because the policy does not say that it ends there. A short
# recording has few drains, so that three of them may be more than 5 %.
explained = drains["exact"] + drains["ended_early"]
expect(f"95 % of the drains are right or ended early, or all but three: {explained} of {drains['observed']} are",
       drains["observed"] - explained <= max(3, drains["observed"] // 20))
# A kernel from 7.1 on takes the stacks of tasks as blocks, and may allocate nothing in bulk.
release = tuple(int(part) for part in read("kernel").split(".")[:2])
if release < (7, 1):
    expect("bulk allocations are recorded", kinds.get("alloc_pages_bulk_entry", 0) > 0)
expect("as many bulk allocations return as begin",
       abs(kinds.get("alloc_pages_bulk_entry", 0) - kinds.get("alloc_pages_bulk_return", 0)) <= 2)
expect("no instance is left", "pageset-" not in read("instances.out"))
expect("no probe is left", "pageset" not in read("probes.out"))
for step in ("stack", "condition", "cpu_goes", "cpu_comes"):
    print(f"{step}: {read(f'{step}.out')}")
expect("a CPU that comes is named", "Not recorded: CPU 1: it was switched on meanwhile." in read("cpu_comes.out"))
expect("nothing is said that nobody asked", "not asked for" not in read("cpu_comes.out"))
for step in ("advise", "advise_load"):
    verdicts = re.findall(r"^(?:No:|Yes[:,]|This recording does not say).*", read(f"{step}.out"), re.MULTILINE)
    print(f"{step}: {verdicts}")
    expect(f"{step} has a verdict", len(verdicts) == 1)
for failure in failures:
    print(f"NOT SO: {failure}", file=sys.stderr)
sys.exit(bool(failures))
