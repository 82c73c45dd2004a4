//! The names of the instruction sets, and the loops that each set has.

/// The loops of one instruction set.
///
/// All loops have the same contract. Addresses and lengths are multiples of
/// [`BASE_PAGE_BYTES`](crate::BASE_PAGE_BYTES), and a length may be 0. The destination is valid to write, and
/// the source is valid to read. Source and destination do not overlap. The caller calls a loop only if the
/// CPU supports its instructions.
pub(super) struct Primitives {
    pub(super) clear: unsafe fn(dst: *mut u8, bytes: usize),
    pub(super) clear_stream: unsafe fn(dst: *mut u8, bytes: usize),
    pub(super) copy: unsafe fn(dst: *mut u8, src: *const u8, bytes: usize),
    pub(super) copy_stream: unsafe fn(dst: *mut u8, src: *const u8, bytes: usize),
    /// Orders streamed stores before all later stores. After a loop whose name ends in `_stream`, the caller
    /// must call `fence` before any other access to the bytes.
    pub(super) fence: fn(),
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// The compiler's `write_bytes` and `copy_nonoverlapping`, which call the environment's `memset` and
    /// `memcpy`. This set has no streamed stores of its own.
    Portable,
    /// x86-64: `rep stos` and `rep movs`, and `movnti` for streamed stores. The loops of this set use only
    /// general registers, so an operating-system kernel need not save vector registers.
    Rep,
    /// x86-64: the same as [`Isa::Rep`], but AMD's `clzero` writes streamed zeros.
    Clzero,
    /// x86-64: 32-byte vectors.
    Avx2,
    /// x86-64: 64-byte vectors, which hold a whole cache line.
    Avx512,
    /// aarch64: `dc zva` clears, pairs of general registers copy, and `stnp` makes streamed stores. If the
    /// system forbids `dc zva`, stores of register pairs clear instead. The loops of this set use only
    /// general registers.
    Zva,
}

impl Isa {
    /// All instruction sets of all architectures.
    pub const ALL: [Self; 6] = [Self::Portable, Self::Rep, Self::Clzero, Self::Avx2, Self::Avx512, Self::Zva];

    /// The name in results and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Rep => "rep",
            Self::Clzero => "clzero",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Zva => "zva",
        }
    }

    /// The set with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|isa| isa.name() == name)
    }

    /// Whether the loops of this instruction set may use registers that an operating-system kernel does not
    /// save on entry. [`Isa::Portable`] calls the environment's `memset` and `memcpy`, which may use vector
    /// registers on every target that has vector registers.
    #[must_use]
    pub const fn uses_vector_registers(self) -> bool {
        let has_vectors = cfg!(any(target_feature = "sse2", target_feature = "neon", target_feature = "v"));
        match self {
            Self::Avx2 | Self::Avx512 => true,
            Self::Portable => has_vectors || !cfg!(target_os = "none"),
            Self::Rep | Self::Clzero | Self::Zva => false,
        }
    }
}
