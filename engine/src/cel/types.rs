//! CEL types, and declared types: what a schema says about a value, including its maximum size.
//!
//! The two refer to each other: an object type has declared fields.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::meta::minor::Minor;

/// The name of the message type without fields, which has a type of its own.
pub const EMPTY: &str = "google.protobuf.Empty";

/// The type of an expression. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any value; the type is known at evaluation.
    Dyn,
    /// The type of an expression that failed the check; agrees with every type.
    Error,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `google.protobuf.Any`.
    Any,
    /// A scalar or null: one of the `google.protobuf` wrappers.
    Wrapper(Scalar),
    /// A list of this type.
    List(Arc<Type>),
    /// A map: the types of keys and values.
    Map(Arc<(Type, Type)>),
    /// An object with declared fields. Nominal: types with the same name are equal.
    Object(Arc<ObjectType>),
    /// A type known only by its name and parameters: `optional_type(int)`, `kubernetes.NamedFormat`.
    Opaque(Arc<OpaqueType>),
    /// A type variable: of an overload (`A`) or of the checker (`_var0`).
    Param(Arc<str>),
    /// The type of a type; holds that type where it is known.
    Type(Option<Arc<Type>>),
}

/// The scalar in a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
}

/// A type of a library; expressions cannot look inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpaqueType {
    /// The type's name: `optional_type`, `kubernetes.NamedFormat`.
    pub name: String,
    /// The type parameters.
    pub params: Vec<Type>,
}

/// The declared type of a node of a schema.
#[derive(Clone, Debug)]
pub struct DeclType {
    /// The type as the checker sees it.
    pub ty: Type,
    /// The structure of the type, without its bounds.
    pub shape: DeclShape,
    /// The maximum number of bytes of a string, items of a list or entries of a map; 0 for types without a size.
    pub max_elements: u64,
    /// The length in bytes of the shortest JSON text of a value of this type.
    pub min_serialized_size: u64,
}

/// The structure of a declared type.
#[derive(Clone, Debug)]
pub enum DeclShape {
    /// A scalar.
    Scalar,
    /// A list of this type.
    List(Arc<DeclType>),
    /// A map; its keys are strings.
    Map {
        /// The type of the keys.
        key: Arc<DeclType>,
        /// The type of the values.
        value: Arc<DeclType>,
    },
    /// An object with known fields.
    Object(Arc<ObjectType>),
}

/// An object type: a name, which identifies it, and fields by their (escaped) names.
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
    /// Whether every object has it.
    pub required: bool,
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

impl Type {
    /// The name of the type of optional values.
    pub const OPTIONAL: &str = "optional_type";
    /// The first version of Kubernetes that uses this name. Before, errors said `optional`, and no expression could
    /// name the type.
    pub const OPTIONAL_SINCE: Minor = Minor::of(31);
    /// The first minor in which the name alone is the type of optionals of `dyn`; before, it has no parameter.
    pub const OPTIONAL_OF_DYN_SINCE: Minor = Minor::of(37);

    /// The type of lists with these elements.
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// The type of maps with these keys and values.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// The type `optional_type(of)`.
    pub fn optional(of: Type) -> Type {
        Type::opaque(Type::OPTIONAL, vec![of])
    }

    /// A library's opaque type.
    pub fn opaque(name: &str, params: Vec<Type>) -> Type {
        Type::Opaque(Arc::new(OpaqueType { name: name.to_owned(), params }))
    }

    /// An object type without declared fields, such as `kubernetes.URL`.
    pub fn object(name: &str) -> Type {
        Type::Object(Arc::new(ObjectType::new(name)))
    }

    /// A type parameter, which each call binds: `T`.
    pub fn param(name: &str) -> Type {
        Type::Param(Arc::from(name))
    }

    /// The type of the type `of`.
    pub fn type_of(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    /// The type that CEL calls `name`.
    pub fn named(name: &str) -> Option<Type> {
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "string" => Type::String,
            "type" => Type::Type(None),
            "uint" => Type::Uint,
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Any" => Type::Any,
            EMPTY => Type::object(name),
            "google.protobuf.Value" => Type::Dyn,
            "google.protobuf.Struct" => Type::map(Type::String, Type::Dyn),
            "google.protobuf.ListValue" => Type::list(Type::Dyn),
            "google.protobuf.BoolValue" => Type::Wrapper(Scalar::Bool),
            "google.protobuf.Int32Value" | "google.protobuf.Int64Value" => Type::Wrapper(Scalar::Int),
            "google.protobuf.UInt32Value" | "google.protobuf.UInt64Value" => Type::Wrapper(Scalar::Uint),
            "google.protobuf.FloatValue" | "google.protobuf.DoubleValue" => Type::Wrapper(Scalar::Double),
            "google.protobuf.StringValue" => Type::Wrapper(Scalar::String),
            "google.protobuf.BytesValue" => Type::Wrapper(Scalar::Bytes),
            _ => return None,
        })
    }

    /// The name of the type without its parameters, as it is at evaluation.
    pub fn runtime_name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool | Type::Wrapper(Scalar::Bool) => "bool",
            Type::Int | Type::Wrapper(Scalar::Int) => "int",
            Type::Uint | Type::Wrapper(Scalar::Uint) => "uint",
            Type::Double | Type::Wrapper(Scalar::Double) => "double",
            Type::String | Type::Wrapper(Scalar::String) => "string",
            Type::Bytes | Type::Wrapper(Scalar::Bytes) => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Any => "google.protobuf.Any",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Object(object) => &object.name,
            Type::Opaque(opaque) => &opaque.name,
            Type::Param(name) => name,
            Type::Type(_) => "type",
        }
    }

    /// The name of the type as Go prints it outside the checker's own messages: `list(null_type)`.
    pub fn go_name(&self) -> String {
        let name = self.runtime_name();
        match self {
            Type::Wrapper(_) => format!("wrapper({name})"),
            Type::List(element) => format!("{name}({})", element.go_name()),
            Type::Map(entry) => format!("{name}({}, {})", entry.0.go_name(), entry.1.go_name()),
            Type::Type(Some(of)) => format!("{name}({})", of.go_name()),
            Type::Opaque(opaque) if !opaque.params.is_empty() => {
                let params: Vec<String> = opaque.params.iter().map(Type::go_name).collect();
                format!("{name}({})", params.join(", "))
            }
            _ => name.to_owned(),
        }
    }

    /// The type of an optional's value; `None` for other types.
    pub fn optional_content(&self) -> Option<&Type> {
        match self {
            Type::Opaque(opaque) if opaque.name == Type::OPTIONAL => opaque.params.first(),
            _ => None,
        }
    }

    /// Whether the type is unknown until evaluation: `dyn` or `google.protobuf.Any`.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }
}

impl Scalar {
    /// The type without the wrapper.
    pub fn as_type(self) -> Type {
        match self {
            Scalar::Bool => Type::Bool,
            Scalar::Int => Type::Int,
            Scalar::Uint => Type::Uint,
            Scalar::Double => Type::Double,
            Scalar::String => Type::String,
            Scalar::Bytes => Type::Bytes,
        }
    }
}

/// Prints the type as the checker does: `list(string)`, `map(string, int)`, `optional_type(int)`.
impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => formatter.write_str("dyn"),
            Type::Error => formatter.write_str("!error!"),
            Type::Null => formatter.write_str("null"),
            Type::Bool => formatter.write_str("bool"),
            Type::Int => formatter.write_str("int"),
            Type::Uint => formatter.write_str("uint"),
            Type::Double => formatter.write_str("double"),
            Type::String => formatter.write_str("string"),
            Type::Bytes => formatter.write_str("bytes"),
            Type::Duration => formatter.write_str("duration"),
            Type::Timestamp => formatter.write_str("timestamp"),
            Type::Any => formatter.write_str("any"),
            Type::Wrapper(scalar) => write!(formatter, "wrapper({})", scalar.as_type()),
            Type::List(element) => write!(formatter, "list({element})"),
            Type::Map(entry) => write!(formatter, "map({}, {})", entry.0, entry.1),
            Type::Object(object) => formatter.write_str(&object.name),
            Type::Opaque(opaque) if opaque.params.is_empty() => formatter.write_str(&opaque.name),
            Type::Opaque(opaque) => {
                write!(formatter, "{}(", opaque.name)?;
                for (index, param) in opaque.params.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(formatter, "{separator}{param}")?;
                }
                formatter.write_str(")")
            }
            Type::Param(name) => formatter.write_str(name),
            Type::Type(None) => formatter.write_str("type"),
            Type::Type(Some(of)) => write!(formatter, "type({of})"),
        }
    }
}
