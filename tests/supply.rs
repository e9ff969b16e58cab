//! What others' code the program is made of: where it comes from, and under which licences, as `deny.toml` allows.
//!
//! `cargo deny check` asks the same and more, among it for known faults; this asks it wherever the tests run, without
//! another tool or a network.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Where every published crate comes from, as Cargo writes it.
const PUBLISHED: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("the file is there")
}

#[test]
fn every_dependency_is_published_and_pinned_by_its_checksum() {
    let lock = read("Cargo.lock");
    let mut count = 0;
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let name = field("name").expect("it has a name");
        if name.starts_with(concat!("\"", env!("CARGO_PKG_NAME"))) {
            continue;
        }
        assert_eq!(field("source"), Some(&*format!("{PUBLISHED:?}")), "{name}");
        assert!(field("checksum").is_some(), "{name} has no checksum");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let policy = read("deny.toml");
    let allowed = policy.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']')).expect("there is a list").0;
    let lines = allowed.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let allowed: Vec<&str> = lines.filter_map(|line| line.strip_prefix('"')?.strip_suffix("\",")).collect();
    let faults: Vec<String> = packages()
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or_default();
            let may = Licence { words: words(licence), allowed: &allowed }.is_allowed();
            (!may).then(|| format!("{} {}: {licence:?}", package["name"], package["version"]))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The packages that are compiled for this machine.
fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().expect("there is a compiler");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("it says where it runs");
    let arguments = ["metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", host];
    let told = Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let told = told.expect("there is Cargo");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let metadata: Value = serde_json::from_slice(&told.stdout).expect("it is JSON");
    metadata["packages"].as_array().expect("there are packages").clone()
}

/// `(`, `)`, `OR`, `AND` and names; what stands behind WITH belongs to its name.
fn words(expression: &str) -> std::vec::IntoIter<String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "+WITH+");
    spaced.split_whitespace().map(|word| word.replace("+WITH+", " WITH ")).collect::<Vec<_>>().into_iter()
}

/// A licence expression of SPDX, and which licences may be chosen.
struct Licence<'a> {
    words: std::vec::IntoIter<String>,
    allowed: &'a [&'a str],
}

impl Licence<'_> {
    /// `A OR B`, to the end or the closing parenthesis.
    fn is_allowed(&mut self) -> bool {
        let (mut any, mut all) = (false, self.one());
        while let Some(word) = self.words.next() {
            match word.as_str() {
                "AND" => all &= self.one(),
                "OR" => {
                    any |= all;
                    all = self.one();
                }
                _ => break,
            }
        }
        any || all
    }

    fn one(&mut self) -> bool {
        match self.words.next().as_deref() {
            Some("(") => self.is_allowed(),
            // `+` stands for later versions, too.
            Some(name) => self.allowed.contains(&name.trim_end_matches('+')),
            None => false,
        }
    }
}

#[test]
fn an_expression_is_allowed_by_what_may_be_chosen() {
    let check = |text: &str| Licence { words: words(text), allowed: &["MIT", "Zlib", "A WITH b"] }.is_allowed();
    for text in ["MIT", "MIT OR X", "X OR MIT", "MIT/X", "MIT AND Zlib", "(MIT OR X) AND Zlib", "A WITH b", "MIT+"] {
        assert!(check(text), "{text}");
    }
    for text in ["", "X", "MIT AND X", "(MIT OR X) AND Y", "A", "A WITH c"] {
        assert!(!check(text), "{text}");
    }
}
