//! Kubernetes' CustomResourceDefinitions as a library: what kubeskiff is made of, without its server.
//!
//! Schemas with pruning, defaulting and validation, rules in CEL with their types and costs, server-side apply, and the
//! built-in kinds, all with the verdicts and texts of Kubernetes 1.37. Nothing here does I/O or reads a clock.
//!
//! # Validate an object
//!
//! A [`Catalog`](author::Catalog) knows kinds by their definitions; [`author::check`] tells what the server would
//! say to an object.
//!
//! ```
//! use kubeskiff_engine::author::Catalog;
//! use kubeskiff_engine::author::check;
//! use kubeskiff_engine::value::yaml;
//!
//! let definition = yaml::decode(br#"
//! apiVersion: apiextensions.k8s.io/v1
//! kind: CustomResourceDefinition
//! metadata: {name: widgets.example.com}
//! spec:
//!   group: example.com
//!   names: {kind: Widget, plural: widgets}
//!   scope: Namespaced
//!   versions:
//!   - name: v1
//!     served: true
//!     storage: true
//!     schema:
//!       openAPIV3Schema:
//!         type: object
//!         properties:
//!           spec:
//!             type: object
//!             properties:
//!               size: {type: integer, maximum: 3}
//!               colour: {type: string, default: red}
//! "#)?;
//! let mut catalog = Catalog::default();
//! catalog.add(&definition)?;
//!
//! let object = yaml::decode(b"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 5}}")?;
//! let kind = catalog.of(&object).expect("its definition was added");
//! let checked = check::create(kind, &object, check::CheckOptions::default());
//!
//! let error = &checked.errors[0].error;
//! assert_eq!(error.to_string(), "spec.size: Invalid value: 5: spec.size in body should be less than or equal to 3");
//! assert_eq!(checked.object.str_at(&["spec", "colour"]), "red");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Run and price a rule
//!
//! [`cel`] has parser, type checker, cost estimate and evaluator; [`schema`] declares what a schema is to a rule.
//!
//! ```
//! use kubeskiff_engine::cel::cost::estimate;
//! use kubeskiff_engine::cel::env::{Env, Expressions};
//! use kubeskiff_engine::cel::eval::{Program, Value};
//! use kubeskiff_engine::schema::declare::declare;
//! use kubeskiff_engine::schema::form::form;
//! use kubeskiff_engine::schema::{convert, json_schema};
//! use kubeskiff_engine::value::json;
//!
//! let schema = r#"{"type": "object", "properties": {"names": {"type": "array", "maxItems": 10, "items": {"type": "string"}}}}"#;
//! let (schema, _) = json_schema::decode(&json::decode(schema.as_bytes())?)?;
//! let schema = convert::to_structural(&schema)?;
//! let declared = declare(&schema, false).expect("rules see it").named("self");
//!
//! let env = Env::kubernetes(Expressions::New).with_variable("self", declared.ty.clone());
//! let rule = env.compile("self.names.all(name, name != '')")?;
//! assert_eq!(estimate(&rule, &declared).max, 43);
//!
//! let object = json::decode(br#"{"names": ["a", ""]}"#)?;
//! let form = form(&schema, false);
//! let program = Program::new(&rule, &env)?;
//! let run = program.evaluate(&[Some(Value::host(&object, &form))], 1_000_000);
//! assert_eq!((run.result?.as_bool(), run.cost), (Some(false), 11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Merge by apply
//!
//! [`FieldManager`](apply::FieldManager) merges what a manager applies, and records who owns which fields.
//!
//! ```
//! use kubeskiff_engine::apply::{ConvertError, FieldManager, ResetFields, TypeSchema, Versions};
//! use kubeskiff_engine::meta::minor::Minor;
//! use kubeskiff_engine::schema::{convert, json_schema};
//! use kubeskiff_engine::value::{Value, json};
//!
//! struct OneVersion(TypeSchema);
//!
//! impl Versions for OneVersion {
//!     fn types(&self, api_version: &str) -> Option<&TypeSchema> {
//!         (api_version == "example.com/v1").then_some(&self.0)
//!     }
//!
//!     fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
//!         Err(ConvertError::MissingVersion)
//!     }
//! }
//!
//! let schema = r#"{"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": {"type": "integer"}}}}"#;
//! let (schema, _) = json_schema::decode(&json::decode(schema.as_bytes())?)?;
//! let versions = OneVersion(TypeSchema::of_custom_resource(&convert::to_structural(&schema)?, false));
//! let reset_fields = ResetFields::default();
//! let manager = FieldManager {
//!     minor: Minor::NEWEST,
//!     versions: &versions,
//!     version: "example.com/v1",
//!     kind: "Widget",
//!     subresource: "",
//!     reset_fields: &reset_fields,
//! };
//! let applied = |spec: &str| {
//!     json::decode(format!(r#"{{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {{"name": "a"}}, "spec": {spec}}}"#).as_bytes())
//! };
//!
//! let now = "2026-01-01T00:00:00Z";
//! let live = manager.apply(None, &applied(r#"{"a": 1}"#)?, "one", false, now)?.object;
//! let live = manager.apply(Some(&live), &applied(r#"{"b": 2}"#)?, "two", false, now)?.object;
//! assert_eq!(json::encode_to_string(live.get("spec").expect("it is there")), r#"{"a":1,"b":2}"#);
//! assert!(manager.apply(Some(&live), &applied(r#"{"a": 3}"#)?, "two", false, now).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The layers, from words to edges, stand in `ARCHITECTURE.md`; `tests/tidy.rs` holds the table of allowed imports.

// Others use what is public here.
#![warn(missing_docs, clippy::missing_errors_doc)]

/// The examples of the page about the library, which the tests of the documentation compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
pub struct Page;

pub mod work;
pub mod value;
pub mod meta;

pub mod cel;
pub mod schema;
pub mod crd;
pub mod patch;
pub mod apply;
pub mod types;
pub mod protobuf;

pub mod policy;
pub mod kinds;
pub mod write;
pub mod author;
