//! `skiff record` and `skiff replay`: record a program's requests and the server's answers in a
//! file, and answer from it.
//!
//! Input: a kubeconfig and a program, or a file. Output: lines of JSON (`record::file`), or answers and
//! the requests that are not in the file. Tokens and the contents of Secrets never get into the
//! file (`record::mask`).

mod answers;
pub(super) mod file;
mod frames;
mod front;
mod key;
mod mask;
mod proxy;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::cluster::connect;
use super::command_error::CommandError;
use super::print::tell;
use answers::Answers;
use file::RecordWriter;
use front::Front;
use key::Matching;
use proxy::Proxy;

/// Record what a program asks a server and is answered
///
/// Passes requests on to a server, with the rights of its kubeconfig, and writes them and their answers to a file: for bug
/// reports, and for tests by `skiff replay`. The program gets a kubeconfig of its own. Tokens are left out of the file, and
/// what Secrets hold is masked in it; other objects are written as they are.
#[derive(Args)]
#[command(after_help = "Examples:\n  skiff record --upstream ~/.kube/config --out bug.jsonl -- kubectl get pods\n  \
                  skiff record --upstream ~/.kube/config --out bug.jsonl\n  export KUBECONFIG=$PWD/bug.jsonl.kubeconfig")]
pub struct Record {
    /// The kubeconfig of the server
    #[arg(long, value_name = "KUBECONFIG")]
    upstream: PathBuf,

    /// The context of that kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "record.jsonl")]
    out: PathBuf,

    #[command(flatten)]
    program: Program,
}

/// Answer a program from a record, as the server did
///
/// A request is answered as the same one was: with the same method, path, query, Accept and body, but for the time-outs in
/// the query. Where it was asked several times, the answers come in their order, and the last one again. Others are answered
/// with 501 and told on stderr; then the exit code is 1.
#[derive(Args)]
pub struct Replay {
    /// The file that `skiff record` has written
    file: PathBuf,

    /// Have requests be the same whatever their bodies say
    #[arg(long)]
    ignore_bodies: bool,

    /// Send events of watches at once, and not when they came
    #[arg(long)]
    at_once: bool,

    #[command(flatten)]
    program: Program,
}

/// The user who asks.
#[derive(Args)]
struct Program {
    /// The address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// The kubeconfig to write for the program, which goes at the end [default: FILE.kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// A program to run, with KUBECONFIG set; without one, until SIGTERM or SIGINT
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Program {
    fn front(self, file: &Path) -> Front {
        let beside = || {
            let mut name = file.as_os_str().to_owned();
            name.push(".kubeconfig");
            PathBuf::from(name)
        };
        let kubeconfig = self.kubeconfig.unwrap_or_else(beside);
        Front { listen: self.listen, kubeconfig, command: self.command }
    }
}

impl Record {
    /// Records until the program ends. Exit codes: that of the program; 0 if there is none, 1 for a
    /// failure.
    pub async fn run(self) -> ExitCode {
        let out = self.out.clone();
        match self.record().await {
            Ok((code, count)) => {
                let requests = if count == 1 { "request is" } else { "requests are" };
                tell(format_args!("{count} {requests} in `{}`", out.display()));
                ExitCode::from(code)
            }
            Err(why) => failed(&why),
        }
    }

    async fn record(self) -> Result<(u8, u64), CommandError> {
        let client = connect(Some(&self.upstream), self.context.as_deref())?;
        let writer = RecordWriter::create(&self.out).map_err(CommandError::write(&self.out))?;
        let proxy = Arc::new(Proxy { client, writer });
        let code = self.program.front(&self.out).serve(proxy::router(Arc::clone(&proxy))).await?;
        Ok((code, proxy.writer.finish()?))
    }
}

impl Replay {
    /// Answers until the program ends. Exit codes: that of the program if it is not 0; 1 for
    /// requests that are not in the record, and for a failure.
    pub async fn run(self) -> ExitCode {
        match self.replay().await {
            Ok(code) => ExitCode::from(code),
            Err(why) => failed(&why),
        }
    }

    async fn replay(self) -> Result<u8, CommandError> {
        let matching = Matching { ignores_bodies: self.ignore_bodies };
        let read = file::read(&self.file).map_err(|source| CommandError::Replay { file: self.file.clone(), source })?;
        let answers = Arc::new(Answers::new(read, matching, self.at_once));
        let code = self.program.front(&self.file).serve(answers::router(Arc::clone(&answers))).await?;
        let (known, new, unasked) = answers.counts();
        tell(format_args!("requests: {known} answered from the record, {new} new, {unasked} not asked again"));
        Ok(if code == 0 && new > 0 { 1 } else { code })
    }
}

fn failed(why: &CommandError) -> ExitCode {
    tell(why);
    ExitCode::FAILURE
}
