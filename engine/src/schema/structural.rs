//! The structural schema: what every pass works on.
//!
//! Structure (types, properties, extensions) stands apart from value validation, and value validation nested under a
//! junctor (`allOf`, `anyOf`, `oneOf`, `not`) can't add structure. [`super::convert`] makes one from a
//! [`JsonSchema`](super::json_schema::JsonSchema), [`super::check`] tells whether it is well formed.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use super::json_schema::{Annotations, Bounds, Junctors, ValidationRule};
use super::pattern::Pattern;
use super::rare::{Blank, Rare};
use crate::value::{Map, Value};
use crate::work;

/// A node of a structural schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structural {
    pub items: Option<Box<Structural>>,
    pub properties: Map<Structural>,
    pub additional_properties: Option<StructuralOrBool>,
    pub generic: Generic,
    pub extensions: Rare<Extensions>,
    pub validations: Vec<ValidationRule>,
    /// `None` where no value validation is given at all.
    pub value_validation: Option<Box<ValueValidation>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StructuralOrBool {
    Structural(Box<Structural>),
    Bool(bool),
}

impl StructuralOrBool {
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
    pub description: Box<str>,
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty.
    pub type_: String,
    pub default: Option<Box<Value>>,
    pub nullable: bool,
    pub annotations: Rare<Annotations>,
}

/// The `x-kubernetes-*` extensions but for the rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extensions {
    pub preserve_unknown_fields: bool,
    pub embedded_resource: bool,
    pub int_or_string: bool,
    pub list_map_keys: Vec<String>,
    /// `atomic`, `set` or `map`.
    pub list_type: Option<String>,
    /// `granular` or `atomic`.
    pub map_type: Option<String>,
}

/// The texts and numbers of a long enumeration, to be looked up.
#[derive(Debug, Default, PartialEq)]
pub struct EnumIndex {
    texts: HashSet<String>,
    ints: HashSet<i64>,
    /// By their bits.
    floats: HashSet<u64>,
}

impl EnumIndex {
    /// How many values are faster compared one by one.
    const VALUES_MIN: usize = 32;

    /// The index of `values`, where it is worth it.
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

    /// Whether a text or a number is among them, as it is.
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
    pub format: String,
    pub bounds: Rare<Bounds>,
    pub pattern: String,
    /// `pattern`, compiled; `None` where there is none or it does not compile.
    pub compiled_pattern: Option<Arc<Pattern>>,
    pub enum_: Vec<Value>,
    /// Made where `enum_` is long.
    pub enum_index: Option<Arc<EnumIndex>>,
    pub required: Vec<String>,
    pub junctors: Rare<Junctors<NestedValueValidation>>,
}

/// Value validation under a junctor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NestedValueValidation {
    pub value_validation: ValueValidation,
    pub validations: Vec<ValidationRule>,
    pub items: Option<Box<NestedValueValidation>>,
    pub properties: Map<NestedValueValidation>,
    pub additional_properties: Option<Box<NestedValueValidation>>,
    /// `additionalProperties: false`, which structural schemas allow here and which refuses all but `properties`.
    pub forbids_additional_properties: bool,
    /// Forbidden here, but for the types of the int-or-string pattern.
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
