//! What is served: a resource with its versions, its strategy and its place in the store.

use std::sync::Arc;

use crate::apply::{ConvertError, FieldManager, FieldSet, ResetFields, TypeSchema, Versions};
use crate::crd::ServedVersion;
use crate::meta::Revision;
use crate::store::Collection;
use crate::value::Value;

use super::strategy::{Strategy, Subresource};

/// One resource, compiled.
pub struct Resource {
    /// Where its objects are stored.
    pub collection: Collection,
    /// Every declared version, served or not, in the order of their declaration.
    pub versions: Vec<Arc<ServedVersion>>,
    /// The `group/version` of each of `versions`.
    api_versions: Vec<String>,
    /// The types that server-side apply works on, in the order of `versions`.
    types: Vec<TypeSchema>,
    /// What a write to the main resource and one to `/status` reset, in the order of `versions`.
    reset_fields: Vec<[ResetFields; 2]>,
    pub strategy: Arc<dyn Strategy>,
    /// The definition behind a custom resource; `None` for a built-in kind.
    pub definition: Option<Definition>,
}

/// The CustomResourceDefinition that a resource was compiled from.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its name, which is its key in the store.
    pub key: Arc<str>,
    pub revision: Revision,
    /// Objects can't be created any more.
    pub terminating: bool,
}

impl Resource {
    /// A resource whose objects have `types`, in the order of `versions`.
    pub fn new(
        collection: Collection,
        versions: Vec<Arc<ServedVersion>>,
        types: Vec<TypeSchema>,
        strategy: Arc<dyn Strategy>,
    ) -> Self {
        let api_versions: Vec<_> = versions.iter().map(|version| version.api_version()).collect();
        let of = |version: &Arc<ServedVersion>, subresource| {
            let fields = strategy.reset_fields(version, subresource);
            let paths: Vec<&[&str]> = fields.iter().map(std::slice::from_ref).collect();
            (!fields.is_empty()).then(|| (version.api_version(), FieldSet::of_fields(&paths)))
        };
        // The main resource resets what its own version says, `/status` what any version does.
        let status: Vec<_> = versions.iter().filter_map(|version| of(version, Subresource::Status)).collect();
        let reset_fields = versions.iter().map(|version| {
            let main = ResetFields::new(of(version, Subresource::Main).into_iter().collect());
            [main, ResetFields::new(status.clone())]
        });
        let reset_fields = reset_fields.collect();
        Resource { collection, versions, api_versions, types, reset_fields, strategy, definition: None }
    }

    /// A custom resource.
    pub fn custom(collection: Collection, versions: Vec<Arc<ServedVersion>>, strategy: Arc<dyn Strategy>) -> Self {
        let types = versions.iter().map(|version| {
            TypeSchema::of_custom_resource(&version.structural, version.preserve_unknown_fields)
        });
        let types = types.collect();
        Resource::new(collection, versions, types, strategy)
    }

    /// What records who owns the fields of objects of `version`.
    pub fn field_manager<'a>(&'a self, version: &'a ServedVersion, subresource: Subresource) -> FieldManager<'a> {
        let at = self.versions.iter().position(|known| known.version == version.version).unwrap_or_default();
        FieldManager {
            versions: self,
            version: &self.api_versions[at],
            kind: &version.names.kind,
            subresource: subresource.name(),
            reset_fields: &self.reset_fields[at][usize::from(subresource == Subresource::Status)],
        }
    }

    /// The version `name`, if it is served.
    pub fn served(&self, name: &str) -> Option<&Arc<ServedVersion>> {
        self.versions.iter().find(|version| version.version == name && version.served)
    }

    /// The version that objects are stored in.
    pub fn storage(&self) -> &Arc<ServedVersion> {
        self.versions.iter().find(|version| version.storage).unwrap_or(&self.versions[0])
    }

    /// The newest generation of the schemas: derived bytes of an older one are stale.
    pub fn schema_generation(&self) -> i64 {
        self.storage().schema_generation
    }
}

impl Versions for Resource {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.api_versions.iter().position(|known| known == api_version).map(|at| &self.types[at])
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if !self.api_versions.iter().any(|known| known == api_version) {
            return Err(match self.definition {
                None => ConvertError::MissingVersion,
                Some(_) => ConvertError::Failed(format!(
                    "request to convert CR to an invalid group/version: {api_version}"
                )),
            });
        }
        let mut converted = object.clone();
        converted.make_object().insert("apiVersion", Value::from(api_version));
        Ok(converted)
    }
}
