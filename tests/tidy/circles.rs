//! Circles of files: those that can only be understood together, since each imports another of them.
//!
//! Input: the sources of both packages, of which imports behind `crate::`, `super::` and `self::` are read, tests left out. An
//! import of a name that a module takes in by `pub use` leads to the file that has the name. Output: the strongly connected
//! parts of that graph. Those that are there stand in `tests/data/circles.txt`; that list may only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{PACKAGES, root, sources};

/// The path of a module, from the root of its package.
type Module = Vec<String>;
/// What each module imports.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// Re-exports of re-exports are followed so far.
const REEXPORTS_MAX: usize = 6;

#[test]
fn files_form_no_circles_but_those_that_are_known() {
    let path = root().join("tests/data/circles.txt");
    let known = fs::read_to_string(path).expect("the list is there");
    let known: BTreeSet<String> = known.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    let found: BTreeSet<String> = PACKAGES.into_iter().flat_map(circles_of).collect();
    let grown: Vec<&String> = found.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&found).collect();
    assert!(
        grown.is_empty() && gone.is_empty(),
        "files that import each other in a circle, which tests/data/circles.txt lacks (move below what both need): \
         {grown:#?}\ncircles that are gone or smaller, to be taken from that list: {gone:#?}"
    );
}

/// The circles of a package, each as one line.
fn circles_of(package: &str) -> Vec<String> {
    let circles = circles(&graph(package));
    let line = |circle: Vec<Module>| {
        let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        format!("{package}: {}", names.join(" "))
    };
    circles.into_iter().map(line).collect()
}

fn graph(package: &str) -> Graph {
    let folder = root().join(package);
    let code: BTreeMap<Module, String> = sources(package)
        .into_iter()
        .map(|(path, text)| {
            let relative = path.strip_prefix(&folder).expect("it is in the package").with_extension("");
            let mut module: Module = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
            (module, without_tests_and_comments(&text))
        })
        .collect();
    let reexports: BTreeMap<Module, BTreeMap<String, Vec<String>>> =
        code.iter().map(|(module, text)| (module.clone(), reexports(text))).collect();
    code.iter()
        .map(|(module, text)| {
            let imported = imports(&without_reexports(text));
            let files = imported.iter().filter_map(|path| resolve(module, path, &reexports, REEXPORTS_MAX));
            (module.clone(), files.filter(|file| file != module).collect())
        })
        .collect()
}

fn without_tests_and_comments(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The statements `use …;` that take names in for others.
fn public_uses(text: &str) -> impl Iterator<Item = &str> {
    let begins = text.match_indices("use ").filter(|(at, _)| {
        let line = text[..*at].rsplit('\n').next().unwrap_or_default().trim();
        line == "pub" || line.starts_with("pub(") && line.ends_with(')')
    });
    begins.filter_map(|(at, _)| text[at..].split(';').next())
}

fn without_reexports(text: &str) -> String {
    public_uses(text).fold(text.to_owned(), |text, statement| text.replacen(statement, "", 1))
}

/// Each name that a module takes in for others, with its path.
fn reexports(text: &str) -> BTreeMap<String, Vec<String>> {
    let paths = public_uses(text).flat_map(|statement| {
        let path = statement.trim_start_matches("use ");
        let is_relative = !["crate::", "super::", "self::"].iter().any(|root| path.starts_with(root));
        imports(&if is_relative { format!("self::{path}") } else { path.to_owned() })
    });
    paths.filter_map(|path| Some((path.last()?.clone(), path))).collect()
}

/// All paths in a source that begin at this package, groups taken apart.
fn imports(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = ["crate::", "super::", "self::"].iter().filter_map(|root| rest.find(root)).min() {
        let is_within = rest[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_' || it == ':' || it == '$');
        let read = &rest[at..];
        let left = tree(read, &[], &mut found);
        if is_within {
            found.pop();
        }
        let read_bytes = (read.len() - left.len()).max("self::".len());
        rest = &read[read_bytes..];
    }
    found
}

/// Reads one path, or a group of them, behind `prefix`; returns what stands behind it.
fn tree<'t>(text: &'t str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'t str {
    let mut path = prefix.to_vec();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = group.trim_start_matches(|it: char| it.is_whitespace() || it == ',');
                match group.strip_prefix('}') {
                    Some(behind) => return behind,
                    None if group.is_empty() => return group,
                    None => {
                        let left = tree(group, &path, found);
                        // What is not a path is stepped over.
                        group = if left.len() == group.len() { step(group) } else { left };
                    }
                }
            }
        }
        let end = rest.find(|it: char| !(it.is_alphanumeric() || it == '_')).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if !name.is_empty() {
            path.push(name.to_owned());
        }
        match behind.strip_prefix("::").filter(|_| !name.is_empty()) {
            Some(behind) => rest = behind,
            None => {
                found.push(path);
                return without_alias(behind);
            }
        }
    }
}

/// What stands behind a path's `*`, or behind the other name that it is given.
fn without_alias(text: &str) -> &str {
    match text.strip_prefix(" as ") {
        Some(alias) => alias.trim_start_matches(|it: char| it.is_alphanumeric() || it == '_'),
        None => text.strip_prefix('*').unwrap_or(text),
    }
}

fn step(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

/// The file that a path in `module` leads to; `None` for one of another package.
fn resolve(
    module: &Module,
    path: &[String],
    reexports: &BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    depth: usize,
) -> Option<Module> {
    let mut file = if path.first().is_some_and(|root| root == "crate") { Module::new() } else { module.clone() };
    let mut names = path.iter().skip_while(|name| *name == "crate" || *name == "self").peekable();
    while names.next_if(|name| *name == "super").is_some() {
        file.pop();
    }
    while let Some(name) = names.peek() {
        file.push((*name).clone());
        if !reexports.contains_key(&file) {
            file.pop();
            break;
        }
        names.next();
    }
    let rest: Vec<String> = names.cloned().collect();
    let elsewhere = reexports.get(&file)?.get(rest.first().map_or("", String::as_str));
    match elsewhere {
        Some(elsewhere) if depth > 0 => {
            let path: Vec<String> = elsewhere.iter().chain(&rest[1..]).cloned().collect();
            resolve(&file, &path, reexports, depth - 1)
        }
        _ => Some(file),
    }
}

/// The strongly connected parts that have more than one file: those that reach each other.
fn circles(graph: &Graph) -> Vec<Vec<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let back = |other: &&&Module| reached.get(**other).is_some_and(|its| its.contains(*module));
        let circle: Vec<Module> = others.iter().filter(back).map(|other| (*other).clone()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reachable<'g>(graph: &'g Graph, from: &Module) -> BTreeSet<&'g Module> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Module> = graph[from].iter().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

#[test]
fn a_circle_is_found_through_groups_and_reexports() {
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Module>();
    let paths = |text: &str| imports(text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        paths("use crate::a::{self, b::{C, D as E}, f::*};\nlet x = super::g(crate::h::I { j: 1 });"),
        ["crate::a::self", "crate::a::b::C", "crate::a::b::D", "crate::a::f", "super::g", "crate::h::I"]
    );
    let reexports: BTreeMap<_, _> = [("a", "pub use self::b::C;"), ("a/b", ""), ("d", "")]
        .map(|(name, text)| (module(name), super::circles::reexports(text)))
        .into();
    let path = module("crate/a/C");
    assert_eq!(resolve(&module("d"), &path, &reexports, REEXPORTS_MAX), Some(module("a/b")));
    let graph: Graph =
        [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")].map(|(from, to)| (module(from), [module(to)].into())).into();
    assert_eq!(circles(&graph), [[module("a"), module("b"), module("c")]]);
}
