//! Encoded objects; the resourceVersion is inserted when they are sent.

use bytes::Bytes;
use memchr::{memchr2, memmem};

use crate::apply::PASSED_ON;
use crate::meta::Revision;
use crate::value::{Map, Value, json};
use crate::work;

/// Counts the bytes of objects that were copied on this thread, for the tests of the budgets.
#[cfg(test)]
pub(crate) mod tally {
    use std::cell::Cell;

    thread_local! {
        static COPIED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(bytes: usize) {
        COPIED.set(COPIED.get() + bytes);
    }

    pub fn copied() -> usize {
        COPIED.get()
    }
}

/// The compact JSON of an object without its resourceVersion, and the position at which it belongs.
///
/// The revision is not known before the bytes are stored, and the same bytes serve many answers: so it is spliced in
/// when they are copied, at its sorted position in the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: Bytes,
    splice: Splice,
}

/// Where the resourceVersion belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Splice {
    at: u32,
    comma_before: bool,
    comma_after: bool,
}

impl Splice {
    /// The position in the compact JSON of an object with sorted keys; its end if there are no metadata.
    pub fn of(bytes: &[u8]) -> Self {
        EncodedScanner { bytes, at: 0 }.splice().unwrap_or_else(|| Splice::behind(bytes))
    }

    /// The position for an object without metadata.
    fn behind(bytes: &[u8]) -> Self {
        Splice { at: position(bytes.len()), comma_before: false, comma_after: false }
    }
}

/// No object has more bytes than `u32` counts.
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Encoded {
    /// `bytes` are the compact JSON of an object with sorted keys.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let splice = Splice::of(&bytes);
        Encoded { bytes, splice }
    }

    pub(super) fn with_splice(bytes: Bytes, splice: Splice) -> Self {
        Encoded { bytes, splice }
    }

    /// The compact JSON of `object`.
    pub fn of(object: &Value) -> Self {
        const OBJECT_BYTES: usize = 256;
        Encoded::of_expected(object, OBJECT_BYTES)
    }

    /// The compact JSON of `object`, which is expected to be `bytes` long. It takes no more memory than its length: the
    /// buffer of an encoder is up to twice as long, and an allocator may keep it so when it is shrunk.
    pub fn of_expected(object: &Value, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        let mut splice = None;
        match object.as_object() {
            Some(fields) => json::encode_fields(fields.iter(), &mut out, |name, field, out| {
                match field.as_object().filter(|_| name == "metadata") {
                    Some(metadata) => splice = Some(encode_metadata(metadata, out)),
                    None => json::encode_into(field, out),
                }
            }),
            None => json::encode_into(object, &mut out),
        }
        let splice = splice.unwrap_or_else(|| Splice::behind(&out));
        Encoded { bytes: Bytes::copy_from_slice(&out), splice }
    }

    pub(super) fn splice(&self) -> Splice {
        self.splice
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    fn splice_at(&self) -> usize {
        self.splice.at as usize
    }

    /// Appends the object with its resourceVersion.
    pub fn write_to(&self, out: &mut Vec<u8>, revision: Revision) {
        #[cfg(test)]
        tally::count(self.bytes.len());
        work::bytes(self.bytes.len());
        let at = self.splice_at();
        out.extend_from_slice(&self.bytes[..at]);
        self.write_version(out, revision);
        out.extend_from_slice(&self.bytes[at..]);
    }

    /// The object with its resourceVersion.
    pub fn to_bytes(&self, revision: Revision) -> Vec<u8> {
        const LINE_BREAK_BYTES: usize = 1;
        let mut bytes = Vec::with_capacity(self.len_max() + LINE_BREAK_BYTES);
        self.write_to(&mut bytes, revision);
        bytes
    }

    /// The object with its resourceVersion, decoded but for what is only passed on.
    pub fn to_value(&self, revision: Revision) -> Value {
        // We encoded it ourselves; if it can't be decoded, it is shown as null.
        json::decode_leaving(&self.to_bytes(revision), PASSED_ON).unwrap_or_default()
    }

    /// The object with its resourceVersion, decoded.
    pub fn to_whole_value(&self, revision: Revision) -> Value {
        json::decode(&self.to_bytes(revision)).unwrap_or_default()
    }

    /// The object with its resourceVersion in three parts, the outer ones share the object's bytes.
    pub fn parts(&self, revision: Revision) -> [Bytes; 3] {
        let at = self.splice_at();
        let mut version = Vec::new();
        self.write_version(&mut version, revision);
        [self.bytes.slice(..at), version.into(), self.bytes.slice(at..)]
    }

    /// Appends the text at the splice: nothing if there are no metadata.
    fn write_version(&self, out: &mut Vec<u8>, revision: Revision) {
        let Splice { comma_before, comma_after, .. } = self.splice;
        if self.splice_at() == self.bytes.len() {
            return;
        }
        if comma_before {
            out.push(b',');
        }
        out.extend_from_slice(b"\"resourceVersion\":\"");
        out.extend_from_slice(revision.to_string().as_bytes());
        out.push(b'"');
        if comma_after {
            out.push(b',');
        }
    }

    /// How many bytes the object has with its resourceVersion.
    pub fn len(&self, revision: Revision) -> usize {
        const AROUND_BYTES: usize = "\"resourceVersion\":\"\"".len();
        let Splice { comma_before, comma_after, .. } = self.splice;
        if self.splice_at() == self.bytes.len() {
            return self.bytes.len();
        }
        let digits = revision.get().checked_ilog10().map_or(1, |log| log as usize + 1);
        self.bytes.len() + AROUND_BYTES + digits + usize::from(comma_before) + usize::from(comma_after)
    }

    /// The object without its resourceVersion.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How many bytes [`Encoded::write_to`] appends at most.
    pub fn len_max(&self) -> usize {
        const RESOURCE_VERSION_BYTES_MAX: usize = 48;
        self.bytes.len() + RESOURCE_VERSION_BYTES_MAX
    }
}

/// The JSON of a field of the metadata of `object`, which is compact; nothing else is decoded.
pub(super) fn metadata_field<'o>(object: &'o [u8], quoted_name: &str) -> Option<&'o [u8]> {
    // Most objects lack most of these fields, and searching for a name is faster than walking over the fields.
    memmem::find(object, quoted_name.as_bytes())?;
    let mut scanner = EncodedScanner { bytes: object, at: 0 };
    scanner.enter(b"\"metadata\"")?;
    scanner.enter(quoted_name.as_bytes())?;
    let start = scanner.at;
    scanner.value()?;
    object.get(start..scanner.at)
}

/// Encodes metadata without a resourceVersion, and returns its position.
fn encode_metadata(metadata: &Map, out: &mut Vec<u8>) -> Splice {
    let mut before = out.len() + 1;
    let mut splice = None;
    json::encode_fields(metadata.iter(), out, |name, field, out| {
        if splice.is_none() && name > "resourceVersion" {
            splice = Some(Splice { at: position(before), comma_before: false, comma_after: true });
        }
        json::encode_into(field, out);
        // The next one follows a comma.
        before = out.len() + 1;
    });
    let at_end = Splice { at: position(out.len() - 1), comma_before: !metadata.is_empty(), comma_after: false };
    splice.unwrap_or(at_end)
}

/// Walks over compact JSON without reading values.
struct EncodedScanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl EncodedScanner<'_> {
    /// The position of the resourceVersion: before the first key of the metadata that sorts after it.
    fn splice(mut self) -> Option<Splice> {
        self.enter(b"\"metadata\"")?;
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            return Some(Splice { at: position(self.at), comma_before: false, comma_after: false });
        }
        loop {
            let at = self.at;
            if self.key()? > b"\"resourceVersion\"".as_slice() {
                return Some(Splice { at: position(at), comma_before: false, comma_after: true });
            }
            self.expect(b':')?;
            self.value()?;
            if self.peek()? == b'}' {
                return Some(Splice { at: position(self.at), comma_before: true, comma_after: false });
            }
            self.expect(b',')?;
        }
    }

    /// Goes to the value of a field of the object that begins here.
    fn enter(&mut self, quoted_name: &[u8]) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let found = self.key()? == quoted_name;
            self.expect(b':')?;
            if found {
                return Some(());
            }
            self.value()?;
            self.expect(b',')?;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// A key with its quotes.
    fn key(&mut self) -> Option<&[u8]> {
        let start = self.at;
        self.string()?;
        self.bytes.get(start..self.at)
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            self.at += memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            match self.peek()? {
                b'"' => return self.expect(b'"'),
                _ => self.at += 2,
            }
        }
    }

    fn value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => return Some(()),
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' if depth == 0 => return Some(()),
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &'static str, expect: &str) {
        let mut out = Vec::new();
        let encoded = Encoded::new(bytes);
        encoded.write_to(&mut out, Revision::new(7));
        assert_eq!(out.len(), encoded.len(Revision::new(7)));
        assert_eq!(Encoded::of(&json::decode(bytes.as_bytes()).expect("it is JSON")), encoded);
        assert_eq!(String::from_utf8(out).expect("JSON is UTF-8"), expect);
    }

    #[test]
    fn the_resource_version_goes_where_its_name_sorts() {
        check(
            r#"{"kind":"A","metadata":{"name":"a","uid":"u"},"spec":{}}"#,
            r#"{"kind":"A","metadata":{"name":"a","resourceVersion":"7","uid":"u"},"spec":{}}"#,
        );
    }

    #[test]
    fn metadata_inside_other_fields_is_not_the_objects() {
        check(
            r#"{"data":{"metadata":{"uid":"x"},"t":"\"}"},"metadata":{"uid":"u"}}"#,
            r#"{"data":{"metadata":{"uid":"x"},"t":"\"}"},"metadata":{"resourceVersion":"7","uid":"u"}}"#,
        );
    }

    #[test]
    fn it_may_be_the_last_or_the_only_field() {
        check(r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#);
        check(r#"{"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"7"}}"#);
    }

    #[test]
    fn labels_are_found_in_the_metadata_only() {
        let labels =
            |object: &'static str| metadata_field(object.as_bytes(), "\"labels\"").map(String::from_utf8_lossy);
        let found = labels(r#"{"labels":{"a":"1"},"metadata":{"a":{"labels":{}},"labels":{"b":"}"},"name":"n"}}"#);
        assert_eq!(found.as_deref(), Some(r#"{"b":"}"}"#));
        assert_eq!(labels(r#"{"metadata":{"name":"n"},"spec":{"labels":{}}}"#), None);
    }

    #[test]
    fn an_object_without_metadata_stays_as_it_is() {
        check(r#"{"kind":"A"}"#, r#"{"kind":"A"}"#);
    }

    #[test]
    fn its_place_is_found_while_encoding_and_afterwards() {
        for metadata in ["{}", r#"{"a":1}"#, r#"{"z":{"uid":"u"}}"#, r#"{"name":"n","resourceVersion":"1","uid":"u"}"#]
        {
            for text in [
                format!(r#"{{"metadata":{metadata}}}"#),
                format!(r#"{{"kind":"A","metadata":{metadata},"spec":{{"metadata":{{"b":1}}}}}}"#),
                format!(r#"{{"data":{{"metadata":{metadata}}}}}"#),
            ] {
                let object = json::decode(text.as_bytes()).expect("it is JSON");
                assert_eq!(Encoded::of(&object), Encoded::new(text));
            }
        }
    }
}
