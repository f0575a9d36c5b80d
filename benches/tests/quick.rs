//! `compare quick`: every case that needs no API server, small. It ends with a failure where a count is wrong.

use std::process::Command;

#[test]
fn all_counts_of_the_comparison_are_right() {
    let output = Command::new(env!("CARGO_BIN_EXE_compare")).arg("quick").output().expect("it was built");
    let (lines, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    for case in ["queue-cycle/", "store/indexer/", "fifo/", "informer-fanout/", "list-decode/json/packed", "memory"] {
        assert!(lines.lines().any(|line| line.contains(&format!("\"case\":\"{case}"))), "no case {case} in\n{lines}");
    }
}
