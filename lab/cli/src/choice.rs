//! Parses arguments whose value is one of several named values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Returns a parser that accepts these names and returns the value with the typed name.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    named: impl IntoIterator<Item = (impl Into<PossibleValue>, T)>,
) -> impl TypedValueParser<Value = T> {
    let named: Vec<(PossibleValue, T)> =
        named.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let names = PossibleValuesParser::new(named.iter().map(|(name, _)| name.clone()));
    names.try_map(move |typed| {
        let found = named.iter().find(|(name, _)| name.matches(&typed, false));
        found.map(|(_, value)| value.clone()).ok_or_else(|| format!("`{typed}` is none of them"))
    })
}
