//! What this process takes, as Linux counts it.

use std::fs;

/// Memory in MiB: now, and at most so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

pub(crate) fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    Memory { now: field("VmRSS:"), peak: field("VmHWM:") }
}

/// How many sockets are open.
pub(crate) fn sockets() -> usize {
    let Ok(files) = fs::read_dir("/proc/self/fd") else { return 0 };
    let is_socket = |file: &fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    files.flatten().filter(is_socket).count()
}
