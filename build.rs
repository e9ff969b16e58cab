//! Makes the program smaller: compresses files within it, and links it at a fixed address.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::{env, io};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What `packed!` in `src/packed.rs` takes, from the root of the package.
const PACKED: [&str; 5] =
    ["schemas/openapi.json", "ui/dist/icon.svg", "ui/dist/page.css", "ui/dist/page.js", "ui/dist/third-party.txt"];

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
