//! Serialises `ZoneKind` by name. `pageset-core`, which defines this enum, does not depend on serde.

use pageset_core::ZoneKind;
use serde::{Deserialize, Deserializer, Serializer, de};

/// Writes `kind` as `/proc/zoneinfo` prints it.
pub(crate) fn serialize<S: Serializer>(kind: &ZoneKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Reads a kind by its name. The error lists the valid names.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ZoneKind, D::Error> {
    let name = String::deserialize(deserializer)?;
    ZoneKind::from_name(&name).ok_or_else(|| {
        let known: Vec<_> = ZoneKind::ALL.iter().map(|kind| kind.name()).collect();
        de::Error::custom(format!("unknown zone {name:?}, use one of {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use pageset_core::ZoneKind;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Holder {
        #[serde(with = "super")]
        kind: ZoneKind,
    }

    #[test]
    fn zone_kinds_travel_by_name() {
        let text = serde_json::to_string(&Holder { kind: ZoneKind::Dma32 }).unwrap();
        assert_eq!(text, r#"{"kind":"DMA32"}"#);
        assert_eq!(serde_json::from_str::<Holder>(&text).unwrap().kind, ZoneKind::Dma32);
        let error = serde_json::from_str::<Holder>(r#"{"kind":"Device"}"#).unwrap_err().to_string();
        assert!(error.contains("DMA32"), "{error}");
    }
}
