//! The site that mdBook makes of the pages: it has them all, and every link of it leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kubectl::left_out;
use crate::server::Folder;

/// What mdBook makes beside the pages.
const OTHERS: [&str; 3] = ["404.html", "print.html", "toc.html"];

#[test]
fn links_of_the_site_lead_somewhere() {
    let Some(program) = program() else { return left_out("mdbook") };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::for_test();
    let built = Command::new(program).current_dir(root).args(["build", "docs", "--dest-dir"]).arg(&folder.0).output();
    let built = built.expect("mdbook runs");
    let told = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && !told.contains("WARN"), "{told}");
    let pages = pages(&folder.0);
    let mut broken = BTreeSet::new();
    for (name, page) in &pages {
        for link in values(page, "href").filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { name } else { file };
            let is_there = match pages.get(file) {
                Some(page) => anchor.is_empty() || values(page, "id").any(|id| id == anchor),
                None => folder.0.join(file).is_file(),
            };
            if !is_there {
                broken.insert(format!("{name}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    for entry in fs::read_dir(root.join("docs")).expect("the folder is there") {
        let path = entry.expect("the folder is readable").path();
        let page = path.with_extension("html").file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_page = path.extension().is_some_and(|extension| extension == "md") && page != "SUMMARY.html";
        assert!(!is_page || pages.contains_key(&page), "the site lacks {page}");
    }
}

/// mdBook, where tests/setup puts it or on the PATH.
fn program() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/python/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(installed).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("mdbook")).find(|program| program.is_file())
}

/// The pages of the site, by their names.
fn pages(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).expect("the folder is ours").map(|entry| entry.expect("it is readable").path());
    let html = files.filter(|path| path.extension().is_some_and(|extension| extension == "html"));
    let pages = html.map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("a page is text"))
    });
    pages.filter(|(name, _)| !OTHERS.contains(&name.as_str())).collect()
}

/// The values of an attribute.
fn values<'p>(page: &'p str, attribute: &str) -> impl Iterator<Item = &'p str> {
    let begin = format!(" {attribute}=\"");
    let parts: Vec<&str> = page.split(begin.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|part| Some(part.split_once('"')?.0))
}
