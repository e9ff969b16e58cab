//! Declared types: what a schema says about a value, and how large the value can be.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::escape;
use super::types::Type;
use crate::work;

/// The declared type of a node of a schema.
#[derive(Clone, Debug)]
pub struct DeclType {
    /// What the checker sees.
    pub ty: Type,
    /// What the type has beside its bounds.
    pub shape: DeclShape,
    /// Bytes of a string, items of a list, entries of a map; 0 for what has no size.
    pub max_elements: u64,
    /// The length of the shortest JSON that is a value of the type, in bytes.
    pub min_serialized_size: u64,
}

/// What a declared type is made of.
#[derive(Clone, Debug)]
pub enum DeclShape {
    /// A scalar.
    Scalar,
    /// A list of this type.
    List(Arc<DeclType>),
    /// Keys are strings.
    Map {
        /// The type of the keys.
        key: Arc<DeclType>,
        /// The type of the values.
        value: Arc<DeclType>,
    },
    /// An object with known fields.
    Object(Arc<ObjectType>),
}

/// An object type: a name, which tells it from others, and fields by their (escaped) names.
#[derive(Clone, Debug, Default)]
pub struct ObjectType {
    /// The name of the type, in messages.
    pub name: String,
    /// The fields by their names in CEL.
    pub fields: BTreeMap<String, DeclField>,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct DeclField {
    /// Its type.
    pub decl: DeclType,
    /// Whether objects always have it.
    pub required: bool,
}

impl ObjectType {
    /// The name of the type of a policy's variables, which may have no fields yet.
    pub const VARIABLES: &str = "kubernetes.variables";

    /// An object type without fields.
    pub fn new(name: &str) -> Self {
        ObjectType { name: name.to_owned(), fields: BTreeMap::new() }
    }

    /// The field that an expression calls `name`. A reserved word may stand for its escaped form.
    pub fn field(&self, name: &str) -> Option<&DeclField> {
        self.fields.get(name).or_else(|| {
            let escaped = escape::is_reserved(name).then(|| escape::escape(name))??;
            self.fields.get(&*escaped)
        })
    }

    /// Whether this is a type of a library, of which nobody declares fields.
    pub fn is_of_library(&self) -> bool {
        self.fields.is_empty() && self.name.starts_with("kubernetes.") && self.name != ObjectType::VARIABLES
    }
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

impl Hash for ObjectType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl DeclType {
    /// A scalar of at most so many elements (characters, bytes), which takes at least so many bytes in JSON.
    pub fn scalar(ty: Type, max_elements: u64, min_serialized_size: u64) -> Self {
        DeclType { ty, shape: DeclShape::Scalar, max_elements, min_serialized_size }
    }

    /// A list of at most so many items.
    pub fn list(element: DeclType, max_items: u64) -> Self {
        let ty = Type::list(element.ty.clone());
        DeclType { ty, shape: DeclShape::List(Arc::new(element)), max_elements: max_items, min_serialized_size: 2 }
    }

    /// A map of at most so many entries.
    pub fn map(key: DeclType, value: DeclType, max_properties: u64) -> Self {
        let ty = Type::map(key.ty.clone(), value.ty.clone());
        let shape = DeclShape::Map { key: Arc::new(key), value: Arc::new(value) };
        DeclType { ty, shape, max_elements: max_properties, min_serialized_size: 2 }
    }

    /// An object that takes at least so many bytes in JSON.
    pub fn object(object: ObjectType, min_serialized_size: u64) -> Self {
        let object = Arc::new(object);
        DeclType {
            ty: Type::Object(object.clone()),
            shape: DeclShape::Object(object),
            max_elements: 0,
            min_serialized_size,
        }
    }

    /// The same with names for the object types that have none yet (that are called `object`): `name` for the type
    /// itself, and for those within by where they are, `name.field`, `name.@idx` for items, `name.@elem` for values.
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
