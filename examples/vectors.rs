//! Runs vectors and shows where our answers differ from Kubernetes'.
//!
//!     cargo run --release --example vectors -- FOLDER…
//!
//! Prints each case that differs with both answers, and closes with `N passed, M failed` per file and in all. Exit code 1
//! if any case failed, 2 if a file can't be read.

#[path = "../tests/spec/vectors.rs"]
mod vectors;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match run(&paths) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs all files and returns how many cases failed.
fn run(paths: &[PathBuf]) -> Result<usize, String> {
    let mut totals = (0, 0);
    let mut summary = String::new();
    for file in vectors::files(paths)? {
        let tally = vectors::run(&file)?;
        for difference in &tally.differences {
            println!("{difference}");
        }
        let failed = tally.differences.len();
        summary.push_str(&format!("{}: {} passed, {failed} failed\n", file.display(), tally.passed));
        totals = (totals.0 + tally.passed, totals.1 + failed);
    }
    print!("{summary}");
    println!("{} passed, {} failed", totals.0, totals.1);
    Ok(totals.1)
}
