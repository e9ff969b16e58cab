//! `skiff playground`: shows in a browser how a definition treats an object, while both are edited.
//!
//! One page with embedded parts, and a few questions in JSON, each answered by
//! [`crate::author::playground`]. `skiff serve --ui` serves the same page, with access to the
//! server beside it ([`live`]).
//!
//! # What other pages can do
//!
//! A browser lets any page send requests to a loopback address. [`guard`] refuses requests that
//! name another host (such as a foreign name that resolves to this address), and those that come
//! from another origin according to the browser. No response allows other origins to read it, no
//! question is answered to a form, and the page itself runs only its own script and connects only
//! to this server.

mod answer;
mod assets;
mod examples;
mod guard;
mod live;
mod questions;
mod service;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;

use super::print::{UNUSABLE, note, output, tell};
use super::project::Project;
use crate::auth::Tokens;
use crate::server::{Connections, Gate, stop_requested};

pub use live::{LiveApi, PageToken, Writes};
pub use service::PlaygroundPage;

/// How many connections are served at once: a browser opens six.
pub const CONNECTIONS_MAX: usize = 64;

/// The default address of the page: with a fixed port, a link that was copied from it works after
/// the next start, too.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6480);

/// Try definitions, rules and policies in a browser
///
/// Serves a page on this machine, from this program alone: a definition with its policies on one side, an object, what it was
/// before and the request on the other, and below them, as you type, the verdict, each rule with its cost and the values of
/// its parts, what was defaulted and pruned, and findings with their fixes. A link to the page holds all of it and never
/// leaves the browser; a button writes a case for `skiff test`. The definitions that skiff.toml names are among the examples.
/// Nothing is stored.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff playground\n  skiff playground --listen 127.0.0.1:8123 --open\n\nExit codes: 0 a clean end, 1 a \
                        failure, 2 wrong use"
)]
pub struct Playground {
    /// Loopback address and port to listen on; port 0 picks a free one [default: 127.0.0.1:6480, or a free port where that is taken]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Show the page in the browser
    #[arg(long)]
    open: bool,
}

impl Playground {
    /// Serves the page until it is told to stop. Exit codes: 0 for a clean end, 1 for a failure, 2
    /// for wrong use.
    pub async fn run(self) -> ExitCode {
        if self.listen.is_some_and(|address| !address.ip().is_loopback()) {
            tell("--listen takes a loopback address: the page is for this machine");
            return ExitCode::from(UNUSABLE);
        }
        let project = match Project::here() {
            Ok(project) => project,
            Err(error) => {
                tell(error);
                return ExitCode::from(UNUSABLE);
            }
        };
        match self.serve(project).await {
            Ok(code) => code,
            Err(error) => {
                tell(format_args!("can't listen on {}: {error}", self.listen.unwrap_or(LISTEN)));
                ExitCode::FAILURE
            }
        }
    }

    async fn serve(&self, project: Project) -> std::io::Result<ExitCode> {
        let signals = stop_requested()?;
        let listener = bind(self.listen, LISTEN).await?;
        let address = listener.local_addr()?;
        let gate = Gate::new(Arc::new(Tokens::default()));
        let connections = Connections::new(PlaygroundPage::alone(address, project), gate, CONNECTIONS_MAX);
        connections.listen_insecure(listener);
        let url = format!("http://{address}/");
        let code = output(format!("ready {url}\n"), ExitCode::SUCCESS);
        if self.open {
            show(&url);
        }
        // If the sender of the signal is gone, nobody can request a stop: shut down.
        _ = signals.await;
        connections.shut_down(None).await;
        Ok(code)
    }
}

/// Listens at the named address, or else at the usual one, or at a free port if that is taken.
///
/// # Errors
///
/// The named address is taken.
pub async fn bind(named: Option<SocketAddr>, usual: SocketAddr) -> std::io::Result<TcpListener> {
    if let Some(address) = named {
        return TcpListener::bind(address).await;
    }
    if let Ok(listener) = TcpListener::bind(usual).await {
        return Ok(listener);
    }
    note(format_args!("{usual} is taken: links to this page are good as long as it is served"));
    TcpListener::bind((usual.ip(), 0)).await
}

/// Opens a URL in the browser of the system.
fn show(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() {
        note(format_args!("there is no {program}: open {url}"));
    }
}
