//! Definitions by what they define.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::crd::validate::validated::Validated;
use crate::crd::{self, Definition, ServedVersion, defaults, definition, strategy, validate};
use crate::meta::api_version::split_api_version;
use crate::meta::field::ErrorList;
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::schema::json_schema::ValidationRule;
use crate::schema::rules::trace::Trace;
use crate::value::Value;

/// A kind that a definition defines.
pub struct DefinedKind {
    /// The definition as it was decoded, with its defaults.
    pub definition: Definition,
    /// Its served versions, compiled.
    pub versions: Vec<Arc<ServedVersion>>,
    /// The server's errors for the definition.
    pub errors: ErrorList,
    pub(super) traces: Traces,
}

/// A kind, and what else its definition tells.
pub struct PricedKind {
    /// The kind.
    pub kind: DefinedKind,
    /// Its schemas, with what their rules cost.
    pub schemas: Validated,
    /// Paths of fields that definitions do not have.
    pub unknown: Vec<String>,
}

/// The rules of a kind that have refused something, with their parts: an object after another may break the same.
#[derive(Default)]
pub(super) struct Traces(Mutex<HashMap<usize, Option<Arc<Trace>>>>);

impl Traces {
    /// The parts of `rule`, which is one of the kind's versions.
    pub fn of(&self, rule: &ValidationRule, make: impl FnOnce() -> Option<Trace>) -> Option<Arc<Trace>> {
        // A rule stays where it is for as long as its version lives.
        let at = std::ptr::from_ref(rule).addr();
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        traces.entry(at).or_insert_with(|| make().map(Arc::new)).clone()
    }
}

/// Kinds by group and kind.
#[derive(Default)]
pub struct Catalog {
    minor: Minor,
    kinds: BTreeMap<(String, String), DefinedKind>,
}

impl Catalog {
    /// An empty one, for that version of Kubernetes.
    pub fn of_minor(minor: Minor) -> Catalog {
        Catalog { minor, ..Catalog::default() }
    }

    /// The version of Kubernetes that it emulates.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Adds the kind that `value` defines, replacing an earlier definition of the same kind.
    ///
    /// # Errors
    /// A value that does not fit the type of definitions.
    pub fn add(&mut self, value: &Value) -> Result<&DefinedKind, UnmarshalError> {
        Ok(self.insert(DefinedKind::new_in(self.minor, value)?))
    }

    /// Adds a kind; an earlier one of the same name goes.
    pub fn insert(&mut self, kind: DefinedKind) -> &DefinedKind {
        let key = kind.key();
        self.kinds.insert(key.clone(), kind);
        &self.kinds[&key]
    }

    /// Removes a kind.
    pub fn remove(&mut self, group: &str, kind: &str) -> Option<DefinedKind> {
        self.kinds.remove(&(group.to_owned(), kind.to_owned()))
    }

    /// The kind of an object, in whatever version.
    pub fn of(&self, object: &Value) -> Option<&DefinedKind> {
        let (group, _) = split_api_version(object.str_at(&["apiVersion"])).ok()?;
        // A definition that lacks the name of its kind defines nothing that could be named.
        let kind = Some(object.str_at(&["kind"])).filter(|kind| !kind.is_empty())?;
        self.named(group, kind)
    }

    /// The kind of this name.
    pub fn named(&self, group: &str, kind: &str) -> Option<&DefinedKind> {
        self.kinds.get(&(group.to_owned(), kind.to_owned()))
    }

    /// All kinds, in the order they were added.
    pub fn kinds(&self) -> impl Iterator<Item = &DefinedKind> {
        self.kinds.values()
    }
}

impl DefinedKind {
    /// The kind that `value` defines, under the names that it asks for, in the newest version of Kubernetes.
    ///
    /// # Errors
    /// A value that does not fit the type of definitions.
    pub fn new(value: &Value) -> Result<DefinedKind, UnmarshalError> {
        DefinedKind::new_in(Minor::NEWEST, value)
    }

    /// The versions that it is served in, for people: `harbour.example.com/v1 or harbour.example.com/v2`.
    pub fn api_versions(&self) -> String {
        self.versions.iter().map(|version| version.api_version()).collect::<Vec<_>>().join(" or ")
    }

    /// [`DefinedKind::new`] in that version of Kubernetes.
    ///
    /// # Errors
    /// A value that does not fit the type of definitions.
    pub fn new_in(minor: Minor, value: &Value) -> Result<DefinedKind, UnmarshalError> {
        let (definition, _) = definition::decode_in(minor, value)?;
        Ok(DefinedKind::of(definition, &Validated::default()).0)
    }

    /// The same with what its rules cost, and with the paths of fields that definitions do not have.
    ///
    /// # Errors
    /// A value that does not fit the type of definitions.
    pub fn priced(minor: Minor, value: &Value) -> Result<PricedKind, UnmarshalError> {
        DefinedKind::priced_after(minor, value, &Validated::default())
    }

    /// The same where an earlier form of the definition was priced: schemas that are as they were `before` are not compiled
    /// again.
    ///
    /// # Errors
    /// A value that does not fit the type of definitions.
    pub fn priced_after(minor: Minor, value: &Value, before: &Validated) -> Result<PricedKind, UnmarshalError> {
        let (definition, findings) = definition::decode_in(minor, value)?;
        let (kind, schemas) = DefinedKind::of(definition, before);
        Ok(PricedKind { kind, schemas, unknown: findings.unknown })
    }

    fn of(mut definition: Definition, before: &Validated) -> (DefinedKind, Validated) {
        defaults::set_defaults(&mut definition);
        strategy::prepare_create(&mut definition);
        let (errors, schemas) = validate::create_after(&definition, before);
        definition.status.accepted_names = definition.spec.names.clone();
        let versions = crd::compile_with(&definition, |schema| schemas.structural(schema).cloned());
        let versions = versions.into_iter().map(Arc::new).collect();
        (DefinedKind { definition, versions, errors, traces: Traces::default() }, schemas)
    }

    /// The version that an object names, if it is served.
    pub fn served(&self, object: &Value) -> Option<&Arc<ServedVersion>> {
        let api_version = object.str_at(&["apiVersion"]);
        self.versions.iter().find(|version| version.served && version.api_version() == api_version)
    }

    /// Whether a webhook makes its versions of each other.
    pub fn has_webhook(&self) -> bool {
        self.definition.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook")
    }

    /// The group and the name of the kind.
    pub fn key(&self) -> (String, String) {
        (self.definition.spec.group.clone(), self.definition.spec.names.kind.clone())
    }

    /// `Kind.group`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.definition.spec.names.kind, self.definition.spec.group)
    }
}
