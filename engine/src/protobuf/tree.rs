//! What messages are made of: a value, or a text of JSON with the places of its values. The encoder is the same for
//! both.

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::value::Value;
use crate::value::json::{self, TextNode, TextTree};

/// JSON that an encoder walks over, from its end to its start.
pub(super) trait ObjectTree: Copy {
    /// A value in it.
    type Node: Copy;

    fn is_null(&self, node: Self::Node) -> bool;

    /// The boolean, if it is one; so for the following types.
    fn as_bool(&self, node: Self::Node) -> Option<bool>;

    fn as_i64(&self, node: Self::Node) -> Option<i64>;

    fn as_f64(&self, node: Self::Node) -> Option<f64>;

    fn as_str(&self, node: Self::Node) -> Option<Cow<'_, str>>;

    /// The items of an array, the last one first.
    fn items_back(&self, node: Self::Node) -> Option<impl Iterator<Item = Self::Node>>;

    /// The fields of an object, the last one first.
    fn fields_back(&self, node: Self::Node) -> Option<impl Iterator<Item = (Cow<'_, str>, Self::Node)>>;

    /// The JSON of a value.
    fn text(&self, node: Self::Node) -> Cow<'_, str>;

    fn value(&self, node: Self::Node) -> Cow<'_, Value>;

    fn is_array(&self, node: Self::Node) -> bool {
        self.items_back(node).is_some()
    }

    fn is_object(&self, node: Self::Node) -> bool {
        self.fields_back(node).is_some()
    }
}

/// A decoded value, whose parts are values.
#[derive(Clone, Copy, Default)]
pub(super) struct ValueTree<'v>(PhantomData<&'v Value>);

impl<'v> ObjectTree for ValueTree<'v> {
    type Node = &'v Value;

    fn is_null(&self, node: &'v Value) -> bool {
        node.is_null()
    }

    fn as_bool(&self, node: &'v Value) -> Option<bool> {
        node.as_bool()
    }

    fn as_i64(&self, node: &'v Value) -> Option<i64> {
        node.as_i64()
    }

    fn as_f64(&self, node: &'v Value) -> Option<f64> {
        match node {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    fn as_str(&self, node: &'v Value) -> Option<Cow<'_, str>> {
        node.as_str().map(Cow::Borrowed)
    }

    fn items_back(&self, node: &'v Value) -> Option<impl Iterator<Item = &'v Value>> {
        node.as_array().map(|items| items.iter().rev())
    }

    fn fields_back(&self, node: &'v Value) -> Option<impl Iterator<Item = (Cow<'_, str>, &'v Value)>> {
        node.as_object().map(|fields| fields.iter().rev().map(|(name, field)| (Cow::Borrowed(name), field)))
    }

    fn text(&self, node: &'v Value) -> Cow<'_, str> {
        match node.as_object().and_then(|fields| fields.json_text()) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(json::encode_to_string(node)),
        }
    }

    fn value(&self, node: &'v Value) -> Cow<'_, Value> {
        Cow::Borrowed(node)
    }
}

impl ObjectTree for TextTree<'_> {
    type Node = TextNode;

    fn is_null(&self, node: TextNode) -> bool {
        TextTree::is_null(self, node)
    }

    fn as_bool(&self, node: TextNode) -> Option<bool> {
        TextTree::as_bool(self, node)
    }

    fn as_i64(&self, node: TextNode) -> Option<i64> {
        TextTree::as_i64(self, node)
    }

    fn as_f64(&self, node: TextNode) -> Option<f64> {
        TextTree::as_f64(self, node)
    }

    fn as_str(&self, node: TextNode) -> Option<Cow<'_, str>> {
        TextTree::as_str(self, node)
    }

    fn items_back(&self, node: TextNode) -> Option<impl Iterator<Item = TextNode>> {
        TextTree::items_back(self, node)
    }

    fn fields_back(&self, node: TextNode) -> Option<impl Iterator<Item = (Cow<'_, str>, TextNode)>> {
        TextTree::fields_back(self, node)
    }

    fn text(&self, node: TextNode) -> Cow<'_, str> {
        Cow::Borrowed(TextTree::text(self, node))
    }

    fn value(&self, node: TextNode) -> Cow<'_, Value> {
        Cow::Owned(TextTree::value(self, node))
    }
}
