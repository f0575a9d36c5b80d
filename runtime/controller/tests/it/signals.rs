//! Signals, sent to a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const CHILD: &str = "signals::child";

/// Not a test: what the other one runs.
#[test]
#[ignore = "the process that gets the signals"]
fn child() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (one, other) =
            (kubewire_controller::stop_on_signal().unwrap(), kubewire_controller::stop_on_signal().unwrap());
        println!("\nready");
        one.cancelled().await;
        other.cancelled().await;
        println!("\nstopping");
        std::future::pending::<()>().await;
    });
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn the_first_signal_cancels_and_the_second_ends_with_exit_code_1() {
    for (first, second) in [("-TERM", "-INT"), ("-INT", "-TERM")] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD, "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut wait_for = |wanted: &str| {
            let found = lines.any(|line| line.unwrap() == wanted);
            assert!(found, "the process ended before it said {wanted:?}");
        };
        wait_for("ready");
        send(first, &child);
        wait_for("stopping");
        assert!(child.try_wait().unwrap().is_none(), "it ends by itself, in its own time");
        send(second, &child);
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}
