//! The parts of the page, which `ui/build.js` generates and which are committed.

use crate::packed::{Packed, packed};

/// The page; `{nonce}` is replaced by a new nonce in each response.
pub const INDEX: &str = include_str!("../../../ui/dist/index.html");

/// A static part.
pub struct Asset {
    pub path: &'static str,
    pub content_type: &'static str,
    pub file: Packed,
}

/// All parts except the page.
pub const ASSETS: [Asset; 4] = [
    Asset { path: "/page.js", content_type: "text/javascript; charset=utf-8", file: packed!("ui/dist/page.js") },
    Asset { path: "/page.css", content_type: "text/css; charset=utf-8", file: packed!("ui/dist/page.css") },
    Asset { path: "/icon.svg", content_type: "image/svg+xml", file: packed!("ui/dist/icon.svg") },
    Asset {
        path: "/third-party.txt",
        content_type: "text/plain; charset=utf-8",
        file: packed!("ui/dist/third-party.txt"),
    },
];
