//! `/proc/zoneinfo`: zones, watermarks and per-CPU page sets.

use pageset_core::ZoneKind;
use serde::{Deserialize, Serialize};

use super::{CPUS_MAX, ProcError, ZONES_MAX, ZoneLine, excerpt};
use crate::layout::{PcpSample, ZoneDescription};

const FILE: &str = "zoneinfo";

/// All zones the file lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zoneinfo {
    /// Zones that can hold frames of the allocator, empty ones included, in the file's order.
    pub zones: Vec<ZoneDescription>,
    /// Names of the first node's zones in the kernel's index order, `Device` and the like included.
    pub zone_names: Vec<String>,
}

impl Zoneinfo {
    /// Parses the file's text. Lines of statistics are skipped; kernels that do not print `high_min` and
    /// `high_max` (6.1, 6.12) or `start_pfn` of empty zones leave them out.
    ///
    /// # Errors
    /// A known field whose value makes no sense, or a field outside of any zone.
    pub fn parse(text: &str) -> Result<Self, ProcError> {
        let mut parser = Parser::default();
        for (index, line) in text.lines().enumerate() {
            parser.line(line, index + 1)?;
        }
        parser.finish_zone();
        Ok(parser.info)
    }

    /// Zones with frames: managed > 0.
    pub fn populated(&self) -> impl Iterator<Item = &ZoneDescription> {
        self.zones.iter().filter(|zone| zone.managed > 0)
    }

    /// The zone `kind` of `node`.
    #[must_use]
    pub fn zone(&self, node: u16, kind: ZoneKind) -> Option<&ZoneDescription> {
        self.zones.iter().find(|zone| zone.node == node && zone.kind == kind)
    }

    /// The kind of the zone with the kernel's `index`, by the order in which the zones are listed.
    #[must_use]
    pub fn kind_of_index(&self, index: usize) -> Option<ZoneKind> {
        ZoneKind::from_name(self.zone_names.get(index)?)
    }
}

#[derive(Default)]
struct Parser {
    info: Zoneinfo,
    first_node: Option<u16>,
    /// The zone whose lines are being read; `None` before the first zone and in zones not modelled.
    zone: Option<ZoneDescription>,
    seen_zone: bool,
}

impl Parser {
    fn line(&mut self, line: &str, number: usize) -> Result<(), ProcError> {
        if line.starts_with("Node") {
            return self.start_zone(line, number);
        }
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { return Ok(()) };
        if !self.seen_zone {
            return Err(ProcError::new(
                FILE,
                number,
                format!("expected a zone, found {}", excerpt(line.trim())),
            ));
        }
        let Some(zone) = &mut self.zone else { return Ok(()) };
        let value = words.next().unwrap_or_default();
        match key {
            // "pages free 3713": the only key of two words.
            "pages" if value == "free" => {
                zone.free = parse(words.next().unwrap_or_default(), "pages free", number)?;
            }
            "boost" => zone.boost = parse(value, key, number)?,
            "min" => zone.min = parse(value, key, number)?,
            "low" => zone.low = parse(value, key, number)?,
            "high" => zone.high = parse(value, key, number)?,
            "spanned" => zone.spanned = parse(value, key, number)?,
            "present" => zone.present = parse(value, key, number)?,
            "managed" => zone.managed = parse(value, key, number)?,
            "start_pfn:" => zone.start_pfn = parse(value, key, number)?,
            "protection:" => zone.protection = protection(line, number)?,
            "cpu:" => {
                let cpu = parse(value, key, number)?;
                if cpu >= CPUS_MAX || zone.pagesets.len() >= CPUS_MAX as usize {
                    return Err(ProcError::new(FILE, number, format!("more than {CPUS_MAX} CPUs")));
                }
                zone.pagesets.push(PcpSample { cpu, ..PcpSample::default() });
            }
            "count:" | "high:" | "batch:" | "high_min:" | "high_max:" => {
                let number_of_frames = parse(value, key, number)?;
                let pageset = zone
                    .pagesets
                    .last_mut()
                    .ok_or_else(|| ProcError::new(FILE, number, format!("{key} before any cpu:")))?;
                match key {
                    "count:" => pageset.count = number_of_frames,
                    "high:" => pageset.high = number_of_frames,
                    "batch:" => pageset.batch = number_of_frames,
                    "high_min:" => pageset.high_min = Some(number_of_frames),
                    _ => pageset.high_max = Some(number_of_frames),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn start_zone(&mut self, line: &str, number: usize) -> Result<(), ProcError> {
        self.finish_zone();
        let owner = ZoneLine::parse(line)
            .ok_or_else(|| ProcError::new(FILE, number, format!("not a zone: {}", excerpt(line))))?;
        self.seen_zone = true;
        if self.info.zones.len() >= ZONES_MAX {
            return Err(ProcError::new(FILE, number, format!("more than {ZONES_MAX} zones")));
        }
        if *self.first_node.get_or_insert(owner.node) == owner.node && self.info.zone_names.len() < 16 {
            self.info.zone_names.push(owner.name.to_owned());
        }
        self.zone = owner.kind().map(|kind| ZoneDescription::empty(owner.node, kind));
        Ok(())
    }

    fn finish_zone(&mut self) {
        self.info.zones.extend(self.zone.take());
    }
}

fn parse<T: std::str::FromStr>(value: &str, key: &str, line: usize) -> Result<T, ProcError> {
    value
        .parse()
        .map_err(|_| ProcError::new(FILE, line, format!("{key} is not a number: {}", excerpt(value))))
}

/// `protection: (0, 3019, 17227)`.
fn protection(line: &str, number: usize) -> Result<Vec<u64>, ProcError> {
    let inner = line
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .map(|(inner, _)| inner)
        .ok_or_else(|| ProcError::new(FILE, number, "protection without parentheses"))?;
    if inner.split(',').count() > 16 {
        return Err(ProcError::new(FILE, number, "protection of more than 16 zones"));
    }
    inner.split(',').map(|value| parse(value.trim(), "protection", number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 0
  pages free     3840
        boost    0
        min      14
        low      17
        high     20
        promo    23
        spanned  4095
        present  3998
        managed  3840
        cma      0
        protection: (0, 3019, 17227, 17227, 17227)
      nr_free_pages 3840
  pagesets
    cpu: 0
              count:    5
              high:     7
              batch:    1
              high_min: 8
              high_max: 240
  vm stats threshold: 4
  node_unreclaimable:  0
  start_pfn:           1
Node 0, zone   Device
  pages free     0
        managed  0
";

    #[test]
    fn a_zone_is_read() {
        let info = Zoneinfo::parse(TEXT).unwrap();
        assert_eq!(info.zone_names, ["DMA", "Device"]);
        assert_eq!(info.kind_of_index(0), Some(ZoneKind::Dma));
        assert_eq!(info.kind_of_index(1), None);
        let zone = info.zone(0, ZoneKind::Dma).unwrap();
        assert_eq!((zone.start_pfn, zone.spanned, zone.present, zone.managed), (1, 4095, 3998, 3840));
        assert_eq!((zone.free, zone.boost, zone.min, zone.low, zone.high), (3840, 0, 14, 17, 20));
        assert_eq!(zone.protection, [0, 3019, 17227, 17227, 17227]);
        assert_eq!(
            zone.pagesets,
            [PcpSample { cpu: 0, count: 5, high: 7, batch: 1, high_min: Some(8), high_max: Some(240) }]
        );
        assert_eq!(info.populated().count(), 1);
    }

    #[test]
    fn kernels_without_limits_leave_them_out() {
        let text: String =
            TEXT.lines().filter(|line| !line.contains("high_m")).flat_map(|line| [line, "\n"]).collect();
        let info = Zoneinfo::parse(&text).unwrap();
        assert_eq!(info.zones[0].pagesets[0].high_min, None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = Zoneinfo::parse(&TEXT.replace("min      14", "min      x")).unwrap_err();
        assert_eq!((error.line, error.problem.as_str()), (6, "min is not a number: \"x\""));
        assert_eq!(Zoneinfo::parse("hello").unwrap_err().line, 1);
        assert_eq!(Zoneinfo::parse("Node 0, zone DMA\n count: 1\n").unwrap_err().line, 2);
        assert!(Zoneinfo::parse("Node 0, zone DMA\n cpu: 9999999\n").is_err());
    }
}
