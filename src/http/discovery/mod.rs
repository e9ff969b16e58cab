//! Discovery: which groups, versions and resources are served.
//!
//! Input: the resources that are established, in all of their versions. Output: the documents under `/api`, `/apis` and
//! `/version`, plain and aggregated, as values.
//! Source: documents recorded from apiextensions-apiserver 1.37; Kubernetes documentation, "API discovery".

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use sha2::{Digest, Sha256};

use super::negotiate::{self, Encoding};
use super::version_of;
use crate::crd::ServedVersion;
use crate::kinds::{self, Computed};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Map, Value};
use crate::work;

/// A version of a resource, and what can be done with it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscoveredResource {
    pub version: Arc<ServedVersion>,
    pub verbs: &'static [&'static str],
    pub subresources: Vec<Subresource>,
}

/// A part of a resource with verbs of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Subresource {
    pub name: &'static str,
    pub verbs: &'static [&'static str],
    /// Group, version and kind, if they differ from the resource's.
    pub kind: Option<(&'static str, &'static str, &'static str)>,
}

const CUSTOM_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const TERMINATING_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

impl DiscoveredResource {
    /// A custom resource. While its definition is terminating, only the verbs that read or delete are offered.
    pub fn custom(version: Arc<ServedVersion>, is_terminating: bool) -> Self {
        let verbs = if is_terminating { TERMINATING_VERBS } else { CUSTOM_VERBS };
        let subresource = |name, kind| Subresource { name, verbs: SUBRESOURCE_VERBS, kind };
        let status = version.status.then(|| subresource("status", None));
        let scale = version.scale.as_ref().map(|_| subresource("scale", Some(("autoscaling", "v1", "Scale"))));
        let subresources = status.into_iter().chain(scale).collect();
        DiscoveredResource { version, verbs, subresources }
    }

    /// A built-in resource.
    pub fn built_in(version: Arc<ServedVersion>, verbs: &'static [&'static str]) -> Self {
        let status = version.status.then_some(Subresource { name: "status", verbs: SUBRESOURCE_VERBS, kind: None });
        let known = kinds::find(&version.group, &version.names.plural);
        let parts = known.into_iter().flat_map(|kind| kind.parts_in(version.minor)).map(|part| Subresource {
            name: part.name,
            verbs: part.verbs,
            kind: part.kind.map(|kind| (kind.group, kind.version, kind.kind)),
        });
        let mut subresources: Vec<_> = parts.chain(status).collect();
        subresources.sort_by_key(|subresource| subresource.name);
        DiscoveredResource { version, verbs, subresources }
    }

    fn is_of(&self, group: &str, version: &str) -> bool {
        self.version.served && self.version.group == group && self.version.version == version
    }
}

/// `/api`. `server_address` is `HOST:PORT`.
pub fn core_versions(server_address: &str) -> Value {
    let address = object! { "clientCIDR" => "0.0.0.0/0", "serverAddress" => server_address };
    object! {
        "kind" => "APIVersions",
        "versions" => vec![Value::from("v1")],
        "serverAddressByClientCIDRs" => vec![address],
    }
}

/// `/apis`.
pub fn groups(resources: &[DiscoveredResource]) -> Value {
    let groups = DiscoveryGroups::of(resources);
    let fields = groups.0.iter().filter(|group| !group.name.is_empty()).filter_map(DiscoveryGroup::fields);
    let fields: Vec<Value> = fields.map(Value::from).collect();
    object! { "kind" => "APIGroupList", "apiVersion" => "v1", "groups" => fields }
}

/// `/apis/GROUP`; `None` if no version of it is served.
pub fn group(name: &str, resources: &[DiscoveredResource]) -> Option<Value> {
    let groups = DiscoveryGroups::of(resources);
    let mut fields = groups.0.iter().find(|group| group.name == name)?.fields()?;
    fields.insert("kind", "APIGroup".into());
    fields.insert("apiVersion", "v1".into());
    Some(fields.into())
}

/// `/apis/GROUP/VERSION` and `/api/VERSION`; `None` if nothing in it is served.
pub fn group_version(group: &str, version: &str, resources: &[DiscoveredResource]) -> Option<Value> {
    let mut listed = Vec::new();
    let storage = StorageVersions::of(resources);
    for resource in resources.iter().filter(|resource| resource.is_of(group, version)) {
        list_resource(resource, storage.hash_of(&resource.version), &mut listed);
    }
    if listed.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list = object! { "kind" => "APIResourceList", "groupVersion" => group_version, "resources" => listed };
    // Lists of the core group have no apiVersion: they are older than that field.
    if !group.is_empty() {
        list.make_object().insert("apiVersion", "v1".into());
    }
    Some(list)
}

/// The aggregated form of `/api` (`core`) and `/apis`, in the version that [`wants_aggregated`] found.
pub fn aggregated(core: bool, version: &str, resources: &[DiscoveredResource]) -> Value {
    let groups = DiscoveryGroups::of(resources);
    let items = groups.0.iter().filter(|group| group.name.is_empty() == core).map(|group| {
        let versions = group.versions.iter().map(|(version, resources)| {
            let mut resources = resources.clone();
            resources.sort_by(|left, right| left.version.names.plural.cmp(&right.version.names.plural));
            let resources: Vec<Value> = resources.into_iter().map(aggregate_resource).collect();
            object! { "version" => *version, "resources" => resources, "freshness" => "Current" }
        });
        // The core group has no name to show.
        let metadata = if core {
            object! {}
        } else {
            object! { "name" => group.name }
        };
        object! { "metadata" => metadata, "versions" => versions.collect::<Vec<_>>() }
    });
    object! {
        "kind" => "APIGroupDiscoveryList",
        "apiVersion" => format!("apidiscovery.k8s.io/{version}"),
        "metadata" => object! {},
        "items" => items.collect::<Vec<_>>(),
    }
}

/// From this version on, the older version of aggregated discovery is no longer served.
const AGGREGATES_V2_ALONE: Minor = Minor::of(33);

/// The form of aggregated discovery that a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregatedForm {
    /// Of `apidiscovery.k8s.io`.
    pub version: &'static str,
    pub encoding: Encoding,
    pub pretty: bool,
}

impl AggregatedForm {
    pub fn content_type(self) -> String {
        let AggregatedForm { version, encoding, .. } = self;
        format!("{};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList", encoding.content_type())
    }
}

/// The form of aggregated discovery that the client accepts, if any, from a server that speaks for `minor`: it wins
/// over the plain form, whatever their order in the header.
pub fn wants_aggregated(accept: &str, minor: Minor) -> Option<AggregatedForm> {
    negotiate::clauses(accept).iter().find_map(|clause| {
        let version = match ["as", "g", "v"].map(|name| clause.parameter(name)) {
            [Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")] => "v2",
            [Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2beta1")]
                if minor < AGGREGATES_V2_ALONE =>
            {
                "v2beta1"
            }
            _ => return None,
        };
        let is_offered = |encoding: &Encoding| {
            clause.takes("application", encoding.subtype()) && negotiate::is_supported(clause, *encoding, None)
        };
        let encoding = Encoding::ALL.into_iter().find(is_offered)?;
        Some(AggregatedForm { version, encoding, pretty: clause.parameter("pretty") == Some("1") })
    })
}

/// `/version` of a server that speaks for `minor`. kubectl reads major and minor, and warns when they are too far from its
/// own.
///
/// DIFFERS: under `--emulated-version` kube-apiserver reports its own version as `minor`, and the emulated one only as
/// `emulationMinor`; here clients see the version that they are tested against.
pub fn version(minor: Minor) -> Value {
    object! {
        "major" => "1",
        "minor" => minor.number().to_string(),
        "emulationMajor" => "1",
        "emulationMinor" => minor.number().to_string(),
        "minCompatibilityMajor" => "1",
        "minCompatibilityMinor" => minor.previous().number().to_string(),
        "gitVersion" => version_of(minor).into_owned(),
        "gitCommit" => "",
        "gitTreeState" => "clean",
        "buildDate" => "1970-01-01T00:00:00Z",
        "goVersion" => "",
        "compiler" => "rustc",
        "platform" => format!("{}/{}", std::env::consts::OS, go_architecture()),
    }
}

/// Go's name for the processor architecture.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Orders versions best first: stable before beta before alpha, higher numbers first, anything else after them by name.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    match (version_rank(left), version_rank(right)) {
        (Some(left), Some(right)) => right.cmp(&left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// Stability (2 is stable), major, minor of `v1`, `v1beta2`, `v1alpha3`.
fn version_rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let (major, stability, minor) = match (rest.split_once("beta"), rest.split_once("alpha")) {
        (Some((major, minor)), _) => (major, 1, minor),
        (_, Some((major, minor))) => (major, 0, minor),
        _ => (rest, 2, "0"),
    };
    let number = |text: &str| if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    Some((stability, number(major)?, number(minor)?))
}

/// What is served, by group.
struct DiscoveryGroups<'r>(Vec<DiscoveryGroup<'r>>);

struct DiscoveryGroup<'r> {
    name: &'r str,
    /// The versions, best first, each with its resources.
    versions: Vec<(&'r str, Vec<&'r DiscoveredResource>)>,
}

impl<'r> DiscoveryGroups<'r> {
    fn of(resources: &'r [DiscoveredResource]) -> Self {
        work::steps(resources.len());
        let mut by_name: HashMap<&str, HashMap<&str, Vec<&DiscoveredResource>>> = HashMap::new();
        for resource in resources.iter().filter(|resource| resource.version.served) {
            let ServedVersion { group, version, .. } = resource.version.as_ref();
            by_name.entry(group).or_default().entry(version).or_default().push(resource);
        }
        let mut groups: Vec<_> =
            by_name.into_iter().map(|(name, versions)| DiscoveryGroup::new(name, versions)).collect();
        groups.sort_by_key(|group| (Reverse(kinds::api_groups::rank(group.name)), group.name));
        DiscoveryGroups(groups)
    }
}

impl<'r> DiscoveryGroup<'r> {
    fn new(name: &'r str, versions: HashMap<&'r str, Vec<&'r DiscoveredResource>>) -> Self {
        let mut versions: Vec<_> = versions.into_iter().collect();
        versions.sort_by(|(left, _), (right, _)| compare_versions(left, right).then_with(|| left.cmp(right)));
        DiscoveryGroup { name, versions }
    }

    fn fields(&self) -> Option<Map> {
        work::steps(self.versions.len());
        let name = self.name;
        let versions = self.versions.iter().map(|(version, _)| {
            object! { "groupVersion" => format!("{name}/{version}"), "version" => *version }
        });
        let versions: Vec<Value> = versions.collect();
        let mut fields = Map::new();
        fields.insert("name", name.into());
        fields.insert("preferredVersion", versions.first()?.clone());
        fields.insert("versions", versions.into());
        Some(fields)
    }
}

fn list_resource(resource: &DiscoveredResource, storage_version_hash: Option<String>, listed: &mut Vec<Value>) {
    let version = &resource.version;
    let names = &version.names;
    let mut fields = Map::new();
    fields.insert("name", names.plural.as_str().into());
    fields.insert("singularName", names.singular.as_str().into());
    fields.insert("namespaced", version.is_namespaced().into());
    fields.insert("kind", names.kind.as_str().into());
    fields.insert("verbs", texts(resource.verbs));
    insert_names(resource, &mut fields);
    if let Some(hash) = storage_version_hash {
        fields.insert("storageVersionHash", hash.into());
    }
    listed.push(fields.into());
    for subresource in &resource.subresources {
        let mut fields = Map::new();
        fields.insert("name", format!("{}/{}", names.plural, subresource.name).into());
        fields.insert("singularName", "".into());
        fields.insert("namespaced", version.is_namespaced().into());
        fields.insert("kind", names.kind.as_str().into());
        if let Some((group, version, kind)) = subresource.kind {
            if (group, version) != (resource.version.group.as_str(), resource.version.version.as_str()) {
                fields.insert("group", group.into());
                fields.insert("version", version.into());
            }
            fields.insert("kind", kind.into());
        }
        fields.insert("verbs", texts(subresource.verbs));
        listed.push(fields.into());
    }
}

fn aggregate_resource(resource: &DiscoveredResource) -> Value {
    let version = &resource.version;
    let names = &version.names;
    let is_built_in = kinds::find(&version.group, &version.names.plural).is_some();
    // Built-in kinds leave out the group and version if they are those of the resource.
    let kind = |group: &str, of: &str, kind: &str| {
        let is_left_out = is_built_in && (group, of) == (&version.group, &version.version);
        let (group, of) = if is_left_out { ("", "") } else { (group, of) };
        object! { "group" => group, "version" => of, "kind" => kind }
    };
    let own_kind = kind(&version.group, &version.version, &names.kind);
    let mut fields = Map::new();
    fields.insert("resource", names.plural.as_str().into());
    fields.insert("responseKind", own_kind.clone());
    fields.insert("scope", if version.is_namespaced() { "Namespaced" } else { "Cluster" }.into());
    fields.insert("singularResource", names.singular.as_str().into());
    fields.insert("verbs", texts(resource.verbs));
    insert_names(resource, &mut fields);
    let subresources = resource.subresources.iter().map(|subresource| {
        let response =
            subresource.kind.map_or_else(|| own_kind.clone(), |(group, version, name)| kind(group, version, name));
        object! { "subresource" => subresource.name, "responseKind" => response, "verbs" => texts(subresource.verbs) }
    });
    let subresources: Vec<Value> = subresources.collect();
    if !subresources.is_empty() {
        fields.insert("subresources", subresources.into());
    }
    fields.into()
}

fn insert_names(resource: &DiscoveredResource, fields: &mut Map) {
    let names = &resource.version.names;
    for (field, names) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !names.is_empty() {
            fields.insert(field, texts(names));
        }
    }
}

fn texts(texts: &[impl AsRef<str>]) -> Value {
    work::steps(texts.len());
    texts.iter().map(|text| Value::from(text.as_ref())).collect::<Vec<_>>().into()
}

/// The versions that objects are stored in.
struct StorageVersions<'r> {
    /// By group and plural.
    served: HashMap<(&'r str, &'r str), &'r ServedVersion>,
    /// By kind, whether served or not.
    by_kind: HashMap<&'r str, &'r ServedVersion>,
}

impl<'r> StorageVersions<'r> {
    fn of(resources: &'r [DiscoveredResource]) -> Self {
        work::steps(resources.len());
        let mut versions = StorageVersions { served: HashMap::new(), by_kind: HashMap::new() };
        for version in resources.iter().map(|resource| resource.version.as_ref()).filter(|version| version.storage) {
            versions.by_kind.entry(&version.names.kind).or_insert(version);
            if version.served {
                versions.served.entry((&version.group, &version.names.plural)).or_insert(version);
            }
        }
        versions
    }

    /// The hash of the version that objects are stored in; `None` if that version is not served.
    fn hash_of(&self, version: &ServedVersion) -> Option<String> {
        let built_in = kinds::find(&version.group, &version.names.plural);
        if built_in.is_some_and(|kind| matches!(kind.computed, Some(Computed::Components(_)))) {
            return None;
        }
        // Events of the two groups are stored in one of them.
        let is_elsewhere = !version.storage && version.group == "events.k8s.io";
        let elsewhere = || self.by_kind.get(version.names.kind.as_str()).filter(|_| is_elsewhere);
        let served = self.served.get(&(version.group.as_str(), version.names.plural.as_str()));
        let storage = served.or_else(elsewhere)?;
        // Definitions are stored as v1, but their hash is still that of their first version.
        let is_of_definitions = (storage.group.as_str(), storage.names.plural.as_str())
            == ("apiextensions.k8s.io", "customresourcedefinitions");
        let stored = if is_of_definitions { "v1beta1" } else { &storage.version };
        let name = format!("{}/{stored}/{}", storage.group, storage.names.kind);
        Some(base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(name.as_bytes())[..8]))
    }
}

#[cfg(test)]
mod tests;
