//! Manifests with the places of their fields: from files, folders, patterns and stdin.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::parallel;
use crate::value::yaml::{self, Located, Place, RepeatedKey};
use crate::value::{Value, json};

/// A text with manifests.
pub struct Source {
    /// As it was named; `-` for stdin.
    pub name: String,
    pub text: Arc<str>,
    pub documents: Vec<Document>,
}

/// A manifest.
pub struct Document {
    /// Which of the documents of its text, from 0.
    pub index: usize,
    pub value: Value,
    /// Fields that stand twice.
    pub repeated: Vec<Repeated>,
    places: Arc<Places>,
    /// Where the manifest stands in the document: `items[3]` in a List.
    within: String,
}

/// A field that stands twice.
#[derive(Clone, Debug)]
pub struct Repeated {
    pub place: Option<Place>,
    /// As errors name it: its path in JSON, its name in YAML.
    pub field: String,
    /// What a strict reader says.
    pub text: String,
}

/// Where the fields of a document stand; found when somebody asks, as most documents have no faults.
struct Places {
    text: Arc<str>,
    index: usize,
    located: OnceLock<Option<Located>>,
}

impl Places {
    fn located(&self) -> Option<&Located> {
        let read = || yaml::decode_all_located(self.text.as_bytes()).ok()?.into_iter().nth(self.index);
        self.located.get_or_init(read).as_ref()
    }
}

/// Why manifests can't be read.
#[derive(Debug)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

impl Source {
    /// Manifests that no text of ours holds.
    pub fn of_values(name: &str, values: Vec<Value>) -> Self {
        let text: Arc<str> = "".into();
        let document = |(index, value)| {
            let places = Arc::new(Places { text: text.clone(), index, located: OnceLock::from(None) });
            Document { index, value, repeated: Vec::new(), places, within: String::new() }
        };
        let documents = values.into_iter().enumerate().map(document).collect();
        Source { name: name.to_owned(), text: text.clone(), documents }
    }
}

impl Document {
    /// Where the field of an error stands in the text.
    pub fn place(&self, field: &str) -> Option<Place> {
        let field = if field == "<nil>" { "" } else { field };
        let join = if self.within.is_empty() || field.is_empty() || field.starts_with('[') { "" } else { "." };
        self.places.located().map(|located| located.place(&format!("{}{join}{field}", self.within)))
    }

    /// The template that a chart made the document from: Helm names it in a comment above.
    pub fn template(&self) -> Option<&str> {
        let first = self.places.located()?.place("").line;
        let above = self.places.text.lines().take(first - 1).collect::<Vec<_>>();
        let comments = above
            .into_iter()
            .rev()
            .map(str::trim)
            .take_while(|line| line.is_empty() || (line.starts_with('#') && !line.starts_with("---")));
        comments.filter_map(|line| line.strip_prefix("# Source: ")).next()
    }

    /// Whether the document is a manifest of its own, and no part of a List.
    pub fn is_whole(&self) -> bool {
        self.within.is_empty()
    }
}

/// Reads all that `arguments` name. Folders are searched for `.yaml`, `.yml` and `.json`; `-` is stdin.
pub fn read(arguments: &[PathBuf]) -> Result<Vec<Source>, Unreadable> {
    let mut paths = Vec::new();
    for argument in arguments {
        expand(argument, &mut paths)?;
    }
    parallel::map("files", &paths, |path| {
        let text: Arc<str> = read_text(path)?.into();
        let name = path.display().to_string();
        let documents = decode(&text).map_err(|error| Unreadable(format!("`{name}` can't be understood: {error}")))?;
        Ok(Source { name, text, documents })
    })
    .into_iter()
    .collect()
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

fn expand(argument: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    if argument.as_os_str() == "-" || argument.is_file() {
        paths.push(argument.to_owned());
        return Ok(());
    }
    if argument.is_dir() {
        return expand_folder(argument, paths);
    }
    let pattern = argument.to_string_lossy();
    if !pattern.contains(['*', '?', '[']) {
        // A pipe, or nothing: reading tells.
        paths.push(argument.to_owned());
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

fn expand_folder(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| unreadable(folder, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() {
            expand_folder(&path, paths)?;
        } else if ["yaml", "yml", "json"].contains(&extension) {
            paths.push(path);
        }
    }
    Ok(())
}

/// The manifests of a text; those of a List one by one. Empty documents count, but are none.
pub fn decode(text: &Arc<str>) -> Result<Vec<Document>, String> {
    let mut documents = Vec::new();
    let places = |index, located| Arc::new(Places { text: text.clone(), index, located });
    let is_json = text.trim_start().starts_with('{');
    if is_json && let Ok((value, repeated)) = json::decode_strict(text.as_bytes()) {
        let places = places(0, OnceLock::new());
        let known = if repeated.is_empty() { None } else { places.located() };
        let place = |number: usize| Some(known?.repeated.get(number)?.place);
        let repeated = repeated.into_iter().enumerate().map(|(number, field)| Repeated {
            place: place(number),
            text: field.to_string(),
            field: field.path,
        });
        let repeated = repeated.collect();
        flatten(Document { index: 0, value, repeated, places, within: String::new() }, &mut documents);
        return Ok(documents);
    }
    let located = yaml::decode_all_located(text.as_bytes()).map_err(|error| error.to_string())?;
    for (index, mut located) in located.into_iter().enumerate() {
        if located.value.is_null() {
            continue;
        }
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
        let places = places(index, OnceLock::from(Some(located)));
        flatten(Document { index, value, repeated, places, within: String::new() }, &mut documents);
    }
    Ok(documents)
}

fn flatten(document: Document, documents: &mut Vec<Document>) {
    let value = &document.value;
    let is_list = value.str_at(&["apiVersion"]) == "v1" && value.str_at(&["kind"]) == "List";
    let Some(items) = value.get("items").and_then(Value::as_array).filter(|_| is_list) else {
        documents.push(document);
        return;
    };
    for (number, item) in items.iter().enumerate() {
        documents.push(Document {
            index: document.index,
            value: item.clone(),
            // A strict reader minds the text, not one of its items.
            repeated: if number == 0 { document.repeated.clone() } else { Vec::new() },
            places: document.places.clone(),
            within: format!("items[{number}]"),
        });
    }
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
        assert_eq!(documents[1].place("a"), Some(Place { line: 2, column: 9 }));
    }
}
