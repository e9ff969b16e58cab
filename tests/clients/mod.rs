//! Client libraries as their users use them, each installed from its registry by tests/setup: programs in the folders
//! beside this file, run against a server of their own.

use std::path::Path;
use std::process::Command;

use crate::server::Server;

mod stand_ins;
mod go;
mod java;
mod python;
mod node;
mod kube_rs;

/// Runs a program against the server; it must succeed. What it printed is shown where it does not.
fn passes(program: &mut Command, server: &Server) {
    let output = program.env("KUBECONFIG", &server.kubeconfig).output().expect("the program is there");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program:?}: {}\n{stdout}{stderr}", output.status);
}

/// A server that has forgotten how its objects came to be: its database is a restored snapshot.
fn forgetful_server(folder: &Path) -> Server {
    let [saved, first, restored] = ["saved.db", "first", "restored"].map(|name| folder.join(name));
    let skiff = |action: &str, data_dir: &Path| {
        let mut skiff = Command::new(env!("CARGO_BIN_EXE_skiff"));
        skiff.args(["snapshot", action]).arg(&saved).arg("--data-dir").arg(data_dir);
        let output = skiff.output().expect("the binary was built with the tests");
        assert!(output.status.success(), "{action}: {}", String::from_utf8_lossy(&output.stderr));
    };
    Server::start(&first, &[]).terminate();
    skiff("save", &first);
    skiff("restore", &restored);
    Server::start(&restored, &[])
}
