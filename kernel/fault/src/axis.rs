//! The macro behind the three axes of strategies. It makes a list of names, an enum of values, and calls that
//! branch on the value. To add a strategy, add one file and one line in its axis's list.

/// `axis!` turns a list `Name = module::Type, "summary";` into:
/// - `$kind`: the public enum of names, with `ALL`, `name`, `summary` and `from_name`,
/// - `$any`: an enum of the strategies' values, built by `new`,
/// - `each!(value, strategy => call)`: makes the call on the strategy inside the value.
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
            /// All strategies of this axis.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The strategy's name, as tables print it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// A summary of half a line.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$name => $summary,)* }
            }

            /// Finds the strategy with this name, in upper or lower case.
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
