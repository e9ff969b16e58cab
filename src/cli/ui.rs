//! `skiff serve --ui`: the page of `skiff playground` with access to the server, on a port of its
//! own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use axum::Router;
use clap::Args;
use tokio::net::TcpListener;

use super::playground::{LiveApi, PageToken, PlaygroundPage, Writes, bind};
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

    /// Loopback address and port of that page; port 0 picks a free one [default: 127.0.0.1:6481, or a free port where that is
    /// taken]
    #[arg(long, value_name = "ADDR:PORT", requires = "ui")]
    ui_listen: Option<SocketAddr>,
}

/// The default address of the page.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6481);

/// The requested settings of the page.
#[derive(Clone, Copy)]
pub struct PageRequest {
    listen: Option<SocketAddr>,
    writes: Writes,
}

impl Ui {
    /// What is wrong with the options.
    pub fn fault(&self) -> Option<&'static str> {
        let is_wrong = self.ui.is_some() && self.ui_listen.is_some_and(|address| !address.ip().is_loopback());
        is_wrong.then_some("--ui-listen takes a loopback address: the page is for this machine")
    }

    /// The requested page, if any.
    pub fn wanted(&self) -> Option<PageRequest> {
        self.ui.map(|writes| PageRequest { listen: self.ui_listen, writes })
    }
}

/// A page with its listener, and the link to it.
pub struct Opened {
    pub page: PlaygroundPage,
    pub listener: TcpListener,
    link: String,
}

impl Opened {
    /// Creates the page over `api`, whose requests are all made as the administrator.
    ///
    /// # Errors
    ///
    /// The address is taken.
    pub async fn new(PageRequest { listen, writes }: PageRequest, api: Router) -> std::io::Result<Opened> {
        let listener = bind(listen, LISTEN).await?;
        let address = listener.local_addr()?;
        let token = PageToken::generate();
        // Browsers do not send the fragment to the server.
        let link = format!("http://{address}/#token={token}");
        Ok(Opened { page: PlaygroundPage::beside(address, LiveApi::new(api, token, writes)), listener, link })
    }

    /// Prints the link.
    pub fn announce(&self) {
        _ = output(format!("ui {}\n", self.link), ExitCode::SUCCESS);
    }
}
