//! Operations on paths with `/`; no file is read.

/// Resolves a path relative to a folder, and removes `.` and `..`.
pub fn resolved(folder: &str, path: &str) -> String {
    let mut steps: Vec<&str> = if path.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => _ = steps.pop(),
            step => steps.push(step),
        }
    }
    let joined = steps.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}

/// Makes a path relative to a folder.
pub fn relative(folder: &str, path: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (folder.split('/').collect(), path.split('/').collect());
    let same = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let ups = std::iter::repeat_n("..", from.len() - same);
    ups.chain(to[same..].iter().copied()).collect::<Vec<_>>().join("/")
}

/// The folder of a file.
pub fn folder_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether a file is the one at a path, or within the folder at that path.
pub fn is_within(file: &str, path: &str) -> bool {
    file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_a_folder() {
        assert_eq!(relative("/a/b", "/a/c/d.yaml"), "../c/d.yaml");
        assert_eq!(relative("/a", "/a/d.yaml"), "d.yaml");
        assert_eq!(resolved("/a/b", "../c/./d.yaml"), "/a/c/d.yaml");
        assert!(is_within("/a/b/c.yaml", "/a/b") && !is_within("/a/bc.yaml", "/a/b"));
    }
}
