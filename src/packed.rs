//! Files within the program that are large and seldom asked for: `build.rs` compresses them by gzip.
//!
//! Input: what stands in the program. Output: the bytes of the file.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// The compressed bytes of a file that `build.rs` names; a path from the root of the package.
macro_rules! packed {
    ($path:literal) => {
        $crate::packed::Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/", $path, ".gz")))
    };
}
pub(crate) use packed;

/// A compressed file within the program.
#[derive(Clone, Copy)]
pub struct Packed(&'static [u8]);

impl Packed {
    pub const fn new(gzip: &'static [u8]) -> Self {
        Self(gzip)
    }

    /// The file as it was.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.0).read_to_end(&mut bytes).expect("build.rs writes gzip");
        bytes
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_is_what_was_compressed() {
        let file = include_bytes!("../ui/dist/page.js");
        let packed = packed!("ui/dist/page.js");
        assert!(packed.0.len() * 3 < file.len());
        assert!(packed.bytes() == file);
    }
}
