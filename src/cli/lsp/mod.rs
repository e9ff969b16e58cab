//! `skiff lsp`: a language server for definitions, objects, policies and suites.
//!
//! Input: messages of the Language Server Protocol on stdin. Output: responses and diagnostics on stdout.
//! What they say about a text comes from [`crate::author::editor`], which is pure; this module
//! handles the protocol, the files and the order of the work.
//!
//! - **The newest edit wins.** One thread reads messages, another one handles them: edits at once,
//!   requests in order, and diagnostics when nothing else waits. A message that arrives meanwhile
//!   aborts the computation of diagnostics, which starts again with the newest text; cancelling a
//!   request aborts it, too. [`crate::work`] aborts both.
//! - **No message ends the server** except `exit` and the end of stdin: malformed input is answered
//!   with an error, a message that is too long is skipped, and a panic in a request only fails that
//!   request.
//! - **Why `lsp-server` and `lsp-types`**: the first belongs to rust-analyzer and is released with
//!   it; the second is used by it and by most servers in Rust. `tower-lsp` had its last release in
//!   2023, and runs requests concurrently, while their order matters here. The reader of frames is
//!   our own ([`wire`]): that of `lsp-server` allocates as many bytes as a header says, and ends at
//!   the first message that is not JSON.

mod answer;
mod convert;
mod documents;
mod files;
mod folders;
mod incoming;
mod server;
mod settings;
mod settings_help;
mod suites;
mod uri;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use clap::Args;

use super::cluster::Access;
use super::print::tell;
use incoming::SharedState;
use server::LanguageServer;

/// The stack of the worker: documents may be nested deeply, and are walked by recursion. Only pages
/// that are used cost memory.
const STACK_BYTES: usize = 64 << 20;
/// How many messages may wait before the reader blocks.
const WAITING_MAX: usize = 1024;

/// Serve editors: diagnostics, completion, hover, definitions, edits, symbols and colours over stdin and stdout
///
/// A language server for definitions, objects, policies and suites in YAML. Kinds and policies come from the files that
/// skiff.toml names, or else from those of the workspace, and with --from-cluster from a live server, too. Editors start it;
/// the documentation has what they need.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff lsp\n  skiff lsp --from-cluster --context production\n\nExit codes: 0 shut down, 1 \
                        ended without that"
)]
pub struct Lsp {
    /// Take the definitions of the server that a kubeconfig names, too
    #[arg(long)]
    from_cluster: bool,

    #[command(flatten)]
    access: Access,
}

impl Lsp {
    /// Serves until it is told to exit, or stdin ends.
    pub async fn run(self) -> ExitCode {
        let shared = Arc::new(SharedState::default());
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let reads = {
            let (sender, shared) = (sender.clone(), Arc::clone(&shared));
            thread::Builder::new().spawn(move || wire::read(std::io::stdin().lock(), &sender, &shared))
        };
        let runtime = tokio::runtime::Handle::current();
        let access = self.from_cluster.then_some(self.access);
        let serves = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || LanguageServer::new(shared, sender, runtime, access).run(&receiver));
        let (Ok(_), Ok(serves)) = (reads, serves) else {
            tell("no thread can be made");
            return ExitCode::FAILURE;
        };
        let ended = tokio::task::spawn_blocking(move || serves.join()).await;
        if matches!(ended, Ok(Ok(true))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
