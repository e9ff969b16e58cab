//! The command line: one command per file.

mod manifests;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A small Kubernetes API server for CustomResourceDefinitions.
#[derive(Parser)]
#[command(name = "skiff", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
}

/// Runs the command that the arguments name.
pub async fn run() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(serve) => serve.run().await,
    }
}
