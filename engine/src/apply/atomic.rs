//! Which fields of an object are atomic.

use std::fmt::Write;

use super::type_schema::{Items, TypeId, TypeSchema};
use crate::value::Value;
use crate::work;

impl TypeSchema {
    /// The paths of the lists, maps and structs of `object` that are atomic, as `.spec.selector`; items are named by
    /// their index.
    ///
    /// Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch`, `findAtomics`, release 1.37.
    pub fn atomics(&self, object: &Value) -> Vec<String> {
        let mut walk = AtomicWalk { types: self, path: String::new(), found: Vec::new() };
        walk.value(self.root(), object);
        walk.found
    }
}

struct AtomicWalk<'t> {
    types: &'t TypeSchema,
    path: String,
    found: Vec<String>,
}

impl AtomicWalk<'_> {
    fn value(&mut self, id: TypeId, value: &Value) {
        work::step();
        let (types, end) = (self.types, self.path.len());
        let type_ = types.get(id);
        match (value, &type_.map, &type_.list) {
            (Value::Object(fields), Some(map), _) => {
                if map.atomic {
                    self.found.push(self.path.clone());
                }
                for (name, value) in fields.iter() {
                    if map.passes_over(name) {
                        self.found.push(format!("{}.{name}", self.path));
                    }
                    // Undeclared fields are not looked into.
                    let Some((_, id)) = map.field(name) else { continue };
                    self.path.push('.');
                    self.path.push_str(name);
                    self.value(id, value);
                    self.path.truncate(end);
                }
            }
            (Value::Array(items), _, Some(list)) => {
                if matches!(list.items, Items::Atomic) {
                    self.found.push(self.path.clone());
                }
                for (index, item) in items.iter().enumerate() {
                    // Writing to a string does not fail.
                    let _ = write!(self.path, "[{index}]");
                    self.value(list.element, item);
                    self.path.truncate(end);
                }
            }
            _ => {}
        }
    }
}
