//! Bytes that the reference returned, its messages for malformed ones, and malicious bytes.

use proptest::prelude::*;

use super::messages::OPEN_API_V2;
use super::*;
use crate::kinds;
use crate::types::{self, Codec, Field, FieldKind, Message, Shape};
use crate::value::json::Tape;
use crate::value::{Value, json, with_a_deep_stack};

fn value(text: &str) -> Value {
    json::decode(text.as_bytes()).expect("the text is JSON")
}

fn message(api_version: &str, kind: &str) -> &'static Message {
    kinds::message_of(api_version, kind).expect("the kind is in the tables")
}

#[track_caller]
fn check_sealed(object: &str, expected: &[u8]) {
    let object = value(object);
    assert_eq!(kinds::seal(&object).as_deref(), Some(expected), "{}", String::from_utf8_lossy(expected));
    let envelope = open(expected).expect("it is an envelope");
    let message = message(&envelope.api_version, &envelope.kind);
    let decoded = decode(message, envelope.raw).expect("it is a message");
    assert_eq!(encode(message, &decoded), envelope.raw);
}

/// Decodes bytes and returns the JSON text.
fn to_json(message: &'static Message, bytes: &[u8]) -> Result<String, String> {
    let decoded = decode(message, bytes).map_err(|error| error.to_string())?;
    Ok(json::encode_to_string(&decoded))
}

#[test]
fn objects_go_out_as_the_reference_sends_them() {
    check_sealed(
        r#"{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","reason":"NotAcceptable","code":406,"message":
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"}"#,
        b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x12\x99\x01\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a\
          tonly the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf\
          \"\rNotAcceptable0\x96\x03\x1a\0\"\0",
    );
    check_sealed(
        r#"{"apiVersion":"v1","kind":"APIGroup","name":"apiextensions.k8s.io",
            "versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}],
            "preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}}"#,
        b"k8s\0\n\x0e\n\x02v1\x12\x08APIGroup\x12T\n\x14apiextensions.k8s.io\x12\x1d\n\x17apiextensions.k8s.io/v1\x12\x02v1\
          \x1a\x1d\n\x17apiextensions.k8s.io/v1\x12\x02v1\x1a\0\"\0",
    );
}

#[test]
fn an_event_of_a_watch_stands_behind_its_length() {
    let bookmark = kinds::seal(&value(
        r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",
            "metadata":{"resourceVersion":"17","annotations":{"k8s.io/initial-events-end":"true"}}}"#,
    ));
    let mut out = Vec::new();
    write_event("BOOKMARK", &bookmark.expect("the kind has a message"), &mut out);
    let expected: &[u8] =
        b"\0\0\0x\n\x08BOOKMARK\x12l\njk8s\0\n'\n\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x127\n5\n\0\
        \x12\0\x1a\0\"\0*\x002\x02178\0B\0b!\n\x19k8s.io/initial-events-end\x12\x04true\x1a\0\"\0";
    assert_eq!(out, expected, "{}", String::from_utf8_lossy(&out));
}

#[test]
fn schemas_keep_every_form() {
    let text = r#"{"metadata":{"name":"x"},"spec":{"group":"g","names":{"kind":"X","plural":"x"},"scope":"Cluster","versions":[
        {"name":"v1","schema":{"openAPIV3Schema":{"additionalProperties":false,"anyOf":[{"items":[{"type":"a"},{"type":"b"}]},
        {"items":{"not":{"additionalProperties":true}}}],"default":{"a":[1,1.5,null,"\u003c"]},"dependencies":{"a":["b"],"c":{"id":"d"}},
        "enum":[null,1,"a"],"example":[],"maximum":-0.25,"minimum":5,"nullable":true,"properties":{"$x":{"$ref":"r","maxLength":-1}},
        "x-kubernetes-preserve-unknown-fields":false}},"served":true,"storage":false}]},
        "status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":null}}"#;
    let (message, object) = (message("apiextensions.k8s.io/v1", "CustomResourceDefinition"), value(text));
    assert_eq!(decode(message, &encode(message, &object)), Ok(object));
}

#[test]
fn an_open_api_document_keeps_all_it_says() {
    let text = r##"{"swagger":"2.0","info":{"title":"t","version":"v"},
        "paths":{"/a":{"get":{"operationId":"g","parameters":[{"$ref":"#/parameters/p"}],
            "responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/D"}},"401":{"description":"no"}},
            "tags":["x"],"x-kubernetes-action":"list","x-kubernetes-group-version-kind":{"group":"","kind":"D","version":"v1"}},
            "parameters":[{"in":"path","name":"n","required":true,"type":"string","uniqueItems":true},
                {"in":"body","name":"b","schema":{"type":"object"}}]}},
        "definitions":{"D":{"additionalProperties":{"items":{"type":"string"},"type":["array","object"]},"enum":["",1,null],
            "maximum":0.5,"minLength":0,"properties":{"p":{"additionalProperties":true}},"required":["p"],
            "x-kubernetes-list-map-keys":["a","b"]}},
        "parameters":{"p":{"in":"query","name":"p","type":"boolean","x-y":0}},
        "security":[{"B":[]}],"securityDefinitions":{"B":{"in":"header","name":"authorization","type":"apiKey"}}}"##;
    let document = value(text);
    assert_eq!(decode(&OPEN_API_V2, &encode(&OPEN_API_V2, &document)), Ok(document));
}

#[test]
fn what_go_always_writes_is_there() {
    assert_eq!(to_json(message("v1", "Namespace"), b"").as_deref(), Ok(r#"{"metadata":{},"spec":{},"status":{}}"#));
    assert_eq!(
        to_json(message("v1", "Event"), b"\n\x03\n\x01e").as_deref(),
        Ok(r#"{"eventTime":null,"firstTimestamp":null,"involvedObject":{},"lastTimestamp":null,"metadata":{"name":"e"},"#
            .to_owned()
            + r#""reportingComponent":"","reportingInstance":"","source":{}}"#)
        .as_deref()
    );
    assert_eq!(to_json(message("v1", "SecretList"), b"").as_deref(), Ok(r#"{"items":null,"metadata":{}}"#));
}

#[test]
fn a_part_that_comes_again_replaces_or_adds() {
    // The metadata twice, each with a name and a label.
    let twice = b"\n\x0b\n\x01aZ\x06\n\x01k\x12\x01v\n\x0b\n\x01bZ\x06\n\x01l\x12\x01w";
    let expected = r#"{"metadata":{"labels":{"k":"v","l":"w"},"name":"b"}}"#;
    assert_eq!(to_json(message("v1", "ConfigMap"), twice).as_deref(), Ok(expected));
    // Of a repeated key the last one counts, and a missing part of an entry is empty.
    let data = b"\x12\x06\n\x01k\x12\x01v\x12\x03\n\x01k\x1a\x06\n\x01b\x1a\x01x";
    assert_eq!(
        to_json(message("v1", "ConfigMap"), data).as_deref(),
        Ok(r#"{"binaryData":{"b":""},"data":{"k":""},"metadata":{}}"#)
    );
}

#[test]
fn a_quantity_that_was_not_sent_is_zero() {
    let pod = b"\x12\x1a\x12\x18\n\x01c:\x13\n\x01A\x1a\x0e\x12\x0c\x12\nlimits.cpu";
    let json = to_json(message("v1", "Pod"), pod).expect("it is a pod");
    assert!(json.contains(r#""resourceFieldRef":{"divisor":"0","resource":"limits.cpu"}"#), "{json}");
}

#[test]
fn a_quantity_of_a_list_that_was_not_sent_is_zero() {
    let quota = b"\x12\x07\x0a\x05\x0a\x01a\x12\0";
    let json = to_json(message("v1", "ResourceQuota"), quota).expect("it is a quota");
    assert!(json.contains(r#""hard":{"a":"0"}"#), "{json}");
}

#[test]
fn fields_of_a_later_release_are_skipped() {
    let bytes = b"\x98\x06\x01\xa2\x06\x03abc\xa9\x06\0\0\0\0\0\0\0\0\xad\x06\0\0\0\0\xb3\x06\x08\x01\xb4\x06\x20\x01";
    assert_eq!(to_json(message("v1", "ConfigMap"), bytes).as_deref(), Ok(r#"{"immutable":true,"metadata":{}}"#));
}

#[test]
fn times_have_seconds_and_lease_times_micros() {
    let acquire = b"\x12\x0d\x1a\x0b\x08\xd2\x09\x10\xd2\xf5\xbc\x85\xff\xff\xff\xff\xff\x01";
    let error = to_json(message("coordination.k8s.io/v1", "Lease"), acquire);
    assert_eq!(error, Err("unexpected EOF".to_owned()));
    let acquire = b"\x12\x0a\x1a\x08\x08\xd2\x09\x10\xc0\xf2\xb2\x01";
    let expected = r#"{"metadata":{},"spec":{"acquireTime":"1970-01-01T00:20:34.002931Z"}}"#;
    assert_eq!(to_json(message("coordination.k8s.io/v1", "Lease"), acquire).as_deref(), Ok(expected));
    let created = b"\n\x06B\x04\x08\xd2\x09\x10";
    assert!(to_json(message("v1", "ConfigMap"), created).is_err());
    let created = b"\n\x08B\x06\x08\xd2\x09\x10\x80\x01";
    let expected = r#"{"metadata":{"creationTimestamp":"1970-01-01T00:20:34Z"}}"#;
    assert_eq!(to_json(message("v1", "ConfigMap"), created).as_deref(), Ok(expected));
    let beyond = b"\n\x0bB\x09\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
    let expected = "Time.MarshalJSON: year outside of range [0,9999]".to_owned();
    assert_eq!(to_json(message("v1", "ConfigMap"), beyond), Err(expected));
}

#[test]
fn times_reach_to_the_end_of_the_last_year() {
    let lease = message("coordination.k8s.io/v1", "Lease");
    for (created, acquired) in [
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000001Z"),
    ] {
        let text = format!(
            r#"{{"metadata":{{"creationTimestamp":"{created}","name":"a"}},"spec":{{"acquireTime":"{acquired}"}}}}"#
        );
        let bytes = encode(lease, &json::decode(text.as_bytes()).expect("JSON"));
        assert_eq!(to_json(lease, &bytes), Ok(text));
    }
}

#[track_caller]
fn check_error(message: &'static Message, bytes: &[u8], expected: &str) {
    assert_eq!(to_json(message, bytes), Err(expected.to_owned()));
}

#[test]
fn malformed_bytes_are_told_in_gos_words() {
    let options = kinds::delete_options();
    check_error(options, b"\x0a\x01", "proto: wrong wireType = 2 for field GracePeriodSeconds");
    check_error(options, b"\x08", "unexpected EOF");
    check_error(options, b"\x2a\x05abc", "unexpected EOF");
    check_error(
        options,
        b"\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "proto: negative length found during unmarshaling",
    );
    check_error(options, &[0xff; 12], "proto: integer overflow");
    check_error(options, b"\x00\x00", "proto: DeleteOptions: illegal tag 0 (wire type 0)");
    check_error(options, b"\x0c", "proto: DeleteOptions: wiretype end group for non-group");
    check_error(options, b"\x7f", "proto: illegal wireType 7");
    check_error(options, b"\x12\x02\x0a\x05", "unexpected EOF");
    let metadata = b"\n\x02:\x00";
    check_error(message("v1", "Secret"), metadata, "proto: wrong wireType = 2 for field Generation");
    let default = b"\x12\x0c:\x0a\"\x08\n\x06B\x04\n\x02{x";
    let text = "invalid character 'x' looking for beginning of object key string";
    check_error(message("apiextensions.k8s.io/v1", "CustomResourceDefinition"), default, text);
    for (body, expected) in [
        (&b""[..], "empty data"),
        (b"k8s", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\n\xff", "unexpected EOF"),
    ] {
        assert_eq!(open(body).map_err(|error| error.to_string()), Err(expected.to_owned()));
    }
}

/// A definition whose schema is nested `levels` times in `not`.
fn nested_schemas(levels: usize) -> Vec<u8> {
    let mut reversed = Vec::new();
    // Tags of `not`, the schema, the validation, the version and the spec; two bytes each are known to suffice for `not`.
    let tags = std::iter::repeat_n(&[0xe2, 0x01][..], levels).chain([&[0x0a][..], &[0x22], &[0x3a], &[0x12]]);
    for tag in tags {
        let mut length = reversed.len();
        let mut varint = Vec::new();
        while length >= 0x80 {
            varint.push(length as u8 | 0x80);
            length >>= 7;
        }
        varint.push(length as u8);
        reversed.extend(varint.iter().rev());
        reversed.extend(tag.iter().rev());
    }
    reversed.reverse();
    reversed
}

#[test]
fn nesting_ends_where_it_does_in_json() {
    with_a_deep_stack(|| {
        let message = message("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let decoded = decode(message, &nested_schemas(9_990)).expect("JSON may be as deep");
        assert_eq!(json::decode(&json::encode(&decoded)).as_ref(), Ok(&decoded));
        assert_eq!(decode(message, &encode(message, &decoded)), Ok(decoded));
        assert_eq!(decode(message, &nested_schemas(10_000)), Err(ProtobufError::TooDeep));
        assert_eq!(decode(message, &nested_schemas(400_000)), Err(ProtobufError::TooDeep));
    });
}

#[test]
fn json_within_counts_as_nesting() {
    with_a_deep_stack(|| {
        let message = message("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let decoded = |levels: usize| {
            let default = value(&("[".repeat(levels) + &"]".repeat(levels)));
            let schema = crate::object! { "openAPIV3Schema" => crate::object! { "default" => default } };
            let versions = vec![crate::object! { "schema" => schema }];
            let object = crate::object! { "spec" => crate::object! { "versions" => versions } };
            decode(message, &encode(message, &object)).map(|object| json::encode(&object))
        };
        let text = decoded(9_990).expect("it is not too deep");
        assert!(json::decode(&text).is_ok());
        assert_eq!(decoded(9_999), Err(ProtobufError::TooDeep));
    });
}

/// Values of all types, among them some that own encodings accept.
fn scalars() -> Vec<Value> {
    let texts = [
        "",
        "a",
        "a\"<\u{2028}\u{1}é",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.000006Z",
        "2026-01-02T03:04:05+01:00",
        "1959-12-31T23:59:59.5Z",
        "0000-01-01T00:00:00Z",
        "1500m",
        "1m30s",
        "-1.5h",
        "YWI=",
        "YQ",
        "{}",
    ];
    let numbers = [0, 1, -1, 128, i64::MAX, i64::MIN].map(Value::Int);
    let doubles = [1.5, -1e-7, 1e21].map(Value::Float);
    let others = [Value::Null, Value::Bool(true), Value::Bool(false), crate::object! {}, Value::Array(Vec::new())];
    texts.map(Value::from).into_iter().chain(numbers).chain(doubles).chain(others).collect()
}

/// Makes objects of a message, with values of other types here and there.
struct Maker<'b> {
    choices: std::slice::Iter<'b, u8>,
}

impl Maker<'_> {
    /// A number below `count`; 0 where nothing is left to choose by.
    fn choose(&mut self, count: usize) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(*choice) % count)
    }

    fn any(&mut self) -> Value {
        let scalars = scalars();
        scalars[self.choose(scalars.len())].clone()
    }

    fn message(&mut self, message: &'static Message, depth: usize) -> Value {
        let mut object = crate::object! { "unknown" => self.any() };
        for field in message.fields {
            let is_there = depth > 0 && self.choose(3) > 0;
            let value = if is_there { self.field(field, depth - 1) } else { continue };
            match value {
                Value::Object(inner) if field.shape == Shape::Inline => {
                    inner.into_iter().for_each(|(name, value)| _ = object.make_object().insert(name, value));
                }
                value => _ = object.make_object().insert(field.json, value),
            }
        }
        object
    }

    fn field(&mut self, field: &'static Field, depth: usize) -> Value {
        let names = ["", "a", "k:{\"a\":1}", "x-é"];
        match (field.shape, self.choose(5)) {
            (_, 0) => self.any(),
            (Shape::List, count) => (0..count).map(|_| self.one(field.kind, depth)).collect::<Vec<_>>().into(),
            (Shape::Map, count) => {
                let entries = names[..count.min(names.len())].iter().map(|name| (*name, self.one(field.kind, depth)));
                Value::Object(entries.collect())
            }
            _ => self.one(field.kind, depth),
        }
    }

    fn one(&mut self, kind: FieldKind, depth: usize) -> Value {
        match kind {
            FieldKind::Message(message) if self.choose(6) > 0 => match message.codec {
                Codec::List => self.field(&message.fields[0], depth),
                Codec::SchemaOrArray | Codec::SchemaOrBool | Codec::SchemaOrStringArray => {
                    let field = &message.fields[self.choose(2)];
                    self.field(field, depth)
                }
                _ if self.choose(2) == 0 => self.any(),
                _ => self.message(message.get(), depth),
            },
            _ => self.any(),
        }
    }
}

fn all_kinds() -> Vec<(String, &'static Message)> {
    kinds::all().map(|kind| (kind.api_version(), kind.message())).collect()
}

/// The body of an object of a type, made of its text; `None` if that must be decoded.
fn sealed_as(message: &'static Message, of_type: (&str, &str), text: &[u8]) -> Option<Vec<u8>> {
    Tape::default().read(text).map(|tree| seal_text(message, of_type, tree))
}

#[test]
fn a_type_calls_no_two_fields_the_same() {
    let structs = types::packages().flat_map(types::structs).map(|named| named.message());
    for message in structs.chain([&OPEN_API_V2]) {
        let direct = message.fields.iter().filter(|field| !matches!(field.shape, Shape::Inline | Shape::Extensions));
        for field in direct.filter(|_| matches!(message.codec, Codec::Object)) {
            let found = message.field(field.json).expect("it is there");
            assert!(std::ptr::eq(found, field), "{}.{}", message.go_type(), field.json);
        }
        assert!(message.field_index("nothing of that name").is_none());
    }
}

#[test]
fn the_text_of_an_open_api_document_is_written_as_its_value() {
    let document = value(
        r##"{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{"/a":{"get":{"parameters":[{"$ref":"#/p"},
            {"in":"path","name":"n"},{"in":"body","name":"b","schema":{"type":["a","b"],"items":[{},{"enum":[1,"a",null]}]}}],
            "responses":{"200":{"description":"OK"}},"x-a":{"b":[1,2]},"x-c":null}}},
            "definitions":{"D":{"additionalProperties":true,"default":{"a":1.5},"items":{"additionalProperties":{}}}}}"##,
    );
    let message: &'static Message = &OPEN_API_V2;
    let sealed = seal(message, &document);
    let text = json::encode(&document);
    assert_eq!(sealed_as(message, ("", ""), &text), Some(sealed));
    assert_eq!(encode_json(message, &text), encode(message, &document));
    assert_eq!(encode_json(message, &json::indent(&text)), encode(message, &document));
}

proptest! {
    #[test]
    fn a_text_is_written_as_its_value(
        choices in prop::collection::vec(any::<u8>(), 0..2000),
        kind in any::<prop::sample::Index>(),
        changed in prop::option::of((any::<prop::sample::Index>(), prop::sample::select(&b"\"\\{}[],:0-1.eEtn u<\xe2\xff"[..]))),
    ) {
        let all = all_kinds();
        let (api_version, message) = &all[kind.index(all.len())];
        let of_type = (api_version.as_str(), message.name);
        let with_type = |mut object: Value| {
            object.make_object().insert("apiVersion", Value::from(of_type.0));
            object.make_object().insert("kind", Value::from(of_type.1));
            object
        };
        let object = with_type(Maker { choices: choices.iter() }.message(message, 8));
        let mut text = json::encode(&object);
        let sealed = seal(message, &object);
        prop_assert_eq!(sealed_as(message, of_type, &text), Some(sealed.clone()));
        prop_assert_eq!(kinds::seal_text(&text), Some(sealed));
        if let Some((at, with)) = changed {
            let at = at.index(text.len());
            text[at] = with;
            let object = json::decode(&text).unwrap_or_default();
            prop_assert_eq!(kinds::seal_text(&text), kinds::seal(&object));
            if let Some(found) = sealed_as(message, of_type, &text) {
                prop_assert_eq!(found, seal(message, &with_type(object)));
            }
        }
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = open(&bytes);
        let _ = open(&[&PREFIX[..], &bytes].concat());
        for kind in ["CustomResourceDefinition", "Secret", "Event", "APIResourceList", "Status"] {
            for api_version in ["v1", "apiextensions.k8s.io/v1", "events.k8s.io/v1"] {
                let Some(message) = kinds::message_of(api_version, kind) else { continue };
                if let Ok(object) = decode(message, &bytes) {
                    let again = encode(message, &object);
                    prop_assert_eq!(decode(message, &again), Ok(object));
                }
            }
        }
    }

    #[test]
    fn no_change_of_a_message_breaks_the_reader(at in 0_usize..400, with in any::<u8>(), cut in 0_usize..400) {
        let message = message("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let text = r#"{"metadata":{"name":"x","labels":{"a":"b"},"managedFields":[{"fieldsV1":{"f:a":{}},"time":"2026-01-02T03:04:05Z"}]},
            "spec":{"versions":[{"schema":{"openAPIV3Schema":{"default":{"a":1},"maximum":1.5,"properties":{"a":{"items":{"type":"b"}}},
            "additionalProperties":{"type":"c"},"dependencies":{"a":["b"]}}},"additionalPrinterColumns":[{"priority":-1}]}]}}"#;
        let mut bytes = encode(message, &value(text));
        let at = at % bytes.len();
        bytes[at] = with;
        bytes.truncate(bytes.len() - cut % bytes.len() / 4);
        if let Ok(object) = decode(message, &bytes) {
            // Items that are neither a schema nor a list are null, as Go shows them, and are not encoded again.
            let again = decode(message, &encode(message, &object));
            prop_assert!(again.is_ok());
            let again = again.unwrap_or_default();
            prop_assert_eq!(decode(message, &encode(message, &again)), Ok(again));
        }
    }
}

#[test]
fn json_within_a_message_is_found_as_it_was_written() {
    let sealed = kinds::seal(&value(
        r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","spec":{"devices":{"config":[
            {"requests":["a"]},{"opaque":{"driver":"d","parameters":{"b":12}}},{"opaque":{"driver":"d","parameters":{}}}]}}}"#,
    ));
    let mut sealed = sealed.expect("the kind has a message");
    let at = sealed.windows(8).position(|bytes| bytes == br#"{"b":12}"#).expect("JSON is within it");
    sealed[at..at + 8].copy_from_slice(br#"{"b": 1}"#);
    let raw = open(&sealed).expect("it is an envelope").raw;
    let message = message("resource.k8s.io/v1", "ResourceClaim");
    let path = ["spec", "devices", "config", "*", "opaque", "parameters"];
    assert_eq!(json_texts_at(message, raw, &path), [None, Some(r#"{"b": 1}"#), Some("{}")]);
    assert!(json_texts_at(message, raw, &["spec", "nothing"]).is_empty());
}
