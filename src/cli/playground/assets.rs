//! The parts of the page, made by `ui/build.js` and committed.

/// The page; `{nonce}` stands for a word that is new with each answer.
pub const INDEX: &str = include_str!("../../../ui/dist/index.html");

/// A part that is the same for everybody.
pub struct Asset {
    pub path: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

/// All parts but the page.
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
