//! This program in the place of others: `kube-apiserver`, `etcd` and `kubectl`, which Kubernetes'
//! test tools start.
//!
//! Input: the arguments of those programs. Output: their behaviour, as far as a test can tell. `skiff
//! assets` creates the folder in which the program has these names.

mod api_server;
mod archive;
mod assets;
mod audit_log;
mod authorization;
mod authorization_configuration;
mod etcd;
mod files;
mod flags;
mod kubectl;
mod credentials;
mod sorts;
mod store;
mod values;
mod versions;

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use assets::Assets;

/// The program that this one is called as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    ApiServer,
    Etcd,
    Kubectl,
}

impl StandIn {
    /// All names, and the programs behind them.
    pub const NAMES: [(&str, Self); 3] =
        [("kube-apiserver", StandIn::ApiServer), ("etcd", StandIn::Etcd), ("kubectl", StandIn::Kubectl)];

    /// Runs with the arguments after the program's name.
    pub async fn run(self, arguments: Vec<OsString>) -> ExitCode {
        if self == StandIn::Kubectl {
            return kubectl::run(arguments).await;
        }
        let texts = arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned());
        match self {
            StandIn::ApiServer => api_server::run(texts).await,
            _ => etcd::run(texts).await,
        }
    }
}

/// The program that is meant by the name in the first argument; `None` for this one itself.
pub fn called(program: Option<&OsString>) -> Option<StandIn> {
    let name = Path::new(program?).file_name()?;
    StandIn::NAMES.iter().find(|(known, _)| name == &*file_name(known)).map(|(_, stand_in)| *stand_in)
}

/// The file name of a program: `etcd.exe` on Windows.
fn file_name(program: &str) -> String {
    format!("{program}{EXE_SUFFIX}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_to_be() {
        assert_eq!(called(Some(&"/x/etcd".into())), Some(StandIn::Etcd));
        assert_eq!(called(Some(&"kubectl".into())), Some(StandIn::Kubectl));
        assert_eq!(called(Some(&"/x/skiff".into())), None);
        assert_eq!(called(None), None);
    }
}
