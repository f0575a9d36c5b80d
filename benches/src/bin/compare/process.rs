//! Sizes and times of this process, from Linux and glibc.
#![expect(unsafe_code, reason = "glibc and the kernel are asked directly")]

use std::fs;

/// A size such as `VmRSS` or `VmHWM`, in bytes.
pub(crate) fn status(field: &str) -> i64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<i64>().ok());
    kilobytes.expect("the kernel knows the field") << 10
}

/// Returns freed memory to the system, and gives the resident size then.
pub(crate) fn settle() -> i64 {
    // SAFETY: it may be called at any time.
    unsafe { libc::malloc_trim(0) };
    status("VmRSS")
}

/// Makes `VmHWM` start again from the present resident size, which it gives after settling.
pub(crate) fn reset_peak() -> i64 {
    let resident = settle();
    fs::write("/proc/self/clear_refs", "5").expect("Linux lets a process reset its own mark");
    resident
}

/// The bytes that malloc has handed out, with its rounding and headers.
pub(crate) fn heap_bytes() -> i64 {
    // SAFETY: it may be called at any time.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as i64
}

/// User and system seconds of this process.
pub(crate) fn cpu_seconds() -> f64 {
    // SAFETY: all zeroes is a value of the type, and the call fills it in.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0, "a process may ask for its own usage");
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
