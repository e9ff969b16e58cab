//! The real kubectl against a server under test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::LazyLock;

use crate::server::Server;

/// Where tests/setup puts it; else the one on the PATH is taken.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/kubectl");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("kubectl"));
    std::iter::once(built).chain(installed).find(|program| program.is_file())
});

/// The program; `None` where there is none, which is then said by the test's name; under CI that is a failure.
pub fn program() -> Option<&'static Path> {
    if PROGRAM.is_none() {
        left_out("kubectl");
    }
    PROGRAM.as_deref()
}

/// kubectl as the admin of one server. Its arguments are written as one text and split at spaces.
pub struct Kubectl {
    program: &'static Path,
    kubeconfig: PathBuf,
}

/// What a run of kubectl left.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Kubectl {
    /// `None` where there is no kubectl, as [`program`] says.
    pub fn of(server: &Server) -> Option<Kubectl> {
        Some(Kubectl { program: program()?, kubeconfig: server.kubeconfig.clone() })
    }

    fn command(&self, arguments: &str) -> Command {
        let folder = self.kubeconfig.parent().expect("a kubeconfig is in a folder");
        let mut command = Command::new(self.program);
        command
            .args(arguments.split(' '))
            // Nothing of who runs the tests: no plugins, no settings, no cache.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .current_dir(folder);
        command
    }

    pub fn run(&self, arguments: &str) -> Run {
        self.pipe("", arguments)
    }

    /// Runs kubectl with `input` as its stdin.
    pub fn pipe(&self, input: &str, arguments: &str) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl was there a moment ago");
        // It may end without having read everything.
        _ = child.stdin.take().expect("stdin is a pipe").write_all(input.as_bytes());
        Run::of(child.wait_with_output().expect("kubectl is our child"))
    }

    /// What kubectl prints; it must succeed.
    pub fn ok(&self, arguments: &str) -> String {
        self.run(arguments).ok(arguments)
    }

    /// As [`Kubectl::ok`], with `input` as its stdin.
    pub fn pipe_ok(&self, input: &str, arguments: &str) -> String {
        self.pipe(input, arguments).ok(arguments)
    }

    /// What kubectl says on stderr; it must fail.
    pub fn fails(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(1), "kubectl {arguments}: {}{}", run.stdout, run.stderr);
        run.stderr
    }

    /// Edits an object, in an editor that replaces one text by another; what kubectl prints.
    pub fn edit(&self, object: &str, from: &str, to: &str) -> String {
        let arguments = format!("edit {object}");
        let mut command = self.command(&arguments);
        command.env("KUBE_EDITOR", format!("sed -i 's/{from}/{to}/'"));
        let output = command.output().expect("kubectl was there a moment ago");
        Run::of(output).ok(&arguments)
    }

    /// Starts a kubectl that goes on by itself.
    pub fn start(&self, arguments: &str) -> Running {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl was there a moment ago");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Running { child, stdout }
    }
}

impl Run {
    fn of(output: Output) -> Run {
        Run {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn ok(self, arguments: &str) -> String {
        assert_eq!(self.code, Some(0), "kubectl {arguments}: {}{}", self.stdout, self.stderr);
        self.stdout
    }
}

/// A kubectl in the background, stopped when it goes out of scope.
pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// The next line that it prints; empty once it has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("stdout is readable");
        line
    }

    /// Waits until it ends by itself; returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("kubectl is our child").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Says that the running test needs a tool that is missing. Under CI (the variable is set) that is a failure.
pub fn left_out(tool: &str) {
    let thread = std::thread::current();
    let text =
        format!("{} is left out: it needs {tool}, which tests/setup installs", thread.name().unwrap_or("a test"));
    assert!(std::env::var_os("CI").is_none(), "{text}");
    // Past the test runner, which keeps what passing tests print.
    _ = writeln!(std::io::stderr(), "{text}");
}
