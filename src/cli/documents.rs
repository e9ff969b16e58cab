//! Manifests with the places of their fields: from files, folders, patterns and stdin.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::parallel;
use super::print::tell;
use super::text::SharedText;
use crate::author::written_field;
use crate::crd::definition::KIND;
use crate::meta::api_version::split_api_version;
use crate::value::yaml::{self, Broken, Located, RepeatedKey, TextPosition};
use crate::value::{Value, json};

/// A text with manifests.
pub struct ManifestText {
    /// The name as given; `-` for stdin.
    pub name: String,
    pub text: SharedText,
    pub documents: Vec<ManifestDocument>,
    /// The documents that can't be read.
    pub faults: Vec<DocumentError>,
}

/// A document, or a whole text, that can't be read.
#[derive(Clone)]
pub struct DocumentError {
    /// The index of the document in its text, from 0.
    pub index: usize,
    pub place: Option<TextPosition>,
    /// The message, with the name of the file.
    pub message: String,
}

/// An entry of a text.
#[derive(Clone, Copy)]
pub enum TextEntry<'s> {
    Document(&'s ManifestDocument),
    Fault(&'s DocumentError),
}

/// A manifest.
pub struct ManifestDocument {
    /// The index of the document in its text, from 0.
    pub index: usize,
    pub value: Value,
    /// Duplicate fields.
    pub repeated: Vec<Repeated>,
    places: Arc<Places>,
    /// The path of the manifest in the document: `items[3]` in a List.
    within: String,
}

/// A duplicate field.
#[derive(Clone, Debug)]
pub struct Repeated {
    pub place: Option<TextPosition>,
    /// The field's name in errors: its path in JSON, its name in YAML.
    pub field: String,
    /// The error of a strict decoder.
    pub text: String,
}

/// The places of a document's fields; computed on demand, as most documents have no errors.
struct Places {
    text: SharedText,
    index: usize,
    located: OnceLock<Option<Located>>,
    template: OnceLock<Option<String>>,
}

impl Places {
    fn new(text: &SharedText, index: usize, located: OnceLock<Option<Located>>) -> Arc<Self> {
        Arc::new(Places { text: text.clone(), index, located, template: OnceLock::new() })
    }

    fn located(&self) -> Option<&Located> {
        let read = || yaml::decode_all_located(self.text.as_bytes()).ok()?.into_iter().nth(self.index);
        self.located.get_or_init(read).as_ref()
    }
}

/// Why manifests can't be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl ManifestText {
    /// Manifests from values without a text.
    pub fn of_values(name: &str, values: Vec<Value>) -> Self {
        let text = SharedText::from("");
        let document = |(index, value)| {
            let places = Places::new(&text, index, OnceLock::from(None));
            ManifestDocument { index, value, repeated: Vec::new(), places, within: String::new() }
        };
        let documents = values.into_iter().enumerate().map(document).collect();
        ManifestText { name: name.to_owned(), text: text.clone(), documents, faults: Vec::new() }
    }

    /// Decodes the manifests of a text; the items of a List become manifests of their own. Empty
    /// documents are counted, but skipped.
    pub fn of_text(name: &str, text: SharedText) -> Self {
        let (documents, broken) = decode_each(&text);
        let fault = |(index, mut broken): (usize, Broken)| {
            broken.place = on_text(&text, broken.place);
            let message = format!("`{name}` can't be understood: {}", told(&broken));
            DocumentError { index, place: Some(broken.place), message }
        };
        let faults = broken.into_iter().map(fault).collect();
        ManifestText { name: name.to_owned(), text, documents, faults }
    }

    /// The documents and the faults, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = (&ManifestText, TextEntry<'_>)> {
        let mut faults = self.faults.iter().peekable();
        let mut documents = self.documents.iter().peekable();
        std::iter::from_fn(move || {
            let fault = faults.next_if(|fault| documents.peek().is_none_or(|document| fault.index < document.index));
            let entry = fault.map(TextEntry::Fault).or_else(|| documents.next().map(TextEntry::Document));
            entry.map(|entry| (self, entry))
        })
    }

    fn unreadable(Unreadable(message): Unreadable, path: &Path) -> Self {
        let faults = vec![DocumentError { index: 0, place: None, message }];
        ManifestText { name: path.display().to_string(), text: SharedText::from(""), documents: Vec::new(), faults }
    }
}

fn told(Broken { problem, place }: &Broken) -> String {
    format!("line {}: {problem}", place.line)
}

/// A decoder may reach the end of the text before it reports an error: then returns the last line
/// that is not blank.
fn on_text(text: &SharedText, place: TextPosition) -> TextPosition {
    let is_text = |line: usize| text.line(line).is_some_and(|line| !line.trim().is_empty());
    let last = (1..=place.line).rev().find(|line| is_text(*line));
    let last = last.filter(|_| (place.line + 1..).map_while(|line| text.line(line)).all(|line| line.trim().is_empty()));
    last.map_or(place, |line| TextPosition { line, ..place })
}

impl ManifestDocument {
    /// The place of an error's field in the text.
    pub fn place(&self, field: &str) -> Option<TextPosition> {
        self.places.located().map(|located| located.place(&self.path(field)))
    }

    /// The place of an error's field; in a definition, an error may name a field that was copied
    /// from one that all versions share.
    pub fn error_place(&self, field: &str) -> Option<TextPosition> {
        let is_shared = is_definition(&self.value) && self.value.at(&["spec", "validation"]).is_none();
        if is_shared { self.place(&written_field(field, 0)) } else { self.place(field) }
    }

    /// The place of the key of a field that should not exist.
    pub fn key_place(&self, field: &str) -> Option<TextPosition> {
        self.places.located().map(|located| located.key_place(&self.path(field)))
    }

    /// The path of a field from the root of the text's document.
    fn path(&self, field: &str) -> String {
        let field = if field == "<nil>" { "" } else { field };
        let join = if self.within.is_empty() || field.is_empty() || field.starts_with('[') { "" } else { "." };
        format!("{}{join}{field}", self.within)
    }

    /// The chart template that the document was rendered from: Helm names it in a comment above the
    /// document.
    pub fn template(&self) -> Option<&str> {
        self.places.template.get_or_init(|| self.find_template()).as_deref()
    }

    fn find_template(&self) -> Option<String> {
        let Places { text, .. } = &*self.places;
        let first = self.places.located()?.place("").line;
        let above = (1..first).rev().filter_map(|number| text.line(number)).map(str::trim);
        let comments = above.take_while(|line| line.is_empty() || (line.starts_with('#') && !line.starts_with("---")));
        comments.filter_map(|line| line.strip_prefix("# Source: ")).next().map(str::to_owned)
    }

    /// Whether the manifest is a whole document, and not an item of a List.
    pub fn is_whole(&self) -> bool {
        self.within.is_empty()
    }
}

/// Reads everything that `arguments` name; prints what can't be read, and returns whether all could
/// be.
pub fn read_telling(arguments: &[PathBuf]) -> (Vec<ManifestText>, bool) {
    let sources = read_each(arguments);
    let faults: Vec<&DocumentError> = sources.iter().flat_map(|source| &source.faults).collect();
    faults.iter().for_each(|fault| tell(&fault.message));
    let is_readable = faults.is_empty();
    (sources, is_readable)
}

/// Reads everything that `arguments` name. Folders are searched for `.yaml`, `.yml` and `.json`;
/// `-` is stdin.
///
/// # Errors
///
/// The first thing that can't be read.
pub fn read(arguments: &[PathBuf]) -> Result<Vec<ManifestText>, Unreadable> {
    let sources = read_each(arguments);
    match sources.iter().flat_map(|source| &source.faults).next() {
        Some(fault) => Err(Unreadable(fault.message.clone())),
        None => Ok(sources),
    }
}

/// Like [`read`], but whatever can't be read is a fault of its source.
pub fn read_each(arguments: &[PathBuf]) -> Vec<ManifestText> {
    let mut paths = Vec::new();
    for argument in arguments {
        if let Err(error) = expand(argument, &mut paths) {
            paths.push(Err((argument.clone(), error)));
        }
    }
    parallel::map("files", &paths, |path| match path {
        Ok(path) => match read_text(path) {
            Ok(text) => ManifestText::of_text(&path.display().to_string(), text.into()),
            Err(error) => ManifestText::unreadable(error, path),
        },
        Err((path, error)) => ManifestText::unreadable(error.clone(), path),
    })
}

fn unreadable(path: &Path, error: impl fmt::Display) -> Unreadable {
    Unreadable(format!("`{}` can't be read: {error}", path.display()))
}

fn read_text(path: &Path) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().read_to_end(&mut bytes).map(|_| ())
    } else {
        fs::read(path).map(|read| bytes = read)
    };
    read.map_err(|error| unreadable(path, error))?;
    Ok(json::text_of(&bytes).into_owned())
}

/// A file, or a path without a readable file.
type NamedPath = Result<PathBuf, (PathBuf, Unreadable)>;

fn expand(argument: &Path, paths: &mut Vec<NamedPath>) -> Result<(), Unreadable> {
    if argument.as_os_str() == "-" || argument.is_file() {
        paths.push(Ok(argument.to_owned()));
        return Ok(());
    }
    if argument.is_dir() {
        expand_folder(argument, paths);
        return Ok(());
    }
    let pattern = argument.to_string_lossy();
    if !pattern.contains(['*', '?', '[']) {
        // A pipe, or a missing file: reading it reports the error.
        paths.push(Ok(argument.to_owned()));
        return Ok(());
    }
    let found = glob::glob(&pattern).map_err(|error| unreadable(argument, error))?;
    let before = paths.len();
    for path in found {
        let path = path.map_err(|error| unreadable(argument, error))?;
        expand(&path, paths)?;
    }
    if paths.len() > before { Ok(()) } else { Err(unreadable(argument, "no file has such a name")) }
}

fn expand_folder(folder: &Path, paths: &mut Vec<NamedPath>) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return paths.push(Err((folder.to_owned(), unreadable(folder, error)))),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            expand_folder(&path, paths);
        } else if is_manifest(&path) {
            paths.push(Ok(path));
        }
    }
}

/// Whether a file in a folder is read as manifests.
pub fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}

/// Decodes the manifests of a text; the items of a List become manifests of their own. Empty
/// documents are counted, but skipped.
///
/// # Errors
///
/// The first document that can't be decoded.
pub fn decode(text: &SharedText) -> Result<Vec<ManifestDocument>, Unreadable> {
    match decode_each(text) {
        (documents, broken) if broken.is_empty() => Ok(documents),
        (_, broken) => Err(Unreadable(told(&broken[0].1))),
    }
}

/// Decodes the manifests of a text; also returns the documents that can't be decoded, by index.
fn decode_each(text: &SharedText) -> (Vec<ManifestDocument>, Vec<(usize, Broken)>) {
    let (mut documents, mut broken) = (Vec::new(), Vec::new());
    if text.trim_start().starts_with('{')
        && let Ok((value, repeated)) = json::decode_strict(text.as_bytes())
    {
        flatten(document_of_json(text, value, repeated), &mut documents);
        return (documents, broken);
    }
    for (index, read) in yaml::decode_each_located(text.as_bytes()).into_iter().enumerate() {
        match read {
            Ok(located) if located.value.is_null() => {}
            Ok(located) => flatten(document_of_yaml(text, index, located), &mut documents),
            Err(fault) => broken.push((index, fault)),
        }
    }
    (documents, broken)
}

fn document_of_json(text: &SharedText, value: Value, repeated: Vec<json::RepeatedField>) -> ManifestDocument {
    let places = Places::new(text, 0, OnceLock::new());
    let known = if repeated.is_empty() { None } else { places.located() };
    let place = |number: usize| Some(known?.repeated.get(number)?.place);
    let repeated = repeated.into_iter().enumerate().map(|(number, field)| Repeated {
        place: place(number),
        text: field.to_string(),
        field: field.path,
    });
    let repeated = repeated.collect();
    ManifestDocument { index: 0, value, repeated, places, within: String::new() }
}

fn document_of_yaml(text: &SharedText, index: usize, mut located: Located) -> ManifestDocument {
    let value = std::mem::take(&mut located.value);
    let repeated = located.repeated.iter().map(|repeated| Repeated {
        place: Some(repeated.place),
        text: repeated.to_string(),
        field: match &repeated.key {
            RepeatedKey::Text(name) => name.clone(),
            RepeatedKey::Other(_) => String::new(),
        },
    });
    let repeated = repeated.collect();
    let places = Places::new(text, index, OnceLock::from(Some(located)));
    ManifestDocument { index, value, repeated, places, within: String::new() }
}

fn flatten(document: ManifestDocument, documents: &mut Vec<ManifestDocument>) {
    let value = &document.value;
    let is_list = value.str_at(&["apiVersion"]) == "v1" && value.str_at(&["kind"]) == "List";
    let Some(items) = value.get("items").and_then(Value::as_array).filter(|_| is_list) else {
        documents.push(document);
        return;
    };
    for (number, item) in items.iter().enumerate() {
        documents.push(ManifestDocument {
            index: document.index,
            value: item.clone(),
            // A duplicate field belongs to the text, not to one of the items.
            repeated: if number == 0 { document.repeated.clone() } else { Vec::new() },
            places: document.places.clone(),
            within: format!("items[{number}]"),
        });
    }
}

/// Whether `object` is a CustomResourceDefinition, of any version.
pub fn is_definition(object: &Value) -> bool {
    let (group, _) = split_api_version(object.str_at(&["apiVersion"])).unwrap_or_default();
    group == "apiextensions.k8s.io" && object.str_at(&["kind"]) == KIND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_a_chart_know_their_template() {
        let text = "---\n# Source: a/b.yaml\n# more\nkind: A\n---\n---\n# Source: c.yaml\nkind: B\n---\nkind: C\n";
        let documents = decode(&text.into()).expect("the test is YAML");
        let found: Vec<_> = documents.iter().map(|document| (document.index, document.template())).collect();
        assert_eq!(found, [(0, Some("a/b.yaml")), (2, Some("c.yaml")), (3, None)]);
    }

    #[test]
    fn items_of_a_list_have_their_own_places() {
        let text = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"a\": 1},\n  {\"a\": 2}]}";
        let documents = decode(&text.into()).expect("the test is JSON");
        assert_eq!(documents[1].place("a"), Some(TextPosition { line: 2, column: 9 }));
    }
}
