//! References of definitions: goldens over crd-examples, and texts that try to be more than texts.
//!
//! `SKIFF_REFERENCE=write` writes the goldens anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::client::{Folder, left_out};
use crate::largest::largest;
use crate::session::BOATS;

fn docs(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_skiff"))
        .arg("docs")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

fn check(name: &str, found: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editor/reference").join(name);
    if std::env::var_os("SKIFF_REFERENCE").is_some_and(|value| value == "write") {
        fs::create_dir_all(golden.parent().expect("it is in a folder")).expect("the folder is ours");
        fs::write(&golden, found).expect("the folder is ours");
    }
    let expected = fs::read_to_string(&golden).expect("there is a golden");
    assert!(expected == found, "{name} differs; see SKIFF_REFERENCE in tests/editor/reference.rs");
}

#[test]
fn the_examples_have_a_reference() {
    let arguments = ["--suites", "crd-examples", "crd-examples"];
    for (format, name) in [("markdown", "all.md"), ("html", "all.html")] {
        let arguments = [&["-o", format], &arguments[..]].concat();
        let found = docs(&arguments);
        assert_eq!(found, docs(&arguments), "it is the same each time");
        check(name, &found);
    }
}

#[test]
fn a_folder_has_a_page_for_each_kind() {
    let folder = Folder::new("pages", &[("x", "")]);
    let out = format!("{}/out/", folder.0.display());
    docs(&["-o", "html", "--output", &out, "crd-examples"]);
    let mut names: Vec<String> = fs::read_dir(&out)
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 9, "{names:?}");
    let index = fs::read_to_string(format!("{out}index.html")).expect("it is there");
    let targets = index.split("href=\"").skip(1).filter_map(|rest| rest.split('#').next());
    for target in targets {
        assert!(names.iter().any(|name| name == target), "{target}");
    }
}

/// The anchors of a page, which has none twice and no link to one that is not there.
#[track_caller]
fn anchors(page: &str) -> BTreeSet<&str> {
    let quoted = |mark: &str| page.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>();
    let all = quoted("id=\"");
    let anchors: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(anchors.len(), all.len(), "none stands twice");
    assert!(quoted("href=\"#").iter().all(|target| anchors.contains(target)), "all links lead somewhere");
    anchors
}

#[test]
fn anchors_are_unique_and_stay() {
    let before = Folder::new("anchors", &[("crd.yaml", BOATS)]);
    let changed = BOATS.replace("              rig:\n", "              mast: {type: integer}\n              rig:\n");
    let after = Folder::new("anchors-changed", &[("crd.yaml", &changed)]);
    let page = |folder: &Folder| docs(&["-o", "html", &folder.0.display().to_string()]);
    let (before, after) = (page(&before), page(&after));
    let (before, after) = (anchors(&before), anchors(&after));
    let new: Vec<&&str> = after.difference(&before).collect();
    assert_eq!(new, [&"boats.harbour.example.com_v1_spec.mast"]);
    assert!(before.is_subset(&after));
    let Some(texts) = largest() else { return left_out("the anchors of large definitions: ../shared is not there") };
    let files: Vec<(String, &str)> =
        texts.iter().enumerate().map(|(at, text)| (format!("{at}.yaml"), text.as_str())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let folder = Folder::new("anchors-largest", &files);
    let page = page(&folder);
    assert!(anchors(&page).len() > 1000);
    assert_eq!(page, docs(&["-o", "html", &folder.0.display().to_string()]), "it is the same each time");
}

const HOSTILE: &str = r##"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: "a.b.c"}
spec:
  group: b.c
  scope: Namespaced
  names: {plural: a, singular: a, kind: A}
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: true
    deprecationWarning: "</code><script>alert(1)</script>"
    schema:
      openAPIV3Schema:
        description: "</p><script>alert(2)</script> [x](javascript:alert(3)) ![i](http://e/x.png) http://e <http://e> `c` \n\n# h\n\n- [ ] x\n\n```\n<b>"
        type: object
        properties:
          "x\" onmouseover=\"alert(4)":
            type: string
            default: "`</code>` <img src=http://e onerror=alert(5)>"
            pattern: "`|</code><script>"
            description: "<!-- "
          "</script><script>":
            type: object
            x-kubernetes-validations:
            - {rule: "self == self || '</code><script>`' == ''", message: "</li><script>alert(6)</script>"}
"##;

#[test]
fn texts_of_definitions_stay_texts() {
    let folder = Folder::new("hostile", &[("crd.yaml", HOSTILE)]);
    let path = folder.0.join("crd.yaml").display().to_string();
    let html = docs(&["-o", "html", &path]);
    for bad in ["<script", "<img", "<b>", "<!--", "onmouseover=\"", "href=\"http", "href=\"javascript"] {
        let found = html.match_indices(bad).count();
        assert_eq!(found, 0, "{bad}\n{html}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("prefers-color-scheme"));
    let markdown = docs(&[&path]);
    // Outside of code, where everything is text.
    let mut outside = String::new();
    let mut fence: Option<&str> = None;
    for line in markdown.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            // The language stands behind the backticks.
            None if line.starts_with("```") => fence = Some(&line[..line.len() - line.trim_start_matches('`').len()]),
            _ => {}
        }
        if fence.is_some() || line.starts_with("```") {
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find('`') {
            if rest[..start].ends_with('\\') {
                outside.push_str(&rest[..start]);
                rest = &rest[start + 1..];
                continue;
            }
            outside.push_str(&rest[..start]);
            let fence: String = rest[start..].chars().take_while(|sign| *sign == '`').collect();
            let behind = &rest[start + fence.len()..];
            let end = behind.find(&fence).expect("code ends on its line");
            rest = &behind[end + fence.len()..];
        }
        outside.push_str(rest);
        outside.push('\n');
    }
    assert!(fence.is_none(), "every fence is closed\n{markdown}");
    for bad in ["<script", "<img", "<b>", "<!--", "](javascript", "](http", "http://", "\n# h", "\n```"] {
        assert!(!outside.contains(bad), "{bad}\n{outside}");
    }
}
