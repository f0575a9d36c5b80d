//! What this process takes.

use std::alloc::System;
use std::fs;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

pub(crate) const MIB: usize = 1 << 20;

/// Bytes of the heap that are in use.
pub(crate) fn heap() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// The most memory in MiB that the process has ever had, as the system counts it.
pub(crate) fn memory_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// How many sockets are open.
pub(crate) fn sockets() -> usize {
    let Ok(files) = fs::read_dir("/proc/self/fd") else { return 0 };
    let is_socket = |file: &fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    files.flatten().filter(is_socket).count()
}
