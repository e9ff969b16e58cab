//! The parts of the page, which `ui/build.js` generates and which are committed.

/// The page; `{nonce}` is replaced by a new nonce in each response.
pub const INDEX: &str = include_str!("../../../ui/dist/index.html");

/// A static part.
pub struct Asset {
    pub path: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

/// All parts except the page.
pub const ASSETS: [Asset; 4] = [
    Asset {
        path: "/page.js",
        content_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../ui/dist/page.js"),
    },
    Asset {
        path: "/page.css",
        content_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../ui/dist/page.css"),
    },
    Asset { path: "/icon.svg", content_type: "image/svg+xml", bytes: include_bytes!("../../../ui/dist/icon.svg") },
    Asset {
        path: "/third-party.txt",
        content_type: "text/plain; charset=utf-8",
        bytes: include_bytes!("../../../ui/dist/third-party.txt"),
    },
];
