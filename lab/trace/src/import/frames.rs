//! Finds what `pfn=` means in a text: a frame number, or an address that implies the frame number.
//!
//! Kernels before 4.1 record the address of a frame's `struct page`. Old versions of perf and trace-cmd
//! subtract the address of the first `struct page`, but do not divide by the size of a `struct page`. For
//! frames 1100001 and 1100002, such old versions print 70400064 and 70400128. In text of old perf and
//! trace-cmd, the number in `pfn=` equals the low bits of the address in `page=`. The number is also a
//! multiple of the size of a `struct page`.
//!
//! Equal low bits alone do not prove that a number is such a difference of addresses. Some versions of perf
//! combine the frame number with the high bits of an address. Frame numbers have no common divisor, but
//! differences of addresses have a common divisor.

use super::{
    fields::{Fields, hexadecimal, number},
    flags::Legend,
    header::{self, HeaderStyle},
};
use crate::event::EventKind;

/// Sizes of `struct page` on 64-bit machines, by configuration.
const PAGE_STRUCT_BYTES: [u64; 4] = [48, 56, 64, 80];
/// Kernel addresses are at least this number on every 64-bit machine.
const KERNEL_FROM: u64 = 1 << 63;
/// The array of `struct page` begins at a multiple of this number.
const ARRAY_ALIGNMENT: u64 = 1 << 30;

/// The meaning of a number in the field `pfn=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    /// A frame number.
    Numbers,
    /// The number is the distance in bytes between the first `struct page` and the frame's `struct page`. The
    /// value of this variant is the size of a `struct page`.
    Distances(u64),
}

impl Frames {
    /// Infers what `pfn=` means from the first lines of a text.
    ///
    /// # Errors
    /// An error if the numbers are distances, but the lines do not show the size of a `struct page`.
    pub(super) fn of_head(head: &[u8], style: HeaderStyle) -> Result<Self, String> {
        let mut counts = Counts::default();
        // The last line may be incomplete.
        let end = memchr::memrchr(b'\n', head).unwrap_or(0);
        for line in head[..end].split(|byte| *byte == b'\n') {
            let Some(header) = header::parse(line, style, &Legend::default()) else { continue };
            if EventKind::from_tracepoint(header.event).is_some_and(EventKind::has_frame)
                && let Some(fields) = fields(header.payload)
            {
                counts.note(fields);
            }
        }
        counts.frames()
    }

    /// Returns the frame that `number` stands for, in a line about a block of this order. `None` if `number`
    /// stands for no frame.
    pub(super) const fn frame(self, number: u64, order: u8) -> Option<u64> {
        match self {
            Self::Numbers => Some(number),
            Self::Distances(size) if number.is_multiple_of(size) => {
                let frame = number / size;
                if order < 16 && !frame.is_multiple_of(1 << order) { None } else { Some(frame) }
            }
            Self::Distances(_) => None,
        }
    }

    /// A sentence that tells the user what the numbers were assumed to mean.
    pub(super) fn assumption(self) -> Option<String> {
        match self {
            Self::Numbers => None,
            Self::Distances(size) => Some(format!(
                "pfn= of this text is the distance of a frame's `struct page` from the first one, in steps of {size} \
                 bytes: frames are pfn= divided by {size}"
            )),
        }
    }
}

/// Counts of a text's lines, to find out what the numbers in `pfn=` mean. In a text that is understood, up to
/// one line in ten may be damaged.
#[derive(Default)]
struct Counts {
    all: u32,
    /// Number of lines whose `pfn=` equals the low bits of the address in `page=`.
    low_bits: u32,
    /// For each size of `struct page`, the number of lines in `low_bits` whose `pfn=` is a multiple of this
    /// size times 2^order.
    multiples: [u32; PAGE_STRUCT_BYTES.len()],
    /// Number of lines in `low_bits` about blocks of order 0. The field `first` is the `pfn=` of the first
    /// such line. The field `step` is the greatest common divisor of all differences from `first`.
    pages: u32,
    first: u64,
    step: u64,
}

impl Counts {
    fn note(&mut self, (page, pfn, order): (u64, u64, u32)) {
        self.all += 1;
        let array = page.wrapping_sub(pfn);
        if page < KERNEL_FROM || array < KERNEL_FROM || !array.is_multiple_of(ARRAY_ALIGNMENT) {
            return;
        }
        self.low_bits += 1;
        for (count, size) in self.multiples.iter_mut().zip(PAGE_STRUCT_BYTES) {
            // A block of order 3 always begins at a multiple of 8 frames, so require a multiple of 8 times
            // the size of a `struct page`.
            *count += u32::from(pfn.is_multiple_of(size << order.min(32)));
        }
        if order == 0 {
            self.first = if self.pages == 0 { pfn } else { self.first };
            self.pages += 1;
            self.step = common_divisor(self.step, pfn.abs_diff(self.first));
        }
    }

    fn frames(&self) -> Result<Frames, String> {
        let nearly_all = |count: u32| count > 0 && count * 10 >= self.all * 9;
        if !nearly_all(self.low_bits) {
            return Ok(Frames::Numbers);
        }
        let sizes =
            || PAGE_STRUCT_BYTES.into_iter().zip(self.multiples).filter(|(_, count)| nearly_all(*count));
        let unclear = |why: String| {
            Err(format!(
                "pfn= is the distance of a frame's `struct page` from the first, not its number, and {why}"
            ))
        };
        match (sizes().count(), sizes().next()) {
            (1, Some((size, _))) if self.all > 1 => Ok(Frames::Distances(size)),
            (1.., _) => unclear("too few events show in which steps".to_owned()),
            // If more than eight numbers differ by multiples of the same size of a `struct page`, the common
            // divisor is not a coincidence.
            _ if self.pages > 8
                && self.step > 0
                && PAGE_STRUCT_BYTES.iter().any(|size| self.step.is_multiple_of(*size)) =>
            {
                unclear(format!("steps of {} do not begin at a multiple of that", self.step))
            }
            _ => Ok(Frames::Numbers),
        }
    }
}

/// Parses `page=0xffffea0004323840 pfn=70400064 order=0`. `None` if the page or the number is missing or 0.
fn fields(payload: &[u8]) -> Option<(u64, u64, u32)> {
    let page = Fields::find(payload, b"page")?;
    let page = hexadecimal(page.strip_prefix(b"0x").unwrap_or(page))?;
    let pfn = number(Fields::find(payload, b"pfn")?)?;
    let order = Fields::find(payload, b"order").or_else(|| Fields::find(payload, b"alloc_order"));
    let order = order.and_then(number).and_then(|order| u32::try_from(order).ok()).unwrap_or(0).min(63);
    (page != 0 && pfn != 0).then_some((page, pfn, order))
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a text of perf with these frame numbers or distances. Each number comes with the order of its
    /// block.
    fn text(numbers: &[(u64, u32)], array: u64) -> String {
        let line = |(pfn, order): &(u64, u32)| {
            let page = array + pfn;
            format!("f 9 [001] 1.000100: kmem:mm_page_free: page={page:#x} pfn={pfn} order={order}\n")
        };
        numbers.iter().map(line).collect()
    }

    const ARRAY: u64 = 0xffff_ea00_0000_0000;

    fn frames(numbers: &[(u64, u32)]) -> Result<Frames, String> {
        Frames::of_head(text(numbers, ARRAY).as_bytes(), HeaderStyle::Space)
    }

    #[test]
    fn the_size_of_a_step_is_found() {
        for size in PAGE_STRUCT_BYTES {
            let numbers: Vec<_> = (0..20).map(|frame| ((1_100_001 + frame) * size, 0)).collect();
            assert_eq!(frames(&numbers), Ok(Frames::Distances(size)));
            assert_eq!(frames(&numbers[..2]), Ok(Frames::Distances(size)));
        }
        let huge: Vec<_> = (0..20).map(|block| ((2000 + block) * 512 * 56, 9)).collect();
        assert_eq!(frames(&huge), Ok(Frames::Distances(56)));
    }

    #[test]
    fn numbers_of_frames_stay_what_they_are() {
        let numbers: Vec<_> = (0..20).map(|frame| (1_100_001 + 3 * frame, 0)).collect();
        assert_eq!(frames(&numbers), Ok(Frames::Numbers), "behind the high bits of an address");
        let huge: Vec<_> = (0..20).map(|block| ((2000 + block) * 512, 9)).collect();
        assert_eq!(frames(&huge), Ok(Frames::Numbers), "multiples of 512, for their order is 9");
        let multiples: Vec<_> = (0..20).map(|frame| ((1_100_001 + frame) * 64, 0)).collect();
        let low = text(&multiples, 0);
        assert_eq!(Frames::of_head(low.as_bytes(), HeaderStyle::Space), Ok(Frames::Numbers), "no address");
        let others = text(&multiples, ARRAY + 640);
        assert_eq!(Frames::of_head(others.as_bytes(), HeaderStyle::Space), Ok(Frames::Numbers));
        assert_eq!(frames(&[]), Ok(Frames::Numbers));
    }

    #[test]
    fn distances_that_do_not_tell_the_size_are_refused() {
        assert!(frames(&[(70_400_000, 0)]).unwrap_err().contains("too few"));
        assert!(frames(&[(192_000, 0), (384_000, 0)]).unwrap_err().contains("too few"), "48 or 64");
        let shifted: Vec<_> = (0..20).map(|frame| (70_400_001 + frame * 56, 0)).collect();
        assert!(frames(&shifted).unwrap_err().contains("steps of 56"));
    }

    #[test]
    fn a_number_that_is_no_multiple_has_no_frame() {
        assert_eq!(Frames::Distances(56).frame(112, 0), Some(2));
        assert_eq!(Frames::Distances(56).frame(112, 2), None);
        assert_eq!(Frames::Distances(56).frame(113, 0), None);
        assert_eq!(Frames::Numbers.frame(113, 9), Some(113));
    }
}
