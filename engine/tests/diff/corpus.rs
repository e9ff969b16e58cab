//! The definitions of the corpus, changed at random, and the objects that a server took. The corpus stands in
//! `../shared/corpus` beside the project. Under CI it must be there; elsewhere one line says that it is left out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use flate2::read::GzDecoder;
use kubeskiff_engine::author::DefinedKind;
use kubeskiff_engine::author::diff::{diff, refused};
use serde_json::Value;

use super::generator::Generator;
use super::truth::{are_safe, converted, harm};

/// How many changes of each definition are tried.
const CHANGES: u64 = 2;
/// How many objects of each definition.
const OBJECTS: usize = 6;
/// How many lines the files have.
const DEFINITION_LINES: usize = 580;
const OBJECT_LINES: usize = 5484;

/// The lines of a file of the corpus; `None` where it is not there.
///
/// # Panics
///
/// Where it is not there although this is CI, and where it has another number of lines.
fn lines(name: &str, count: usize) -> Option<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus").join(name);
    let Ok(file) = File::open(&path) else {
        assert!(std::env::var_os("CI").is_none(), "{} is not there", path.display());
        // Past the test runner, which keeps what is printed by tests that pass.
        let line = format!("left out: {count} lines of the corpus, as ../shared/corpus/{name} is not there\n");
        drop(std::io::stderr().write_all(line.as_bytes()));
        return None;
    };
    let text = std::io::read_to_string(GzDecoder::new(file)).expect("the file is text under gzip");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("each line is a case")).collect();
    assert_eq!(lines.len(), count, "{name}");
    Some(lines)
}

#[test]
fn what_is_called_safe_harms_no_object_of_the_corpus() {
    let (Some(definitions), Some(cases)) =
        (lines("crds.jsonl.gz", DEFINITION_LINES), lines("crs.jsonl.gz", OBJECT_LINES))
    else {
        return;
    };
    let mut objects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for case in cases.iter().filter(|case| case["method"] == "POST" && case["expect"]["code"] == 201) {
        let of_kind = objects.entry(case["crd"].as_str().unwrap_or_default().to_owned()).or_default();
        if of_kind.len() < OBJECTS {
            of_kind.push(case["object"].clone());
        }
    }
    let (mut asked, mut false_safe) = (0, Vec::new());
    for (seed, case) in (1..).zip(definitions.iter().filter(|case| case.get("mutation").is_none())) {
        let name = case["crd"]["metadata"]["name"].as_str().unwrap_or_default();
        let Some(objects) = objects.get(name) else { continue };
        let Ok(old) = DefinedKind::new(&converted(&case["crd"])) else { continue };
        for change in 0..CHANGES {
            let mut generator = Generator::new(seed * CHANGES + change);
            let mut changed = case["crd"].clone();
            let versions = changed["spec"]["versions"].as_array_mut().expect("a definition has versions");
            for version in versions {
                if let Some(spec) = version.pointer_mut("/schema/openAPIV3Schema/properties/spec") {
                    generator.change(spec);
                }
            }
            let Ok(new) = DefinedKind::new(&converted(&changed)) else { continue };
            let changes = diff(&old, &new);
            if !new.errors.is_empty() || !are_safe(&changes) || !refused(Some(&old), &new).is_empty() {
                continue;
            }
            for object in objects {
                asked += 1;
                if let Some(harm) = harm(&old, &new, &converted(object)) {
                    false_safe.push(format!("{name} {change}: {changes:?}\n  {harm}"));
                }
            }
        }
    }
    println!("{asked} objects of the corpus under changes that are called safe");
    assert!(asked > 0, "no change was called safe");
    assert!(false_safe.is_empty(), "{}", false_safe[..false_safe.len().min(8)].join("\n"));
}
