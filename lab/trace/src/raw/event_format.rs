//! Finds the places of an event's fields in the kernel's `format` files. Also reads `events/header_page`,
//! which has the same form.
//!
//! Source: the files below `/sys/kernel/tracing/events`, which the kernel documents in "Event Tracing".

/// The place of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Whether the field's highest bit is a sign.
    pub is_signed: bool,
}

impl Field {
    /// Reads the field's value, sign-extended. `None` if the record is too short or the field is not a
    /// number.
    #[inline]
    pub fn read(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..)?.get(..self.size)?;
        Some(match (bytes, self.is_signed) {
            (&[a], false) => u64::from(a),
            (&[a], true) => a as i8 as u64,
            (&[a, b], false) => u64::from(u16::from_ne_bytes([a, b])),
            (&[a, b], true) => i16::from_ne_bytes([a, b]) as u64,
            (&[a, b, c, d], false) => u64::from(u32::from_ne_bytes([a, b, c, d])),
            (&[a, b, c, d], true) => i32::from_ne_bytes([a, b, c, d]) as u64,
            (&[a, b, c, d, e, f, g, h], _) => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }
}

/// An event's number and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Value of `common_type` in records of this event.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Parses a `format` file.
    ///
    /// # Errors
    /// A sentence about the missing or wrong part.
    pub fn parse(text: &str) -> Result<Self, String> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")).ok_or("there is no line `ID:`")?;
        let id =
            id.trim().parse().map_err(|_| format!("the ID is not a number up to 65535: {:?}", cut(id)))?;
        Ok(Self { id, fields: fields(text)? })
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// Returns the fields that a text lists, with their names, in order.
///
/// # Errors
/// An error that quotes the wrong line.
pub(crate) fn fields(text: &str) -> Result<Vec<(String, Field)>, String> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("field:"));
    lines.map(|line| field(line).ok_or_else(|| format!("no field: {:?}", cut(line)))).collect()
}

/// Parses `unsigned long pfn; offset:8; size:8; signed:0;`.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = Some(value.parse().ok()?),
            Some(("size", value)) => size = Some(value.parse().ok()?),
            Some(("signed", value)) => is_signed = value == "1",
            _ => {}
        }
    }
    let without_length = declaration.split('[').next()?.trim_end();
    let start = without_length.rfind([' ', '*']).map_or(0, |at| at + 1);
    // In `__data_loc char[] name`, the brackets belong to the type.
    let name = match &without_length[start..] {
        _ if declaration.starts_with("__data_loc") => declaration.rsplit(' ').next()?,
        name => name,
    };
    Some((name.to_owned(), Field { offset: offset?, size: size?, is_signed }))
}

fn cut(text: &str) -> String {
    text.trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_of_the_kernel_is_read() {
        let format = EventFormat::parse(include_str!("../../tests/kernel/mm_page_alloc.format")).unwrap();
        assert_eq!(format.id, 653);
        assert_eq!(format.field("common_pid"), Some(Field { offset: 4, size: 4, is_signed: true }));
        assert_eq!(format.field("gfp_flags"), Some(Field { offset: 24, size: 8, is_signed: false }));
        assert_eq!(format.field("page"), None);
    }

    #[test]
    fn pointers_arrays_and_texts_have_their_names() {
        for (line, name) in [
            ("field:void * function;\toffset:16;\tsize:8;\tsigned:0;", "function"),
            ("field:void *function;\toffset:16;\tsize:8;\tsigned:0;", "function"),
            ("field:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;", "prev_comm"),
            ("field:__data_loc char[] child_comm;\toffset:16;\tsize:4;\tsigned:0;", "child_comm"),
        ] {
            assert_eq!(fields(line).unwrap()[0].0, name);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(EventFormat::parse("name: x\n").unwrap_err().contains("ID"));
        assert!(EventFormat::parse("ID: 70000\n").unwrap_err().contains("70000"));
        let error = EventFormat::parse("ID: 1\n\tfield:int a;\toffset:x;\n").unwrap_err();
        assert!(error.contains("offset:x"), "{error}");
    }

    #[test]
    fn values_are_read_with_their_sign_and_never_past_the_end() {
        let field = |size, is_signed| Field { offset: 1, size, is_signed };
        let record = [0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(field(2, false).read(&record), Some(0xffff));
        assert_eq!(field(4, true).read(&record), Some(u64::MAX));
        assert_eq!(field(1, true).read(&record), Some(u64::MAX));
        assert_eq!(field(8, false).read(&record), None);
        assert_eq!(field(3, false).read(&record), None, "no number has three bytes");
        assert_eq!(Field { offset: usize::MAX, size: 8, is_signed: false }.read(&record), None);
    }
}
