//! The committed page is what the build makes of its source.

use std::fs;

use super::program::{has_tools, node, ui};

#[test]
fn the_committed_page_is_what_the_build_makes() {
    if !has_tools(&ui().join("node_modules/esbuild"), "the packages of ui/") {
        return;
    }
    let made = std::env::temp_dir().join(format!("skiff-ui-{}", std::process::id()));
    let built = node().arg("build.js").arg(&made).current_dir(ui()).output().expect("Node.js runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let committed = ui().join("dist");
    for entry in fs::read_dir(&committed).expect("the page is there") {
        let name = entry.expect("the folder is readable").file_name();
        let read = |folder: &std::path::Path| fs::read(folder.join(&name)).unwrap_or_default();
        assert!(
            read(&made) == read(&committed),
            "ui/dist/{} is out of date: run `npm ci && npm run build` in ui/",
            name.display()
        );
    }
    _ = fs::remove_dir_all(made);
}

#[test]
fn the_licences_of_all_that_is_bundled_are_beside_it() {
    let notices = fs::read_to_string(ui().join("dist/third-party.txt")).expect("the notices are there");
    for name in ["@codemirror/view", "@codemirror/state", "@lezer/yaml", "style-mod"] {
        assert!(notices.contains(&format!("\n{name} ")), "{name}");
    }
    assert!(notices.lines().filter(|line| line.ends_with("(MIT)")).count() >= 10);
    assert!(fs::metadata(ui().join("dist/page.js")).expect("the script is there").len() < 500_000);
}
