//! The file of the report: known to take it before anything starts, and no reason to lose the judgement.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bumpless_guarded_file::write_whole;

use super::DemoError;

/// Where the report goes.
#[derive(Debug)]
pub struct ReportFile(PathBuf);

impl ReportFile {
    /// The file at `path`, which can be written; what is in it stays until then.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn find(path: &Path) -> Result<Self, DemoError> {
        let there = path.exists();
        let opened = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path);
        opened.map_err(|cause| DemoError::Report {
            path: path.to_owned(),
            cause,
        })?;
        if !there {
            // An early end leaves nothing behind. Should it not go, it is empty.
            let _ = fs::remove_file(path);
        }
        Ok(Self(path.to_owned()))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the report, whole or not at all.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, page: &str) -> io::Result<()> {
        write_whole(&self.0, page.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writable_file_is_left_as_it_was_and_another_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        let report = ReportFile::find(&path).unwrap();
        assert!(!path.exists(), "nothing is left by an early end");
        report.write("judged").unwrap();
        ReportFile::find(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "judged");
        let nowhere = directory.path().join("missing/report.html");
        let refused = ReportFile::find(&nowhere).unwrap_err().to_string();
        for words in [&*nowhere.display().to_string(), "--report", "No such file"] {
            assert!(refused.contains(words), "{refused}");
        }
        let place = |words: &str| refused.find(words).unwrap();
        assert!(
            place("No such file") < place("--report"),
            "cause first: {refused}"
        );
    }
}
