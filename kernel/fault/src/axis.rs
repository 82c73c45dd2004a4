//! The macro `axis!`, which defines one of the three parts of a strategy: P, V or R. The name of a value
//! begins with the letter of its part, such as `P1`. The letter P stands for the page table, V for areas
//! (Linux's VMAs), and R for the count of resident pages. The specification describes more values of these
//! parts than this crate implements.
//!
//! To add a value to a part, add one file, and one line in the part's call of `axis!`. The line of a value in
//! `axis!` has the value's name, its module and a summary.

/// Each value of a part has a line such as `Name = module, "a summary";`. From these lines, `axis!` makes
/// these items:
/// - `$kind`: the public enum of all values, with `ALL`, `name`, `summary` and `from_name`.
/// - `$any`: an enum with the state that each value of the part needs at run time. `$any::new` builds this
///   state.
/// - `each!(value, strategy => call)`: a macro that makes the call on the state inside `value`.
macro_rules! axis {
    (
        ($d:tt)
        $(#[$doc:meta])* $kind:ident / $any:ident;
        $($name:ident = $module:ident, $summary:literal;)*
    ) => {
        $(mod $module;)*

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $kind {
            $(#[doc = $summary] $name,)*
        }

        impl $kind {
            /// All values of this part of a strategy.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The value's short name, such as `P1`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The value's meaning in words.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$name => $summary,)* }
            }

            /// Finds the value with this short name, in upper or lower case.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name().eq_ignore_ascii_case(name))
            }
        }

        impl core::fmt::Display for $kind {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        pub(crate) enum $any {
            $($name($module::$name),)*
        }

        macro_rules! each {
            ($d value:expr, $d strategy:ident => $d call:expr) => {
                match $d value { $($any::$name($d strategy) => $d call,)* }
            };
        }

        impl $any {
            pub(crate) fn new(kind: $kind, tasks: u32) -> Self {
                match kind { $($kind::$name => Self::$name($module::$name::new(tasks)),)* }
            }
        }
    };
}

pub(crate) use axis;
