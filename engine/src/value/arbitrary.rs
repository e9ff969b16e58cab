//! Random values for property tests.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::Value;

/// Few names, so that those of values and schemas match.
pub fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "kind", "metadata"]).prop_map(str::to_owned)
}

/// Values of every type, nested a little.
pub fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..3).prop_map(Value::Int),
        (-2_i8..3).prop_map(|half| Value::Float(f64::from(half) / 2.0)),
        name().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(name(), inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
