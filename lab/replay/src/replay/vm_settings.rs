//! Settings of `/proc/sys/vm`, and the machine that results from a change of these settings.

use std::str::FromStr;

use pageset_trace::Layout;

/// Smallest value of `percpu_pagelist_high_fraction` that is not 0. Source: spec §0.2.
const FRACTION_MIN: u32 = 8;
/// Largest value of `watermark_scale_factor`: 30 % of a zone. Source: spec §0.2.
const SCALE_FACTOR_MAX: u32 = 3000;
/// The default of `watermark_scale_factor`.
const SCALE_FACTOR: u32 = 10;

/// Settings that differ from the recorded machine's settings. A setting that is `None` keeps its recorded
/// value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VmSettings {
    /// `vm.percpu_pagelist_high_fraction`: 0 lets the kernel decide, and other values are at least 8.
    pub percpu_pagelist_high_fraction: Option<u32>,
    /// `vm.min_free_kbytes`.
    pub min_free_kbytes: Option<u64>,
    /// `vm.watermark_scale_factor`, in 10 000ths of a zone.
    pub watermark_scale_factor: Option<u32>,
    /// `vm.stat_interval`, in seconds.
    pub stat_interval_s: Option<u32>,
}

impl VmSettings {
    /// The names of the settings.
    pub const KEYS: [&str; 4] = [
        "vm.percpu_pagelist_high_fraction",
        "vm.min_free_kbytes",
        "vm.watermark_scale_factor",
        "vm.stat_interval",
    ];

    /// Whether all settings keep their recorded values.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the settings of `other`. If both `self` and `other` have a value for a setting, the value in
    /// `other` is used.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            percpu_pagelist_high_fraction: other
                .percpu_pagelist_high_fraction
                .or(self.percpu_pagelist_high_fraction),
            min_free_kbytes: other.min_free_kbytes.or(self.min_free_kbytes),
            watermark_scale_factor: other.watermark_scale_factor.or(self.watermark_scale_factor),
            stat_interval_s: other.stat_interval_s.or(self.stat_interval_s),
        }
    }

    /// Sets one of the [`KEYS`](Self::KEYS).
    ///
    /// # Errors
    /// A sentence with the possible values.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |least: u64, most: u64| {
            let parsed = value.parse().ok().filter(|number| (least..=most).contains(number));
            parsed.ok_or_else(|| format!("`{value}` for {key} is not a number from {least} to {most}"))
        };
        match key {
            "vm.percpu_pagelist_high_fraction" => {
                let fraction = number(0, u64::from(u32::MAX))? as u32;
                if (1..FRACTION_MIN).contains(&fraction) {
                    return Err(format!(
                        "{key} is 0, which lets the kernel decide, or at least {FRACTION_MIN}"
                    ));
                }
                self.percpu_pagelist_high_fraction = Some(fraction);
            }
            "vm.min_free_kbytes" => self.min_free_kbytes = Some(number(0, 1 << 40)?),
            "vm.watermark_scale_factor" => {
                self.watermark_scale_factor = Some(number(1, u64::from(SCALE_FACTOR_MAX))? as u32);
            }
            "vm.stat_interval" => self.stat_interval_s = Some(number(1, 1 << 20)? as u32),
            _ => return Err(format!("unknown setting `{key}`; choose from: {}", Self::KEYS.join(", "))),
        }
        Ok(())
    }

    /// Returns the settings of `other` that differ from the settings of `machine`.
    #[must_use]
    pub fn between(machine: &Layout, other: &Layout) -> Self {
        let (from, to) = (&machine.sysctls, &other.sysctls);
        fn changed<T: PartialEq + Copy>(from: Option<T>, to: Option<T>) -> Option<T> {
            to.filter(|_| from != to)
        }
        Self {
            percpu_pagelist_high_fraction: changed(
                Some(from.percpu_pagelist_high_fraction.unwrap_or(0)),
                Some(to.percpu_pagelist_high_fraction.unwrap_or(0)),
            ),
            min_free_kbytes: changed(from.min_free_kbytes, to.min_free_kbytes),
            watermark_scale_factor: changed(from.watermark_scale_factor, to.watermark_scale_factor),
            stat_interval_s: changed(from.stat_interval_s, to.stat_interval_s),
        }
    }

    /// Returns the machine with these settings. Computes watermarks from settings as the kernel does (spec
    /// §1.9), and drops limits that the kernel printed under other settings.
    #[must_use]
    pub fn applied(&self, machine: &Layout) -> Layout {
        let mut machine = machine.clone();
        let old_kbytes = machine.sysctls.min_free_kbytes;
        let sysctls = &mut machine.sysctls;
        let set = |value: &mut Option<u32>, new: Option<u32>| *value = new.or(*value);
        set(&mut sysctls.percpu_pagelist_high_fraction, self.percpu_pagelist_high_fraction);
        set(&mut sysctls.watermark_scale_factor, self.watermark_scale_factor);
        set(&mut sysctls.stat_interval_s, self.stat_interval_s);
        sysctls.min_free_kbytes = self.min_free_kbytes.or(sysctls.min_free_kbytes);
        let scale_factor = u64::from(sysctls.watermark_scale_factor.unwrap_or(SCALE_FACTOR));
        let kbytes = old_kbytes.zip(self.min_free_kbytes);
        let moves_marks = self.min_free_kbytes.is_some() || self.watermark_scale_factor.is_some();
        let moves_limits = moves_marks || self.percpu_pagelist_high_fraction.is_some();
        for zone in &mut machine.zones {
            if moves_marks {
                let min = zone.min.saturating_sub(zone.boost);
                // Each zone keeps its share of `min_free_kbytes`.
                let share =
                    |(old, new): (u64, u64)| u128::from(min) * u128::from(new) / u128::from(old.max(1));
                let min = kbytes.map_or(min, |kbytes| u64::try_from(share(kbytes)).unwrap_or(zone.managed));
                let min = min.min(zone.managed);
                let step =
                    (min / 4).max((u128::from(zone.managed) * u128::from(scale_factor) / 10_000) as u64);
                (zone.min, zone.low, zone.high, zone.boost) = (min, min + step, min + 2 * step, 0);
            }
            if moves_limits {
                for set in &mut zone.pagesets {
                    (set.high_min, set.high_max) = (None, None);
                }
            }
        }
        machine
    }
}

impl FromStr for VmSettings {
    type Err = String;

    /// Parses one `KEY=VALUE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| format!("`{text}` is not a setting: write KEY=VALUE"))?;
        let mut settings = Self::default();
        settings.set(key, value)?;
        Ok(settings)
    }
}

/// The settings as a user types them.
impl std::fmt::Display for VmSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = [
            self.percpu_pagelist_high_fraction.map(u64::from),
            self.min_free_kbytes,
            self.watermark_scale_factor.map(u64::from),
            self.stat_interval_s.map(u64::from),
        ];
        let mut is_first = true;
        for (key, value) in Self::KEYS.into_iter().zip(values) {
            let Some(value) = value else { continue };
            f.write_str(if std::mem::take(&mut is_first) { "" } else { " " })?;
            write!(f, "{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::tests::small_layout;

    #[test]
    fn settings_are_read_and_written_alike() {
        for text in ["vm.percpu_pagelist_high_fraction=8", "vm.min_free_kbytes=67584", "vm.stat_interval=10"]
        {
            assert_eq!(text.parse::<VmSettings>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<VmSettings>().unwrap_err();
        assert_eq!(
            error("vm.percpu_pagelist_high_fraction=7"),
            "vm.percpu_pagelist_high_fraction is 0, which lets the kernel decide, or at least 8"
        );
        assert!(error("vm.stat_interval=0").contains("from 1 to"));
        assert!(
            error("vm.swappiness=1").starts_with("unknown setting `vm.swappiness`; choose from: vm.percpu")
        );
    }

    #[test]
    fn watermarks_follow_as_the_kernel_computes_them() {
        let mut machine = small_layout();
        machine.sysctls.min_free_kbytes = Some(800);
        let settings: VmSettings = "vm.min_free_kbytes=3200".parse().unwrap();
        let zones = settings.applied(&machine).zones;
        assert_eq!((zones[1].min, zones[1].low, zones[1].high), (400, 500, 600));
        let settings: VmSettings = "vm.watermark_scale_factor=1000".parse().unwrap();
        let zones = settings.applied(&machine).zones;
        assert_eq!((zones[1].min, zones[1].low, zones[1].high), (100, 3290, 6480));
    }

    #[test]
    fn what_differs_between_machines_turns_one_into_the_other() {
        let machine = small_layout();
        let settings: VmSettings = "vm.percpu_pagelist_high_fraction=64".parse().unwrap();
        let other = settings.applied(&machine);
        assert_eq!(VmSettings::between(&machine, &other), settings);
        assert!(VmSettings::between(&machine, &machine).is_unchanged());
    }
}
