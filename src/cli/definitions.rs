//! The definitions that commands are given.

use std::path::{Path, PathBuf};

use super::documents::{self, Document, Source};
use crate::author::Catalog;
use crate::crd::definition::KIND;
use crate::crd::write::split_api_version;
use crate::value::Value;

/// The kinds that the definitions of files and folders define.
///
/// # Errors
/// What can't be read, what is no definition, and that there is none.
pub fn read(paths: &[PathBuf]) -> Result<Catalog, String> {
    let mut catalog = Catalog::default();
    for source in documents::read(paths).map_err(|error| error.to_string())? {
        for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
            catalog.add(&document.value).map_err(|error| format!("`{}`: {error}", source.name))?;
        }
    }
    if catalog.kinds().next().is_none() {
        return Err(none_in(paths));
    }
    Ok(catalog)
}

/// That there is no definition in `paths`.
pub fn none_in(paths: &[impl AsRef<Path>]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.as_ref().display())).collect();
    format!("no CustomResourceDefinition in {}", names.join(", "))
}

/// Whether `object` is a definition, of whatever version.
pub fn is_definition(object: &Value) -> bool {
    let (group, _) = split_api_version(object.str_at(&["apiVersion"])).unwrap_or_default();
    group == "apiextensions.k8s.io" && object.str_at(&["kind"]) == KIND
}

/// Each document with its source.
pub fn each(sources: &[Source]) -> impl Iterator<Item = (&Source, &Document)> {
    sources.iter().flat_map(|source| source.documents.iter().map(move |document| (source, document)))
}
