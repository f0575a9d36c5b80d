//! Zipped objects: what was zipped comes out, and bytes that nobody zipped are refused or bounded.

use std::sync::LazyLock;

use kubewire_indexer::Object;
use kubewire_listwatch::fuzzing::{unzip, zip};
use kubewire_listwatch::{Decode, DecodeOptions, Json, Packed, Protobuf, Zipped};

struct Anything;

const LEN_MAX: usize = 1 << 16;

/// Options with a dictionary.
static OPTIONS: LazyLock<DecodeOptions> = LazyLock::new(|| {
    let options = DecodeOptions::default();
    let thing = |n| format!(r#"{{"metadata":{{"name":"thing-{n}","labels":{{"app":"web"}}}},"spec":{{"size":{n}}}}}"#);
    let read = |n| <Zipped<Anything> as Decode<Json>>::decode(thing(n).as_bytes(), &options).expect("a thing");
    let things: Vec<_> = (0..600).map(read).collect();
    things[0].settle();
    assert!(things.iter().all(Zipped::is_zipped));
    drop(things);
    options
});

/// What the bytes are, and the bytes.
pub type Input<'a> = (u8, &'a [u8]);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (form, bytes) = input;
    match form % 4 {
        form @ 0..2 => frame(bytes, form == 1),
        2 => {
            let zipped = <Zipped<Anything> as Decode<Json>>::decode(bytes, &OPTIONS);
            same(zipped.ok(), Packed::from_json(bytes).ok());
        }
        _ => {
            let zipped = <Zipped<Anything> as Decode<Protobuf>>::decode(bytes, &OPTIONS);
            same(zipped.ok(), Packed::from_protobuf(bytes).ok());
        }
    }
}

fn frame(bytes: &[u8], learned: bool) {
    if let Ok(unzipped) = unzip(bytes, learned, LEN_MAX) {
        assert!(unzipped.len() <= LEN_MAX);
        let again = zip(&unzipped, learned).expect("it can be zipped");
        assert_eq!(unzip(&again, learned, unzipped.len()), Ok(unzipped));
    }
    let zipped = zip(bytes, learned).expect("it can be zipped");
    assert_eq!(unzip(&zipped, learned, bytes.len()).as_deref(), Ok(bytes));
    if !bytes.is_empty() {
        assert!(unzip(&zipped, learned, bytes.len() - 1).is_err());
    }
}

/// A zipped object says what a packed one says.
fn same(zipped: Option<Zipped<Anything>>, packed: Option<Packed<Anything>>) {
    let (Some(zipped), Some(packed)) = (&zipped, &packed) else {
        assert!(zipped.is_none() && packed.is_none(), "one of them was taken");
        return;
    };
    assert!(zipped.is_zipped());
    assert_eq!(zipped.id(), packed.id());
    assert!(zipped.labels().eq(packed.labels()) && zipped.owner_references().eq(packed.owner_references()));
    assert_eq!((zipped.generation(), zipped.is_being_deleted()), (packed.generation(), packed.is_being_deleted()));
    let unzipped = zipped.unzip().expect("it can be unzipped");
    assert_eq!((unzipped.json(), unzipped.protobuf()), (packed.json(), packed.protobuf()));
    assert_eq!(zipped.json().expect("as above").as_deref(), packed.json());
    assert!(unzipped.id() == packed.id() && unzipped.labels().eq(packed.labels()));
}
