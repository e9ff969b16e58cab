//! Faults of the machine around a server: power cuts, kills, a disk that refuses writes, a clock set back. Nothing acknowledged is lost.

mod clock;
mod disk;
mod durability;
mod kills;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::server::Server;

/// What `shim.c` is told; each switches on one thing.
const FOLDER: &str = "SKIFF_SHIM_FOLDER";
const TRACE: &str = "SKIFF_SHIM_TRACE";
const REFUSE: &str = "SKIFF_SHIM_REFUSE";
const ROOM: &str = "SKIFF_SHIM_ROOM";
const CLOCK: &str = "SKIFF_SHIM_CLOCK";

/// The library made of `shim.c`, with the C compiler that SQLite needs, too.
fn shim() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{}.so", std::process::id()));
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        let compiled = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
        assert!(compiled.expect("there is a C compiler").success(), "the shim compiles");
        library
    })
}

/// Starts a server that the shim stands around.
fn start(data_dir: &Path, arguments: &[&str], switches: &[(&str, &Path)]) -> Server {
    std::fs::create_dir_all(data_dir).expect("the folder can be made");
    let folder = data_dir.canonicalize().expect("it is there");
    Server::start_in(data_dir, arguments, &[&[("LD_PRELOAD", shim()), (FOLDER, &folder)], switches].concat())
}
