//! The built-in kinds: a strategy each, over the same steps as every custom kind.
//!
//! A kind is a file here and a schema in `schemas/`, and has a line in [`all`]. A schema is read when its resource is
//! asked for first, so that a server that nobody asks starts without it.

mod config_map;
mod definition;
mod event;
mod lease;
mod metadata;
mod namespace;
mod secret;
mod service_account;

use std::sync::{Arc, OnceLock};

use super::Resource;
use super::strategy::Strategy;
use crate::apply::TypeSchema;
use crate::crd::{Names, Scope, ServedVersion};
use crate::schema::message::{KindSchema, Message};
use crate::schema::structural::Structural;
use crate::store::Collection;

pub use config_map::root_authority;
pub use namespace::{INITIAL as INITIAL_NAMESPACES, new as new_namespace};
pub use service_account::default as default_service_account;

/// A built-in resource that is made when it is needed first.
pub struct BuiltIn {
    pub group: &'static str,
    pub plural: &'static str,
    make: fn() -> Resource,
    made: OnceLock<Arc<Resource>>,
}

impl BuiltIn {
    const fn new(group: &'static str, plural: &'static str, make: fn() -> Resource) -> Self {
        BuiltIn { group, plural, make, made: OnceLock::new() }
    }

    pub fn resource(&self) -> &Arc<Resource> {
        self.made.get_or_init(|| Arc::new((self.make)()))
    }
}

/// Every built-in resource.
pub fn all() -> Vec<BuiltIn> {
    vec![
        BuiltIn::new("", "configmaps", config_map::resource),
        BuiltIn::new("", "events", event::core),
        BuiltIn::new("", "namespaces", namespace::resource),
        BuiltIn::new("", "secrets", secret::resource),
        BuiltIn::new("", "serviceaccounts", service_account::resource),
        BuiltIn::new("apiextensions.k8s.io", "customresourcedefinitions", definition::resource),
        BuiltIn::new("coordination.k8s.io", "leases", lease::resource),
        BuiltIn::new("events.k8s.io", "events", event::events),
    ]
}

/// What a built-in kind is called, and its schema file.
struct Kind {
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
    scope: Scope,
    status: bool,
    /// JSON paths, each with its leading dot.
    selectable_fields: &'static [&'static str],
    schema: &'static str,
}

impl Kind {
    /// Everything but the names of a kind in namespaces.
    const NAMESPACED: Kind = Kind {
        group: "",
        plural: "",
        singular: "",
        kind: "",
        short_names: &[],
        scope: Scope::Namespaced,
        status: false,
        selectable_fields: &[],
        schema: "",
    };

    fn read(&self) -> KindSchema {
        KindSchema::read(self.schema).expect("a test reads every file in schemas/")
    }

    /// Version v1, served and stored.
    fn version(&self, structural: Structural) -> ServedVersion {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ServedVersion {
            group: self.group.to_owned(),
            version: "v1".to_owned(),
            names: Names {
                plural: self.plural.to_owned(),
                singular: self.singular.to_owned(),
                kind: self.kind.to_owned(),
                list_kind: format!("{}List", self.kind),
                short_names: texts(self.short_names),
                categories: Vec::new(),
            },
            scope: self.scope,
            schema_generation: 0,
            served: true,
            storage: true,
            structural: Arc::new(structural),
            rules: Default::default(),
            preserve_unknown_fields: false,
            status: self.status,
            scale: None,
            columns: Vec::new(),
            selectable_fields: texts(self.selectable_fields),
            deprecation_warning: None,
        }
    }

    /// The resource of a kind with one version, whose strategy is made from its Go type.
    fn resource<S: Strategy + 'static>(&self, strategy: fn(Message) -> S) -> Resource {
        let KindSchema { message, structural } = self.read();
        let types = TypeSchema::of_custom_resource(&structural, false);
        let version = Arc::new(self.version(structural));
        let collection = Collection::new(self.group, self.plural);
        Resource::new(collection, vec![version], vec![types], Arc::new(strategy(message)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::meta::layout;
    use crate::object;
    use crate::protobuf;
    use crate::schema::message::Form;
    use crate::value::json::Layout;

    #[test]
    fn every_schema_file_is_that_of_a_kind_which_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let served: Vec<String> = all()
            .iter()
            .map(|built_in| {
                let version = built_in.resource().first();
                match version.group.as_str() {
                    "events.k8s.io" => format!("{}.{}", version.names.singular, version.group),
                    _ => version.names.singular.clone(),
                }
            })
            .collect();
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let name = entry.expect("the folder is readable").file_name().into_string().expect("names are ASCII");
            if let Some(name) = name.strip_suffix(".yaml") {
                assert!(served.iter().any(|served| served == name), "{name} is not served");
            }
        }
    }

    #[test]
    fn every_built_in_resource_is_what_its_line_says() {
        for built_in in all() {
            let resource = built_in.resource();
            let version = resource.first();
            assert_eq!((version.group.as_str(), version.names.plural.as_str()), (built_in.group, built_in.plural));
            assert!(resource.served("v1").is_some() && resource.definition.is_none());
        }
    }

    #[test]
    fn every_kind_is_laid_out_as_go_does() {
        for built_in in all() {
            let resource = built_in.resource();
            let version = resource.first();
            let Some(message) = resource.strategy.message(&version.api_version()) else { continue };
            for (kind, is_list) in [(&version.names.kind, false), (&version.names.list_kind, true)] {
                let object = object! { "apiVersion" => version.api_version(), "kind" => kind.as_str() };
                let Layout::Struct(fields) = layout::of(&object) else { panic!("{kind} has no layout") };
                let laid_out = |name: &str| fields.iter().any(|(field, _)| *field == name);
                let fits =
                    if is_list { laid_out("items") } else { message.fields.iter().all(|field| laid_out(&field.name)) };
                assert!(fits, "{kind}");
            }
        }
    }

    /// Both tables say the same of a type: its name, its fields, and those of the types within.
    fn check_agreement(message: &Message, wire: &protobuf::Message) {
        assert_eq!(message.name, wire.name);
        let of_type = |name: &str| !matches!(name, "apiVersion" | "kind") || message.name == "ObjectReference";
        let names: BTreeSet<&str> =
            message.fields.iter().map(|field| field.name.as_str()).filter(|name| of_type(name)).collect();
        let on_wire: BTreeSet<&str> = wire.fields.iter().map(|field| field.json).collect();
        assert_eq!(names, on_wire, "{}", message.name);
        for field in &message.fields {
            let mut form = &field.form;
            while let Form::List(inner) | Form::Map(inner) = form {
                form = inner;
            }
            let on_wire = wire.fields.iter().find(|known| known.json == field.name).map(|known| known.kind);
            if let (Form::Message(message), Some(protobuf::Kind::Message(wire))) = (form, on_wire) {
                check_agreement(message, wire);
            }
        }
    }

    #[test]
    fn every_kind_has_the_same_fields_in_protobuf() {
        for built_in in all() {
            let version = Arc::clone(built_in.resource().first());
            let Some(message) = built_in.resource().strategy.message(&version.api_version()) else { continue };
            let wire = protobuf::message_of(&version.api_version(), &version.names.kind);
            check_agreement(message, wire.expect("the kind has a message"));
        }
    }

    #[test]
    fn a_new_object_has_what_go_always_writes() {
        for built_in in all() {
            let resource = built_in.resource();
            let zero = resource.strategy.zero(resource.first());
            let typed = resource.strategy.message(&resource.first().api_version()).is_some();
            assert!(!typed || zero.get("metadata") == Some(&object! {}), "{}", built_in.plural);
        }
    }
}
