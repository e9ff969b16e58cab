//! `skiff lsp`: a language server for definitions, objects, policies and suites.
//!
//! In: messages of the Language Server Protocol on stdin. Out: answers and diagnostics on stdout. What is said of a text comes
//! from [`crate::author::editor`], which is pure; here are the protocol, the files and the order of the work.
//!
//! - **The newest edit wins.** One thread reads messages, another does what they ask: edits at once, requests in their order,
//!   and diagnostics when nothing else waits. A message that comes meanwhile ends a check of diagnostics, which begins anew
//!   from the newest text; a request that is cancelled ends, too. [`crate::work`] ends both.
//! - **No message ends the server** but `exit` and the end of stdin: what can't be read is answered with an error, what is too
//!   long is passed over, and a fault in a request is the answer to that request alone.
//! - **Why `lsp-server` and `lsp-types`**: the first is rust-analyzer's own and is released with it, the second is what it and most
//!   servers in Rust describe messages by. `tower-lsp` had its last release in 2023, and runs requests side by side, where
//!   here their order is the point. The reader of frames is ours ([`wire`]): that of `lsp-server` allocates what a header
//!   names, and ends at the first message that is not JSON.

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

/// Documents may be nested deep, and are walked by recursion. Only pages that are touched cost memory.
const STACK_BYTES: usize = 64 << 20;
/// Messages that may wait; then the client does.
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
