//! The section of the README for schema authors, run from its own text: what the commands of its `console` blocks print is
//! what stands below them, and its files are those that it shows.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{folder, text};

#[test]
fn the_section_for_schema_authors_prints_what_it_says() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).expect("the README is there");
    let (_, section) = readme.split_once("\n## For schema authors\n").expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let folder = folder("readme", &[]);
    let mut commands = 0;
    for block in section.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap_or_default();
        match kind {
            // The first line names the file.
            "yaml" => {
                let name = body.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a file has a name");
                fs::write(folder.join(name), format!("{body}\n")).expect("the folder for tests is writable");
            }
            "console" => {
                for step in format!("\n{body}").split("\n$ ").skip(1) {
                    let (command, printed) = step.split_once('\n').unwrap_or((step, ""));
                    assert_eq!(run(&folder, command), printed.trim_end(), "{command}");
                    commands += 1;
                }
            }
            other => panic!("a block of kind `{other}`"),
        }
    }
    assert!(commands >= 5, "the section has {commands} commands");
}

fn run(folder: &Path, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_skiff")).parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    shell.current_dir(folder).env("PATH", format!("{}:{path}", program.display()));
    let output = shell.args(["-c", &format!("exec 2>&1\n{command}")]).output().expect("bash runs");
    // Lines of a source end in spaces where they are empty.
    text(&output.stdout).lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
