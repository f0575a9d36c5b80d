//! A file that is replaced while it is in use.

use std::path::PathBuf;

/// A file in the folder for temporary ones, changed as the kubelet does it: by a rename. It is removed in the end.
pub(crate) struct RotatedFile(PathBuf);

impl RotatedFile {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let file = Self(std::env::temp_dir().join(format!("kubewire-bugs-{}-{name}", std::process::id())));
        file.write(text);
        file
    }

    pub(crate) fn write(&self, text: &str) {
        let next = self.0.with_extension("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, &self.0).unwrap();
    }

    pub(crate) fn remove(&self) {
        std::fs::remove_file(&self.0).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone()
    }

    pub(crate) fn path_text(&self) -> Option<String> {
        Some(self.0.to_string_lossy().into_owned())
    }
}

impl Drop for RotatedFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
