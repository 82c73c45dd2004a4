//! Writes an absent rule of a policy as `"none"`, because TOML has no null value.

use core::fmt;
use core::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NONE: &str = "none";

pub(super) fn serialize<T: Serialize, S: Serializer>(
    rule: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match rule {
        Some(rule) => rule.serialize(serializer),
        None => serializer.serialize_str(NONE),
    }
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(RuleOrNone(PhantomData))
}

struct RuleOrNone<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for RuleOrNone<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of the rule's values, or \"none\"")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Option<T>, E> {
        if value == NONE { Ok(None) } else { Err(E::invalid_value(Unexpected::Str(value), &self)) }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}
