//! `skiff serve --ui`: the page of `skiff playground` with a look at the server, on a port of its own.

use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use clap::Args;
use tokio::net::TcpListener;

use super::playground::{Live, Page, Token, Writes};
use super::print::output;

/// The page beside a server.
#[derive(Args, Clone)]
pub struct Ui {
    /// Also serve a page for browsers on this machine: kinds, objects, their changes as they come, rules and their costs. It
    /// reads, unless --ui=write lets it change and delete objects. Its link, printed at the start, has a secret
    #[arg(
        long,
        value_enum,
        value_name = "read|write",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "read",
        hide_possible_values = true
    )]
    ui: Option<Writes>,

    /// Loopback address and port of that page; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", requires = "ui", default_value = "127.0.0.1:0")]
    ui_listen: SocketAddr,
}

impl Ui {
    /// What is wrong with the options.
    pub fn fault(&self) -> Option<&'static str> {
        let is_wrong = self.ui.is_some() && !self.ui_listen.ip().is_loopback();
        is_wrong.then_some("--ui-listen takes a loopback address: the page is for this machine")
    }

    /// Where the page is to be served, if it is.
    pub fn listen(&self) -> Option<(SocketAddr, Writes)> {
        self.ui.map(|writes| (self.ui_listen, writes))
    }
}

/// A page that listens, and the link to it.
pub struct Opened {
    pub page: Page,
    pub listener: TcpListener,
    link: String,
}

impl Opened {
    /// The page over `api`, whose every request is one of the administrator.
    ///
    /// # Errors
    /// The address is taken.
    pub async fn new(address: SocketAddr, writes: Writes, api: Router) -> std::io::Result<Opened> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let token = Token::generate();
        // Browsers keep what stands behind the mark to themselves.
        let link = format!("http://{address}/#token={token}");
        Ok(Opened { page: Page::beside(address, Live::new(api, token, writes)), listener, link })
    }

    /// Prints the link.
    pub fn announce(&self) {
        _ = output(format!("ui {}\n", self.link), ExitCode::SUCCESS);
    }
}
