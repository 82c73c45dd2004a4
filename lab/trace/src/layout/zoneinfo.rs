//! Reads a layout from a copy of `/proc/zoneinfo` of any kernel since 2.6.32.
//!
//! The copy names neither the kernel, nor the page size, nor caches, nor the CPUs of a node. If the copy does
//! not imply a needed fact, the user must give this fact. All assumptions are listed in [`Layout::assumed`].

use std::collections::BTreeMap;
use std::path::Path;

use pageset_core::policy::zone_batch;

use super::{Layout, LayoutOptions, Node, Sysctls, copied, size_name};
use crate::{error::TraceError, procfs::ZoneText};

const COPY_AGAIN: &str = "copy the whole file: `cat /proc/zoneinfo > zoneinfo.txt`";
/// Smallest number of pages of a zone whose batch shows the page size. A zone with fewer pages has the same
/// batch under several page sizes.
const TELLING_PAGES: u64 = 32_768;
/// Four times the largest batch, in bytes. The value 512 KiB holds before Linux 4.19, and the value 1 MiB
/// since Linux 4.19.
const BATCH_CAPS_BYTES: [u32; 2] = [512 << 10, 1 << 20];
/// Page sizes on Linux, the most common first.
const PAGE_SIZES: [u32; 4] = [4096, 65_536, 16_384, 8192];

/// Whether a text is a copy of `/proc/zoneinfo`.
pub(crate) fn is_zoneinfo(text: &str) -> bool {
    copied::without_prefix(text, is_zone).lines().any(is_zone)
}

/// Whether a line names a zone, such as `Node 0, zone      DMA`. In other files of `/proc`, more text follows
/// the name.
fn is_zone(line: &str) -> bool {
    let parts = line.strip_prefix("Node ").and_then(|rest| rest.split_once(','));
    let Some((node, rest)) = parts else { return false };
    let mut words = rest.split_whitespace();
    !node.trim().is_empty()
        && node.trim().bytes().all(|byte| byte.is_ascii_digit())
        && words.next() == Some("zone")
        && words.next().is_some()
        && words.next().is_none()
}

/// Reads the machine from a copy of `/proc/zoneinfo`.
pub(super) fn read(path: &Path, text: &str, options: &LayoutOptions) -> Result<Layout, TraceError> {
    let plain = copied::without_prefix(text, is_zone);
    // Skip the text before the first zone, which is a shell prompt or a heading.
    let start = plain.lines().position(is_zone).unwrap_or(0);
    let body = plain.lines().enumerate().map(|(number, line)| if number < start { "" } else { line });
    let body: String = body.flat_map(|line| [line, "\n"]).collect();
    let zones = ZoneText::parse_all(&body)
        .map_err(|error| TraceError::line(path, error.line as u64, error.problem, COPY_AGAIN))?;
    let mut copy = Copied { path, zones, assumed: Vec::new() };
    if !text.ends_with('\n') && text.trim_end() == text && text.ends_with(|c: char| c.is_ascii_digit()) {
        copy.assume("the last line has no line end: its number is assumed to be complete");
    }
    copy.complete()?;
    copy.refuse_strangers()?;
    let page_size = copy.page_size(options)?;
    let nodes = copy.nodes(options)?;
    copy.assume(
        "kernel, caches and settings are not in /proc/zoneinfo: caches are unknown, and settings of /proc/sys/vm are \
         assumed to be the kernel's defaults",
    );
    copy.note_absent_zones();
    copy.layout(page_size, nodes)
}

struct Copied<'path> {
    path: &'path Path,
    zones: Vec<ZoneText>,
    assumed: Vec<String>,
}

impl Copied<'_> {
    fn assume(&mut self, what: impl Into<String>) {
        self.assumed.push(what.into());
    }

    fn populated(&self) -> impl Iterator<Item = &ZoneText> {
        self.zones.iter().filter(|zone| zone.zone.managed > 0)
    }

    /// Makes an error about a zone.
    fn wrong(&self, zone: &ZoneText, problem: &str, remedy: impl Into<String>) -> TraceError {
        let problem = format!("zone {} of node {} {problem}", zone.name, zone.zone.node);
        TraceError::line(self.path, zone.line as u64, problem, remedy)
    }

    /// Uses `present` for `managed` if the kernel does not print `managed`. Rejects a zone that lacks fields,
    /// because the copy is incomplete.
    fn complete(&mut self) -> Result<(), TraceError> {
        let is_old = !self.zones.iter().any(|zone| zone.has("managed"));
        if is_old {
            self.zones.iter_mut().for_each(|zone| zone.zone.managed = zone.zone.present);
        }
        for zone in &self.zones {
            let is_empty = zone.has("spanned") && zone.has("present") && zone.zone.present == 0;
            let needed = ["min", "low", "high", "spanned", "present"];
            let needed = needed.into_iter().chain((!is_old).then_some("managed"));
            let needed = needed.chain((!is_empty).then_some("start_pfn"));
            if let Some(missing) = needed.filter(|_| !is_empty).find(|field| !zone.has(field)) {
                let problem = format!("has no {missing}: the copy is incomplete");
                return Err(self.wrong(zone, &problem, COPY_AGAIN));
            }
        }
        if self.populated().next().is_none() {
            return Err(TraceError::file(self.path, "no zone has pages", COPY_AGAIN));
        }
        if is_old {
            self.assume(
                "all pages that exist (present) are assumed to be managed by the allocator: Linux before 3.8 \
                         does not print managed",
            );
        }
        if self.populated().any(|zone| zone.has_cold_lists) {
            self.assume("the two lists of a page set, hot and cold, are read as one list, with the limits of the first: Linux \
                         has one list since 2.6.25");
        }
        Ok(())
    }

    /// Rejects zones with pages and an unknown name, because the requests that may use such a zone are
    /// unknown. Leaves out zones without pages of the allocator, such as `Device`, and lists the left-out
    /// zones as an assumption.
    fn refuse_strangers(&mut self) -> Result<(), TraceError> {
        let strangers = || self.zones.iter().filter(|zone| zone.kind.is_none());
        if let Some(zone) = strangers().find(|zone| zone.zone.managed > 0) {
            let problem = format!(
                "has {} pages and an unknown name, so it is unknown which requests may use it",
                zone.zone.managed
            );
            let remedy = format!(
                "if its pages do not matter, leave it out: `sed '/zone *{}/,/start_pfn/d' {} > other.txt`",
                zone.name,
                quoted(self.path)
            );
            return Err(self.wrong(zone, &problem, remedy));
        }
        let left_out = strangers().filter(|zone| zone.zone.spanned > 0);
        let sentences: Vec<_> = left_out
            .map(|zone| {
                let (node, pages) = (zone.zone.node, zone.zone.spanned);
                format!(
                    "zone {} of node {node} is left out: none of its {pages} pages is the allocator's",
                    zone.name
                )
            })
            .collect();
        self.assumed.extend(sentences);
        self.zones.retain(|zone| zone.kind.is_some());
        Ok(())
    }

    /// Finds the page size. If the user gave a page size, checks that the batches of zones do not contradict
    /// this page size.
    fn page_size(&mut self, options: &LayoutOptions) -> Result<u32, TraceError> {
        let said = options.page_size.or(options.recorded.as_ref().map(|(size, _)| *size));
        let size = said.unwrap_or(4096);
        let batch = |zone: &ZoneText| zone.zone.pagesets.first().map_or(0, |set| set.batch);
        let telling = self.populated().filter(|zone| zone.zone.managed >= TELLING_PAGES && batch(zone) > 0);
        // Accept a batch that is too small, because the zone may have grown after the kernel computed the
        // batch.
        let telling = telling.max_by_key(|zone| batch(zone));
        let Some(zone) = telling else {
            if said.is_none() {
                self.assume(
                    "a page is assumed to have 4 KiB: the zones are too small to show the size (--page-size)",
                );
            }
            return Ok(size);
        };
        let fits = |size: u32| batches(zone, size).contains(&batch(zone));
        if !fits(size)
            && let Some(other) = PAGE_SIZES.into_iter().find(|size| fits(*size))
        {
            let [before, since] = batches(zone, size).map(|batch| batch.to_string());
            let problem = format!(
                "has batch {}, but with pages of {} its batch would be {before} or {since}",
                batch(zone),
                size_name(size)
            );
            let remedy = format!(
                "give the size of a page as `getconf PAGESIZE` prints it there, probably `pageset convert {} --to layout --page-size {}`",
                quoted(self.path),
                size_name(other).replace(" KiB", "K"),
            );
            return Err(self.wrong(zone, &problem, remedy));
        }
        if said.is_none() {
            let shows = if fits(size) { "fits it" } else { "does not show it" };
            let sentence = format!(
                "a page is assumed to have 4 KiB: /proc/zoneinfo does not say, and batch {} {shows} (--page-size)",
                batch(zone)
            );
            self.assume(sentence);
        }
        Ok(size)
    }

    fn layout(self, page_size: u32, nodes: Vec<Node>) -> Result<Layout, TraceError> {
        let cpus = nodes.iter().flat_map(|node| &node.cpus).max().map_or(0, |last| last + 1);
        let layout = Layout {
            kernel: String::new(),
            architecture: String::new(),
            page_size,
            cpus,
            assumed: self.assumed,
            sysctls: Sysctls::default(),
            nodes,
            caches: Vec::new(),
            zones: self.zones.into_iter().map(|zone| zone.zone).filter(|zone| zone.managed > 0).collect(),
        };
        match layout.check() {
            Ok(()) => Ok(layout),
            Err(problem) => Err(TraceError::file(self.path, problem, COPY_AGAIN)),
        }
    }

    /// Notes zones that the copy seems to lack. A reserve against requests for a higher zone shows that the
    /// higher zone exists.
    fn note_absent_zones(&mut self) {
        let mut sentences = Vec::new();
        for node in self.node_ids() {
            let here = || self.populated().filter(|zone| zone.zone.node == node);
            let Some(last) = here().last() else { continue };
            let protection = &last.zone.protection;
            if protection.last().is_some_and(|reserve| *reserve > 0) {
                sentences.push(format!(
                    "node {node} has no zone above {}, but it reserves pages against requests for a higher one: check that \
                     the copy is complete",
                    last.name
                ));
            }
        }
        self.assumed.extend(sentences);
    }

    fn node_ids(&self) -> Vec<u16> {
        let mut ids: Vec<_> = self.zones.iter().map(|zone| zone.zone.node).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Computes the batch of a zone with this page size, by the rule before Linux 4.19 and by the rule since.
fn batches(zone: &ZoneText, page_size: u32) -> [u32; 2] {
    BATCH_CAPS_BYTES.map(|cap| zone_batch(zone.zone.managed, page_size, cap).max(1) as u32)
}

impl Copied<'_> {
    /// Finds the CPUs of each node: from the user's option, from the recording, or from page sets.
    fn nodes(&mut self, options: &LayoutOptions) -> Result<Vec<Node>, TraceError> {
        let mut cpus: BTreeMap<u32, Shown> = BTreeMap::new();
        for zone in self.populated() {
            for set in &zone.zone.pagesets {
                cpus.entry(set.cpu).or_default().note(zone.zone.node, set.count);
            }
        }
        if cpus.is_empty() {
            let problem = "no zone has page sets, so the file does not show the CPUs";
            return Err(TraceError::file(self.path, problem, COPY_AGAIN));
        }
        let mut ids = self.node_ids();
        if let Some(given) = &options.node_cpus {
            ids.extend(given.iter().map(|node| node.id));
            return self.given(given, ids, &cpus);
        }
        let recorded = options.recorded.as_ref().map_or(&[][..], |(_, nodes)| nodes);
        if ids.len() > 1 && cpus.keys().all(|cpu| recorded.iter().any(|node| node.cpus.contains(cpu))) {
            self.assume("CPUs are local to the nodes that the recording names");
            ids.extend(recorded.iter().map(|node| node.id));
            // The recording may contain a CPU that was offline when the file was copied.
            let online = |node: &Node| Node {
                cpus: node.cpus.iter().copied().filter(|cpu| cpus.contains_key(cpu)).collect(),
                ..node.clone()
            };
            let online: Vec<_> = recorded.iter().map(online).collect();
            return self.given(&online, ids, &cpus);
        }
        self.shown(&ids, &cpus)
    }

    /// Checks that the CPUs that belong to a node are exactly the CPUs with page sets.
    fn given(
        &self,
        given: &[Node],
        mut ids: Vec<u16>,
        cpus: &BTreeMap<u32, Shown>,
    ) -> Result<Vec<Node>, TraceError> {
        ids.sort_unstable();
        ids.dedup();
        let wrong = |problem: String| {
            Err(TraceError::file(
                self.path,
                problem,
                "give each CPU to one node, as in --node-cpus 0=0-3,1=4-7",
            ))
        };
        let all: Vec<u32> = given.iter().flat_map(|node| node.cpus.iter().copied()).collect();
        if let Some(cpu) = cpus.keys().find(|cpu| !all.contains(cpu)) {
            return wrong(format!("CPU {cpu} has page sets, but is on no node"));
        }
        if let Some((_, cpu)) = all.iter().enumerate().find(|(at, cpu)| all[..*at].contains(cpu)) {
            return wrong(format!("CPU {cpu} is on two nodes"));
        }
        if let Some(cpu) = all.iter().find(|cpu| !cpus.contains_key(cpu)) {
            return wrong(format!("CPU {cpu} is on a node, but has no page set in any zone"));
        }
        let of =
            |id| given.iter().filter(move |node| node.id == id).flat_map(|node| node.cpus.iter().copied());
        Ok(ids.into_iter().map(|id| Node { id, cpus: of(id).collect(), distances: Vec::new() }).collect())
    }

    /// Finds the nodes from page sets. A single node has all CPUs. With several nodes, each CPU belongs to
    /// the node where it has page sets. Some kernels list every CPU at every node. On kernels that do, the
    /// pages in page sets show the node of a CPU, because an idle CPU gives back pages of other nodes.
    fn shown(&mut self, ids: &[u16], cpus: &BTreeMap<u32, Shown>) -> Result<Vec<Node>, TraceError> {
        let listed = |shown: &Shown| if let [(node, _)] = shown.0[..] { Some(node) } else { None };
        let holding = |shown: &Shown| {
            let mut nodes = shown.0.iter().filter(|(_, pages)| *pages > 0);
            nodes.next().filter(|_| nodes.next().is_none()).map(|(node, _)| *node)
        };
        let place = |of: &dyn Fn(&Shown) -> Option<u16>| {
            cpus.iter().map(|(cpu, shown)| Some((*cpu, of(shown)?))).collect::<Option<Vec<_>>>()
        };
        let (places, why) = if let Some(places) = place(&listed) {
            (places, "no other node has page sets of theirs")
        } else if let Some(places) = place(&holding) {
            (places, "their page sets hold pages of no other node")
        } else {
            return Err(self.no_places(ids, cpus));
        };
        let on = |id| places.iter().filter(move |(_, node)| *node == id).map(|(cpu, _)| *cpu);
        let nodes: Vec<_> =
            ids.iter().map(|id| Node { id: *id, cpus: on(*id).collect(), distances: Vec::new() }).collect();
        if nodes.len() > 1 {
            let lists = nodes.iter().map(|node| format!("{}={}", node.id, list(&node.cpus)));
            let lists: Vec<_> = lists.collect();
            self.assume(format!(
                "the CPUs of the nodes are assumed to be {}: {why} (--node-cpus)",
                lists.join(",")
            ));
        }
        Ok(nodes)
    }

    fn no_places(&self, ids: &[u16], cpus: &BTreeMap<u32, Shown>) -> TraceError {
        let all: Vec<_> = cpus.keys().copied().collect();
        let share = all.len().div_ceil(ids.len()).max(1);
        let mut shares = all.chunks(share);
        let example: Vec<_> =
            ids.iter().map(|id| format!("{id}={}", list(shares.next().unwrap_or_default()))).collect();
        let problem = format!(
            "it has {} nodes, and lists all {} CPUs at each node, so it does not show which CPUs belong to which node",
            ids.len(),
            all.len()
        );
        let remedy = format!(
            "look at the output of `lscpu` on that machine, and use `pageset convert {} --to layout --node-cpus {}` with the true numbers",
            quoted(self.path),
            example.join(",")
        );
        TraceError::file(self.path, problem, remedy)
    }
}

/// The nodes where a CPU has page sets, each with the number of pages in these page sets.
#[derive(Default)]
struct Shown(Vec<(u16, u64)>);

impl Shown {
    fn note(&mut self, node: u16, pages: u32) {
        match self.0.iter_mut().find(|(known, _)| *known == node) {
            Some((_, sum)) => *sum += u64::from(pages),
            None => self.0.push((node, pages.into())),
        }
    }
}

/// Writes sorted numbers as sysfs prints them, such as `0-3,8`.
fn list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let range = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-+".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
