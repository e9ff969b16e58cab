//! The paths by which a client learns what is served, each with a document of its own in v3.

use std::collections::BTreeSet;

use super::media_types::{BUILT_IN, content, texts};
use super::names::{META, document_path};
use super::words::{identifier, short_group, tag};
use crate::object;
use crate::schema::openapi::Dialect;
use crate::value::{Map, Value};

/// A path of discovery.
pub struct DiscoveryPath {
    /// Without leading and trailing slashes: `apis/apps`.
    pub path: String,
    tag: String,
    description: &'static str,
    id: String,
    media_types: &'static [&'static str],
    /// The definition of the answer; `None` if the answer is a text.
    definition: Option<String>,
}

impl DiscoveryPath {
    /// The paths that a server always has, and one for each of the groups; the core group is not among these.
    pub fn of_groups<'g>(groups: impl IntoIterator<Item = &'g str>) -> Vec<DiscoveryPath> {
        let fixed = |path: &str, tag: &str, description, id: &str| DiscoveryPath {
            path: path.to_owned(),
            tag: tag.to_owned(),
            description,
            id: id.to_owned(),
            media_types: BUILT_IN,
            definition: None,
        };
        let of = |path, definition: &str| DiscoveryPath { definition: Some(definition.to_owned()), ..path };
        let versions = "get available API versions";
        let issuer = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'";
        let keys = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)";
        let mut paths = vec![
            DiscoveryPath {
                media_types: &["application/json"],
                ..fixed(
                    ".well-known/openid-configuration",
                    "WellKnown",
                    issuer,
                    "getServiceAccountIssuerOpenIDConfiguration",
                )
            },
            of(fixed("api", "core", versions, "getCoreAPIVersions"), &format!("{META}.APIVersions")),
            of(fixed("apis", "apis", versions, "getAPIVersions"), &format!("{META}.APIGroupList")),
            DiscoveryPath {
                media_types: &["application/jwk-set+json"],
                ..fixed("openid/v1/jwks", "openid", keys, "getServiceAccountIssuerOpenIDKeyset")
            },
            DiscoveryPath {
                media_types: &["application/json"],
                ..of(
                    fixed("version", "version", "get the version information for this server", "getCodeVersion"),
                    "io.k8s.apimachinery.pkg.version.Info",
                )
            },
        ];
        let names: BTreeSet<&str> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        paths.extend(names.into_iter().map(|group| {
            let short = short_group(group);
            let id = format!("get{}APIGroup", identifier(short, true));
            let path = format!("apis/{group}");
            of(fixed(&path, &identifier(short, false), "get information of a group", &id), &format!("{META}.APIGroup"))
        }));
        paths
    }

    /// The path of a version of a group.
    pub fn of_version(group: &str, version: &str) -> DiscoveryPath {
        let (group_id, version_id) = (identifier(short_group(group), true), identifier(version, true));
        DiscoveryPath {
            path: document_path(group, version),
            tag: tag(group, version),
            description: "get available resources",
            id: format!("get{group_id}{version_id}APIResources"),
            media_types: BUILT_IN,
            definition: Some(format!("{META}.APIResourceList")),
        }
    }

    /// Adds it to the paths of a document.
    pub fn insert(&self, dialect: Dialect, paths: &mut Map) {
        let schema = match &self.definition {
            Some(name) => dialect.reference(name),
            None => object! { "type" => "string" },
        };
        let mut get = Map::new();
        get.insert("tags", vec![Value::from(self.tag.as_str())].into());
        get.insert("description", self.description.into());
        get.insert("operationId", self.id.as_str().into());
        let found = match dialect {
            Dialect::V3 => object! { "description" => "OK", "content" => content(self.media_types, &schema) },
            Dialect::V2 => {
                if self.definition.is_some() {
                    get.insert("consumes", texts(self.media_types));
                }
                get.insert("produces", texts(self.media_types));
                get.insert("schemes", texts(&["https"]));
                object! { "description" => "OK", "schema" => schema }
            }
        };
        get.insert("responses", object! { "200" => found, "401" => object! { "description" => "Unauthorized" } });
        paths.insert(format!("/{}/", self.path), object! { "get" => get });
    }
}
