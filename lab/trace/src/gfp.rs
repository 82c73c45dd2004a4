//! Allocation flags: their names in text traces, and their bits.
//!
//! The bits are those of Linux 6.12 on x86-64, as `/sys/kernel/tracing/events/kmem/mm_page_alloc/format`
//! lists them. Raw and named reports of the bundled traces agree with the table's bits. Linux 6.1 and 6.18
//! number bits 0 to 23 in the same way, except 0x200, which is `__GFP_ATOMIC` in 6.1 and unused later. Bits
//! from 24 up depend on the configuration, so their names are not in the table. Composite names, such as
//! `GFP_KERNEL`, come from the same file. `GFP_NOWAIT` contains `__GFP_NOWARN` in 6.12 but not in 6.1. For
//! text of 6.1, this crate therefore sets `__GFP_NOWARN` although the kernel did not.

/// Names and bits. Names of more bits come first, because the kernel prints the composite name with the most
/// bits.
const NAMES: [(&str, u32); 40] = [
    ("GFP_TRANSHUGE", 0x1c_24ca | 0x400),
    ("GFP_TRANSHUGE_LIGHT", 0x1c_20ca),
    ("GFP_HIGHUSER_MOVABLE", 0x10_0cca),
    ("GFP_HIGHUSER", 0x10_0cc2),
    ("GFP_USER", 0x10_0cc0),
    ("GFP_KERNEL_ACCOUNT", 0x40_0cc0),
    ("GFP_KERNEL", 0xcc0),
    ("GFP_NOFS", 0xc40),
    ("GFP_NOIO", 0xc00),
    ("GFP_ATOMIC", 0x820),
    ("GFP_NOWAIT", 0x2800),
    ("GFP_DMA", 0x1),
    ("GFP_DMA32", 0x4),
    ("__GFP_RECLAIM", 0xc00),
    ("__GFP_DMA", 0x1),
    ("__GFP_HIGHMEM", 0x2),
    ("__GFP_DMA32", 0x4),
    ("__GFP_MOVABLE", 0x8),
    ("__GFP_RECLAIMABLE", 0x10),
    ("__GFP_HIGH", 0x20),
    ("__GFP_IO", 0x40),
    ("__GFP_FS", 0x80),
    ("__GFP_ZERO", 0x100),
    ("__GFP_ATOMIC", 0x200),
    ("__GFP_DIRECT_RECLAIM", 0x400),
    ("__GFP_KSWAPD_RECLAIM", 0x800),
    ("__GFP_WRITE", 0x1000),
    ("__GFP_NOWARN", 0x2000),
    ("__GFP_RETRY_MAYFAIL", 0x4000),
    ("__GFP_REPEAT", 0x4000),
    ("__GFP_NOFAIL", 0x8000),
    ("__GFP_NORETRY", 0x1_0000),
    ("__GFP_MEMALLOC", 0x2_0000),
    ("__GFP_COMP", 0x4_0000),
    ("__GFP_NOMEMALLOC", 0x8_0000),
    ("__GFP_HARDWALL", 0x10_0000),
    ("__GFP_THISNODE", 0x20_0000),
    ("__GFP_ACCOUNT", 0x40_0000),
    ("__GFP_ZEROTAGS", 0x80_0000),
    ("none", 0),
];

/// Parses `text`: names joined by `|`, or a single number. The kernel prints a bit without a name as a
/// number. Returns the bits, and the number of unknown names.
#[must_use]
pub fn gfp_bits(text: &[u8]) -> (u32, u32) {
    let (mut bits, mut unknown) = (0, 0);
    for name in text.split(|byte| *byte == b'|') {
        match bits_of(name).or_else(|| number(name)) {
            Some(value) => bits |= value,
            None => unknown += 1,
        }
    }
    (bits, unknown)
}

/// The names of `bits`, as the kernel prints them. All bits without a name are printed as one number.
#[must_use]
pub fn gfp_names(bits: u32) -> String {
    let mut rest = bits;
    let mut names: Vec<String> = Vec::new();
    for (name, value) in NAMES {
        if value != 0 && rest & value == value && bits & value == value {
            names.push(name.to_owned());
            rest &= !value;
        }
    }
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    if names.is_empty() { "none".to_owned() } else { names.join("|") }
}

fn bits_of(name: &[u8]) -> Option<u32> {
    let find = |name: &[u8]| NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, bits)| *bits);
    // Kernels before 4.6 printed single flags without the leading underscores.
    find(name).or_else(|| find(&[b"__", name.strip_prefix(b"__").unwrap_or(name)].concat()))
}

fn number(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_bits_that_raw_reports_show() {
        // Tests that two reports of one recording, with names and with `-R`, show the same allocation flags.
        for (names, bits) in [
            ("GFP_HIGHUSER_MOVABLE|__GFP_COMP", 0x14_0cca),
            ("GFP_KERNEL_ACCOUNT|__GFP_ZERO", 0x40_0dc0),
            ("GFP_KERNEL_ACCOUNT|__GFP_COMP|__GFP_ZERO", 0x44_0dc0),
            ("GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO", 0x14_0dca),
            ("GFP_NOWAIT", 0x2800),
        ] {
            assert_eq!(gfp_bits(names.as_bytes()), (bits, 0), "{names}");
        }
    }

    #[test]
    fn what_has_no_name_is_a_number_or_is_counted() {
        assert_eq!(gfp_bits(b"GFP_KERNEL|0x1000000"), (0x100_0cc0, 0));
        assert_eq!(gfp_bits(b"GFP_COMP|GFP_ZERO"), (0x4_0100, 0));
        assert_eq!(gfp_bits(b"0x140cca"), (0x14_0cca, 0));
        assert_eq!(gfp_bits(b"GFP_PURPLE|__GFP_COMP|"), (0x4_0000, 2));
    }

    #[test]
    fn every_number_survives_its_names() {
        for bits in [0, 1, 0x14_0cca, 0x1c_24ca, 0x2dc2, 0xffff_ffff, 0x820] {
            assert_eq!(gfp_bits(gfp_names(bits).as_bytes()), (bits, 0), "{}", gfp_names(bits));
        }
        assert_eq!(gfp_names(0x14_0cca), "GFP_HIGHUSER_MOVABLE|__GFP_COMP");
    }
}
