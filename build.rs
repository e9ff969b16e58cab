//! Finds the built-in kinds: every file in `src/kinds/served` is a module with a table `KINDS`.
//!
//! So a kind is one file, and nothing else has to name it.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    const FOLDER: &str = "src/kinds/served";
    println!("cargo:rerun-if-changed={FOLDER}");
    let variable = |name: &str| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let folder = variable("CARGO_MANIFEST_DIR").join(FOLDER);
    let entries = fs::read_dir(&folder).expect("the folder is part of the source");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    let modules: String = names
        .iter()
        .map(|name| format!("#[path = {:?}]\npub mod {name};\n", folder.join(format!("{name}.rs"))))
        .collect();
    let kinds: Vec<String> = names.iter().map(|name| format!("&{name}::KINDS")).collect();
    let table = format!(
        "/// The kinds of every file in the folder.\npub static KINDS: [&[&super::Kind]; {}] = [{}];\n",
        names.len(),
        kinds.join(", ")
    );
    fs::write(variable("OUT_DIR").join("served.rs"), modules + &table).expect("cargo has made the folder");
}
