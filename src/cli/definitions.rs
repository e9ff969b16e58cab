//! Reads the definitions that commands are given.

use std::path::{Path, PathBuf};

pub use super::documents::is_definition;
use super::documents::{self, ManifestDocument, ManifestText};
use super::print::tell;
use crate::author::{Catalog, DefinedKind};
use crate::meta::minor::Minor;
use crate::value::yaml::TextPosition;

/// Why definitions can't be read.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    #[error("{}", none_in(.0))]
    None(Vec<PathBuf>),
    #[error("{}", .0.join("\n"))]
    Faulty(Vec<String>),
}

/// Definitions, and the errors of their files.
pub struct ReadDefinitions {
    pub catalog: Catalog,
    pub faults: Vec<String>,
}

/// The file and the place of a field of the definition `name`, if it is among `sources`.
pub fn place_in(sources: &[ManifestText], name: &str, field: &str) -> Option<(String, Option<TextPosition>)> {
    let is_it = |document: &ManifestDocument| {
        is_definition(&document.value) && document.value.str_at(&["metadata", "name"]) == name
    };
    let (source, document) = each(sources).find(|(_, document)| is_it(document))?;
    Some((source.name.clone(), document.error_place(field)))
}

/// The field path, within a definition, of the schema of an object's field `path` (such as
/// `spec.ports[*].name`) in `version`.
pub fn schema_of(kind: &DefinedKind, version: &str, path: &str) -> String {
    let index = kind.definition.spec.versions.iter().position(|known| known.name == version).unwrap_or_default();
    let mut place = format!("spec.versions[{index}].schema.openAPIV3Schema");
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (name, items) = step.split_once("[*]").map_or((step, 0), |(name, _)| (name, step.matches("[*]").count()));
        place.push_str(&format!(".properties[{name}]"));
        place.push_str(&".items".repeat(items));
    }
    place
}

impl ReadDefinitions {
    /// Whether everything could be read.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    /// The definitions among manifests, as decoded by one version of Kubernetes.
    pub fn of(minor: Minor, sources: &[ManifestText]) -> Self {
        let mut catalog = Catalog::of_minor(minor);
        let mut faults: Vec<String> =
            sources.iter().flat_map(|source| &source.faults).map(|fault| fault.message.clone()).collect();
        for (source, document) in each(sources).filter(|(_, document)| is_definition(&document.value)) {
            if let Err(error) = catalog.add(&document.value) {
                faults.push(format!("`{}`: {error}", source.name));
            }
        }
        ReadDefinitions { catalog, faults }
    }
}

/// Reads the definitions in files and folders, as decoded by one version of Kubernetes. Errors are
/// printed, and the rest is used.
///
/// # Errors
///
/// There is no definition.
pub fn read_in(minor: Minor, paths: &[PathBuf]) -> Result<ReadDefinitions, DefinitionsError> {
    let definitions = ReadDefinitions::of(minor, &documents::read_each(paths));
    if definitions.catalog.kinds().next().is_none() {
        let faults = definitions.faults;
        let none = || DefinitionsError::None(paths.to_vec());
        return Err(if faults.is_empty() { none() } else { DefinitionsError::Faulty(faults) });
    }
    definitions.faults.iter().for_each(tell);
    Ok(definitions)
}

/// The error text for `paths` without definitions.
pub fn none_in(paths: &[impl AsRef<Path>]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.as_ref().display())).collect();
    format!("no CustomResourceDefinition in {}", names.join(", "))
}

/// Each document with its source.
pub fn each(sources: &[ManifestText]) -> impl Iterator<Item = (&ManifestText, &ManifestDocument)> {
    sources.iter().flat_map(|source| source.documents.iter().map(move |document| (source, document)))
}
