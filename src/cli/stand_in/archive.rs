//! `skiff assets archive`: the archive that setup-envtest installs, and the index that lists it.
//!
//! Source: the index and the archives of `controller-tools` (`envtest-releases.yaml`), the format
//! ustar of POSIX.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha512};

use super::super::print::{output, tell};
use super::StandIn;
use crate::http::SERVER_VERSION;
use crate::meta::minor::Minor;

const BLOCK_BYTES: usize = 512;
/// The folder of the programs in the archive.
const FOLDER: &str = "controller-tools/envtest";

/// Write an archive and an index that setup-envtest takes
///
/// `setup-envtest use 1.34.x --index URL/envtest-releases.yaml`, with the folder served at URL, installs this program, to speak for
/// that minor: the index has all of them.
#[derive(Args)]
pub struct Archive {
    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Where the folder will be served, for the links of the index
    #[arg(long, value_name = "URL", default_value = "http://localhost:8000")]
    base_url: String,
}

impl Archive {
    /// Writes the archive and the index. Exit codes: 0, or 2 if something can't be read or written.
    pub fn run(self) -> ExitCode {
        match self.write() {
            Ok(index) => output(format!("{}\n", index.display()), ExitCode::SUCCESS),
            Err(error) => {
                tell(format_args!("the archive can't be written: {error}"));
                ExitCode::from(2)
            }
        }
    }

    fn write(&self) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.out)?;
        let name = format!("envtest-{}-{}-{}.tar.gz", version(), system(), processor());
        let program = fs::read(env::current_exe()?)?;
        let archive = self.out.join(&name);
        write_archive(&program, &archive)?;
        let hash: String = Sha512::digest(fs::read(&archive)?).iter().map(|byte| format!("{byte:02x}")).collect();
        let link = format!("{}/{name}", self.base_url.trim_end_matches('/'));
        let index = self.out.join("envtest-releases.yaml");
        fs::write(&index, index_of(&hash, &link))?;
        Ok(index)
    }
}

/// The index with an entry for each minor version, all for the same archive: the folder of the
/// installation determines the minor version.
fn index_of(hash: &str, link: &str) -> String {
    let mut text = "releases:\n".to_owned();
    for minor in Minor::all() {
        let version = release(minor);
        let (system, processor) = (system(), processor());
        text.push_str(&format!("  {version}:\n    envtest-{version}-{system}-{processor}.tar.gz:\n"));
        text.push_str(&format!("      hash: {hash}\n      selfLink: {link}\n"));
    }
    text
}

/// A release of a minor version; for the newest one, the release that this program reports.
fn release(minor: Minor) -> Cow<'static, str> {
    if minor == Minor::NEWEST { version().into() } else { format!("v{minor}.0").into() }
}

/// The name of the folder in which setup-envtest installs a minor version: `1.34.0-linux-amd64`.
pub fn folder_of(minor: Minor) -> String {
    format!("{}-{}-{}", release(minor).trim_start_matches('v'), system(), processor())
}

/// The version of Kubernetes, without the program's own.
fn version() -> &'static str {
    SERVER_VERSION.split('+').next().unwrap_or_default()
}

/// The operating system, by Go's name.
fn system() -> &'static str {
    if cfg!(target_os = "macos") { "darwin" } else { env::consts::OS }
}

/// The processor architecture, by Go's name.
fn processor() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// Writes the archive. Each part is compressed separately, as gzip allows, so the program, which
/// the archive contains under each name, is compressed only once.
fn write_archive(program: &[u8], path: &Path) -> io::Result<()> {
    let size = program.len();
    let program = compressed(&[program, &[0; BLOCK_BYTES][..(BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES]])?;
    let mut out = fs::File::create(path)?;
    for (name, _) in StandIn::NAMES {
        out.write_all(&compressed(&[&header(&format!("{FOLDER}/{name}"), size)])?)?;
        out.write_all(&program)?;
    }
    // An archive ends with two empty blocks.
    out.write_all(&compressed(&[&[0; 2 * BLOCK_BYTES]])?)
}

fn compressed(parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    for part in parts {
        out.write_all(part)?;
    }
    out.finish()
}

/// The header of an executable regular file.
fn header(name: &str, size: usize) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum is computed with blanks in its own field.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_every_minor_and_one_archive() {
        let text = index_of("1a", "http://localhost/a");
        assert_eq!(text.matches("selfLink: http://localhost/a\n").count(), Minor::COUNT);
        assert!(text.starts_with("releases:\n  v1.29.0:\n    envtest-v1.29.0-"), "{text}");
        assert!(text.contains(&format!("  {}:\n", version())), "{text}");
    }

    #[test]
    fn a_head_has_a_size_and_a_sum() {
        let head = header("a/b", 9);
        assert_eq!((&head[..4], &head[124..136]), (b"a/b\0".as_slice(), b"00000000011\0".as_slice()));
        let sum: u32 =
            head.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { (*byte).into() }).sum();
        assert_eq!(head[148..156], *format!("{sum:06o}\0 ").as_bytes());
    }
}
