//! The last output of a program. PURE: bytes in, text out.

use std::collections::VecDeque;

/// As much as tells why a program ended: kube-apiserver's usage alone is longer.
const BYTES_MAX: usize = 64 << 10;

/// The last bytes that a program wrote; older ones are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(BYTES_MAX)..];
        let room = BYTES_MAX - bytes.len();
        self.bytes.drain(..self.bytes.len().saturating_sub(room));
        self.bytes.extend(bytes);
    }

    /// The last lines, at most so many.
    pub(crate) fn lines(&self, max: usize) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(max)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_memory_is_bounded() {
        let mut tail = Tail::default();
        assert_eq!(tail.lines(3), "");
        for line in 0..100_000 {
            tail.push(format!("line {line}\n").as_bytes());
            assert!(tail.bytes.len() <= BYTES_MAX);
        }
        assert_eq!(tail.lines(2), "line 99998\nline 99999");
        tail.push(&vec![b'x'; 3 * BYTES_MAX]);
        assert_eq!(tail.lines(9), "x".repeat(BYTES_MAX));
    }
}
