//! A text in pieces.

/// The text in pieces, cut where `cuts` say: each number is the length of the next piece, 0 the rest.
pub fn pieces<'a>(text: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let (mut rest, mut cuts) = (text, cuts.iter());
    while !rest.is_empty() {
        let len = match cuts.next() {
            None | Some(0) => rest.len(),
            Some(&len) => usize::from(len).min(rest.len()),
        };
        let (piece, behind) = rest.split_at(len);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
