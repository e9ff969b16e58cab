//! What the documentation says to schema authors, run from their own texts: what the commands of their `console`
//! blocks print is what stands below them, and files are those that are shown.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{folder, text};

#[test]
fn the_page_for_schema_authors_prints_what_it_says() {
    check_page("schema-authors", 5);
}

#[test]
fn the_page_of_more_tools_prints_what_it_says() {
    check_page("author-tools", 5);
}

#[test]
fn the_page_of_offline_checks_prints_what_it_says() {
    check_page("offline-checks", 4);
}

#[test]
fn the_page_of_the_project_file_prints_what_it_says() {
    check_page("project-file", 5);
}

#[test]
fn the_page_of_reference_pages_prints_what_it_says() {
    check_page("reference-pages", 1);
}

#[track_caller]
fn check_page(name: &str, least: usize) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.md"));
    let page = fs::read_to_string(page).expect("the page is there");
    assert!(run_blocks(&format!("readme-{name}"), &page) >= least, "the page has few commands");
}

/// Writes the files of a text and runs its commands, in a folder of that name. Returns how many there are.
fn run_blocks(name: &str, text: &str) -> usize {
    let folder = folder(name, &[]);
    let mut commands = 0;
    for block in text.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap_or_default();
        // The first line names the file.
        let name = body.lines().next().and_then(|line| line.strip_prefix("# ")).filter(|name| !name.contains(' '));
        if let ("yaml" | "toml", Some(name)) = (kind, name) {
            fs::write(folder.join(name), format!("{body}\n")).expect("the folder for tests is writable");
            continue;
        }
        if matches!(kind, "sh" | "toml") {
            // To be read, and run by nobody.
            continue;
        }
        assert_eq!(kind, "console", "a block of this kind");
        for step in format!("\n{body}").split("\n$ ").skip(1) {
            let (command, printed) = step.split_once('\n').unwrap_or((step, ""));
            assert_eq!(run(&folder, command), printed.trim_end(), "{command}");
            commands += 1;
        }
    }
    commands
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
