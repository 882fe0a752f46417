//! The folder that keeps what was measured: known to take it before anything starts, and no reason to lose the result.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use bumpless_guarded_file::write_whole;

/// What is written to try a folder, bytes: a disk that is full takes an empty file.
const TRIED: usize = 64 << 10;

/// Where files of a result go.
#[derive(Debug)]
pub struct OutputFolder(PathBuf);

impl OutputFolder {
    /// The folder at `path`, which is made if it is not there and takes files.
    ///
    /// # Errors
    /// It does not, in words with the remedy.
    pub fn find(path: &Path) -> Result<Self, String> {
        let folder = Self(path.to_owned());
        let tried = path.join("tried.part");
        fs::create_dir_all(path)
            .and_then(|()| fs::write(&tried, [0; TRIED]))
            .and_then(|()| fs::remove_file(&tried))
            .map_err(|error| {
                // What there is of it would only be in the way.
                let _ = fs::remove_file(&tried);
                let cannot = folder.cannot(&error);
                format!("{cannot}; give another folder with --output; nothing was started")
            })?;
        Ok(folder)
    }

    /// Writes `files`, names with what is in them. Each is there whole or not at all.
    ///
    /// # Errors
    /// One cannot be written, in words; those before it are there.
    pub fn write<N: Display>(
        &self,
        files: impl IntoIterator<Item = (N, String)>,
    ) -> Result<(), String> {
        for (name, content) in files {
            write_whole(&self.0.join(name.to_string()), content.as_bytes())
                .map_err(|error| self.cannot(&error))?;
        }
        Ok(())
    }

    fn cannot(&self, error: &std::io::Error) -> String {
        format!("cannot write into {}: {error}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_takes_nothing_is_refused_by_name_before_anything_starts() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        for nowhere in [file.clone(), file.join("below")] {
            let refused = OutputFolder::find(&nowhere).unwrap_err();
            for words in [
                &*nowhere.display().to_string(),
                "--output",
                "nothing was started",
            ] {
                assert!(refused.contains(words), "{refused}");
            }
        }
    }

    #[test]
    fn what_is_written_is_whole_or_not_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        let folder = OutputFolder::find(&path).unwrap();
        assert_eq!(
            fs::read_dir(&path).unwrap().count(),
            0,
            "nothing is left of the trial"
        );
        // In place of the second file stands a folder.
        fs::create_dir(path.join("second")).unwrap();
        let files = [("first", "1".to_owned()), ("second", "2".to_owned())];
        assert!(folder.write(files).is_err());
        assert_eq!(fs::read_to_string(path.join("first")).unwrap(), "1");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2, "no part is left");
    }
}
