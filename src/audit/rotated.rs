//! A log file that is rotated when it is full, and the removal of old ones.
//!
//! `audit.log` is renamed to `audit-2026-01-02T15-04-05.000.log`, which may later be compressed to
//! a file with the suffix `.gz`.
//!
//! Source: `gopkg.in/natefinch/lumberjack.v2`, with which kube-apiserver writes its audit log.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::private;

const NAME_FORMAT: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const COMPRESSED: &str = ".gz";
const DAY_S: i64 = 24 * 60 * 60;

/// When a file is full, and which rotated files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A write that would make the file longer than this starts a new one.
    pub size_bytes_max: u64,
    /// How many rotated files are kept; 0 for all.
    pub older_files_max: usize,
    /// For how many days a rotated file is kept; 0 for no limit.
    pub age_days_max: u32,
    /// Whether rotated files are compressed.
    pub compresses: bool,
}

/// The file that is currently written.
pub struct RotatedFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    size_bytes: u64,
    /// Asks the thread that removes old files; it ends with the log.
    tidying: Option<SyncSender<()>>,
}

impl RotatedFile {
    /// Appends to the file at `path`.
    ///
    /// # Errors
    ///
    /// The file can't be opened for writing.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = append_to(path)?;
        let size_bytes = file.metadata()?.len();
        let mut opened = RotatedFile { path: path.to_owned(), rotation, file, size_bytes, tidying: None };
        opened.tidy();
        Ok(opened)
    }

    /// Renames the file and starts a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let now = Timestamp::now().to_zoned(TimeZone::UTC).datetime().strftime(NAME_FORMAT).to_string();
        let (stem, end) = parts(&self.path);
        fs::rename(&self.path, self.path.with_file_name(format!("{stem}-{now}{end}")))?;
        self.file = append_to(&self.path)?;
        self.size_bytes = 0;
        self.tidy();
        Ok(())
    }

    /// Has old files removed, by a thread of its own: a large file takes long to compress, and no
    /// request waits for that.
    fn tidy(&mut self) {
        let told = |error: io::Error| tracing::error!(%error, "older audit logs can't be tidied up");
        if self.tidying.is_none() {
            let (ask, asked) = mpsc::sync_channel(1);
            let (path, rotation) = (self.path.clone(), self.rotation);
            let work = move || asked.iter().for_each(|()| tidy(&path, rotation, Timestamp::now()).unwrap_or_else(told));
            let thread = thread::Builder::new().name("audit".to_owned()).spawn(work);
            self.tidying = thread.map(|_| ask).map_err(told).ok();
        }
        if let Some(ask) = &self.tidying {
            // If it is asked already, it has not begun: it will find this file, too.
            _ = ask.try_send(());
        }
    }
}

impl Write for RotatedFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self.size_bytes > 0 && self.size_bytes.saturating_add(length) > self.rotation.size_bytes_max {
            self.rotate()?;
        }
        // A line is never split between two files.
        self.file.write_all(line)?;
        self.size_bytes = self.size_bytes.saturating_add(length);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a file for appending; only its owner may read it if it is created here.
fn append_to(path: &Path) -> io::Result<File> {
    private::options().create(true).append(true).open(path)
}

/// The parts of a rotated file's name before and after the time.
fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let end = path.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
    (text(path.file_stem()), end)
}

/// A rotated file, and when it was rotated.
struct Older {
    path: PathBuf,
    since: DateTime,
    is_compressed: bool,
}

/// Removes the files that are too many or too old, and compresses the others if that is
/// configured.
fn tidy(path: &Path, rotation: Rotation, now: Timestamp) -> io::Result<()> {
    let mut older = older_files(path)?;
    older.sort_by_key(|file| std::cmp::Reverse(file.since));
    let eldest_s = now.as_second().saturating_sub(i64::from(rotation.age_days_max) * DAY_S);
    let eldest = Timestamp::from_second(eldest_s).map(|eldest| eldest.to_zoned(TimeZone::UTC).datetime());
    for (place, file) in older.iter().enumerate() {
        let is_one_too_many = rotation.older_files_max > 0 && place >= rotation.older_files_max;
        let is_too_old = rotation.age_days_max > 0 && eldest.as_ref().is_ok_and(|eldest| file.since < *eldest);
        if is_one_too_many || is_too_old {
            fs::remove_file(&file.path)?;
        } else if rotation.compresses && !file.is_compressed {
            compress(&file.path)?;
        }
    }
    Ok(())
}

/// All rotated files of the log at `path`.
fn older_files(path: &Path) -> io::Result<Vec<Older>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (stem, end) = parts(path);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
        let plain = name.strip_suffix(COMPRESSED);
        let time = plain.unwrap_or(name).strip_prefix(&*stem).and_then(|rest| rest.strip_prefix('-'));
        let time = time.and_then(|rest| rest.strip_suffix(&*end));
        if let Some(Ok(since)) = time.map(|time| DateTime::strptime(NAME_FORMAT, time)) {
            let is_compressed = plain.is_some();
            found.push(Older { path, since, is_compressed });
        }
    }
    Ok(found)
}

fn compress(path: &Path) -> io::Result<()> {
    let mut compressed = path.as_os_str().to_owned();
    compressed.push(COMPRESSED);
    let out = private::options().create(true).write(true).truncate(true).open(&compressed)?;
    let mut out = GzEncoder::new(out, Compression::default());
    io::copy(&mut File::open(path)?, &mut out)?;
    out.finish()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::{Duration, Instant};

    use flate2::read::GzDecoder;

    use super::*;

    const ROTATION: Rotation = Rotation { size_bytes_max: 10, older_files_max: 0, age_days_max: 0, compresses: false };

    /// A folder that is removed after the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("skiff-{}-rotated-{name}", std::process::id()));
            fs::create_dir_all(&folder).expect("the folder can be made");
            Folder(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("it is there").map(|entry| entry.expect("it is there"));
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_full_file_is_put_aside() {
        let folder = Folder::new("full");
        let path = folder.0.join("audit.log");
        let mut log = RotatedFile::open(&path, ROTATION).expect("it can be made");
        log.write_all(b"12345\n").expect("there is room");
        log.write_all(b"789\n").expect("there is room");
        assert_eq!(folder.names(), ["audit.log"], "10 bytes are not too many");
        log.write_all(b"a line that is longer than a whole file\n").expect("it goes to another file");
        assert_eq!(fs::read(&path).expect("it is there"), b"a line that is longer than a whole file\n");
        let names = folder.names();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(fs::read(folder.0.join(&names[0])).expect("it is there"), b"12345\n789\n");
        drop(log);

        // The size of the existing file counts.
        let mut log = RotatedFile::open(&path, ROTATION).expect("it is there");
        log.write_all(b"next\n").expect("it goes to another file");
        assert_eq!(fs::read(&path).expect("it is there"), b"next\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_rotation_does_not_wait_until_older_files_are_compressed() {
        let folder = Folder::new("slow");
        let path = folder.0.join("audit.log");
        // Reading it takes until somebody has written to it.
        let slow = folder.0.join("audit-2026-01-01T10-00-00.000.log");
        let made = std::process::Command::new("mkfifo").arg(&slow).status().expect("the program is there");
        assert!(made.success());
        let rotation = Rotation { compresses: true, ..ROTATION };
        let (done, is_done) = mpsc::channel();
        let log = path.clone();
        thread::spawn(move || {
            let mut log = RotatedFile::open(&log, rotation).expect("it can be made");
            for _ in 0..3 {
                log.write_all(b"a long line\n").expect("it goes to another file");
                thread::sleep(Duration::from_millis(2));
            }
            done.send(log).expect("the test waits");
        });
        let log = is_done.recv_timeout(Duration::from_secs(20)).expect("no write waits");
        fs::write(&slow, "a line\n").expect("it is read");
        let began = Instant::now();
        while folder.names().iter().filter(|name| name.ends_with(COMPRESSED)).count() < 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", folder.names());
            thread::sleep(Duration::from_millis(10));
        }
        drop(log);
    }

    #[test]
    fn older_files_stay_that_are_few_and_young() {
        let folder = Folder::new("older");
        let path = folder.0.join("audit.log");
        let days = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"];
        let name = |day: &str| format!("audit-{day}T10-00-00.000.log");
        let others = ["audit.log", "audit-of-another.log", "other-2026-01-01T10-00-00.000.log"];
        days.iter().map(|day| name(day)).chain(others.map(str::to_owned)).for_each(|name| {
            fs::write(folder.0.join(name), b"a line\n").expect("the folder is ours");
        });
        let now: Timestamp = "2026-01-05T09:00:00Z".parse().expect("it is a time");
        let left = |rotation: Rotation| {
            tidy(&path, rotation, now).expect("they can be tidied up");
            let mut names = folder.names();
            names.retain(|name| !others.contains(&&**name));
            names
        };
        assert_eq!(left(ROTATION).len(), 4);
        assert_eq!(left(Rotation { age_days_max: 3, ..ROTATION }), [name(days[1]), name(days[2]), name(days[3])]);
        assert_eq!(left(Rotation { older_files_max: 2, ..ROTATION }), [name(days[2]), name(days[3])]);
        let compressed = Rotation { compresses: true, older_files_max: 1, ..ROTATION };
        let names = left(compressed);
        assert_eq!(names, [format!("{}.gz", name(days[3]))]);
        let mut text = String::new();
        let file = File::open(folder.0.join(&names[0])).expect("it is there");
        GzDecoder::new(file).read_to_string(&mut text).expect("it is compressed");
        assert_eq!(text, "a line\n");
        assert_eq!(left(compressed), names, "once is enough");
        assert_eq!(folder.names().len(), others.len() + 1);
    }
}
