//! `skiff completion` and `skiff man`: shell completions and manual pages.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use super::print::{output, tell};

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = "Example:\n  source <(skiff completion bash)")]
pub struct Completion {
    #[arg(value_enum)]
    shell: Shell,
}

impl Completion {
    /// Prints the completions of `command`.
    pub fn run(self, mut command: clap::Command) -> ExitCode {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        output(script, ExitCode::SUCCESS)
    }
}

/// Answers `kubectl_complete-skiff ARGUMENTS`, by which kubectl asks for completions of its plugin:
/// prints the candidates for the last argument, one per line with its help after a tab, and then a
/// directive for the shell.
///
/// Source: `k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go` and cobra's `completions.go`.
pub fn complete_for_kubectl(mut command: clap::Command, arguments: Vec<OsString>) -> ExitCode {
    /// `ShellCompDirectiveNoFileComp`: where files are allowed, they are among the candidates.
    const NO_FILES: &str = ":4";
    let last = arguments.len().saturating_sub(1);
    let folder = std::env::current_dir().ok();
    let Ok(candidates) = clap_complete::engine::complete(&mut command, arguments, last, folder.as_deref()) else {
        return ExitCode::FAILURE;
    };
    let mut answer = String::new();
    for candidate in candidates {
        answer.push_str(&candidate.get_value().to_string_lossy());
        if let Some(help) = candidate.get_help() {
            answer.push('\t');
            answer.push_str(help.to_string().lines().next().unwrap_or_default());
        }
        answer.push('\n');
    }
    answer.push_str(NO_FILES);
    answer.push('\n');
    output(answer, ExitCode::SUCCESS)
}

/// Print the manual page, or write those of all commands into a folder
#[derive(Args)]
#[command(after_help = "Examples:\n  skiff man | man -l -\n  skiff man --dir /usr/local/share/man/man1")]
pub struct Man {
    /// Where to write a page for each command
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints the page of `command`, or writes the pages of all its commands.
    pub fn run(self, command: clap::Command) -> ExitCode {
        if let Some(folder) = &self.dir {
            return match clap_mangen::generate_to(command, folder) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    tell(format_args!("the pages can't be written to `{}`: {error}", folder.display()));
                    ExitCode::from(2)
                }
            };
        }
        let mut page = Vec::new();
        match clap_mangen::Man::new(command).render(&mut page) {
            Ok(()) => output(page, ExitCode::SUCCESS),
            Err(_) => ExitCode::FAILURE,
        }
    }
}
