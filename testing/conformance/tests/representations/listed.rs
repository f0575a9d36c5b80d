//! Which test files run over every representation, and why the others beside them do not.

use std::collections::BTreeSet;
use std::path::Path;

/// Files beside them, and why they do not.
type Others = &'static [(&'static str, &'static str)];

/// A folder of tests; the file, and the path in it, below which the modules are named that run over every representation;
/// the files that do not, and why.
const FOLDERS: [(&str, &str, &str, Others); 4] = [
    (
        "informer/tests/it",
        "tests/representations/main.rs",
        "../../../../informer/tests/it",
        &[
            ("logs.rs", "lines of a log about failures, gathered by thread"),
            ("metrics.rs", "numbers, kept in a registry that is the process's"),
            ("user_panics.rs", "panics beside the way of an object"),
        ],
    ),
    (
        "informer/tests/reflector",
        "tests/representations/main.rs",
        "../reflector",
        &[
            ("logs.rs", "lines of a log about failures, gathered by thread"),
            ("release.rs", "asks weak handles, which packed objects do not have"),
            ("timing.rs", "delays after failures"),
        ],
    ),
    (
        "indexer/tests/it",
        "tests/representations/main.rs",
        "../../../indexer/tests/it",
        &[
            ("concurrency.rs", "a store of any values"),
            ("index_failures.rs", "a store of any values"),
            ("keys.rs", "keys"),
            ("kube.rs", "names its representations"),
            ("own_struct.rs", "the derive"),
            ("panicking.rs", "values whose own code panics"),
            ("record.rs", "the objects themselves"),
            ("selector.rs", "the language of selectors; `lister.rs` selects objects"),
            ("store.rs", "a store of any values"),
            ("store_model.rs", "a store of any values"),
            ("undelta_store.rs", "a store of any values"),
        ],
    ),
    (
        "testing/conformance/tests/bugs",
        "tests/bugs/main.rs",
        ".",
        &[
            ("credentials.rs", "tokens and the requests that carry them"),
            ("http2.rs", "connections"),
            ("names.rs", "paths, keys and queries"),
            (
                "on_the_wire.rs",
                "what the sockets below make of bodies that `faults.rs` and its neighbours send in process",
            ),
            ("queues.rs", "queues of keys"),
            ("table.rs", "a list of tests"),
            ("tls.rs", "connections"),
        ],
    ),
];

/// The modules that stand in the module of this path.
fn modules<'t>(text: &'t str, path: &str) -> BTreeSet<&'t str> {
    let (_, block) = text.split_once(&format!("#[path = \"{path}\"]")).expect("a module of this path");
    let (head, block) = block.split_once("{\n").expect("it is open");
    let end = format!("\n{}}}", " ".repeat(head.lines().last().map_or(0, |line| line.len() - line.trim_start().len())));
    let (block, _) = block.split_once(&end).expect("it is closed");
    // Those of inner modules stand further to the right.
    let indent = block.len() - block.trim_start().len();
    let lines = block.lines().filter(|line| line.len() - line.trim_start().len() == indent);
    lines.filter_map(|line| line.trim_start().strip_prefix("mod ")?.strip_suffix(';')).collect()
}

#[test]
fn every_file_beside_the_generic_ones_is_generic_or_says_why_it_is_not() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, main, path, others) in FOLDERS {
        let text = std::fs::read_to_string(package.join(main)).expect(main);
        let generic = modules(&text, path);
        let files = std::fs::read_dir(package.join("../..").join(folder)).expect(folder);
        let mut files: BTreeSet<String> =
            files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        files.retain(|file| file.ends_with(".rs") && file != "main.rs");
        for (file, why) in others {
            assert!(files.remove(*file), "{folder}/{file} is not there, and needs no reason: {why}");
            assert!(!generic.contains(file.trim_end_matches(".rs")), "{folder}/{file} is generic");
        }
        let left: BTreeSet<&str> = files.iter().map(|file| file.trim_end_matches(".rs")).collect();
        let missing: Vec<_> = left.difference(&generic).collect();
        assert!(missing.is_empty(), "{folder}: {missing:?} run over one representation, and nothing says why");
    }
}
