//! The server that a program connects to: HTTPS on a port of its own, with a CA, a user and a
//! kubeconfig made for it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use axum::Router;
use tokio::net::TcpListener;

use super::super::command_error::CommandError;
use super::super::credentials::server_names;
use super::super::print::output;
use crate::auth::{Tokens, UserInfo};
use crate::server::{
    Authority, Connections, Gate, Kubeconfig, Secrets, SecretsError, Tls, Trust, connections_max, stop_requested,
};

/// The user in the kubeconfig.
const USER: &str = "recorded";
/// The exit code for a program that a signal has ended.
const SIGNALLED: u8 = 128;

/// A server for one program.
pub struct Front {
    pub listen: SocketAddr,
    /// Removed at the end.
    pub kubeconfig: PathBuf,
    /// Empty if someone else starts the program.
    pub command: Vec<OsString>,
}

impl Front {
    /// Serves until the program ends, or a signal arrives; returns the exit code of the program, or
    /// 0.
    ///
    /// # Errors
    ///
    /// The port is taken, or the program can't be run, or the kubeconfig can't be written.
    pub async fn serve(self, router: Router) -> Result<u8, CommandError> {
        let listener = TcpListener::bind(self.listen).await;
        let listener = listener.map_err(|source| CommandError::Listen { address: self.listen, source })?;
        let address = listener.local_addr()?;
        let connections = Connections::new(router, Gate::new(Arc::new(Tokens::default())), connections_max());
        connections.listen(listener, self.credentials(address).await?);
        let code = match self.command.split_first() {
            Some((program, arguments)) => self.run(program, arguments).await,
            None => self.wait(address).await,
        };
        connections.shut_down(None).await;
        // It is useless from now on, so an error is ignored.
        _ = fs::remove_file(&self.kubeconfig);
        code
    }

    /// Issues the credentials of the server and its user, and writes the kubeconfig.
    async fn credentials(&self, address: SocketAddr) -> Result<Tls, CommandError> {
        let failed = |error: &dyn std::fmt::Display| CommandError::Said(format!("no certificate can be made: {error}"));
        let authority = Authority::load(&Kept::default()).await.map_err(|error| failed(&error))?;
        let identity = authority.issue_server(&server_names(address)).map_err(|error| failed(&error))?;
        let user = authority.issue_client(USER, &[UserInfo::MASTERS]).map_err(|error| failed(&error))?;
        let server = format!("https://{address}");
        let authority_pem = authority.certificate_pem();
        let kubeconfig = Kubeconfig { server: &server, authority_pem, user: USER, identity: &user };
        kubeconfig.write(&self.kubeconfig).map_err(CommandError::write(&self.kubeconfig))?;
        Trust::of(&authority).and_then(|trust| Tls::new(trust, &identity)).map_err(|error| failed(&error))
    }

    async fn run(&self, program: &OsString, arguments: &[OsString]) -> Result<u8, CommandError> {
        let kubeconfig = std::path::absolute(&self.kubeconfig)?;
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", kubeconfig);
        let ended = tokio::task::spawn_blocking(move || command.status()).await;
        let status = ended.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
        status.map(code).map_err(|source| CommandError::Run { program: program.clone(), source })
    }

    async fn wait(&self, address: SocketAddr) -> Result<u8, CommandError> {
        let signals = stop_requested()?;
        let path = std::path::absolute(&self.kubeconfig)?;
        _ = output(format!("ready https://{address}\nexport KUBECONFIG={}\n", path.display()), ExitCode::SUCCESS);
        signals.await.map_err(|error| CommandError::Said(error.to_string()))?;
        Ok(0)
    }
}

fn code(status: ExitStatus) -> u8 {
    status.code().map_or(SIGNALLED, |code| u8::try_from(code).unwrap_or(u8::MAX))
}

/// Secrets in memory.
#[derive(Default)]
struct Kept(Mutex<HashMap<String, Vec<u8>>>);

#[async_trait]
impl Secrets for Kept {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SecretsError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
    }

    async fn insert_if_absent(&self, name: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(kept.entry(name.to_owned()).or_insert(candidate).clone())
    }
}
