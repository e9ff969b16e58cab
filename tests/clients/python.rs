//! The `kubernetes` package for Python, and kopf: the programs in the folder python.

use std::path::Path;
use std::process::Command;

use super::{forgetful_server, passes};
use crate::kubectl::left_out;
use crate::server::{Folder, Server};

fn check(server: &Server, program: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let packages = root.join("tools/python");
    if !packages.join(".stamp").is_file() {
        return left_out("the Python packages");
    }
    let mut python = Command::new("python3");
    // Nothing is written beside the sources.
    python.arg("-B").arg(root.join("clients/python").join(program)).env("PYTHONPATH", packages);
    passes(&mut python, server);
}

#[test]
fn python_reads_and_writes_typed_objects() {
    let folder = Folder::for_test();
    check(&Server::start(&folder.0, &[]), "typed.py");
}

#[test]
fn python_reads_and_writes_objects_of_discovered_kinds() {
    let folder = Folder::for_test();
    check(&Server::start(&folder.0, &[]), "dynamic.py");
}

#[test]
fn python_watches_and_informs() {
    let folder = Folder::for_test();
    check(&forgetful_server(&folder.0), "watching.py");
}

#[test]
fn a_kopf_operator_runs() {
    let folder = Folder::for_test();
    check(&Server::start(&folder.0, &[]), "operate.py");
}
