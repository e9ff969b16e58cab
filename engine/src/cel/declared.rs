//! Declared types: their construction, and access to their parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::escape;
use super::types::Type;
use crate::work;

pub use super::types::{DeclField, DeclShape, DeclType, ObjectType};

impl ObjectType {
    /// The name of the type of a policy's variables, which may have no fields yet.
    pub const VARIABLES: &str = "kubernetes.variables";

    /// An object type without fields.
    pub fn new(name: &str) -> Self {
        ObjectType { name: name.to_owned(), fields: BTreeMap::new() }
    }

    /// The field that an expression refers to as `name`. A reserved word may be used in place of its escaped form.
    pub fn field(&self, name: &str) -> Option<&DeclField> {
        self.fields.get(name).or_else(|| {
            let escaped = escape::is_reserved(name).then(|| escape::escape(name))??;
            self.fields.get(&*escaped)
        })
    }

    /// Whether this is a library type, whose fields are not declared.
    pub fn is_of_library(&self) -> bool {
        self.fields.is_empty() && self.name.starts_with("kubernetes.") && self.name != ObjectType::VARIABLES
    }
}

impl DeclType {
    /// A scalar of at most `max_elements` characters or bytes, whose JSON has at least `min_serialized_size` bytes.
    pub fn scalar(ty: Type, max_elements: u64, min_serialized_size: u64) -> Self {
        DeclType { ty, shape: DeclShape::Scalar, max_elements, min_serialized_size }
    }

    /// A list of at most `max_items` items.
    pub fn list(element: DeclType, max_items: u64) -> Self {
        let ty = Type::list(element.ty.clone());
        DeclType { ty, shape: DeclShape::List(Arc::new(element)), max_elements: max_items, min_serialized_size: 2 }
    }

    /// A map of at most `max_properties` entries.
    pub fn map(key: DeclType, value: DeclType, max_properties: u64) -> Self {
        let ty = Type::map(key.ty.clone(), value.ty.clone());
        let shape = DeclShape::Map { key: Arc::new(key), value: Arc::new(value) };
        DeclType { ty, shape, max_elements: max_properties, min_serialized_size: 2 }
    }

    /// An object whose JSON has at least `min_serialized_size` bytes.
    pub fn object(object: ObjectType, min_serialized_size: u64) -> Self {
        let object = Arc::new(object);
        DeclType {
            ty: Type::Object(object.clone()),
            shape: DeclShape::Object(object),
            max_elements: 0,
            min_serialized_size,
        }
    }

    /// The same with names for the object types that don't have any yet (that are called `object`): `name` for the type
    /// itself, and for the types within it by their position, `name.field`, `name.@idx` for items, `name.@elem` for
    /// values.
    #[must_use]
    pub fn named(&self, name: &str) -> DeclType {
        work::bytes(name.len());
        match &self.shape {
            DeclShape::Scalar => self.clone(),
            DeclShape::List(element) => {
                let element = element.named(&format!("{name}.@idx"));
                DeclType { min_serialized_size: self.min_serialized_size, ..DeclType::list(element, self.max_elements) }
            }
            DeclShape::Map { key, value } => {
                let value = value.named(&format!("{name}.@elem"));
                DeclType {
                    min_serialized_size: self.min_serialized_size,
                    ..DeclType::map((**key).clone(), value, self.max_elements)
                }
            }
            DeclShape::Object(object) => {
                let name = if object.name == "object" { name } else { &object.name };
                let fields = object.fields.iter().map(|(field_name, field)| {
                    let decl = field.decl.named(&format!("{name}.{field_name}"));
                    (field_name.clone(), DeclField { decl, required: field.required })
                });
                let object = ObjectType { name: name.to_owned(), fields: fields.collect() };
                DeclType::object(object, self.min_serialized_size)
            }
        }
    }

    /// The declared type of the field `name`, if this is an object that has it.
    pub fn field(&self, name: &str) -> Option<&DeclType> {
        match &self.shape {
            DeclShape::Object(object) => object.fields.get(name).map(|field| &field.decl),
            _ => None,
        }
    }

    /// The declared type of items or map values.
    pub fn element(&self) -> Option<&DeclType> {
        match &self.shape {
            DeclShape::List(element) | DeclShape::Map { value: element, .. } => Some(element),
            DeclShape::Scalar | DeclShape::Object(_) => None,
        }
    }
}
