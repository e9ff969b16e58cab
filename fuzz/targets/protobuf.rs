//! Protobuf bodies.

use kubeskiff::kinds;
use kubeskiff::protobuf::{self, Envelope};
use kubeskiff::value::{Value, json};

use super::{Linear, Target};

pub const TARGET: Target = Target {
    name: "protobuf",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 1 << 20, per_byte: 1_000 },
};

/// What was read is written, and that is read and written again as the same bytes; and JSON can be made of it. (A time or a
/// `fieldsV1` without bytes reads as null, which is not written.) A body is read as the kind that its envelope names, and as options.
fn run(data: &[u8]) {
    let Ok(envelope) = protobuf::open(data) else { return };
    let named = kinds::message_of(&envelope.api_version, &envelope.kind);
    for message in named.into_iter().chain([kinds::delete_options()]) {
        let Ok(object) = protobuf::decode(message, envelope.raw) else { continue };
        let bytes = protobuf::encode(message, &object);
        let again = protobuf::decode(message, &bytes).expect("what was written can be read");
        assert_eq!(protobuf::encode(message, &again), bytes, "encode after decode is the identity");
        let text = json::encode(&with_type(object.clone(), &envelope));
        assert_eq!(kinds::seal_text(&text), kinds::seal(&with_type(object.clone(), &envelope)), "a text is its value");
        // Texts of JSON in it may have whole doubles, which become integers, as in Go.
        let once = json::decode(&text).expect("what protobuf holds is JSON");
        assert_eq!(json::decode(&json::encode(&once)), Ok(once), "decode after encode is the identity");
    }
}

/// The object, with the type that its envelope names.
fn with_type(mut object: Value, envelope: &Envelope<'_>) -> Value {
    let fields = object.make_object();
    fields.insert("apiVersion", Value::from(envelope.api_version.as_str()));
    fields.insert("kind", Value::from(envelope.kind.as_str()));
    object
}
