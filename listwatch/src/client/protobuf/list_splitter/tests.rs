use proptest::prelude::*;

use super::*;
use crate::client::protobuf::written::{bytes, envelope, list, object, varint_field};

const LIMIT: usize = 1 << 20;

fn pods() -> Option<Types> {
    Some(Types { api_version: "v1".into(), kind: "Pod".into(), metadata_only: false })
}

/// The items of a body and what remains of it, when it comes in chunks of this length.
fn split_with(
    body: &[u8],
    chunk: usize,
    limit: usize,
    wanted: Option<Types>,
) -> (Vec<Vec<u8>>, Result<Head, ListError>) {
    let mut splitter = ListSplitter::new(limit, wanted);
    let mut items = Vec::new();
    for chunk in body.chunks(chunk) {
        splitter.push(Bytes::copy_from_slice(chunk));
        loop {
            match splitter.next_item() {
                Ok(Some(item)) => items.push(item.to_vec()),
                Ok(None) => break,
                Err(error) => return (items, Err(error)),
            }
        }
    }
    (items, splitter.finish())
}

fn split(body: &[u8], chunk: usize) -> (Vec<Vec<u8>>, Result<Head, ListError>) {
    split_with(body, chunk, LIMIT, None)
}

fn names(items: &[Vec<u8>]) -> Vec<String> {
    items.iter().map(|item| String::from_utf8_lossy(item).into_owned()).collect()
}

#[test]
fn a_recorded_list_comes_apart_at_whatever_bytes_it_is_cut() {
    let body = include_bytes!("../../../../tests/it/protobuf/configmaps.pb");
    for chunk in 1..=body.len() {
        let (items, head) = split(body, chunk);
        let names: Vec<_> = items.iter().map(|item| std::str::from_utf8(&item[5..7]).unwrap()).collect();
        assert_eq!(names, ["c1", "c2", "c3"], "chunks of {chunk}");
        assert_eq!(head, Ok(Head::ListMeta(b"\x0a\x00\x12\x03365\x1a\x00".to_vec())));
    }
}

#[test]
fn an_end_before_that_of_the_list_is_truncated_wherever_it_is() {
    let body = include_bytes!("../../../../tests/it/protobuf/configmaps.pb");
    // Behind the list message come two empty fields: `1a 00 22 00`.
    for len in 0..body.len() {
        let whole = [body.len() - 4, body.len() - 2].contains(&len);
        assert_eq!(split(&body[..len], LIMIT).1.is_ok(), whole, "{len} bytes");
    }
}

#[test]
fn the_fields_may_stand_in_any_order_and_unknown_ones_are_skipped() {
    let meta = bytes(1, bytes(2, "7"));
    let type_meta = bytes(1, [bytes(1, "v1"), bytes(2, "PodList")].concat());
    let raw = [bytes(2, "a"), varint_field(9, 300), bytes(2, ""), meta, bytes(700, "x".repeat(300)), bytes(2, "b")];
    let fixed = [&b"\x2d"[..], &[1; 4], b"\x31", &[1; 8]].concat();
    let raw = bytes(2, [&raw.concat()[..], &fixed].concat());
    for body in [
        [&b"k8s\0"[..], &raw, &type_meta].concat(),
        [&b"k8s\0"[..], &varint_field(8, 1), &fixed, &raw].concat(),
        [&b"k8s\0"[..], &bytes(9, "x"), &type_meta, &raw, &bytes(4, "application/vnd.kubernetes.protobuf")].concat(),
    ] {
        for chunk in [1, 2, 7, 1000] {
            let (items, head) = split_with(&body, chunk, LIMIT, pods());
            assert_eq!(names(&items), ["a", "", "b"]);
            assert_eq!(head, Ok(Head::ListMeta(bytes(2, "7"))));
        }
    }
}

#[test]
fn metadata_in_two_parts_come_together() {
    let raw = [bytes(1, bytes(2, "7")), bytes(2, "a"), bytes(1, bytes(3, "t"))].concat();
    let (_, head) = split(&envelope("v1", "PodList", &raw), 3);
    assert_eq!(head, Ok(Head::ListMeta([bytes(2, "7"), bytes(3, "t")].concat())));
}

#[test]
fn an_empty_list_has_no_items_and_one_without_a_message_is_none() {
    assert_eq!(split(&envelope("v1", "PodList", b""), 5), (vec![], Ok(Head::ListMeta(vec![]))));
    assert_eq!(split(&list("PodList", "7", &[]), 5).0, [b""; 0]);
    assert_eq!(split(b"k8s\0\x0a\x00", 5).1, Err(ListError::Truncated));
    assert_eq!(split(b"", 5).1, Err(ListError::Truncated));
}

#[test]
fn a_status_is_held_as_a_whole_and_comes_out_as_one() {
    let body = include_bytes!("../../../../tests/it/protobuf/not_found.pb");
    for chunk in [1, 10, 1000] {
        let (items, head) = split_with(body, chunk, LIMIT, pods());
        assert!(items.is_empty());
        assert!(matches!(head, Ok(Head::Status(status)) if status.len() == 79));
    }
}

#[test]
fn what_is_no_list_of_these_objects_is_refused_before_its_first_item() {
    let item: &[u8] = &object(&[bytes(1, "x")]);
    for body in
        [list("NodeList", "7", &[item]), envelope("v1", "Pod", item), envelope("v2", "PodList", &bytes(2, item))]
    {
        let (items, head) = split_with(&body, 5, LIMIT, pods());
        assert!(items.is_empty());
        assert!(matches!(head, Err(ListError::Kind(_))), "{head:?}");
    }
}

#[test]
fn bytes_that_are_no_list_are_refused_with_their_place() {
    let in_list = |raw: &[u8]| [b"k8s\0".to_vec(), bytes(2, raw)].concat();
    let table = [
        (b"{\"kind\":\"PodList\"}".to_vec(), "no `k8s\\0` before it at byte 0"),
        (b"k8s\x01".to_vec(), "no `k8s\\0` before it at byte 3"),
        (b"k8s\0\x10\x01".to_vec(), "a value of another type than its field has at byte 4"),
        (b"k8s\0\x13".to_vec(), "a group"),
        (b"k8s\0\x00".to_vec(), "a field without a number"),
        ([b"k8s\0\x12".to_vec(), vec![0xff; 11]].concat(), "a number of more than 64 bits"),
        (in_list(&varint_field(2, 1)), "a value of another type than its field has"),
        (in_list(b"\x12\x05ab"), "a value beyond the end of the list"),
        (in_list(b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7fab"), "a value beyond the end of the list"),
        (in_list(b"\x19ab"), "a value beyond the end of the list"),
        ([in_list(b"\x12"), b"\x01a".to_vec()].concat(), "an end within a field"),
        ([in_list(b"\x82"), b"\x01\x01a".to_vec()].concat(), "an end within a field"),
        ([in_list(b""), bytes(2, "")].concat(), "two lists in one answer"),
        ([b"k8s\0".to_vec(), bytes(3, "gzip")].concat(), "an object that is encoded once more"),
        ([b"k8s\0".to_vec(), bytes(4, "application/json")].concat(), "an object in another format"),
        ([b"k8s\0".to_vec(), bytes(1, bytes(2, b"\xff"))].concat(), "a text that is no UTF-8"),
    ];
    for (body, message) in table {
        for chunk in [1, 100] {
            let error = split(&body, chunk).1.unwrap_err();
            assert!(error.to_string().contains(message), "{error}, wanted {message}");
        }
    }
}

#[test]
fn an_item_over_the_limit_is_refused_at_its_length() {
    let body = list("PodList", "7", &[b"0123456789", b"0123456789x"]);
    for chunk in [1, 7, 1000] {
        let (items, head) = split_with(&body, chunk, 10, None);
        assert_eq!((items.len(), head), (1, Err(ListError::ItemTooLong { limit: 10 })));
    }
}

#[test]
fn claimed_lengths_allocate_nothing() {
    let head = |raw_len: &[u8], field: &[u8]| [b"k8s\0\x12", raw_len, field].concat();
    let much = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    for (body, refused) in [
        (head(much, b"\x12\xff\xff\xff\x07"), false),
        (head(much, b"\x0a\xff\xff\x0f"), false),
        (head(much, b"\x0a\xff\xff\xff\x07"), true),
        (head(much, b"\x32\xff\xff\xff\xff\x07"), false),
        (b"k8s\0\x0a\xff\xff\xff\x07".to_vec(), true),
    ] {
        let mut splitter = ListSplitter::new(16 << 20, None);
        splitter.push(Bytes::from(body));
        assert_eq!(splitter.next_item().is_err(), refused);
        assert!(splitter.held() < 1 << 10, "{}", splitter.held());
    }
}

#[test]
fn a_long_item_is_held_once_and_given_back() {
    let item = vec![b'x'; 3 << 20];
    let body = list("PodList", "7", &[&item, b"short"]);
    let mut splitter = ListSplitter::new(16 << 20, None);
    let mut lens = Vec::new();
    for chunk in body.chunks(1024) {
        splitter.push(Bytes::copy_from_slice(chunk));
        while let Some(item) = splitter.next_item().unwrap() {
            lens.push(item.len());
        }
        assert!(splitter.held() <= 2 * item.len());
    }
    assert_eq!(lens, [3 << 20, 5]);
    assert!(splitter.held() <= 2 * crate::client::carry::KEPT_CAPACITY, "{}", splitter.held());
}

proptest! {
    #[test]
    fn whatever_the_fields_the_chunks_make_no_difference(
        fields in proptest::collection::vec((1u32..5, 0u8..3, proptest::collection::vec(any::<u8>(), 0..6)), 0..12),
        cut in 0usize..40,
        chunk in 1usize..9,
    ) {
        let raw: Vec<u8> = fields.iter().flat_map(|(tag, kind, value)| match kind {
            0 => varint_field(*tag + 2, value.len() as u64),
            _ => bytes(*tag, value),
        }).collect();
        let mut body = envelope("v1", "PodList", &raw);
        body.truncate(body.len().saturating_sub(cut));
        let whole = split(&body, usize::MAX);
        prop_assert_eq!(&split(&body, chunk), &whole);
        let items: Vec<Vec<u8>> = fields.iter().filter(|(tag, kind, _)| *tag == 2 && *kind != 0).map(|(_, _, item)| item.clone()).collect();
        prop_assert!(items.starts_with(&whole.0));
        if whole.1.is_ok() {
            prop_assert_eq!(whole.0, items);
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_split_but_never_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        chunk in 1usize..9,
        magic in any::<bool>(),
    ) {
        let body = if magic { [b"k8s\0\x12\x28", &bytes[..]].concat() } else { bytes };
        let (items, head) = split_with(&body, chunk, 16, None);
        prop_assert!(items.iter().all(|item| item.len() <= 16));
        // Where in its chunk an error is noted may differ, not that there is one.
        let whole = split_with(&body, usize::MAX, 16, None);
        prop_assert_eq!((items, head.is_ok()), (whole.0, whole.1.is_ok()));
    }
}
