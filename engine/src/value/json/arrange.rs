//! The fields of a text in the order of Go's structs, without decoding it: its parts are copied in another order.
//!
//! Input: a text with the places of its values, and a layout. Output: what [`encode_as`](super::encode_as) writes for
//! the value of that text.

use super::encode::{FieldOrder, Layout};
use super::tape::{TextNode, TextTree};
use crate::work;

/// Appends the text with its fields in the order of `layout`; if it is an object, without the fields `left_out`.
pub fn arrange_into(tree: &TextTree<'_>, layout: Layout, left_out: &[&str], out: &mut Vec<u8>) {
    if let Layout::Choose(choose) = layout {
        return arrange_into(tree, choose(&tree.value(TextTree::ROOT)), left_out, out);
    }
    out.reserve(tree.text(TextTree::ROOT).len());
    let mut arranger = Arranger { tree, waiting: Vec::new(), out };
    match tree.fields_back(TextTree::ROOT) {
        Some(fields) => {
            let fields = fields.filter(|(name, _)| !left_out.contains(&&**name));
            arranger.fields(fields.map(|(name, field)| order_of(layout, &name, field)));
        }
        None => arranger.value(TextTree::ROOT, layout),
    }
}

/// A field whose turn is to come: its place in the struct, its value and the layout of that.
type WaitingField = (usize, TextNode, Layout);

fn order_of(layout: Layout, name: &str, field: TextNode) -> WaitingField {
    let declared: &dyn FieldOrder = match &layout {
        Layout::Struct(order) => order,
        Layout::Declared(declared) => *declared,
        Layout::Map(inner) => return (usize::MAX, field, **inner),
        Layout::DeclaredMap(inner) => return (usize::MAX, field, Layout::Declared(*inner)),
        Layout::Sorted | Layout::Choose(_) => return (usize::MAX, field, Layout::Sorted),
    };
    let (place, inner) = declared.find(name).unwrap_or((usize::MAX, Layout::Sorted));
    (place, field, inner)
}

struct Arranger<'a> {
    tree: &'a TextTree<'a>,
    /// The fields of all open objects, those of the innermost last.
    waiting: Vec<WaitingField>,
    out: &'a mut Vec<u8>,
}

impl Arranger<'_> {
    fn value(&mut self, node: TextNode, layout: Layout) {
        let tree = *self.tree;
        match (layout, tree.items_back(node), tree.fields_back(node)) {
            (Layout::Sorted, ..) | (_, None, None) => self.copy(tree.text(node)),
            (Layout::Choose(choose), ..) => self.value(node, choose(&tree.value(node))),
            (Layout::Struct(_) | Layout::Declared(_), Some(items), _) => {
                self.items(items.map(|item| (0, item, layout)));
            }
            (_, Some(_), _) => self.copy(tree.text(node)),
            (_, None, Some(fields)) => self.fields(fields.map(|(name, field)| order_of(layout, &name, field))),
        }
    }

    fn items(&mut self, items_back: impl Iterator<Item = WaitingField>) {
        let start = self.waiting.len();
        self.waiting.extend(items_back);
        self.out.push(b'[');
        self.each(start, |_, _| {});
        self.out.push(b']');
    }

    fn fields(&mut self, fields_back: impl Iterator<Item = WaitingField>) {
        let start = self.waiting.len();
        self.waiting.extend(fields_back);
        self.waiting[start..].reverse();
        self.waiting[start..].sort_by_key(|(place, ..)| *place);
        self.waiting[start..].reverse();
        self.out.push(b'{');
        self.each(start, |arranger, field| arranger.copy(arranger.tree.name_text(field)));
        self.out.push(b'}');
    }

    /// Writes the values that wait from `start` on, the last one first, each after what `begin` writes.
    fn each(&mut self, start: usize, begin: impl Fn(&mut Self, TextNode)) {
        while self.waiting.len() > start
            && let Some((_, node, layout)) = self.waiting.pop()
        {
            work::step();
            begin(self, node);
            self.value(node, layout);
            if self.waiting.len() > start {
                self.out.push(b',');
            }
        }
    }

    fn copy(&mut self, text: &str) {
        work::bytes(text.len());
        self.out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::json::{self, Tape};
    use crate::value::{Value, arbitrary};

    static ITEM: Layout = Layout::Struct(&[("kind", &Layout::Sorted), ("c", &ITEMS), ("a", &Layout::Choose(chosen))]);
    static ITEMS: Layout = Layout::Map(&ITEM);
    static OUTER: Layout =
        Layout::Struct(&[("metadata", &ITEM), ("b", &ITEMS), ("kind", &Layout::Sorted), ("a", &ITEM)]);

    fn chosen(value: &Value) -> Layout {
        if value.get("kind").is_some() { OUTER } else { Layout::Sorted }
    }

    proptest! {
        #[test]
        fn a_text_is_arranged_as_its_value_is_encoded(value in arbitrary::value()) {
            let text = json::encode(&value);
            let mut tape = Tape::default();
            let tree = tape.read(&text).expect("it is what the encoder writes");
            for layout in [OUTER, ITEMS, Layout::Sorted, Layout::Choose(chosen)] {
                let mut arranged = b"before".to_vec();
                arrange_into(&tree, layout, &[], &mut arranged);
                prop_assert_eq!(arranged, [b"before", &*json::encode_as(&value, layout)].concat());
            }
            let mut without = value.clone();
            if let Value::Object(fields) = &mut without {
                fields.remove("a");
                fields.remove("kind");
            }
            let mut arranged = Vec::new();
            arrange_into(&tree, OUTER, &["a", "kind"], &mut arranged);
            prop_assert_eq!(arranged, json::encode_as(&without, OUTER));
        }
    }
}
