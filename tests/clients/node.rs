//! `@kubernetes/client-node`: the programs in the folder node.

use std::path::Path;
use std::process::Command;

use super::{forgetful_server, passes};
use crate::kubectl::left_out;
use crate::server::{Folder, Server};

fn check(server: &Server, program: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/node");
    let node = folder.join("node_modules/.bin/node");
    if !node.is_file() {
        return left_out("the packages for Node.js");
    }
    passes(Command::new(node).arg(folder.join(program)), server);
}

#[test]
fn node_reads_and_writes_objects() {
    let folder = Folder::for_test();
    check(&Server::start(&folder.0, &[]), "objects.js");
}

#[test]
fn node_watches_and_informs() {
    let folder = Folder::for_test();
    check(&forgetful_server(&folder.0), "watching.js");
}
