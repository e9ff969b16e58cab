//! `skiff completion` and `skiff man`: what shells and manual readers want to know of the commands.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

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
        write(&script)
    }
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
                    eprintln!("skiff: the pages can't be written to `{}`: {error}", folder.display());
                    ExitCode::from(2)
                }
            };
        }
        let mut page = Vec::new();
        match clap_mangen::Man::new(command).render(&mut page) {
            Ok(()) => write(&page),
            Err(_) => ExitCode::FAILURE,
        }
    }
}

/// A reader that has seen enough is no fault.
fn write(bytes: &[u8]) -> ExitCode {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
