//! `/proc/zoneinfo`: zones, watermarks and per-CPU page sets.

use pageset_core::ZoneKind;
use serde::{Deserialize, Serialize};

use super::{CPUS_MAX, ProcError, ZONES_MAX, ZoneLine, excerpt};
use crate::layout::{PcpSample, ZoneDescription};

const FILE: &str = "zoneinfo";

/// All zones that the file lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zoneinfo {
    /// Zones that can hold frames of the allocator, including empty zones, in the file's order.
    pub zones: Vec<ZoneDescription>,
    /// Names of the first node's zones in the kernel's index order, including `Device` and the like.
    pub zone_names: Vec<String>,
}

impl Zoneinfo {
    /// Parses the file's text, and skips statistics. Linux 6.1 and 6.12 do not print `high_min` and
    /// `high_max`, and some kernels do not print `start_pfn` of empty zones.
    ///
    /// # Errors
    /// An error if a known field has an impossible value, or if a field is outside any zone.
    pub fn parse(text: &str) -> Result<Self, ProcError> {
        let mut info = Self::default();
        let mut first_node = None;
        for ZoneText { name, zone, kind, .. } in ZoneText::parse_all(text)? {
            if *first_node.get_or_insert(zone.node) == zone.node && info.zone_names.len() < 16 {
                info.zone_names.push(name);
            }
            if kind.is_some() {
                info.zones.push(zone);
            }
        }
        Ok(info)
    }

    /// Returns the zones with frames: `managed` is above 0.
    pub fn populated(&self) -> impl Iterator<Item = &ZoneDescription> {
        self.zones.iter().filter(|zone| zone.managed > 0)
    }

    /// The zone `kind` of `node`.
    #[must_use]
    pub fn zone(&self, node: u16, kind: ZoneKind) -> Option<&ZoneDescription> {
        self.zones.iter().find(|zone| zone.node == node && zone.kind == kind)
    }

    /// The kind of the zone with the kernel's `index`. The file lists zones in the order of their indices.
    #[must_use]
    pub fn kind_of_index(&self, index: usize) -> Option<ZoneKind> {
        ZoneKind::from_name(self.zone_names.get(index)?)
    }
}

/// A zone as the text describes it.
#[derive(Clone, Debug)]
pub(crate) struct ZoneText {
    /// Number of the line that names the zone, counted from 1.
    pub(crate) line: usize,
    pub(crate) name: String,
    /// The kind of the zone. `None` for a zone with an unknown name, such as `Device`. If this field is
    /// `None`, the kind in `zone` means nothing.
    pub(crate) kind: Option<ZoneKind>,
    pub(crate) zone: ZoneDescription,
    /// Whether a page set has two lists, one of them for cold pages, as on Linux before 2.6.25. Both lists
    /// are read as one page set, with the first list's limits.
    pub(crate) has_cold_lists: bool,
    /// Names of the fields that the text contains.
    fields: Vec<&'static str>,
}

impl ZoneText {
    /// All zones, in the file's order.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, ProcError> {
        let mut zones: Vec<Self> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            if line.starts_with("Node") {
                if zones.len() >= ZONES_MAX {
                    return Err(ProcError::new(FILE, number, format!("more than {ZONES_MAX} zones")));
                }
                zones.push(Self::start(line, number)?);
            } else if let Some(zone) = zones.last_mut() {
                zone.read(line, number)?;
            } else if !line.trim().is_empty() {
                let problem = format!("expected a zone, found {}", excerpt(line.trim()));
                return Err(ProcError::new(FILE, number, problem));
            }
        }
        Ok(zones)
    }

    /// Whether the text contains this field of the zone.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.contains(&field)
    }

    fn start(line: &str, number: usize) -> Result<Self, ProcError> {
        let owner = ZoneLine::parse(line)
            .ok_or_else(|| ProcError::new(FILE, number, format!("not a zone: {}", excerpt(line))))?;
        let kind = owner.kind();
        Ok(Self {
            line: number,
            name: owner.name.to_owned(),
            kind,
            zone: ZoneDescription::empty(owner.node, kind.unwrap_or(ZoneKind::Normal)),
            has_cold_lists: false,
            fields: Vec::new(),
        })
    }

    fn read(&mut self, line: &str, number: usize) -> Result<(), ProcError> {
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { return Ok(()) };
        let value = words.next().unwrap_or_default();
        let zone = &mut self.zone;
        let (slot, field) = match key {
            // "pages free 3713" is the only line with a key of two words.
            "pages" if value == "free" => {
                zone.free = parse(words.next().unwrap_or_default(), "pages free", number)?;
                return Ok(());
            }
            "protection:" => {
                zone.protection = protection(line, number)?;
                return Ok(());
            }
            "cpu:" => return self.start_page_set(parse(value, key, number)?, number),
            "count:" | "high:" | "batch:" | "high_min:" | "high_max:" => {
                return self.read_page_set(key, parse(value, key, number)?, number);
            }
            "boost" => (&mut zone.boost, "boost"),
            "min" => (&mut zone.min, "min"),
            "low" => (&mut zone.low, "low"),
            "high" => (&mut zone.high, "high"),
            "spanned" => (&mut zone.spanned, "spanned"),
            "present" => (&mut zone.present, "present"),
            "managed" => (&mut zone.managed, "managed"),
            "start_pfn:" => (&mut zone.start_pfn, "start_pfn"),
            _ => return Ok(()),
        };
        *slot = parse(value, key, number)?;
        self.fields.push(field);
        Ok(())
    }

    fn start_page_set(&mut self, cpu: u32, number: usize) -> Result<(), ProcError> {
        let pagesets = &mut self.zone.pagesets;
        if cpu >= CPUS_MAX || pagesets.len() >= CPUS_MAX as usize {
            return Err(ProcError::new(FILE, number, format!("more than {CPUS_MAX} CPUs")));
        }
        if pagesets.last().is_some_and(|last| last.cpu == cpu) {
            self.has_cold_lists = true;
        } else {
            pagesets.push(PcpSample { cpu, ..PcpSample::default() });
        }
        Ok(())
    }

    fn read_page_set(&mut self, key: &str, pages: u32, number: usize) -> Result<(), ProcError> {
        let pageset = self.zone.pagesets.last_mut();
        let pageset =
            pageset.ok_or_else(|| ProcError::new(FILE, number, format!("{key} before any cpu:")))?;
        match key {
            "count:" => pageset.count = pageset.count.saturating_add(pages),
            // If a page set has two lists, the second list does not change the limits.
            "high:" if pageset.high == 0 => pageset.high = pages,
            "batch:" if pageset.batch == 0 => pageset.batch = pages,
            "high_min:" => pageset.high_min = Some(pages),
            "high_max:" => pageset.high_max = Some(pages),
            _ => {}
        }
        Ok(())
    }
}

fn parse<T: std::str::FromStr>(value: &str, key: &str, line: usize) -> Result<T, ProcError> {
    value
        .parse()
        .map_err(|_| ProcError::new(FILE, line, format!("{key} is not a number: {}", excerpt(value))))
}

/// Parses `protection: (0, 3019, 17227)`.
fn protection(line: &str, number: usize) -> Result<Vec<u64>, ProcError> {
    let inner = line
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .map(|(inner, _)| inner)
        .ok_or_else(|| ProcError::new(FILE, number, "protection without parentheses"))?;
    if inner.split(',').count() > 16 {
        return Err(ProcError::new(FILE, number, "the line `protection` has more than 16 zones"));
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
