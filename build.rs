//! Makes the program smaller, on disk and in memory: compresses files within it, links it at a fixed address, and puts the
//! functions that a start needs side by side.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::{env, io};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What `packed!` in `src/packed.rs` takes, from the root of the package.
const PACKED: [&str; 5] =
    ["schemas/openapi.json", "ui/dist/icon.svg", "ui/dist/page.css", "ui/dist/page.js", "ui/dist/third-party.txt"];

/// The functions that a start needs, as patterns of their names in the object files: `packages/start-order` makes it.
const START_ORDER: &str = "packages/start-order.txt";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = variable("OUT_DIR");
    for path in PACKED {
        println!("cargo::rerun-if-changed={path}");
        pack(path, &Path::new(&folder).join(format!("{path}.gz")))
            .expect("the file is there, and the folder can be written");
    }
    // As Go links its programs. At another address, all pages with tables of addresses would be changed at the start, and be
    // the process' own: 1.7 MiB, and 1.3 MB of the file say where these addresses are.
    if variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed={START_ORDER}");
    if takes_order() {
        let script = Path::new(&folder).join("start-order.ld");
        write_order(&script).expect("the file is there, and the folder can be written");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}

/// Whether the linker can be told where functions are to stand: a release for Linux on x86-64, where it is LLVM's, by the
/// names and without the options of another build.
fn takes_order() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    variable("PROFILE") == "release"
        && variable("TARGET") == "x86_64-unknown-linux-gnu"
        && flags.contains("symbol-mangling-version=v0")
        && !flags.contains("link-arg")
}

/// Writes the script for the linker. The system maps a program in pieces of 64 KiB around what is called: where the 5,000
/// functions of a start are spread over 20 MB, it maps nearly all of them. What the compiler takes for seldom called, as by a
/// profile, goes behind all else.
fn write_order(script: &Path) -> io::Result<()> {
    let mut text = "SECTIONS { .text.start : {\n".to_owned();
    for name in fs::read_to_string(START_ORDER)?.lines() {
        text += &format!("*(.text.{name} .text.hot.{name} .text.unlikely.{name})\n");
    }
    text += "} } INSERT BEFORE .text;\n";
    text += "SECTIONS { .text.never : { *(.text.unlikely .text.unlikely.*) } } INSERT AFTER .text;\n";
    fs::write(script, text)
}

fn pack(path: &str, packed: &Path) -> io::Result<()> {
    if let Some(folder) = packed.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut encoder = GzEncoder::new(File::create(packed)?, Compression::best());
    encoder.write_all(&fs::read(path)?)?;
    encoder.finish().map(drop)
}

fn variable(name: &str) -> String {
    env::var(name).expect("Cargo sets it")
}
