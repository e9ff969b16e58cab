//! A version of a resource, compiled for serving. From here on, custom and built-in kinds are treated alike.

use std::sync::Arc;

use super::LazySchema;
use crate::meta::minor::Minor;
use crate::schema::rules::{LazyRules, Rules};

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in namespaces.
    Namespaced,
    /// Objects are not in namespaces.
    Cluster,
}

/// The names of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// The name in paths.
    pub plural: String,
    /// The singular name, for kubectl.
    pub singular: String,
    /// The name in objects.
    pub kind: String,
    /// The name in lists.
    pub list_kind: String,
    /// Names that kubectl accepts as well.
    pub short_names: Vec<String>,
    /// Groups of resources that kubectl accepts: `all`.
    pub categories: Vec<String>,
}

/// One version of one resource: everything that a request on it needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedVersion {
    /// Empty for the core group.
    pub group: String,
    /// The version: `v1beta1`.
    pub version: String,
    /// Shared by all versions.
    pub names: Arc<Names>,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// Counts changes of the schema: derived bytes of another generation are stale.
    pub schema_generation: i64,
    /// False for a version that is stored or declared but not served.
    pub served: bool,
    /// True for the version that new objects are stored in.
    pub storage: bool,
    /// The schema; shared with everything that was compiled from it.
    pub structural: LazySchema,
    /// The rules of `structural`, compiled on first use.
    pub rules: LazyRules,
    /// `spec.preserveUnknownFields` of a definition from v1beta1 days: nothing is pruned.
    pub preserve_unknown_fields: bool,
    /// The `/status` subresource.
    pub status: bool,
    /// The subresource `scale`, if the version has it.
    pub scale: Option<Scale>,
    /// Columns of tables beside the name.
    pub columns: Vec<Column>,
    /// JSON paths, each with its leading dot.
    pub selectable_fields: Vec<String>,
    /// The Warning header of a deprecated version.
    pub deprecation_warning: Option<String>,
    /// The version of Kubernetes that the server emulates.
    pub minor: Minor,
}

/// The `/scale` subresource: where its fields live, as simple JSON paths (`.spec.replicas`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// `specReplicasPath`
    pub spec_replicas_path: String,
    /// `statusReplicasPath`
    pub status_replicas_path: String,
    /// `labelSelectorPath`
    pub label_selector_path: Option<String>,
    /// The form of the selector at that path.
    pub selector_form: SelectorForm,
}

/// The form of the selector of a resource with `/scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectorForm {
    /// A text, as in custom resources.
    #[default]
    Text,
    /// As a `LabelSelector` of `meta.k8s.io`.
    Requirements,
    /// As a map of labels.
    Labels,
}

/// A column of the Table representation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub type_: String,
    /// The format of its values, may be empty.
    pub format: String,
    /// What it shows, may be empty.
    pub description: String,
    /// 0 is always shown, others with `-o wide`.
    pub priority: i32,
    /// Where the value is.
    pub json_path: String,
}

impl Column {
    /// A column of texts, always shown.
    pub fn string(name: &str, description: &str) -> Self {
        Column {
            name: name.to_owned(),
            type_: "string".to_owned(),
            description: description.to_owned(),
            ..Column::default()
        }
    }
}

impl ServedVersion {
    /// `group/version`, or `version` alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { [&*self.group, "/", &*self.version].concat() }
    }

    /// Whether the `api_version` of an object names this version.
    pub fn is_named(&self, api_version: &str) -> bool {
        match api_version.split_once('/') {
            Some((group, version)) => !group.is_empty() && group == self.group && version == self.version,
            None => self.group.is_empty() && api_version == self.version,
        }
    }

    /// The rules of the version, ready to run.
    pub fn rules(&self) -> &Rules {
        self.rules.of(&self.structural, self.minor)
    }

    /// `plural.group`, as messages name a resource.
    pub fn qualified_plural(&self) -> String {
        qualify(&self.names.plural, &self.group)
    }

    /// `Kind.group`, as messages name a kind.
    pub fn qualified_kind(&self) -> String {
        qualify(&self.names.kind, &self.group)
    }

    /// Whether objects are in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// Whether schemas of these versions of a definition were made that [`without_schemas`] forgets.
pub fn has_schemas(versions: &[Arc<ServedVersion>]) -> bool {
    versions.iter().any(|version| version.structural.can_be_forgotten())
}

/// The versions of a definition without what was made of their schemas.
pub fn without_schemas(versions: &[Arc<ServedVersion>]) -> Vec<Arc<ServedVersion>> {
    let schemas = LazySchema::forgotten(versions.iter().map(|version| &version.structural));
    let version = |(version, structural): (&Arc<ServedVersion>, LazySchema)| {
        Arc::new(ServedVersion { structural, rules: Default::default(), ..version.as_ref().clone() })
    };
    versions.iter().zip(schemas).map(version).collect()
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { [name, ".", group].concat() }
}
