//! The command line: one module for each command.

mod admission;
mod annotate;
mod check;
mod cluster;
mod command_error;
mod database;
mod export;
mod completion;
mod convert;
mod cost;
mod shares;
mod definitions;
mod diff;
mod docs;
mod documents;
mod eval;
mod explain;
mod fault;
mod git;
mod infer;
mod lint;
mod log;
mod lsp;
mod minors;
mod missing;
mod parallel;
mod parent;
mod plane;
mod planes;
mod playground;
mod policies;
mod print;
mod project;
mod record;
mod report;
mod seed;
mod serve;
mod service_network;
mod serving_failure;
mod credentials;
mod server;
mod serving;
mod snapshot;
mod stand_in;
mod temporary;
mod test;
mod text;
mod ui;
mod users;
mod workloads;
mod validate;
mod watch;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tokio::runtime::Runtime;

/// A small Kubernetes API server for CustomResourceDefinitions.
#[derive(Parser)]
#[command(name = "skiff", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    Assets(stand_in::Assets),
    Plane(plane::Plane),
    Fault(Box<fault::Fault>),
    Record(Box<record::Record>),
    Replay(Box<record::Replay>),
    Snapshot(snapshot::Snapshot),
    Check(check::Check),
    Export(export::Export),
    Import(export::Import),
    Validate(validate::Validate),
    Test(test::Test),
    Cost(cost::Cost),
    Diff(diff::Diff),
    Lint(lint::Lint),
    Explain(explain::Explain),
    Docs(docs::Docs),
    Eval(Box<eval::Eval>),
    Convert(convert::Convert),
    Infer(infer::Infer),
    Lsp(lsp::Lsp),
    Playground(playground::Playground),
    Completion(completion::Completion),
    Man(completion::Man),
}

/// Whether the program was called through a link of this name.
fn is_called(program: Option<&OsString>, name: &str) -> bool {
    program.is_some_and(|program| Path::new(program).file_stem().is_some_and(|stem| stem == name))
}

/// The description of the arguments. If called through a link named `kubectl-skiff`, the program is
/// a plugin: its help then says `kubectl skiff`.
fn command(program: Option<&OsString>) -> clap::Command {
    if is_called(program, "kubectl-skiff") { Cli::command().bin_name("kubectl skiff") } else { Cli::command() }
}

/// Prints an error in the arguments, or the requested help. Passwords in URLs are hidden.
fn refuse(error: &clap::Error) -> ExitCode {
    const HIDDEN: &str = "***";
    let text = error.to_string();
    match print::without_passwords(&text, HIDDEN) {
        told if told == text => _ = error.print(),
        told => print::note(told.trim_end()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX))
}

/// Runs the command that the arguments name, in a task of `runtime`: the main thread's stack has the size that the system
/// chose.
///
/// A crate that polls a future compiles all that the future awaits once more, so the binary only calls this function.
pub fn run(runtime: &Runtime) -> ExitCode {
    runtime.block_on(async { tokio::spawn(run_command()).await.unwrap_or(ExitCode::FAILURE) })
}

async fn run_command() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(stand_in) = stand_in::called(arguments.first()) {
        return stand_in.run(arguments.into_iter().skip(1).collect()).await;
    }
    if is_called(arguments.first(), "kubectl_complete-skiff") {
        return completion::complete_for_kubectl(Cli::command(), arguments);
    }
    let matches = command(arguments.first()).try_get_matches_from(arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match cli.command {
        Command::Serve(serve) => serve.run().await,
        Command::Assets(assets) => assets.run(),
        Command::Plane(plane) => plane.run().await,
        Command::Fault(fault) => fault.run().await,
        Command::Record(record) => record.run().await,
        Command::Replay(replay) => replay.run().await,
        Command::Snapshot(snapshot) => snapshot.run().await,
        Command::Check(check) => check.run().await,
        Command::Export(export) => export.run().await,
        Command::Import(import) => import.run().await,
        Command::Validate(validate) => validate.run().await,
        Command::Test(test) => test.run(),
        Command::Cost(cost) => cost.run(),
        Command::Diff(diff) => diff.run().await,
        Command::Lint(lint) => lint.run(),
        Command::Explain(explain) => explain.run(),
        Command::Docs(docs) => docs.run(),
        Command::Eval(eval) => eval.run(),
        Command::Convert(convert) => convert.run().await,
        Command::Infer(infer) => infer.run(),
        Command::Lsp(lsp) => lsp.run().await,
        Command::Playground(playground) => playground.run().await,
        Command::Completion(completion) => completion.run(Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
    }
}
