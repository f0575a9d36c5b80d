use std::path::{Path, PathBuf};

use super::*;

/// A folder of its own with a certificate and a key, gone in the end.
struct Files {
    folder: PathBuf,
    /// The certificate that was written last.
    der: Mutex<Vec<u8>>,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap().keep(), der: Mutex::default() }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.join("tls.crt")
    }

    fn key(&self) -> PathBuf {
        self.folder.join("tls.key")
    }

    fn der(&self) -> Vec<u8> {
        self.der.lock().clone()
    }

    /// Writes new ones into the files.
    fn write(&self, name: &str) {
        self.write_to(&self.folder, name);
    }

    fn write_to(&self, folder: &Path, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        *self.der.lock() = made.cert.der().to_vec();
    }

    fn break_certificate(&self) {
        std::fs::write(self.certificate(), "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n").unwrap();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_mounted_secret_that_is_swapped_behind_its_link_is_read_within_ten_seconds() {
    let files = Files::new();
    for data in ["..1", "..2"] {
        std::fs::create_dir_all(files.folder.join(data)).unwrap();
    }
    let link = |data: &str| {
        let new = files.folder.join("..new");
        std::os::unix::fs::symlink(data, &new).unwrap();
        std::fs::rename(&new, files.folder.join("..data")).unwrap();
    };
    files.write_to(&files.folder.join("..1"), "one");
    let first = files.der();
    link("..1");
    let mounted = files.folder.join("..data");
    let certificate = ReloadingCertificate::from_files(mounted.join("tls.crt"), mounted.join("tls.key")).unwrap();
    assert_eq!(certificate.current(), first);
    let reloading = tokio::spawn(certificate.clone().reload());
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(certificate.current(), first);
    files.write_to(&files.folder.join("..2"), "two");
    link("..2");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(certificate.current(), files.der());
    assert_ne!(certificate.current(), first);
    reloading.abort();
}

#[test]
fn files_that_are_missing_empty_or_of_two_pairs_are_errors_that_name_them() {
    let files = Files::new();
    let load = || ReloadingCertificate::from_files(files.certificate(), files.key()).map(drop);
    let error = load().unwrap_err();
    assert!(matches!(&error, CertificateError::Read { path, .. } if *path == files.certificate()), "{error}");
    files.write("one");
    load().unwrap();
    let key = std::fs::read(files.key()).unwrap();
    files.write("two");
    std::fs::write(files.key(), key).unwrap();
    assert!(matches!(load().unwrap_err(), CertificateError::Tls(_)), "the key is that of another one");
    std::fs::write(files.certificate(), "").unwrap();
    assert!(matches!(load().unwrap_err(), CertificateError::Pem { .. }));
}

/// Counts what it is told.
#[derive(Default)]
struct Counted(Mutex<Vec<bool>>);

impl CertificateEvents for Counted {
    fn read(&self, ok: bool) {
        self.0.lock().push(ok);
    }
}

#[test]
fn a_broken_file_leaves_the_old_certificate_and_is_told_once() {
    let files = Files::new();
    files.write("one");
    let certificate = ReloadingCertificate::from_files(files.certificate(), files.key()).unwrap();
    let events = Arc::new(Counted::default());
    certificate.tell(Arc::clone(&events) as Arc<dyn CertificateEvents>);
    let first = files.der();
    assert!(!certificate.look(), "nothing has changed");
    files.break_certificate();
    assert!(!certificate.look() && !certificate.look());
    assert_eq!(certificate.current(), first);
    assert_eq!(*events.0.lock(), [false]);
    files.write("two");
    assert!(certificate.look());
    assert_eq!(certificate.current(), files.der());
    assert_eq!(*events.0.lock(), [false, true]);
}
