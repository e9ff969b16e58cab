//! What is served: a resource with its versions, its strategy and its place in the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crate::apply::{FieldManager, FieldSet, ResetFields, TypeSchema, Versions};
use crate::crd::{self, ServedVersion, write};
use crate::kinds;
use crate::kinds::strategy::{Strategy, Subresource};
use crate::meta::Revision;
use crate::meta::selector::LabelSelector;
use crate::store::{Collection, Signature, Stored};
use crate::value::Value;
use crate::work;

use super::conversion::Conversion;

/// One resource, ready to serve; the schemas of a custom one are compiled on first use.
pub struct Resource {
    /// Where its objects are stored.
    pub collection: Collection,
    /// Every declared version, served or not, in the order of their declaration.
    pub versions: Vec<Arc<ServedVersion>>,
    /// The `group/version` of each of `versions`.
    api_versions: Vec<String>,
    /// The index of each of these in `versions`.
    places: HashMap<String, usize>,
    /// The types that server-side apply works on, in the order of `versions`.
    types: Vec<LazyTypes>,
    /// The fields that a write to the main resource, to `/status` or to another subresource resets, in the order of
    /// `versions`.
    reset_fields: Vec<VersionResets>,
    pub strategy: &'static dyn Strategy,
    /// The definition behind a custom resource; `None` for a built-in kind.
    pub definition: Option<StoredDefinition>,
    pub conversion: Conversion,
    /// The control plane that its schema generations belong to; 0 for those that are not copies.
    pub(super) lineage: i64,
    /// When it was last used, as a count of uses.
    last_used: AtomicU64,
}

/// The types of a version, built for the first write that needs them.
type LazyTypes = LazyLock<TypeSchema, Box<dyn FnOnce() -> TypeSchema + Send>>;

/// Types that other requests wait for while they are built.
pub(super) fn lazily(make: impl FnOnce() -> TypeSchema + Send + 'static) -> LazyTypes {
    LazyTypes::new(Box::new(move || work::essential(make)))
}

/// The CustomResourceDefinition that a resource was compiled from.
#[derive(Clone, Debug)]
pub struct StoredDefinition {
    /// Its name, which is its key in the store.
    pub key: Arc<str>,
    pub revision: Revision,
    /// The length of its JSON, in bytes.
    pub text_bytes: usize,
    /// A hash of its JSON.
    pub digest: u64,
    /// Whether discovery and OpenAPI show its resource.
    pub established: bool,
    /// Objects can't be created any more.
    pub terminating: bool,
}

/// In which versions a write of the main resource resets the fields that it may not write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resets {
    /// In all versions, for built-in kinds.
    AllVersions,
    /// Only in the version that is written, for custom resources; their `/status` resets in all.
    OwnVersion,
}

/// The fields that writes in one version reset.
struct VersionResets {
    main: ResetFields,
    status: ResetFields,
    /// By the name of the subresource.
    parts: Vec<(&'static str, ResetFields)>,
}

impl VersionResets {
    fn of(&self, subresource: Subresource) -> &ResetFields {
        match subresource {
            Subresource::Main | Subresource::Scale => &self.main,
            Subresource::Status => &self.status,
            Subresource::Part(name) => {
                self.parts.iter().find(|(part, _)| *part == name).map_or(&self.main, |(_, fields)| fields)
            }
        }
    }
}

/// The fields that writes to a kind's resource, its `/status` and its other subresources reset, for each version.
fn reset_fields(versions: &[Arc<ServedVersion>], strategy: &dyn Strategy, main: Resets) -> Vec<VersionResets> {
    let of = |version: &Arc<ServedVersion>, subresource| {
        let fields = strategy.reset_fields(version, subresource);
        (!fields.is_empty()).then(|| (version.api_version(), FieldSet::of_fields(fields)))
    };
    let in_all = |subresource| ResetFields::new(versions.iter().filter_map(|it| of(it, subresource)).collect());
    let (all, status) = (in_all(Subresource::Main), in_all(Subresource::Status));
    let own = |version| match main {
        Resets::AllVersions => all.clone(),
        Resets::OwnVersion => ResetFields::new(of(version, Subresource::Main).into_iter().collect()),
    };
    let built_in = versions.first().filter(|_| main == Resets::AllVersions);
    let built_in = built_in.and_then(|version| kinds::find(&version.group, &version.names.plural));
    let parts = built_in.map(|kind| kind.parts).unwrap_or_default().iter().map(|part| part.name);
    let parts: Vec<_> = parts.map(|name| (name, in_all(Subresource::Part(name)))).collect();
    let of_version = |version| VersionResets { main: own(version), status: status.clone(), parts: parts.clone() };
    versions.iter().map(of_version).collect()
}

impl Resource {
    /// A resource whose objects have `types`, in the order of `versions`.
    pub fn new(
        collection: Collection,
        versions: Vec<Arc<ServedVersion>>,
        types: Vec<LazyTypes>,
        strategy: &'static dyn Strategy,
    ) -> Self {
        let api_versions: Vec<_> = versions.iter().map(|version| version.api_version()).collect();
        let reset_fields = reset_fields(&versions, strategy, Resets::AllVersions);
        let places = api_versions.iter().cloned().zip(0..).collect();
        Resource {
            collection,
            versions,
            api_versions,
            places,
            types,
            reset_fields,
            strategy,
            definition: None,
            conversion: Conversion::None,
            lineage: 0,
            last_used: AtomicU64::default(),
        }
    }

    /// A custom resource.
    pub fn custom(collection: Collection, versions: Vec<Arc<ServedVersion>>, strategy: &'static dyn Strategy) -> Self {
        let types = versions.iter().map(|version| {
            let version = Arc::clone(version);
            let make = move || TypeSchema::of_custom_resource(&version.structural, version.preserve_unknown_fields);
            lazily(make)
        });
        let types = types.collect();
        let reset_fields = reset_fields(&versions, strategy, Resets::OwnVersion);
        Resource { reset_fields, ..Resource::new(collection, versions, types, strategy) }
    }

    /// Records that a request is about its objects.
    pub(super) fn note_use(&self) {
        static USES: AtomicU64 = AtomicU64::new(1);
        self.last_used.store(USES.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// When it was last used, as a count of uses.
    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Whether schemas were made that [`Resource::without_schemas`] forgets.
    pub fn has_schemas(&self) -> bool {
        crd::has_schemas(&self.versions)
    }

    /// The same without what was made of its schemas, which are made again when one is needed.
    pub fn without_schemas(&self) -> Self {
        let custom = Resource::custom(self.collection.clone(), crd::without_schemas(&self.versions), self.strategy);
        let (definition, conversion) = (self.definition.clone(), self.conversion.clone());
        let last_used = self.last_used().into();
        Resource { definition, conversion, lineage: self.lineage, last_used, ..custom }
    }

    /// Whether it comes from a definition.
    pub(super) fn is_custom(&self) -> bool {
        self.definition.is_some()
    }

    /// The recorder of the owners of fields in objects of `version`.
    pub(super) fn field_manager<'a>(
        &'a self,
        version: &'a ServedVersion,
        subresource: Subresource,
        conversions: &'a dyn Versions,
    ) -> FieldManager<'a> {
        let is_it = |known: &Arc<ServedVersion>| known.version == version.version && known.group == version.group;
        let at = self.versions.iter().position(is_it).unwrap_or_default();
        FieldManager {
            minor: version.minor,
            versions: conversions,
            version: &self.api_versions[at],
            kind: &version.names.kind,
            subresource: subresource.name(),
            reset_fields: self.reset_fields[at].of(subresource),
        }
    }

    /// The version `name`, if it is served.
    pub fn served(&self, name: &str) -> Option<&Arc<ServedVersion>> {
        self.versions.iter().find(|version| version.version == name && version.served)
    }

    /// The first version that the resource is served in: its group is that of the resource.
    pub fn first(&self) -> &Arc<ServedVersion> {
        &self.versions[0]
    }

    /// The group of the kind in errors about invalid objects: the first one, if a kind is served in several groups.
    pub(super) fn kind_group<'a>(&'a self, version: &'a ServedVersion) -> &'a str {
        let built_in = kinds::find(&version.group, &version.names.plural).filter(|_| self.definition.is_none());
        built_in.and_then(|kind| kind.forms.first()).map_or(&version.group, |first| first.group)
    }

    /// The `group/version` of a version of this resource.
    pub fn api_version_of(&self, version: &ServedVersion) -> &str {
        let is_it = |known: &Arc<ServedVersion>| known.version == version.version && known.group == version.group;
        let at = self.versions.iter().position(is_it).unwrap_or_default();
        &self.api_versions[at]
    }

    /// Whether clients get the stored form of `object` unchanged. It may be false even if deriving would change
    /// nothing.
    pub(super) fn is_served_raw(&self, version: &ServedVersion, object: &Value) -> bool {
        match &self.definition {
            Some(_) => write::is_decoded(object, version),
            None => version.is_named(object.str_at(&["apiVersion"])),
        }
    }

    /// The version that objects are stored in.
    pub fn storage(&self) -> &Arc<ServedVersion> {
        self.versions.iter().find(|version| version.storage).unwrap_or(&self.versions[0])
    }

    /// The types of `api_version` (`group/version`), if it is a declared version.
    pub(super) fn types_of(&self, api_version: &str) -> Option<&TypeSchema> {
        self.places.get(api_version).map(|at| &*self.types[*at])
    }

    /// The declared version `api_version` (`group/version`).
    pub(super) fn version_of(&self, api_version: &str) -> Option<&ServedVersion> {
        self.places.get(api_version).map(|at| &*self.versions[*at])
    }

    /// Whether converting `stored` to `version` needs a webhook.
    pub(super) fn is_converted_by_webhook(&self, version: &ServedVersion, stored: &Stored) -> bool {
        self.conversion != Conversion::None && *stored.stored_version != *version.version
    }

    /// What the stored labels of every object that `selector` selects must contain, as far as the stored form decides
    /// that.
    pub(super) fn required_labels(&self, selector: &LabelSelector) -> Signature {
        // A webhook may change labels.
        if self.conversion == Conversion::None { Signature::required(selector) } else { Signature::NONE }
    }

    /// The newest generation of the schemas: derived bytes of an older one are stale. Those of a control plane and its
    /// copy differ from the copy on, as they share what is stored.
    pub fn schema_generation(&self) -> i64 {
        const GENERATION_BITS: u32 = 32;
        self.storage().schema_generation.wrapping_add(self.lineage << GENERATION_BITS)
    }
}
