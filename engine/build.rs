//! Finds what is a file each: the built-in kinds, and the types of the published Go modules.
//!
//! Every `src/kinds/served/GROUP/KIND.rs` is a module with a table `KINDS`, and every `types/PACKAGE.txt` among the schemas is a
//! package of types, `descriptions/GROUP.txt` what they are for people. So a kind is one file, and nothing else has to name it.
//! `src/kinds/made_up` and `made-up` among the schemas are there in tests alone: a kind that holds that.
//!
//! The schemas stand beside this package. The crate that is published has them within, by a link that is followed then; where
//! links are not made at a checkout, as on Windows, they are found all the same. `SCHEMAS` says where to those who include them.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = variable("CARGO_MANIFEST_DIR");
    let kinds = [("KINDS", "src/kinds/served"), ("MADE_UP", "src/kinds/made_up")];
    write("served.rs", &kinds.map(|(table, path)| modules_of(table, &folder.join(path))).concat());
    let schemas = ["schemas", "../schemas"].map(|path| folder.join(path)).into_iter().find(|path| path.is_dir());
    let schemas = schemas.expect("the schemas are there");
    println!("cargo:rustc-env=SCHEMAS={}", schemas.display());
    let types = [("FILES", "types"), ("MADE_UP", "made-up")];
    write("types.rs", &types.map(|(table, path)| packages_of(table, &schemas.join(path))).concat());
    write("descriptions.rs", &descriptions_of(&schemas.join("descriptions")));
}

/// What stands before what is there in tests alone.
fn condition(table: &str) -> &'static str {
    if table == "MADE_UP" { "#[cfg(any(test, feature = \"made-up\"))]\n" } else { "" }
}

/// In other programs there is nothing in the table of the tests.
fn otherwise(table: &str, items: &str) -> String {
    match condition(table) {
        "" => String::new(),
        _ => format!("#[cfg(not(any(test, feature = \"made-up\")))]\npub static {table}: [{items}; 0] = [];\n"),
    }
}

/// A module for each group, with a module for each of its files, and a table of all kinds.
fn modules_of(table: &str, folder: &Path) -> String {
    let mut modules = String::new();
    let mut kinds = Vec::new();
    for group in entries(folder) {
        let group_name = stem(&group);
        modules += &format!("{}pub mod {group_name} {{\n", condition(table));
        for file in entries(&group) {
            let name = stem(&file);
            modules += &format!("    #[path = {file:?}]\n    pub mod {name};\n");
            kinds.push(format!("&{group_name}::{name}::KINDS"));
        }
        modules += "}\n";
    }
    let items = "&[&super::Kind]";
    let (condition, count, list) = (condition(table), kinds.len(), kinds.join(", "));
    modules +=
        &format!("{condition}/// The kinds of every file.\npub static {table}: [{items}; {count}] = [{list}];\n");
    modules + &otherwise(table, items)
}

/// A table of packages with their texts, and the API groups that their first lines name.
fn packages_of(table: &str, folder: &Path) -> String {
    let files = entries(folder);
    let packages: Vec<String> = files
        .iter()
        .map(|file| format!("    ({:?}, {:?}, include_str!({file:?})),\n", stem(file), group_of(file)))
        .collect();
    let items = "(&str, Option<&str>, &str)";
    let (condition, count, list) = (condition(table), files.len(), packages.concat());
    let made =
        format!("{condition}/// Every package, with its text.\nstatic {table}: [{items}; {count}] = [\n{list}];\n");
    made + &otherwise(table, items).replace("pub static", "static")
}

/// A table of groups with the descriptions of their types.
fn descriptions_of(folder: &Path) -> String {
    let files = entries(folder);
    let texts: String = files.iter().map(|file| format!("    ({:?}, include_str!({file:?})),\n", stem(file))).collect();
    format!("/// Every group, with its text.\nstatic FILES: [(&str, &str); {}] = [\n{texts}];\n", files.len())
}

/// The API group of a package's kinds. What is in `meta.k8s.io` is in every group.
fn group_of(file: &Path) -> Option<String> {
    println!("cargo:rerun-if-changed={}", file.display());
    let text = fs::read_to_string(file).expect("the file is part of the source");
    let (head, _) = text.split_once(';')?;
    let (_, group) = head.split_once(", group=")?;
    (group != "meta.k8s.io").then(|| group.to_owned())
}

/// What is in a folder, in the order of the names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the folder is part of the source");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem().and_then(|stem| stem.to_str()).expect("the names are plain").to_owned()
}

fn write(name: &str, text: &str) {
    fs::write(variable("OUT_DIR").join(name), text).expect("cargo has made the folder");
}

fn variable(name: &str) -> PathBuf {
    PathBuf::from(env::var_os(name).expect("cargo sets it"))
}
