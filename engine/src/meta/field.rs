//! Field paths and field errors, in Kubernetes' words.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation/field`, release 1.37.

use std::fmt;

use crate::value::Value;
use crate::work;

pub use super::error_list::{ERRORS_BYTES_MAX, ErrorList};

/// The path of a field: `spec.versions[0].schema`, `metadata.labels[a/b]`. Cheap to extend, as it borrows its parent.
///
/// The root prints as `<nil>`, as Go's nil path does.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: PathPart<'a>,
}

#[derive(Clone, Copy, Debug)]
enum PathPart<'a> {
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The nil path.
    pub const ROOT: Path<'static> = Path { parent: None, step: PathPart::Root };

    /// A path of one field.
    pub const fn new(name: &'a str) -> Self {
        Path { parent: None, step: PathPart::Child(name) }
    }

    /// The field `name` of this.
    pub const fn child(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: PathPart::Child(name) }
    }

    /// The list item at `index`.
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: PathPart::Index(index) }
    }

    /// The map entry under `key`.
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: PathPart::Key(key) }
    }

    /// Whether it has no elements.
    pub const fn is_root(&self) -> bool {
        matches!(self.step, PathPart::Root)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = self.parent.filter(|parent| !parent.is_root());
        if let Some(parent) = parent {
            parent.fmt(out)?;
        }
        match self.step {
            PathPart::Root => out.write_str("<nil>"),
            // Go prints a nameless child as an empty subscript.
            PathPart::Child("") => out.write_str("[]"),
            PathPart::Child(name) if parent.is_some() => write!(out, ".{name}"),
            PathPart::Child(name) => out.write_str(name),
            PathPart::Index(index) => write!(out, "[{index}]"),
            PathPart::Key(key) => write!(out, "[{key}]"),
        }
    }
}

/// The kind of an error; named and spelled as Kubernetes' `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// The value is not there.
    NotFound,
    /// The value must be there.
    Required,
    /// The value is there already.
    Duplicate,
    /// The value is not allowed.
    Invalid,
    /// The value is not one of those allowed.
    NotSupported,
    /// The field must not be set.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The text is too short.
    TooShort,
    /// There are too many items.
    TooMany,
    /// There are too few items.
    TooFew,
    /// The server failed.
    Internal,
    /// The value is of the wrong type.
    TypeInvalid,
}

impl ErrorType {
    /// The reason in `details.causes`: `FieldValueInvalid`, …
    pub const fn reason(self) -> &'static str {
        match self {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooShort => "FieldValueTooShort",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::TooFew => "FieldValueTooFew",
            ErrorType::Internal => "InternalError",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The words at the start of the message: `Invalid value`, …
    pub const fn words(self) -> &'static str {
        match self {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooShort => "Too short",
            ErrorType::TooMany => "Too many",
            ErrorType::TooFew => "Too few",
            ErrorType::Internal => "Internal error",
        }
    }

    const fn shows_bad_value(self) -> bool {
        !matches!(
            self,
            ErrorType::Required | ErrorType::Forbidden | ErrorType::TooLong | ErrorType::TooShort | ErrorType::Internal
        )
    }
}

/// The subject of an error, for code that handles it before it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ErrorSubject {
    /// The value of the field.
    #[default]
    Value,
    /// A field that its type does not have.
    UnknownField,
    /// A value that Go's decoder can't read; the detail is the whole message.
    Unreadable,
    /// A rule that the value breaks, or that can't be evaluated for it: the number of the evaluation, from 0.
    Rule(usize),
    /// Rules that were not run, as the value has other errors.
    SkippedRules,
    /// An expression that does not compile: its errors, in the order of the text.
    Expression(Vec<ExpressionFault>),
    /// An expression whose estimated cost is too high, alone or with others.
    EstimatedCost,
    /// A reason why a schema is not structural.
    Structure,
}

/// A single error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFault {
    /// The line, from 1; 0 for the whole expression.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The undeclared reference, if that is the error.
    pub undeclared: Option<Undeclared>,
}

/// A reference to something that an expression's environment does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undeclared {
    /// A variable or a type; for a function whose name has several parts, the first of these.
    Name(String),
    /// A function or a method.
    Function(String),
}

impl Undeclared {
    /// The name as it is in the expression.
    pub fn name(&self) -> &str {
        let (Undeclared::Name(name) | Undeclared::Function(name)) = self;
        name
    }
}

/// A single error of a single field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What kind of error it is.
    pub kind: ErrorType,
    /// The path as text; `<nil>` at the root.
    pub field: String,
    /// `None` for Go's `OmitValueType`: the message then omits the value.
    pub bad_value: Option<Value>,
    /// The bad value as the message shows it, if not as JSON with sorted keys: Go prints structs in the order of their
    /// fields.
    pub shown: Option<String>,
    /// The description of the error, for people.
    pub detail: String,
    /// What the error is about.
    pub subject: ErrorSubject,
}

impl Error {
    fn new(kind: ErrorType, path: &Path<'_>, bad_value: Option<Value>, detail: impl Into<String>) -> Self {
        let field = path.to_string();
        work::bytes(field.len());
        Error { kind, field, bad_value, shown: None, detail: detail.into(), subject: ErrorSubject::Value }
    }

    /// `Invalid value`
    pub fn invalid(path: &Path<'_>, bad_value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Error::new(ErrorType::Invalid, path, Some(bad_value.into()), detail)
    }

    /// An invalid value that the message does not show.
    pub fn invalid_omitted(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorType::Invalid, path, None, detail)
    }

    /// `Invalid value`, for a value of the wrong type.
    pub fn type_invalid(path: &Path<'_>, bad_value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Error::new(ErrorType::TypeInvalid, path, Some(bad_value.into()), detail)
    }

    /// `Required value`
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorType::Required, path, Some(Value::from("")), detail)
    }

    /// `Duplicate value`
    pub fn duplicate(path: &Path<'_>, bad_value: impl Into<Value>) -> Self {
        Error::new(ErrorType::Duplicate, path, Some(bad_value.into()), "")
    }

    /// `Not found`
    pub fn not_found(path: &Path<'_>, bad_value: impl Into<Value>) -> Self {
        Error::new(ErrorType::NotFound, path, Some(bad_value.into()), "")
    }

    /// `Unsupported value`, with the supported ones.
    pub fn not_supported(path: &Path<'_>, bad_value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| crate::value::go_quote(value)).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Error::new(ErrorType::NotSupported, path, Some(bad_value.into()), detail)
    }

    /// `Forbidden`
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorType::Forbidden, path, Some(Value::from("")), detail)
    }

    /// A text or serialised value of more than `bytes_max` bytes.
    pub fn too_long(path: &Path<'_>, bytes_max: i64) -> Self {
        let detail = if bytes_max >= 0 {
            format!("may not be more than {bytes_max} byte{}", if bytes_max == 1 { "" } else { "s" })
        } else {
            "value is too long".to_owned()
        };
        Error::new(ErrorType::TooLong, path, Some(Value::from("<value omitted>")), detail)
    }

    /// A text of more than `characters_max` characters.
    pub fn too_long_in_characters(path: &Path<'_>, characters_max: i64) -> Self {
        let detail =
            format!("may not be more than {characters_max} character{}", if characters_max == 1 { "" } else { "s" });
        Error::new(ErrorType::TooLong, path, Some(Value::from("<value omitted>")), detail)
    }

    /// A list or map of `actual` entries, of which `max` are allowed.
    pub fn too_many(path: &Path<'_>, actual: i64, max: i64) -> Self {
        let detail = if max >= 0 {
            format!("must have at most {max} item{}", if max == 1 { "" } else { "s" })
        } else {
            "has too many items".to_owned()
        };
        let bad_value = if actual >= 0 { Some(Value::Int(actual)) } else { None };
        Error::new(ErrorType::TooMany, path, bad_value, detail)
    }

    /// An error about the field with the path `field`, without a value.
    pub fn at(field: impl Into<String>, kind: ErrorType, detail: impl Into<String>) -> Self {
        Error {
            kind,
            field: field.into(),
            bad_value: None,
            shown: None,
            detail: detail.into(),
            subject: ErrorSubject::Value,
        }
    }

    /// The error for the field with the path `field`, which its type does not have.
    pub fn unknown_field(field: &str) -> Self {
        Error::at(field, ErrorType::Invalid, format!("unknown field \"{field}\"")).about(ErrorSubject::UnknownField)
    }

    /// The same error, about `subject`.
    pub fn about(mut self, subject: ErrorSubject) -> Self {
        self.subject = subject;
        self
    }

    /// The same error, with its bad value shown as `text`.
    pub fn shown_as(mut self, text: String) -> Self {
        self.shown = Some(text);
        self
    }

    /// The same error, with its bad value shown as JSON, as Go shows a text behind a pointer or of a named type.
    pub fn shown_as_json(self) -> Self {
        match self.bad_value.as_ref().map(crate::value::json::encode_to_string) {
            Some(text) => self.shown_as(text),
            None => self,
        }
    }

    /// `Internal error`
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorType::Internal, path, None, detail)
    }

    /// The message without the field: `Invalid value: "x": must be y`.
    pub fn body(&self) -> String {
        let mut body = self.kind.words().to_owned();
        if let (true, Some(value)) = (self.kind.shows_bad_value(), &self.bad_value) {
            body.push_str(": ");
            match &self.shown {
                Some(text) => body.push_str(text),
                None => body.push_str(&crate::value::go_display(value)),
            }
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for Error {}
