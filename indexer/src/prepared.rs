//! PURE. The index values of objects that are about to be written: computed before the commit, without a lock.

use std::cell::Cell;

use crate::IndexValues;

/// The values of one object or several, row by row, and within a row index by index. Everything lies in three
/// buffers, so that preparing a thousand objects allocates no more often than preparing one.
#[derive(Default)]
pub(crate) struct Prepared {
    text: String,
    spans: Vec<(usize, usize)>,
    /// Where the spans of each index of each row end.
    ends: Vec<usize>,
}

/// A thread keeps buffers up to so many bytes of text, and as many values.
const KEPT_CAPACITY: usize = 4096;

thread_local! {
    /// Those that were given back last, so that a write allocates none. Empty while a write uses them; a store that is
    /// written to by an index function has others.
    static KEPT: Cell<Prepared> = Cell::default();
}

impl Prepared {
    /// An empty one, with the buffers that this thread has given back.
    pub(crate) fn reused() -> Self {
        // A thread that ends has none any more.
        KEPT.try_with(Cell::take).unwrap_or_default()
    }

    /// Keeps the buffers for the next write of this thread.
    pub(crate) fn give_back(mut self) {
        if self.text.capacity().max(self.spans.capacity()).max(self.ends.capacity()) <= KEPT_CAPACITY {
            self.clear();
            // Where there is no place any more they are dropped.
            let _ = KEPT.try_with(|kept| kept.set(self));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
        self.ends.clear();
    }

    /// Where an index function puts its values, until [`accept`](Self::accept) or [`refuse`](Self::refuse).
    pub(crate) fn values(&mut self) -> IndexValues<'_> {
        IndexValues { text: &mut self.text, spans: &mut self.spans }
    }

    /// Takes what was put since the last index, each value once.
    pub(crate) fn accept(&mut self) {
        let start = self.open();
        let text = &self.text;
        let value = |&(from, to): &(usize, usize)| &text[from..to];
        self.spans[start..].sort_unstable_by(|a, b| value(a).cmp(value(b)));
        let mut kept = start;
        for at in start..self.spans.len() {
            if at == start || value(&self.spans[at]) != value(&self.spans[kept - 1]) {
                self.spans[kept] = self.spans[at];
                kept += 1;
            }
        }
        self.spans.truncate(kept);
        self.ends.push(kept);
    }

    /// Forgets what was put since the last index: the object has no values there.
    pub(crate) fn refuse(&mut self) {
        let start = self.open();
        self.text.truncate(self.spans.get(start).map_or(self.text.len(), |span| span.0));
        self.spans.truncate(start);
        self.ends.push(start);
    }

    /// What was put since the last index, as it was put.
    pub(crate) fn emitted(&self) -> impl Iterator<Item = &str> {
        self.spans[self.open()..].iter().map(|&(from, to)| &self.text[from..to])
    }

    /// The values of one index of one row; `width` is the number of indices.
    pub(crate) fn get(&self, row: usize, width: usize, index: usize) -> impl ExactSizeIterator<Item = &str> {
        let at = row * width + index;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        self.spans[start..self.ends[at]].iter().map(|&(from, to)| &self.text[from..to])
    }

    fn open(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_count_once_and_refused_values_not_at_all() {
        let mut prepared = Prepared::default();
        prepared.values().extend(["b", "a", "b", ""]);
        prepared.accept();
        prepared.values().extend(["x"]);
        prepared.refuse();
        prepared.values().extend(["y"]);
        prepared.accept();
        prepared.accept();
        let row = |row, index| prepared.get(row, 2, index).collect::<Vec<_>>();
        assert_eq!(row(0, 0), ["", "a", "b"]);
        assert_eq!(row(0, 1), [""; 0]);
        assert_eq!(row(1, 0), ["y"]);
        assert_eq!(row(1, 1), [""; 0]);
    }
}
