//! Request paths: a namespace is one segment that a server reads as it was given, or no request is made.

use kubewire_listwatch::fuzzing::path;
use percent_encoding::percent_decode_str;

/// A group, a plural and a namespace.
pub type Input<'a> = (&'a str, &'a str, &'a str);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (group, plural, namespace) = input;
    let can_stand = |text: &str| !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '%']);
    let parts: Vec<&str> = [group].into_iter().filter(|group| !group.is_empty()).collect();
    let wanted =
        [&[if group.is_empty() { "api" } else { "apis" }], &parts[..], &["v1", "namespaces", namespace, plural]];
    let wanted: Vec<&str> = wanted.concat();
    match path(group, plural, namespace) {
        Err(error) => {
            assert!(wanted.iter().any(|text| !can_stand(text)), "{error}");
        }
        Ok(path) => {
            assert!(wanted.iter().all(|text| can_stand(text)));
            assert!(path.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#')), "{path}");
            let read: Vec<String> = path
                .split('/')
                .skip(1)
                .map(|segment| percent_decode_str(segment).decode_utf8().expect("it was text").into_owned())
                .collect();
            assert_eq!(read, wanted);
        }
    }
}
