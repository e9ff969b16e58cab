//! How long controller-runtime's envtest takes to start and to stop on the programs of `skiff assets`, beside `skiff serve`, and
//! what ten environments take of memory: a program in Go (`tests/clients/go/envtest`), which tests/setup builds.
//!
//!     cargo bench --bench envtest
//!
//! Times are those of the caller: from `Start()` to the answer of the first object that is created, and of `Stop()`. They
//! contain what envtest does itself: it makes keys for its certificates, and looks every 100 ms whether a server is ready. That of
//! a busy API server is the one with twenty watches and a request that waits for a webhook.
//! `SKIFF_BENCH_ASSETS` names another folder with `kube-apiserver` and `etcd`, such as those of Kubernetes.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: &str = "20x";
const ROUNDS_OF_TEN: &str = "3x";

fn main() -> Result<(), Box<dyn Error>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = tests.join("tools/go/envtest.test");
    if !program.is_file() {
        eprintln!("left out: tests/setup has not built the Go clients");
        return Ok(());
    }
    let skiff = env!("CARGO_BIN_EXE_skiff");
    let assets = match std::env::var_os("SKIFF_BENCH_ASSETS") {
        Some(named) => PathBuf::from(named),
        None => {
            let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-assets");
            let printed = Command::new(skiff).arg("assets").env("SKIFF_ASSETS_DIR", home).output()?;
            PathBuf::from(String::from_utf8(printed.stdout)?.trim())
        }
    };
    for (name, rounds) in
        [("Environment", ROUNDS), ("Serve", ROUNDS), ("StopWhileBusy", ROUNDS), ("TenEnvironments", ROUNDS_OF_TEN)]
    {
        let status = Command::new(&program)
            .args(["-test.run=^$", &format!("-test.bench=^Benchmark{name}$"), &format!("-test.benchtime={rounds}")])
            .current_dir(tests.join("clients/go/envtest"))
            .env("SKIFF", skiff)
            .env("KUBEBUILDER_ASSETS", &assets)
            .status()?;
        if !status.success() {
            return Err(format!("{name}: {status}").into());
        }
    }
    Ok(())
}
