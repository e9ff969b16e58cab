//! A spec in the form that Kubernetes validates: fields that all versions have in common are only there once, beside
//! the versions.
//!
//! This decides the paths of errors: `spec.validation.openAPIV3Schema` for a schema that all versions share, so always
//! for a single version, and `spec.versions[1].schema.openAPIV3Schema` otherwise.
//!
//! Source: the internal version of `apiextensions.k8s.io`, release 1.37, and its conversion from v1.

use std::collections::HashMap;
use std::sync::Arc;

use crate::crd::Column;
use crate::crd::definition::{Conversion, Definition, Spec, Subresources, Version, WebhookConversion};
use crate::schema::json_schema::JsonSchema;

/// The fields that are either shared by all versions or separate for each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SharedFields<'d> {
    /// As in [`Version::schema`].
    pub schema: Option<&'d Option<Arc<JsonSchema>>>,
    pub subresources: Option<&'d Subresources>,
    pub columns: &'d [Column],
    pub selectable_fields: &'d [String],
}

#[derive(Clone, Copy, Debug)]
pub struct InternalVersion<'d> {
    pub version: &'d Version,
    pub own: SharedFields<'d>,
}

/// A value that is either shared by all versions or separate for each. The first of several versions with the same name
/// counts.
pub enum ByVersion<'d, T> {
    Shared(T),
    Own(HashMap<&'d str, T>),
}

impl<T: Copy> ByVersion<'_, T> {
    /// `None` if there is no such version.
    pub fn of(&self, version: &str) -> Option<T> {
        match self {
            ByVersion::Shared(shared) => Some(*shared),
            ByVersion::Own(own) => own.get(version).copied(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct InternalSpec<'d> {
    pub spec: &'d Spec,
    /// The name of the first version; empty if there is none.
    pub version: &'d str,
    pub shared: SharedFields<'d>,
    pub versions: Vec<InternalVersion<'d>>,
}

impl<'d> SharedFields<'d> {
    fn of(version: &'d Version) -> Self {
        SharedFields {
            schema: version.schema.as_ref(),
            subresources: version.subresources.as_ref(),
            columns: &version.columns,
            selectable_fields: &version.selectable_fields,
        }
    }

    /// `openAPIV3Schema`.
    pub fn open_api_schema(&self) -> Option<&'d JsonSchema> {
        self.shared_schema().map(Arc::as_ref)
    }

    /// The same, as a shared pointer.
    pub fn shared_schema(&self) -> Option<&'d Arc<JsonSchema>> {
        self.schema.and_then(Option::as_ref)
    }

    pub fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| subresources.status)
    }
}

impl<'d> InternalSpec<'d> {
    pub fn of(definition: &'d Definition) -> Self {
        let spec = &definition.spec;
        let mut versions: Vec<InternalVersion<'d>> =
            spec.versions.iter().map(|version| InternalVersion { version, own: SharedFields::of(version) }).collect();
        let Some(first) = versions.first().map(|version| version.own) else {
            return InternalSpec { spec, version: "", shared: SharedFields::default(), versions };
        };
        let mut shared = SharedFields::default();
        // The first version need not be compared with itself, which would walk the whole schema.
        if versions.iter().skip(1).all(|version| version.own.schema == first.schema) {
            shared.schema = first.schema;
            versions.iter_mut().for_each(|version| version.own.schema = None);
        }
        if versions.iter().all(|version| version.own.subresources == first.subresources) {
            shared.subresources = first.subresources;
            versions.iter_mut().for_each(|version| version.own.subresources = None);
        }
        if versions.iter().all(|version| version.own.columns == first.columns) {
            shared.columns = first.columns;
            versions.iter_mut().for_each(|version| version.own.columns = &[]);
        }
        if versions.iter().all(|version| version.own.selectable_fields == first.selectable_fields) {
            shared.selectable_fields = first.selectable_fields;
            versions.iter_mut().for_each(|version| version.own.selectable_fields = &[]);
        }
        InternalSpec { spec, version: &spec.versions[0].name, shared, versions }
    }

    /// Every `openAPIV3Schema`, the shared one first.
    pub fn schemas(&self) -> impl Iterator<Item = &'d JsonSchema> {
        let own = self.versions.iter().map(|version| &version.own);
        std::iter::once(&self.shared).chain(own).filter_map(SharedFields::open_api_schema)
    }

    /// Whether `test` holds for a schema, or for one at any depth within.
    pub fn any_schema(&self, mut test: impl FnMut(&JsonSchema) -> bool) -> bool {
        self.schemas().any(|schema| schema.any(&mut test))
    }

    /// The schemas by version, or the shared one.
    pub fn schemas_by_version(&self) -> ByVersion<'d, Option<&'d Option<Arc<JsonSchema>>>> {
        let has_own = |version: &InternalVersion<'_>| version.own.schema.is_some();
        self.by_version(|content| content.schema, has_own)
    }

    /// Whether objects have `/status`, by version.
    pub fn statuses_by_version(&self) -> ByVersion<'d, bool> {
        self.by_version(SharedFields::has_status, |version| version.own.subresources.is_some())
    }

    fn by_version<T>(
        &self,
        of: impl Fn(&SharedFields<'d>) -> T,
        has_own: impl Fn(&InternalVersion<'d>) -> bool,
    ) -> ByVersion<'d, T> {
        if !self.versions.iter().any(has_own) {
            return ByVersion::Shared(of(&self.shared));
        }
        let named = self.versions.iter().rev();
        ByVersion::Own(named.map(|version| (version.version.name.as_str(), of(&version.own))).collect())
    }

    /// Whether objects of any version have `/status`.
    pub fn any_has_status(&self) -> bool {
        self.shared.has_status() || self.versions.iter().any(|version| version.own.has_status())
    }
}

/// `conversionReviewVersions`.
pub fn review_versions(conversion: &Conversion) -> &[String] {
    conversion.webhook.as_ref().map_or(&[], |webhook: &WebhookConversion| &webhook.review_versions)
}
