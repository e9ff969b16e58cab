//! The `kubernetes` package for Python, and kopf: the programs in the folder python.

use std::path::Path;
use std::process::Command;

use super::{forgetful_server, passes};
use crate::https::Identity;
use crate::kubectl::left_out;
use crate::server::{Folder, Server};

fn check(server: &Server, program: &str) {
    check_with(server, program, &[]);
}

/// Runs a program with these variables in its environment.
fn check_with(server: &Server, program: &str, variables: &[(&str, &Path)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let packages = root.join("tools/python");
    if !packages.join(".stamp").is_file() {
        return left_out("the Python packages");
    }
    let mut python = Command::new("python3");
    // Nothing is written beside the sources.
    python.arg("-B").arg(root.join("clients/python").join(program)).env("PYTHONPATH", packages);
    python.envs(variables.iter().copied());
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
    // Its webhooks listen on this machine, with a certificate of their own.
    Identity::new("127.0.0.1").write_to(&folder.0);
    check_with(&Server::start(&folder.0, &[]), "operate.py", &[("CERTIFICATES", &folder.0)]);
}
