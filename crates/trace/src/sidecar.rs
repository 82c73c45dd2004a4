//! The side file of a recording, `NAME.json[.xz]`: machine, snapshots, samples, losses.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    error::TraceError,
    info::TraceInfo,
    input,
    layout::LayoutSource,
    procfs::Zoneinfo,
    sample::{Sample, ZoneSample},
    snapshot::Snapshot,
};

/// Maximum bytes of a side file: an hour of samples of two CPUs.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// One sample as recorded: t0, t1, CPU, zones.
type RawSample = (u64, u64, u32, Vec<RawZoneSample>);
/// Node, zone index, free, count, high, batch, high_min, high_max.
type RawZoneSample = (u16, usize, u64, u32, u32, u32, u32, u32);

/// The used fields of the file. Others (timings of the command, ring statistics) are ignored.
#[derive(Deserialize)]
struct Sidecar {
    name: Option<String>,
    kernel: String,
    machine: Option<String>,
    page_size: Option<u32>,
    ncpu: u32,
    #[serde(default)]
    cmd: Vec<String>,
    t_on: Option<u64>,
    t_start: Option<u64>,
    t_end: Option<u64>,
    t_off: Option<u64>,
    events: Option<u64>,
    #[serde(default)]
    overrun: u64,
    #[serde(default)]
    commit_overrun: u64,
    #[serde(default)]
    dropped: u64,
    vmstat_pgalloc_delta: Option<u64>,
    vmstat_pgfree_delta: Option<u64>,
    #[serde(default)]
    sysctl: BTreeMap<String, String>,
    #[serde(default)]
    cache: Vec<(u32, u8, String, String, String)>,
    #[serde(default)]
    node_cpulist: Vec<String>,
    #[serde(default)]
    samples: Vec<RawSample>,
    before: Option<RawSnapshot>,
    after: Option<RawSnapshot>,
}

#[derive(Deserialize)]
struct RawSnapshot {
    zoneinfo: String,
    #[serde(default)]
    buddyinfo: String,
    #[serde(default)]
    pagetypeinfo: String,
    #[serde(default)]
    vmstat: String,
}

/// The side file of the trace at `path`, if there is one.
pub fn find(path: &Path) -> Option<PathBuf> {
    let mut stem = path.to_owned();
    if stem.extension().is_some_and(|extension| extension == "xz") {
        stem.set_extension("");
    }
    stem.set_extension("");
    [".json.xz", ".json"]
        .into_iter()
        .map(|ending| {
            let mut name = stem.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        })
        .find(|candidate| candidate.is_file())
}

/// Fills `info` from the side file at `path`.
pub(crate) fn read_into(path: &Path, info: &mut TraceInfo) -> Result<(), TraceError> {
    let text = input::read_text(path, FILE_BYTES_MAX)?;
    parse_into(path, &text, info)
}

/// Fills `info` from the text of a side file. `path` is for messages.
pub(crate) fn parse_into(path: &Path, text: &str, info: &mut TraceInfo) -> Result<(), TraceError> {
    const REMEDY: &str = "use the .json file that was recorded with the trace, or remove it";
    let sidecar: Sidecar = serde_json::from_slice(text.as_bytes())
        .map_err(|error| TraceError::line(path, error.line() as u64, error.to_string(), REMEDY))?;
    let wrong = |problem: String| TraceError::file(path, problem, REMEDY);

    let snapshot = |name: &str, raw: Option<RawSnapshot>| -> Result<Option<Snapshot>, TraceError> {
        let Some(raw) = raw else { return Ok(None) };
        Snapshot::parse(&raw.zoneinfo, &raw.buddyinfo, &raw.pagetypeinfo, &raw.vmstat)
            .map(Some)
            .map_err(|error| wrong(format!("field {name}: {error}")))
    };
    let before = snapshot("before", sidecar.before)?;
    let after = snapshot("after", sidecar.after)?;
    if let Some(before) = &before {
        let source = LayoutSource {
            kernel: &sidecar.kernel,
            architecture: sidecar.machine.as_deref().unwrap_or("x86_64"),
            page_size: sidecar.page_size.unwrap_or(4096),
            cpus: sidecar.ncpu,
            node_cpulists: &sidecar.node_cpulist,
            caches: &sidecar.cache,
            sysctls: &sidecar.sysctl,
            zoneinfo: &before.zoneinfo,
        };
        info.machine = Some(source.build().map_err(wrong)?);
    }
    let empty = Zoneinfo::default();
    let zones = before.as_ref().map_or(&empty, |before| &before.zoneinfo);
    info.samples =
        sidecar.samples.into_iter().map(|raw| sample(raw, zones)).collect::<Result<_, _>>().map_err(wrong)?;
    info.name = sidecar.name;
    info.kernel = Some(sidecar.kernel);
    info.command = sidecar.cmd;
    info.t_on_ns = sidecar.t_on;
    info.t_start_ns = sidecar.t_start;
    info.t_end_ns = sidecar.t_end;
    info.t_off_ns = sidecar.t_off;
    info.cpus = Some(sidecar.ncpu);
    info.before = before;
    info.after = after;
    info.lost.overrun = sidecar.overrun.saturating_add(sidecar.commit_overrun);
    info.lost.dropped = sidecar.dropped;
    info.events = sidecar.events;
    info.pgalloc_delta = sidecar.vmstat_pgalloc_delta;
    info.pgfree_delta = sidecar.vmstat_pgfree_delta;
    Ok(())
}

fn sample(raw: RawSample, zoneinfo: &Zoneinfo) -> Result<Sample, String> {
    let (t0_ns, t1_ns, cpu, raw_zones) = raw;
    let mut zones = Vec::with_capacity(raw_zones.len());
    for (node, index, free, count, high, batch, high_min, high_max) in raw_zones {
        let kind = zoneinfo
            .kind_of_index(index)
            .ok_or_else(|| format!("a sample has zone {index}, which before.zoneinfo does not list"))?;
        // The recorder writes 0 where the kernel prints no limits. A populated zone's limit is never 0.
        let limit = |value: u32| if high_max == 0 { None } else { Some(value) };
        zones.push(ZoneSample {
            node,
            kind,
            free,
            count,
            high,
            batch,
            high_min: limit(high_min),
            high_max: limit(high_max),
        });
    }
    Ok(Sample { t0_ns, t1_ns, cpu, zones })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"name":"t","kernel":"6.12.0","machine":"x86_64","page_size":4096,"ncpu":1,
        "cmd":["true"],"t_on":1,"t_start":2,"t_end":3,"t_off":4,"events":5,"overrun":0,"commit_overrun":1,"dropped":2,
        "sysctl":{"min_free_kbytes":"48576","lowmem_reserve_ratio":"256\t32"},
        "cache":[[0,1,"Data","64K","0"]],"node_cpulist":["0"],
        "samples":[[10,11,0,[[0,0,100,5,6,1,0,0]]]],
        "before":{"zoneinfo":"Node 0, zone DMA\n pages free 1\n spanned 8\n present 8\n managed 8\n start_pfn: 1\n"}}"#;

    #[test]
    fn the_fields_reach_the_information() {
        let mut info = TraceInfo::default();
        parse_into(Path::new("t.json"), TEXT, &mut info).unwrap();
        let machine = info.machine.unwrap();
        assert_eq!(machine.sysctls.lowmem_reserve_ratio, [256, 32]);
        assert_eq!(machine.zones.len(), 1);
        assert_eq!((info.lost.overrun, info.lost.dropped), (1, 2));
        assert_eq!(info.samples[0].zones[0].high_min, None);
        assert_eq!(info.before.unwrap().pagetypeinfo, None);
    }

    #[test]
    fn damage_is_named_with_file_and_remedy() {
        let mut info = TraceInfo::default();
        let path = Path::new("t.json");
        let cut = parse_into(path, &TEXT[..200], &mut info).unwrap_err().to_string();
        assert!(cut.starts_with("t.json:") && cut.contains("remove it"), "{cut}");
        let zone = TEXT.replace("[0,0,100", "[0,7,100");
        let error = parse_into(path, &zone, &mut info).unwrap_err().to_string();
        assert!(error.contains("zone 7"), "{error}");
        let proc = TEXT.replace("managed 8", "managed x");
        let error = parse_into(path, &proc, &mut info).unwrap_err().to_string();
        assert!(error.contains("/proc/zoneinfo, line 5"), "{error}");
    }

    #[test]
    fn the_side_file_is_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.pcpt.xz");
        assert_eq!(find(&trace), None);
        let side = folder.path().join("a.json");
        std::fs::write(&side, "{}").unwrap();
        assert_eq!(find(&trace), Some(side.clone()));
        assert_eq!(find(&folder.path().join("a.txt")), Some(side));
    }
}
