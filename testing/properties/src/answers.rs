//! Answers of failure: whatever a server says of it, the error is small, printable, and asks for no absurd wait.

use std::time::Duration;

use kubewire_listwatch::fuzzing::{error_of_answer, error_of_event, retry_after};
use kubewire_listwatch::{ErrorClass, RequestError};
use serde_json::Value;

/// An HTTP status, the body of its answer or the object of an `ERROR` event, and the headers `Retry-After` and `Date`.
pub type Input<'a> = (u16, &'a [u8], &'a [u8], &'a [u8]);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (code, body, after, date) = input;
    for error in [error_of_answer(code, body), error_of_event(body)] {
        check_error(&error);
    }
    let answer = error_of_answer(code, body);
    let status = answer.status().expect("an answer has at least its code");
    match serde_json::from_slice::<Value>(body).ok().filter(|value| value["kind"] == "Status") {
        Some(value) => {
            let own = value["code"].as_u64().and_then(|own| u16::try_from(own).ok()).filter(|own| *own != 0);
            assert_eq!(status.code, own.unwrap_or(code));
            assert_eq!(status.reason, value["reason"].as_str().unwrap_or_default());
        }
        None => assert_eq!((status.code, status.reason.as_str()), (code, "")),
    }
    if status.reason == "Expired" && status.causes.is_empty() && code != 504 {
        assert_eq!(answer.class(), ErrorClass::Expired);
    }
    if let Some(wait) = retry_after(after, date) {
        assert!(wait <= Duration::from_secs(300));
    }
    if let Ok(seconds) = str::from_utf8(after).unwrap_or_default().parse::<u32>()
        && after.iter().all(u8::is_ascii_digit)
    {
        assert_eq!(retry_after(after, date), Some(Duration::from_secs(seconds.min(300).into())));
    }
}

fn check_error(error: &RequestError) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() < 5 << 10, "{} bytes", text.len());
    assert!(error.retry_after().is_none_or(|wait| wait <= Duration::from_secs(300)));
    if let Some(status) = error.status() {
        let kept: usize = status.causes.iter().map(String::len).sum();
        assert!(status.causes.len() <= 32 && kept <= 32 * (5 << 10));
    }
}
