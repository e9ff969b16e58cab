//! Finds and reads suites, and the definitions and policies that they name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::command_error::CommandError;
use super::super::definitions::{each, is_definition};
use super::super::documents;
use super::super::policies::{self, Given};
use super::outcome::{TestedCase, UnreadableSuite, located};
use crate::author::Catalog;
use crate::author::policies::case::Setting;
use crate::author::suite::{self, BrokenCase, Case, Coverage, Expected, Suite, WriteTarget};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::Value;
use crate::value::yaml::{self, Located, TextPosition};

/// The folder of a suite, or the suite itself if it is a folder.
pub(super) fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}

/// The kinds of a suite's definitions, and the errors of their files.
///
/// # Errors
///
/// Errors for which a server would refuse a definition.
pub(super) fn catalog(
    minor: Minor,
    path: &Path,
    suite: &Suite,
    coverage: &mut Coverage,
) -> Result<(Catalog, Vec<UnreadableSuite>), Vec<UnreadableSuite>> {
    let folder = folder_of(path);
    let crds = match suite.crds.as_slice() {
        // Policies may concern built-in kinds only.
        [] if !suite.policies.is_empty() && !folder.join("crd.yaml").is_file() => Vec::new(),
        [] => vec![folder.join("crd.yaml")],
        names => names.iter().map(|name| folder.join(name)).collect(),
    };
    let mut catalog = Catalog::of_minor(minor);
    let sources = documents::read_each(&crds);
    for source in &sources {
        for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
            let fault = |text: String, place| vec![UnreadableSuite { file: source.name.clone(), place, text }];
            let kind = catalog.add(&document.value).map_err(|error| fault(error.to_string(), None))?;
            if let Some(error) = kind.errors.first() {
                let text = format!("{}: {error}", kind.definition.name());
                return Err(fault(text, document.error_place(&error.field)));
            }
            coverage.expect(kind);
        }
    }
    let unreadable = UnreadableSuite::of_sources(path, &sources);
    if catalog.kinds().next().is_none() && !unreadable.is_empty() {
        return Err(unreadable);
    }
    Ok((catalog, unreadable))
}

/// The policies of a suite; those that a server would refuse are errors.
pub(super) fn given(minor: Minor, path: &Path, suite: &Suite) -> Result<Given, Vec<UnreadableSuite>> {
    let paths: Vec<PathBuf> = suite.policies.iter().map(|name| folder_of(path).join(name)).collect();
    let sources = documents::read_each(&paths);
    let given = Given::new(minor, policies::values(&sources));
    let mut faults = UnreadableSuite::of_sources(path, &sources);
    for (name, errors) in given.set.refused() {
        let is_it =
            |value: &Value| format!("{} {}", value.str_at(&["kind"]), value.str_at(&["metadata", "name"])) == *name;
        let stands = each(&sources).find(|(_, document)| is_it(&document.value));
        let file = stands.map_or_else(|| path.display().to_string(), |(source, _)| source.name.clone());
        faults.extend(errors.iter().map(|error| UnreadableSuite {
            file: file.clone(),
            place: stands.and_then(|(_, document)| document.place(&error.field)),
            text: format!("{name}: {error}"),
        }));
    }
    if faults.is_empty() { Ok(given) } else { Err(faults) }
}

/// The objects of suites that are expected to be valid, each with the name of its case, and the
/// errors of the suites.
pub fn valid_cases(suites: &[PathBuf]) -> (Vec<(String, Value)>, Vec<String>) {
    let (mut paths, mut cases, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for path in suites {
        faults.extend(find(path, &mut paths).err().map(|failure| failure.to_string()));
    }
    for path in paths {
        let read = if path.is_dir() { read_examples(&path) } else { read_suites(&path) };
        let told = |fault: &UnreadableSuite| format!("{}: {}", located(&fault.file, fault.place), fault.text);
        faults.extend(read.faults.iter().map(told));
        let found = read.suites.into_iter().flat_map(|read| read.suite.cases);
        cases.extend(found.filter(Case::is_valid).map(|case| (case.name, case.object)));
    }
    (cases, faults)
}

/// The suites of a file or a folder.
#[derive(Default)]
pub(super) struct ReadSuites {
    pub suites: Vec<ReadSuite>,
    /// The parts that can't be read.
    pub faults: Vec<UnreadableSuite>,
}

/// A suite, and the places of its cases.
pub(super) struct ReadSuite {
    pub suite: Suite,
    /// The file and the place of each case.
    pub places: Vec<(String, Option<TextPosition>)>,
    /// Cases that are malformed.
    pub broken: Vec<TestedCase>,
}

/// Finds the suites at `path`: itself, or those below it.
pub(super) fn find(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let is_examples = path.join("crd.yaml").is_file() && (path.join("valid").is_dir() || path.join("invalid").is_dir());
    if !path.is_dir() || is_examples {
        found.push(path.to_owned());
    }
    if path.is_dir() {
        for entry in entries(path)? {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_suite =
                ["suite.yaml", "suite.yml"].iter().any(|end| name == *end || name.ends_with(&format!(".{end}")));
            if (entry.is_dir() && !is_examples) || is_suite {
                find(&entry, found)?;
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let unreadable = CommandError::read(folder);
    let entries = fs::read_dir(folder).map_err(&unreadable)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// The suites of a file, one for each document. An error in one does not affect the others.
pub(super) fn read_suites(path: &Path) -> ReadSuites {
    let file = path.display().to_string();
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return ReadSuites {
                faults: UnreadableSuite::new(path, format!("it can't be read: {error}")),
                ..ReadSuites::default()
            };
        }
    };
    let mut read = ReadSuites::default();
    for document in yaml::decode_each_located(&bytes) {
        match document {
            Ok(located) if located.value.is_null() => {}
            Ok(located) => match read_suite(&file, &located) {
                Ok(suite) => read.suites.push(suite),
                Err(faults) => read.faults.extend(faults),
            },
            Err(broken) => {
                let text = format!("it can't be understood: {}", broken.problem);
                read.faults.push(UnreadableSuite { file: file.clone(), place: Some(broken.place), text });
            }
        }
    }
    read
}

fn read_suite(file: &str, located: &Located) -> Result<ReadSuite, Vec<UnreadableSuite>> {
    let fault = |fault: suite::SuiteError| UnreadableSuite {
        file: file.to_owned(),
        place: Some(located.place(&fault.path)),
        text: fault.text,
    };
    let mut suite = suite::parse(&located.value).map_err(|faults| faults.into_iter().map(fault).collect::<Vec<_>>())?;
    let places = suite.cases.iter().map(|case| (file.to_owned(), Some(located.place(&case.path)))).collect();
    let broken = std::mem::take(&mut suite.broken).into_iter().map(|BrokenCase { name, faults }| TestedCase {
        name,
        file: file.to_owned(),
        place: faults.first().map(|fault| located.place(&fault.path)),
        failures: faults.into_iter().map(|fault| fault.text).collect(),
        ratcheted: Vec::new(),
        taken: Duration::ZERO,
    });
    let broken = broken.collect();
    Ok(ReadSuite { suite, places, broken })
}

/// A folder of examples as a suite. `x.old.yaml` is the previous state of `x.yaml`. An error in one
/// file does not affect the others.
pub(super) fn read_examples(folder: &Path) -> ReadSuites {
    let (mut cases, mut places, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (name, is_valid) in [("valid", true), ("invalid", false)] {
        let inner = folder.join(name);
        if !inner.is_dir() {
            continue;
        }
        let paths = entries(&inner).unwrap_or_else(|failure| {
            faults.extend(UnreadableSuite::new(&inner, failure.to_string()));
            Vec::new()
        });
        for path in paths {
            let is_manifest = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
            let is_old = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(".old"));
            if is_manifest && !is_old {
                let (found, unreadable) = examples_of(&path, name, is_valid);
                places.extend(found.iter().map(|_| (path.display().to_string(), None)));
                cases.extend(found);
                faults.extend(unreadable);
            }
        }
    }
    let suites = if cases.is_empty() {
        Vec::new()
    } else {
        vec![ReadSuite { suite: Suite { cases, ..Suite::default() }, places, broken: Vec::new() }]
    };
    ReadSuites { suites, faults }
}

/// The cases of a manifest in the folder `name`, and its errors.
fn examples_of(path: &Path, name: &str, is_valid: bool) -> (Vec<Case>, Vec<UnreadableSuite>) {
    let before = path.with_extension("old.yaml");
    let before = if before.is_file() { documents::read_each(&[before]) } else { Vec::new() };
    let sources = documents::read_each(&[path.to_owned()]);
    let mut faults = UnreadableSuite::of_sources(path, &before);
    if !faults.is_empty() {
        // Without the previous state, the cases would be others.
        return (Vec::new(), faults);
    }
    faults.extend(UnreadableSuite::of_sources(path, &sources));
    let old = before.into_iter().flat_map(|source| source.documents).last().map(|document| document.value);
    let lines = match fs::read_to_string(path.with_extension("errors")) {
        Ok(text) if !is_valid => Some(text.lines().map(str::to_owned).collect::<Vec<String>>()),
        _ => None,
    };
    let file = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let case = |object: Value| Case {
        name: format!("{name}/{file}"),
        path: String::new(),
        object,
        old: old.clone(),
        part: WriteTarget::Object,
        setting: Setting::default(),
        expected: match &lines {
            Some(lines) => Expected::Lines(lines.clone()),
            None => Expected::Stated(object! { "valid" => is_valid }),
        },
    };
    let documents = sources.into_iter().flat_map(|source| source.documents);
    (documents.map(|document| case(document.value)).collect(), faults)
}
