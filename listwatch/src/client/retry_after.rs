//! PURE. When a server wants to be asked again.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// A server that asks for more is not taken at its word.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// The time that the header `Retry-After` asks for, in either form: seconds, or a date, which counts from the
/// answer's own `Date` where it has one (two clocks need not agree). At most five minutes; `None` where there is
/// no such header or it makes no sense.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(seconds(value.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let from = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok()).unwrap_or(now);
    Some(until.duration_since(from).unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// So many seconds, at most five minutes.
pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(RETRY_AFTER_MAX)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn both_forms_are_read_and_absurd_values_are_capped() {
        let now = httpdate::parse_http_date("Mon, 02 Mar 2026 10:00:00 GMT").unwrap();
        let table: &[(&str, Option<&str>, Option<u64>)] = &[
            // Retry-After, Date, seconds
            ("2", None, Some(2)),
            (" 0 ", None, Some(0)),
            ("86400", None, Some(300)),
            ("99999999999999999999999", None, Some(300)),
            ("-1", None, None),
            ("1.5", None, None),
            ("soon", None, None),
            ("", None, None),
            ("Mon, 02 Mar 2026 10:00:30 GMT", None, Some(30)),
            ("Mon, 02 Mar 2026 09:00:00 GMT", None, Some(0)),
            ("Mon, 02 Mar 2099 10:00:00 GMT", None, Some(300)),
            ("Mon, 02 Mar 2026 09:00:07 GMT", Some("Mon, 02 Mar 2026 09:00:00 GMT"), Some(7)),
            ("Mon, 02 Mar 2026 10:00:30 GMT", Some("no date"), Some(30)),
        ];
        for (value, date, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(value).unwrap());
            if let Some(date) = date {
                headers.insert(DATE, HeaderValue::from_str(date).unwrap());
            }
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{value:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
