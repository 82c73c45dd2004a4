//! Parameters of the day.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::{Deserialize, Serialize};

/// Parameters of the day. A share of memory (`permille`) is in thousandths of all memory, unless its comment
/// says otherwise. Times are in steps, and a day has [`steps`](Self::steps) steps.
///
/// If a value is from a recording, its comment names the recording (`pageset stat data/traces/NAME`). The
/// values without a recording are guesses, because no recording of this project is as long as a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Parameters {
    /// Memory of the machine in GiB. All memory is in one zone.
    pub memory_gib: u32,
    /// Number of CPUs. Guess.
    pub cpus: u32,
    /// Number of steps of a day. If a step lasted a second, the default day would last an hour. So the
    /// simulated day has fewer processes than a real day, and less memory is allocated and freed.
    pub steps: u32,
    /// Memory that the reclaimer keeps free. Guess: as much free memory as the tool `free` shows on servers
    /// that have run for days.
    pub free_permille: u32,
    /// The services: processes that live for hours.
    pub services: Services,
    /// The builds: processes that live for seconds.
    pub builds: Builds,
    /// Jobs of many processes. All processes of a job end at the same moment.
    pub jobs: Jobs,
    /// Files that processes read. The files stay cached until memory is needed.
    pub files: Files,
    /// The kernel's own objects.
    pub slabs: Slabs,
    /// Buffers of the network.
    pub network: Network,
}

/// Processes that live for hours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Services {
    /// Memory of all services together.
    pub permille: u32,
    /// Memory of one service. Guess.
    pub each_permille: u32,
    /// Average life of a service from its start to its restart: a third of a day. Guess.
    pub life_steps: u32,
    /// Part of a service's memory that is requested as huge pages. Guess.
    pub huge_permille: u32,
    /// Memory of receive rings and similar kernel buffers of a service, in thousandths of the service's
    /// memory. The service's memory does not include its rings. The rings live as long as the service. Guess.
    pub rings_permille: u32,
}

/// Builds: their processes live for some seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Builds {
    /// Memory of all build processes during the day. At night, build processes use a tenth of the memory that
    /// they use during the day. Guess.
    pub permille: u32,
    /// Number of pages of the smallest process. In the recording `k618_2c_make_lua_j4`, 687 pages were
    /// allocated for each fork.
    pub pages_min: u32,
    /// Number of pages of the largest process. Guess.
    pub pages_max: u32,
    /// Average life of a process. Guess: real builds have more processes, and each process lives for a
    /// shorter time.
    pub life_steps: u32,
    /// Number of kernel pages (page tables, stacks, objects) for each thousand pages of a process. Of the
    /// allocated blocks, 47 in a thousand are unmovable single pages in `k618_2c_make_lua_j4` (11 630 of 248
    /// 528) and in `k618_2c_make_openssl_j4` (10 706 of 228 559).
    pub unmovable_permille: u32,
    /// Share of a build's memory that is requested as huge pages. Guess.
    pub huge_permille: u32,
    /// Chance, in thousandths, that a random CPU frees blocks of a process, and not the allocating CPU. In
    /// the recordings, another CPU freed 4.7 % (`k618_2c_make_lua_j4`) and 15 % (`k618_2c_make_openssl_j4`)
    /// of the blocks.
    pub remote_permille: u32,
}

/// Jobs of many processes. All processes of a job end at the same moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jobs {
    /// Number of jobs in a day. Guess.
    pub count: u32,
    /// Memory of one job. Guess.
    pub permille: u32,
    /// Running time of one job, in steps. Guess.
    pub life_steps: u32,
}

/// Files that processes read. The files stay cached until memory is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// File data that processes read in one step during the day, in millionths of all memory. Guess: in one
    /// day, processes read about twice as much as the memory holds.
    pub read_permille_of_permille: u32,
    /// Number of pages of the largest file. The logarithms of the sizes are evenly distributed. With the
    /// default of 170 pages, the ratio of inode pages to cached pages is as in the recording
    /// `k618_2c_make_openssl_j4`, if 20 files share a block of inodes. The recording has 129 reclaimable
    /// pages and 21 874 pages that stay cached.
    pub pages_max: u32,
    /// Share of the cached pages that are in blocks of 4 pages. In the recording `k618_2c_make_openssl_j4`,
    /// 616 blocks of 4 pages are among the 21 874 pages that stay cached.
    pub folio_permille: u32,
    /// Number of files that share a block of 4 pages for their inodes and directory entries. Rounded: a slab
    /// of `ext4_inode_cache` has 27 inodes in 8 pages.
    pub inodes_in_slab: u32,
    /// Chance, in thousandths, that a file was used again before it would leave the cache, so that the file
    /// stays in the cache. Guess.
    pub used_again_permille: u32,
    /// Memory of the inodes that the nightly scan of all files reads. Guess.
    pub scan_permille: u32,
}

/// The kernel's own objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Slabs {
    /// Memory of short-lived objects during the day. At night, short-lived objects have less memory than
    /// during the day. Guess.
    pub short_permille: u32,
    /// Average life of short-lived objects. Guess.
    pub short_life_steps: u32,
    /// Memory of long-lived objects at the end of the day. At the beginning of the day, long-lived objects
    /// have a fifth of the memory that they have at the end of the day. Guess.
    pub long_permille: u32,
    /// Average life of long-lived objects: a day. Guess.
    pub long_life_steps: u32,
    /// Number of blocks of two pages in a thousand blocks: 445 in the recording `k618_2c_hackbench_sock` (20
    /// 487 of 45 993).
    pub pairs_permille: u32,
    /// Number of blocks of 8 pages in a thousand blocks. Guess.
    pub eights_permille: u32,
}

/// Buffers of the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Memory of the network buffers in use during the day. Guess.
    pub permille: u32,
    /// Memory of network buffers during a burst, as a multiple of their memory at other times. Guess.
    pub burst: u32,
    /// Number of steps in a thousand that have a burst. Guess.
    pub burst_permille: u32,
    /// Share of the network buffers that is replaced in a step. Guess: in the recording `k612_2c_tcp`, half
    /// of the buffers live for 8 ms at most. The simulated day replaces buffers about a thousand times less
    /// often.
    pub replaced_permille: u32,
    /// Number of blocks of 8 pages in a thousand blocks. In the recording `k612_2c_tcp`, nearly all unmovable
    /// blocks have 8 pages (8285 of 8371). In the recording `k618_2c_hackbench_sock`, hardly any unmovable
    /// block has 8 pages. Guess: half of the blocks.
    pub eights_permille: u32,
    /// Share of the buffers that interrupt handlers request. These requests cannot wait. Guess.
    pub atomic_permille: u32,
    /// Chance, in thousandths, that a random CPU frees a buffer, and not the allocating CPU. In the recording
    /// `k618_2c_hackbench_sock`, another CPU freed 48 % of the blocks.
    pub remote_permille: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            memory_gib: 64,
            cpus: 16,
            steps: 3600,
            free_permille: 30,
            services: Services::default(),
            builds: Builds::default(),
            jobs: Jobs::default(),
            files: Files::default(),
            slabs: Slabs::default(),
            network: Network::default(),
        }
    }
}

impl Default for Services {
    fn default() -> Self {
        Self { permille: 240, each_permille: 10, life_steps: 1200, huge_permille: 400, rings_permille: 20 }
    }
}

impl Default for Builds {
    fn default() -> Self {
        Self {
            permille: 50,
            pages_min: 687,
            pages_max: 50_000,
            life_steps: 40,
            unmovable_permille: 47,
            huge_permille: 200,
            remote_permille: 100,
        }
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self { count: 8, permille: 100, life_steps: 200 }
    }
}

impl Default for Files {
    fn default() -> Self {
        Self {
            read_permille_of_permille: 700,
            pages_max: 170,
            folio_permille: 113,
            inodes_in_slab: 20,
            used_again_permille: 200,
            scan_permille: 20,
        }
    }
}

impl Default for Slabs {
    fn default() -> Self {
        Self {
            short_permille: 8,
            short_life_steps: 20,
            long_permille: 25,
            long_life_steps: 3600,
            pairs_permille: 445,
            eights_permille: 50,
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            permille: 2,
            burst: 4,
            burst_permille: 50,
            replaced_permille: 300,
            eights_permille: 500,
            atomic_permille: 300,
            remote_permille: 480,
        }
    }
}

/// Frames in a GiB.
const GIB_FRAMES: u64 = 1 << 18;
/// Limit of the sum of the shares of memory in a day's parameters, in thousandths.
const USED_MOST_PERMILLE: u32 = 850;

impl Parameters {
    /// Returns a day with a quarter of the steps and of the memory of the default day. The shorter day shows
    /// quickly whether the simulation works.
    #[must_use]
    pub fn quick() -> Self {
        let mut quick = Self { memory_gib: 16, steps: 900, ..Self::default() };
        quick.services.life_steps = 300;
        quick.services.each_permille = 20;
        quick.jobs.life_steps = 50;
        quick.builds.life_steps = 20;
        quick.slabs.long_life_steps = 900;
        quick.files.read_permille_of_permille = 2000;
        quick
    }

    /// Reads a day from a TOML file, and checks it. A parameter that the file does not mention keeps its
    /// default value.
    ///
    /// # Errors
    /// Returns an error that names the file and the mistake in the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let day: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        day.check().map_err(|why| anyhow!("{}: {why}", path.display()))?;
        Ok(day)
    }

    /// Frames of the machine.
    #[must_use]
    pub fn frames(&self) -> u64 {
        u64::from(self.memory_gib) * GIB_FRAMES
    }

    /// Returns `permille` thousandths of the memory, in frames.
    pub(super) fn share(&self, permille: u32) -> u64 {
        self.frames() * u64::from(permille) / 1000
    }

    /// Checks whether the day is possible.
    ///
    /// # Errors
    /// Returns a sentence with the reason why the day is impossible.
    pub fn check(&self) -> Result<(), String> {
        let used = [
            self.services.permille,
            self.services.permille.saturating_mul(self.services.rings_permille) / 1000,
            // This check reserves twice `builds.permille`. The last build process may exceed
            // `builds.permille`, and kernel memory is extra. The memory of jobs counts
            // twice, because a job may still run when the next job begins.
            self.builds.permille.saturating_mul(2),
            self.jobs.permille.saturating_mul(2),
            self.slabs.short_permille,
            self.slabs.long_permille,
            self.network.permille.saturating_mul(self.network.burst),
        ];
        let used = used.into_iter().fold(self.free_permille, u32::saturating_add);
        let at_least_one = [
            ("memory_gib", self.memory_gib),
            ("cpus", self.cpus),
            ("steps", self.steps),
            ("services.each_permille", self.services.each_permille),
            ("services.life_steps", self.services.life_steps),
            ("builds.pages_min", self.builds.pages_min),
            ("builds.life_steps", self.builds.life_steps),
            ("files.pages_max", self.files.pages_max),
            ("files.inodes_in_slab", self.files.inodes_in_slab),
            ("slabs.short_life_steps", self.slabs.short_life_steps),
            ("slabs.long_life_steps", self.slabs.long_life_steps),
        ];
        if let Some((name, _)) = at_least_one.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("{name} must be at least 1"));
        }
        if self.memory_gib > 1024 || self.cpus > 4096 || self.steps > 1_000_000 {
            return Err("a day has at most 1024 GiB, 4096 CPUs and 1000000 steps".to_owned());
        }
        if self.builds.pages_min > self.builds.pages_max {
            return Err("builds.pages_min must not exceed builds.pages_max".to_owned());
        }
        if used > USED_MOST_PERMILLE {
            return Err(format!(
                "there is no room for files: everything else takes up to {used} thousandths of memory; use at most {USED_MOST_PERMILLE}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_can_be() {
        assert_eq!(Parameters::default().check(), Ok(()));
        assert_eq!(Parameters::quick().check(), Ok(()));
    }

    /// The file must contain all defaults, because users copy the file and change values.
    #[test]
    fn the_file_with_the_day_has_all_its_values() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/day.toml");
        assert_eq!(Parameters::read(&path).unwrap(), Parameters::default());
        let text = std::fs::read_to_string(&path).unwrap();
        let (of_file, all) = (toml::Table::try_from(Parameters::default()), text.parse::<toml::Table>());
        assert_eq!(of_file.unwrap(), all.unwrap());
    }

    #[test]
    fn a_file_with_a_wrong_day_is_named_with_the_mistake() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = |text: &str| {
            std::fs::write(&file, text).unwrap();
            format!("{:#}", Parameters::read(file.path()).unwrap_err())
        };
        let name = file.path().display().to_string();
        for (text, mistake) in [
            ("steps = 0", "steps must be at least 1"),
            ("[files]\nsize = 3", "unknown field `size`"),
            ("cpus = -1", "invalid value"),
        ] {
            let error = error(text);
            assert!(error.contains(&name) && error.contains(mistake), "{error}");
        }
    }

    #[test]
    fn a_day_that_cannot_be_is_refused_with_a_reason() {
        let mut full = Parameters::default();
        full.services.permille = 900;
        assert!(full.check().unwrap_err().contains("there is no room for files"));
        let none = Parameters { steps: 0, ..Parameters::default() };
        assert_eq!(none.check().unwrap_err(), "steps must be at least 1");
    }
}
