//! What no compiler checks: which module may import which, and what must not stand in the source.

mod circles;
mod errors;
mod names;
mod sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kubeskiff::kinds::{self, Kind};

/// The layers, from words to edges. A module imports what stands in a layer above its own, or beside it where the table
/// below says so. The first four are the engine: the compiler holds the border between it and the server.
const LAYERS: [&[&str]; 8] = [
    &["work"],
    &["value", "meta"],
    &["cel", "schema", "crd", "patch", "apply", "types", "protobuf"],
    &["policy", "kinds", "write", "author"],
    &["memory", "processor", "clock", "private", "packed"],
    &["store", "webhook", "admission", "auth", "audit"],
    &["registry", "controllers"],
    &["http", "server", "cli"],
];

/// Edges within a layer.
const BESIDE: [(&str, &str); 24] = [
    ("meta", "value"),
    ("value", "meta"),
    ("crd", "cel"),
    ("crd", "schema"),
    ("schema", "cel"),
    ("apply", "schema"),
    ("apply", "types"),
    ("patch", "types"),
    ("schema", "types"),
    ("crd", "types"),
    ("protobuf", "types"),
    ("write", "kinds"),
    ("author", "kinds"),
    ("author", "policy"),
    ("author", "write"),
    ("kinds", "policy"),
    ("admission", "auth"),
    ("admission", "webhook"),
    ("audit", "auth"),
    ("auth", "webhook"),
    ("controllers", "registry"),
    ("server", "http"),
    ("cli", "http"),
    ("cli", "server"),
];

/// What tests import beside: theirs go over the types and the bytes of every kind, and over objects of some.
const IN_TESTS: [(&str, &str); 3] = [("types", "kinds"), ("protobuf", "kinds"), ("policy", "kinds")];

/// Where there is source of ours.
const FOLDERS: [&str; 11] = [
    "engine/src",
    "engine/benches",
    "engine/examples",
    "src",
    "tests",
    "examples",
    "benches",
    "fuzz/targets",
    "fuzz/fuzz_targets",
    "helpers/rust/src",
    "helpers/rust/macros/src",
];
/// The two packages.
const PACKAGES: [&str; 2] = ["engine/src", "src"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    collect(&root().join(folder), &mut files);
    assert!(!files.is_empty(), "{folder} has no source");
    files
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
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
    for (package, (path, text)) in
        PACKAGES.iter().flat_map(|package| sources(package).into_iter().map(move |it| (package, it)))
    {
        let relative = path.strip_prefix(root().join(package)).expect("it is in the package");
        let module = relative.components().next().and_then(|part| part.as_os_str().to_str()).unwrap_or_default();
        let module = module.strip_suffix(".rs").unwrap_or(module);
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let Some(layer) = layer_of.get(module) else {
            faults.push(format!("{}: {module} has no layer", relative.display()));
            continue;
        };
        let (code, tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        let in_code = imports(code).into_iter().map(|imported| (imported, is_test));
        for (imported, in_test) in in_code.chain(imports(tests).into_iter().map(|imported| (imported, true))) {
            let Some(other) = layer_of.get(imported.as_str()) else { continue };
            let edge = (module, imported.as_str());
            let beside = BESIDE.contains(&edge) || in_test && IN_TESTS.contains(&edge);
            if imported != module && other >= layer && !beside {
                faults.push(format!("{}: {module} must not import {imported}", relative.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The modules that a source names behind `crate::`, in its tests, too.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let name = |text: &str| text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => found.extend(heads(group).into_iter().map(|head| name(head.trim_start()))),
            None => _ = found.insert(name(rest)),
        }
    }
    found
}

/// The parts of a group of imports, up to the brace that closes it.
fn heads(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts
}

#[test]
fn nothing_but_the_build_names_the_file_of_a_kind() {
    for (path, text) in PACKAGES.into_iter().flat_map(sources) {
        let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.find(|line| names_served(line));
        assert!(named.is_none(), "{}: {}", path.display(), named.unwrap_or_default());
    }
    assert!(names_served("pub use served::core::binding::BINDING;"));
    assert!(names_served("use super::served::{core::pod, policy};"));
    assert!(!names_served("use served::{Column, Names}; served::KINDS.len() + Observed::begin()"));
}

/// Whether a line goes into the modules of `kinds::served`, each of which is a group.
fn names_served(line: &str) -> bool {
    line.match_indices("served::").any(|(at, found)| {
        let is_within = line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let next = line[at + found.len()..].trim_start_matches('{');
        !is_within && next.starts_with(char::is_lowercase)
    })
}

#[test]
fn every_file_says_what_it_is() {
    for folder in FOLDERS {
        for (path, text) in sources(folder) {
            assert!(text.starts_with("//!"), "{} has no module documentation", path.display());
        }
    }
}

#[test]
fn nothing_is_left_for_later() {
    let forbidden =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("/wo", "rk/"), concat!("todo", "!("), concat!("dbg", "!(")];
    for folder in FOLDERS {
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
    for (path, text) in PACKAGES.into_iter().flat_map(sources) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            assert!(!macros.iter().any(|name| line.contains(name)), "{}: {line}", path.display());
        }
    }
}

#[test]
fn the_list_of_pages_has_them_all() {
    let docs = root().join("docs");
    let list = fs::read_to_string(docs.join("SUMMARY.md")).expect("the list is there");
    for entry in fs::read_dir(docs).expect("the folder is there") {
        let name = entry.expect("the folder is readable").file_name();
        let name = name.to_string_lossy();
        let is_page = name.ends_with(".md") && name != "SUMMARY.md";
        assert!(!is_page || list.contains(&format!("({name})")), "docs/SUMMARY.md lacks {name}");
    }
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README is there");
    assert!(readme.lines().count() <= 250, "what is long belongs into docs/");
}

#[test]
fn the_page_of_kinds_has_a_row_for_each_kind() {
    let page = root().join("docs/what-is-checked.md");
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
