//! What no compiler checks: which module may import which, and what must not stand in the source.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kubeskiff::kinds::{self, Kind};

/// The layers, from words to edges. A module imports what stands in a layer above its own, or beside it where the table
/// below says so.
const LAYERS: [&[&str]; 8] = [
    &["work"],
    &["value", "meta"],
    &["cel", "schema", "crd", "patch", "apply", "types", "protobuf"],
    &["policy", "kinds", "author"],
    &["memory", "processor"],
    &["store", "webhook", "admission", "auth", "audit"],
    &["registry", "controllers"],
    &["http", "server", "cli"],
];

/// Edges within a layer.
const BESIDE: [(&str, &str); 19] = [
    ("meta", "value"),
    ("value", "meta"),
    ("crd", "cel"),
    ("crd", "schema"),
    ("schema", "cel"),
    ("apply", "schema"),
    ("apply", "types"),
    ("patch", "types"),
    ("types", "schema"),
    ("protobuf", "types"),
    ("kinds", "policy"),
    ("admission", "auth"),
    ("admission", "webhook"),
    ("audit", "auth"),
    ("controllers", "registry"),
    ("server", "http"),
    ("cli", "http"),
    ("cli", "server"),
    ("registry", "registry"),
];

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    files
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("the source is readable");
            files.push((path, text));
        }
    }
}

#[test]
fn modules_import_only_what_stands_above_them() {
    let layer_of: BTreeMap<&str, usize> =
        LAYERS.iter().enumerate().flat_map(|(at, modules)| modules.iter().map(move |module| (*module, at))).collect();
    let mut faults = Vec::new();
    for (path, text) in sources("src") {
        let relative = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("it is below src");
        let module = relative.components().next().and_then(|part| part.as_os_str().to_str()).unwrap_or_default();
        let module = module.strip_suffix(".rs").unwrap_or(module);
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs" || name == "wire_tests.rs");
        if ["lib", "main"].contains(&module) || is_test {
            continue;
        }
        let Some(layer) = layer_of.get(module) else {
            faults.push(format!("{}: {module} has no layer", relative.display()));
            continue;
        };
        for imported in imports(&text) {
            let Some(other) = layer_of.get(imported.as_str()) else { continue };
            let beside = BESIDE.contains(&(module, imported.as_str()));
            if imported != module && other >= layer && !beside {
                faults.push(format!("{}: {module} must not import {imported}", relative.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The modules that a source names behind `crate::`, outside of its tests.
fn imports(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for rest in line.split("crate::").skip(1) {
            let rest = rest.trim_start_matches('{');
            let name: String =
                rest.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
            found.push(name);
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn every_file_says_what_it_is() {
    for folder in ["src", "tests", "examples", "benches", "fuzz"] {
        for (path, text) in sources(folder) {
            assert!(text.starts_with("//!"), "{} has no module documentation", path.display());
        }
    }
}

#[test]
fn nothing_is_left_for_later() {
    let forbidden =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("/wo", "rk/"), concat!("todo", "!("), concat!("dbg", "!(")];
    for folder in ["src", "tests", "examples", "benches", "fuzz"] {
        for (path, text) in sources(folder) {
            for word in forbidden {
                assert!(!text.contains(word), "{} contains `{word}`", path.display());
            }
        }
    }
}

#[test]
fn nothing_panics_where_nobody_reads() {
    // The macros for output panic where it can't be written; `cli::print` says what stands in their place.
    let macros = [concat!("print", "!("), concat!("println", "!(")];
    for (path, text) in sources("src") {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            assert!(!macros.iter().any(|name| line.contains(name)), "{}: {line}", path.display());
        }
    }
}

#[test]
fn the_page_of_kinds_has_a_row_for_each_kind() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/what-is-checked.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let missing: Vec<String> =
        kinds::all().map(row_of).filter(|(group, row)| !has_row(&page, group, row)).map(|(_, row)| row).collect();
    assert!(missing.is_empty(), "docs/what-is-checked.md lacks rows that begin with\n{}", missing.join("\n"));
}

/// The group of a kind, and how its row begins: names, versions with those that are off in brackets, subresources.
fn row_of(kind: &'static Kind) -> (&'static str, String) {
    let group = if kind.group.is_empty() { "core" } else { kind.group };
    let versions: Vec<String> = kinds::all()
        .filter(|other| (other.group, other.kind) == (kind.group, kind.kind))
        .map(|form| if form.is_default { form.version.to_owned() } else { format!("({})", form.version) })
        .collect();
    let status = kind.status.then_some("status");
    let mut subresources: Vec<&str> = kind.parts.iter().map(|part| part.name).chain(status).collect();
    subresources.sort_unstable();
    (group, format!("| {} | {} | {} |", kind.kind, versions.join(" "), subresources.join(" ")))
}

/// Whether a row begins so under the heading of its group.
fn has_row(page: &str, group: &str, row: &str) -> bool {
    let heading = format!("### {group}");
    let section = page.lines().skip_while(|line| *line != heading).skip(1);
    section.take_while(|line| !line.starts_with('#')).any(|line| line.starts_with(row))
}
