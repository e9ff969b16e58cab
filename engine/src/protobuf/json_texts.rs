//! Finds embedded JSON in a message, as it was written, by the JSON names of fields.

use crate::types::{Codec, Field, FieldKind, Message, Shape};

use super::node::{WireMessage, WireValue};

/// The texts at a path of field names, where `*` stands for each item of a list: one per item, or a single one, without
/// the white space around it. Bytes that are not a message have none.
pub fn json_texts_at<'b>(message: &'static Message, bytes: &'b [u8], path: &[&str]) -> Vec<Option<&'b str>> {
    WireMessage::read(message, bytes).map_or_else(|_| Vec::new(), |node| in_message(message, &node, path))
}

fn json_trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

fn in_message<'b>(message: &'static Message, node: &WireMessage<'b>, path: &[&str]) -> Vec<Option<&'b str>> {
    let [name, rest @ ..] = path else {
        return match (message.codec, node.part(0)) {
            (Codec::Json, Some(WireValue::Bytes(text))) => vec![std::str::from_utf8(text).ok().map(json_trimmed)],
            _ => Vec::new(),
        };
    };
    let fields = || message.fields.iter().zip(0..).filter_map(|(field, index)| Some((field, node.part(index)?)));
    if let Some((field, part)) = fields().find(|(field, _)| field.json == *name) {
        return in_part(field, part, rest);
    }
    // In JSON, the fields of an inline struct are those of its parent.
    let embedded = fields().filter(|(field, _)| field.shape == Shape::Inline);
    embedded.map(|(field, part)| in_part(field, part, path)).find(|texts| !texts.is_empty()).unwrap_or_default()
}

fn in_part<'b>(field: &Field, part: &WireValue<'b>, path: &[&str]) -> Vec<Option<&'b str>> {
    match (field.kind, part, path) {
        (FieldKind::Message(message), WireValue::Node(node), _) => in_message(message.get(), node, path),
        (_, WireValue::List(items), ["*", rest @ ..]) => {
            items.iter().map(|item| in_part(field, item, rest).first().copied().flatten()).collect()
        }
        _ => Vec::new(),
    }
}
