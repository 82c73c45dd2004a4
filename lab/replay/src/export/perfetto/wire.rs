//! The wire format of protocol buffers: a message is a series of fields.

use micropb::{PbEncoder, Tag, WIRE_TYPE_I64, WIRE_TYPE_LEN, WIRE_TYPE_VARINT};

/// A message that is being built. The memory of a finished message is reused for the next message.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn encoder(&mut self) -> PbEncoder<&mut Vec<u8>> {
        PbEncoder::new(&mut self.0)
    }

    fn tag(&mut self, field: u32, wire_type: u8) {
        let Ok(()) = self.encoder().encode_tag(Tag::from_parts(field, wire_type));
    }

    /// A field of type `uint64`, `uint32`, `bool` or of an enumeration.
    pub(super) fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, WIRE_TYPE_VARINT);
        let Ok(()) = self.encoder().encode_varint64(value);
    }

    /// A field of type `int64` or `int32`.
    pub(super) fn int(&mut self, field: u32, value: i64) {
        self.tag(field, WIRE_TYPE_VARINT);
        let Ok(()) = self.encoder().encode_int64(value);
    }

    /// A field of type `fixed64`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, WIRE_TYPE_I64);
        let Ok(()) = self.encoder().encode_fixed64(value);
    }

    /// A field of type `string`.
    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.tag(field, WIRE_TYPE_LEN);
        let Ok(()) = self.encoder().encode_string(value);
    }

    /// Adds a field that is itself a message; `make` adds the fields of this message. The length is written
    /// before the message but known only afterwards. One byte is reserved for the length, because most
    /// messages are shorter than 128 bytes.
    pub(super) fn message(&mut self, field: u32, make: impl FnOnce(&mut Self)) {
        self.tag(field, WIRE_TYPE_LEN);
        let at = self.0.len();
        self.0.push(0);
        make(self);
        let mut length = Self::default();
        let Ok(()) = length.encoder().encode_varint64((self.0.len() - at - 1) as u64);
        match length.bytes() {
            [byte] => self.0[at] = *byte,
            bytes => drop(self.0.splice(at..=at, bytes.iter().copied())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the examples of the format's description: field 1 is the number 150, field 2 is a text, and
    /// field 3 is a message with the number 150 in its own field 1. Field 4 is the number -1, which takes ten
    /// bytes. Source: <https://protobuf.dev/programming-guides/encoding/>.
    #[test]
    fn fields_are_those_of_the_formats_description() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.uint(1, 150));
        message.int(4, -1);
        let text = b"\x12\x07testing";
        let minus_one = [0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let expected = [&[0x08, 0x96, 0x01], text.as_slice(), &[0x1a, 0x03, 0x08, 0x96, 0x01], &minus_one];
        assert_eq!(message.bytes(), expected.concat());
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        let mut message = Message::default();
        message.message(1, |inner| inner.text(2, &"x".repeat(300)));
        assert_eq!(message.bytes()[..6], [0x0a, 0xaf, 0x02, 0x12, 0xac, 0x02]);
        assert_eq!(message.bytes().len(), 306);
    }
}
