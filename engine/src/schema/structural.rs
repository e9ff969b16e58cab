//! The structural schema: what every pass works on.
//!
//! Structure (types, properties, extensions) stands apart from value validation, and value validation under a junctor
//! (`allOf`, `anyOf`, `oneOf`, `not`) can't add structure. [`super::convert`] makes one from a
//! [`JsonSchema`](super::json_schema::JsonSchema), [`super::check`] checks whether it is well formed.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use super::json_schema::{Annotations, Junctors, SchemaBounds, ValidationRule};
use super::pattern::Pattern;
use super::rare::{Blank, Rare};
use crate::value::{Map, Value};
use crate::work;

/// A node of a structural schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structural {
    /// `items`
    pub items: Option<Box<Structural>>,
    /// `properties`
    pub properties: Map<Structural>,
    /// `additionalProperties`
    pub additional_properties: Option<StructuralOrBool>,
    /// The structure of a node: neither value validation nor extensions.
    pub generic: Generic,
    /// `x-kubernetes-*`
    pub extensions: Rare<Extensions>,
    /// `x-kubernetes-validations`
    pub validations: Vec<ValidationRule>,
    /// `None` if there is no value validation at all.
    pub value_validation: Option<Box<ValueValidation>>,
    /// What passes need not look for here. When you add such a thing, clear it here and in all parents.
    pub lacks: Lacks,
}

/// What neither a node nor its descendants have, so that a pass looking for it can skip them. False if nobody has
/// checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lacks {
    /// `default`
    pub defaults: bool,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resources: bool,
    /// `x-kubernetes-list-type` of `set` or `map`.
    pub checked_lists: bool,
}

/// It is derived from the schema: two schemas are equal whatever is noted here.
impl PartialEq for Lacks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Structural {
    /// Sets `lacks`; that of the child nodes must be set already.
    pub(super) fn note_lacks(&mut self) {
        let other = self.additional_properties.as_ref().and_then(StructuralOrBool::structural);
        let below = self.properties.values().chain(self.items.as_deref()).chain(other);
        let own = Lacks {
            defaults: self.generic.default.is_none(),
            embedded_resources: !self.extensions.embedded_resource,
            checked_lists: !matches!(self.extensions.list_type.as_deref(), Some("set" | "map")),
        };
        self.lacks = below.fold(own, |lacks, below| Lacks {
            defaults: lacks.defaults && below.lacks.defaults,
            embedded_resources: lacks.embedded_resources && below.lacks.embedded_resources,
            checked_lists: lacks.checked_lists && below.lacks.checked_lists,
        });
    }
}

/// `additionalProperties`: a schema, or whether anything is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum StructuralOrBool {
    /// A schema.
    Structural(Box<Structural>),
    /// Whether anything is allowed.
    Bool(bool),
}

impl StructuralOrBool {
    /// The schema, if there is one.
    pub fn structural(&self) -> Option<&Structural> {
        match self {
            StructuralOrBool::Structural(schema) => Some(schema),
            StructuralOrBool::Bool(_) => None,
        }
    }
}

/// What is not allowed under a junctor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generic {
    /// `description`
    pub description: Box<str>,
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty.
    pub type_: String,
    /// `default`
    pub default: Option<Box<Value>>,
    /// `nullable`
    pub nullable: bool,
    /// What validates nothing.
    pub annotations: Rare<Annotations>,
}

/// The `x-kubernetes-*` extensions but for the rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extensions {
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`
    pub int_or_string: bool,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<String>,
    /// `atomic`, `set` or `map`.
    pub list_type: Option<String>,
    /// `granular` or `atomic`.
    pub map_type: Option<String>,
}

/// The texts and numbers of a long enumeration, for lookup.
#[derive(Debug, Default, PartialEq)]
pub struct EnumIndex {
    texts: HashSet<String>,
    ints: HashSet<i64>,
    /// By their bits.
    floats: HashSet<u64>,
}

impl EnumIndex {
    /// The least number of values for which the index pays.
    const VALUES_MIN: usize = 32;

    /// The index of `values`, if it pays.
    pub fn of(values: &[Value]) -> Option<Arc<Self>> {
        work::steps(values.len());
        if values.len() < Self::VALUES_MIN {
            return None;
        }
        let mut index = EnumIndex::default();
        for value in values {
            match value {
                Value::String(text) => _ = index.texts.insert(text.clone()),
                Value::Int(number) => _ = index.ints.insert(*number),
                Value::Float(number) => _ = index.floats.insert(bits(*number)),
                _ => {}
            }
        }
        Some(Arc::new(index))
    }

    /// Whether a text or a number is among the values, without conversion.
    pub fn contains(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.texts.contains(text),
            Value::Int(number) => self.ints.contains(number),
            Value::Float(number) => self.floats.contains(&bits(*number)),
            _ => false,
        }
    }
}

/// Negative zero equals zero.
fn bits(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// Keywords that constrain values without adding structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueValidation {
    /// `format`
    pub format: String,
    /// Limits of numbers, texts, lists and maps.
    pub bounds: Rare<SchemaBounds>,
    /// `pattern`
    pub pattern: String,
    /// `pattern`, compiled; `None` if there is none or it does not compile.
    pub compiled_pattern: Option<Arc<Pattern>>,
    /// `enum`
    pub enum_: Vec<Value>,
    /// Present if `enum_` is long.
    pub enum_index: Option<Arc<EnumIndex>>,
    /// `required`
    pub required: Vec<String>,
    /// `allOf`, `oneOf`, `anyOf`, `not`.
    pub junctors: Rare<Junctors<NestedValueValidation>>,
}

/// Value validation under a junctor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NestedValueValidation {
    /// The validation that the value must pass.
    pub value_validation: ValueValidation,
    /// `x-kubernetes-validations`
    pub validations: Vec<ValidationRule>,
    /// `items`
    pub items: Option<Box<NestedValueValidation>>,
    /// `properties`
    pub properties: Map<NestedValueValidation>,
    /// `additionalProperties`
    pub additional_properties: Option<Box<NestedValueValidation>>,
    /// `additionalProperties: false`, which structural schemas allow here; it forbids all fields but `properties`.
    pub forbids_additional_properties: bool,
    /// Whether it gives a keyword as an empty list or map, which Go distinguishes from an absent one: it is then no part of
    /// the int-or-string pattern.
    pub gives_empty: bool,
    /// Forbidden here, except for the types of the int-or-string pattern.
    pub forbidden_generics: Rare<Generic>,
    /// Forbidden here.
    pub forbidden_extensions: Rare<Extensions>,
}

impl Blank for Generic {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Generic> = LazyLock::new(Generic::default);
        &BLANK
    }
}

impl Blank for Junctors<NestedValueValidation> {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Junctors<NestedValueValidation>> = LazyLock::new(Junctors::default);
        &BLANK
    }
}

impl Blank for Extensions {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Extensions> = LazyLock::new(Extensions::default);
        &BLANK
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::meta::field::Path;
    use crate::schema::{arbitrary, coerce, default, list_type};
    use crate::value::arbitrary::value;

    /// A schema with sets if `is_set`, and with `lacks` reset unless `is_noted`.
    fn changed(mut schema: Structural, is_set: bool, is_noted: bool) -> Structural {
        let change = |schema: Structural| changed(schema, is_set, is_noted);
        schema.items = schema.items.map(|items| Box::new(change(*items)));
        schema.properties = schema.properties.into_iter().map(|(name, property)| (name, change(property))).collect();
        schema.additional_properties = schema.additional_properties.map(|other| match other {
            StructuralOrBool::Structural(other) => StructuralOrBool::Structural(Box::new(change(*other))),
            allowed => allowed,
        });
        if is_set && schema.generic.nullable {
            schema.extensions.list_type = Some("set".to_owned());
        }
        schema.lacks = Lacks::default();
        if is_noted {
            schema.note_lacks();
        }
        schema
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

        #[test]
        fn passes_find_the_same_where_it_is_known_what_is_lacking(
            value in value(),
            schema in arbitrary::schema(),
            is_set: bool,
            is_root: bool,
        ) {
            let noted = changed(schema.clone(), is_set, true);
            let unknown = changed(schema, is_set, false);
            let found = |schema: &Structural| {
                let mut passed = value.clone();
                let dropped = coerce::coerce(&Path::ROOT, &mut passed, schema, is_root, true);
                let room = default::apply(&mut passed, schema);
                let embedded = coerce::validate_embedded(&Path::ROOT, &passed, schema, is_root);
                let lists = list_type::validate(&Path::ROOT, &passed, schema);
                (passed, dropped, room, embedded, lists)
            };
            prop_assert_eq!(found(&noted), found(&unknown));
        }
    }

    #[test]
    fn a_list_without_what_is_looked_for_is_not_gone_through() {
        let mut item = Structural::default();
        item.note_lacks();
        let mut list = Structural { items: Some(Box::new(item)), ..Structural::default() };
        list.note_lacks();
        let mut schema = Structural { properties: Map::from_iter([("l", list)]), ..Structural::default() };
        schema.note_lacks();
        let mut value = crate::object! { "l" => vec![Value::Null; 1_000] };
        let passes: [fn(&mut Value, &Structural); 4] = [
            |value, schema| _ = default::apply(value, schema),
            |value, schema| _ = coerce::coerce(&Path::ROOT, value, schema, false, true),
            |value, schema| _ = coerce::validate_embedded(&Path::ROOT, value, schema, false),
            |value, schema| _ = list_type::validate(&Path::ROOT, value, schema),
        ];
        for (at, pass) in passes.into_iter().enumerate() {
            let ((), steps) = work::counted(|| pass(&mut value, &schema));
            assert!(steps < 10, "{steps} steps in pass {at}");
        }
    }
}
