//! Finds what is a file each: the built-in kinds, and the types of the published Go modules.
//!
//! Every `src/kinds/served/GROUP/KIND.rs` is a module with a table `KINDS`, and every `../schemas/types/PACKAGE.txt` is a
//! package of types. So a kind is one file, and nothing else has to name it.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = variable("CARGO_MANIFEST_DIR");
    write_kinds(&folder.join("src/kinds/served"));
    write_types(&folder.join("../schemas/types"));
}

/// A module for each group, with a module for each of its files, and a table of all kinds.
fn write_kinds(folder: &Path) {
    let mut modules = String::new();
    let mut kinds = Vec::new();
    for group in entries(folder) {
        let group_name = stem(&group);
        modules += &format!("pub mod {group_name} {{\n");
        for file in entries(&group) {
            let name = stem(&file);
            modules += &format!("    #[path = {file:?}]\n    pub mod {name};\n");
            kinds.push(format!("&{group_name}::{name}::KINDS"));
        }
        modules += "}\n";
    }
    let table = format!(
        "/// The kinds of every file in the folder.\npub static KINDS: [&[&super::Kind]; {}] = [{}];\n",
        kinds.len(),
        kinds.join(", ")
    );
    write("served.rs", &(modules + &table));
}

/// A table of packages with their texts.
fn write_types(folder: &Path) {
    let files = entries(folder);
    let packages: Vec<String> =
        files.iter().map(|file| format!("    ({:?}, include_str!({file:?})),\n", stem(file))).collect();
    write(
        "types.rs",
        &format!(
            "/// Every package, with its text.\nstatic FILES: [(&str, &str); {}] = [\n{}];\n",
            files.len(),
            packages.concat()
        ),
    );
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
