//! Types of Kubernetes' own kinds, as Go declares them: one table says how a type is read, written, patched and published.
//!
//! A [`Message`] is a Go struct: its fields in the order of their declaration, each with its JSON name, its number in
//! protobuf, and how Go treats a zero value. From it follow the JSON that Go writes and its errors ([`json`]), the
//! order of the fields in that text ([`layout`]), the published definitions ([`openapi`]), the merge rules of apply and
//! strategic merge patches, and the bytes ([`crate::protobuf`]).
//!
//! The published types are data, made from the Go modules: `schemas/types`, read by [`source`] when they are first used.
//!
//! # Why data
//!
//! - `types::Message` is a type read from there. All that depends on the type comes from it: the JSON that Go writes
//!   and its errors (`types::json`), the order of fields (`layout`), the bytes (`protobuf`), the merge rules of apply
//!   and strategic merge patches, the OpenAPI documents (`openapi`), how an error shows a struct of Go's internal types
//!   (`internal`), what remains of an object after it was stored (`stored`). Nothing is declared twice.
//! - A package is indexed when one of its types is first asked for, and a type is read on first use. What is read is
//!   leaked: a type is a `&'static` and lives as long as the process. A server that never sees a pod never reads its
//!   type.
//! - This was chosen over code made by `build.rs`. As code, some 1,500 types would be compiled in every build, and
//!   would be tables of pointers that are relocated at every start. As text they cost no build time, no relocations and
//!   no startup time.
//! - The next minor is another version in `schemas/generate/go.mod`, and a readable diff of text.
//! - Rust code only adds what the data lacks: the types that encode and decode themselves in Go (`own`).
//! - The descriptions of types and fields, for people, are in our own words in `schemas/descriptions`
//!   (`descriptions`).
//!
//! Source: the Go types and `generated.proto` files of `k8s.io/api` and `k8s.io/apimachinery`, release 1.37.

mod table;
mod source;
mod own;
mod descriptions;
mod internal;
pub mod decoder;
pub mod field_value;
pub(crate) mod json;
pub(crate) mod layout;
mod stored;
mod older;
mod restore;
pub(crate) mod openapi;

pub use internal::show as show_internal;
pub use older::make_older;
pub(crate) use older::said_in;
pub use openapi::collect_references;
pub(crate) use openapi::description_of;
pub use source::{find, is_field_in, newer_fields, objects, package_of_group, packages, structs};
pub(crate) use table::FIELDS_MAX;
pub use table::{
    Codec, Field, FieldKind, Items, Message, Named, Ref, Shape, boolean, bytes, double, int32, int64, message, string,
};

/// Stands for a type that the data does not have, which a test rules out.
static NOTHING: Message = Message::new("", &[]);

/// The metadata of any object.
pub fn object_meta() -> &'static Message {
    message_named("meta.v1", "ObjectMeta")
}

/// A struct by its package and its name.
pub fn message_named(package: &str, name: &str) -> &'static Message {
    find(package, name).map_or(&NOTHING, Named::message)
}

/// The type of a kind, or of a list of its kind.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Named> {
    let package = source::package_of_group(group)?;
    find(&format!("{package}.{version}"), kind)
}

/// [`of_kind`] for a kind that is known to exist.
pub fn message_of_kind(group: &str, version: &str, kind: &str) -> &'static Message {
    of_kind(group, version, kind).map_or(&NOTHING, Named::message)
}

/// The type that JSON names by `apiVersion` and `kind`.
pub fn of_api_version(api_version: &str, kind: &str) -> Option<&'static Named> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    match (group, version) {
        // The messages about what is served don't have a group.
        ("", "") => find("meta.v1", kind).filter(|_| ["APIVersions", "APIResourceList"].contains(&kind)),
        ("", "v1") => find("core.v1", kind).or_else(|| find("meta.v1", kind)),
        ("meta.k8s.io", "v1") => find("meta.v1", kind),
        ("meta.k8s.io", "v1beta1") => find("meta.v1beta1", kind).or_else(|| find("meta.v1", kind)),
        _ => of_kind(group, version, kind),
    }
}

/// Whether there are published types of an `apiVersion`.
pub fn knows_api_version(api_version: &str) -> bool {
    let (group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    group == "meta.k8s.io" || knows_group(group)
}

/// Whether a group is one of Kubernetes' built-in groups.
pub fn knows_group(group: &str) -> bool {
    source::package_of_group(group).is_some()
}
