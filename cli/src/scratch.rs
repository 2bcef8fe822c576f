//! A directory for the temporary files of a job, which a signal that ends the command removes with all that is in it.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_study::Failure;
use tempfile::TempDir;

use crate::signals::{self, Moment};

/// The directory, and the number of its signal action.
pub(crate) struct Scratch {
    // Removed when it is dropped.
    _folder: TempDir,
    number: u64,
}

impl Scratch {
    /// Makes the directory, in which all temporary files are made from now on.
    pub(crate) fn new() -> Result<Scratch, Failure> {
        signals::listen()?;
        let mut held = signals::hold();
        let made = tempfile::Builder::new().prefix("lanework-").tempdir();
        let folder =
            made.map_err(|e| Failure::file(&std::env::temp_dir(), format!("a temporary directory: {e}")))?;
        within(folder.path());
        let path = folder.path().to_owned();
        let number = held.on(move |moment| {
            // A process of the race may still put a file there.
            let removed = || std::fs::remove_dir_all(&path).is_ok() || !path.exists();
            let _ = moment == Moment::End && (0..100).any(|_| removed());
        });
        Ok(Scratch { _folder: folder, number })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        signals::hold().forget(self.number);
    }
}

/// Makes temporary files in this directory, whose owner removes it. The first call decides.
pub(crate) fn within(folder: &Path) {
    let _ = tempfile::env::override_temp_dir(folder);
}
