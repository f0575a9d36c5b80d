//! PURE. Which fields of an object are not decoded.

use crate::client::protobuf::metadata::tag_of;

/// A set of paths into an object. What lies under one of them is skipped by the parser: neither decoded nor kept.
///
/// A path goes through the elements of an array without naming them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DropFields {
    children: Vec<(Box<str>, Branch)>,
    /// Which fields of the metadata are among them, one bit for each number in protobuf.
    metadata_tags: u32,
    /// The first path that is none of a field of the metadata, and so unknown in protobuf.
    beyond_metadata: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Branch {
    Dropped,
    Inside(DropFields),
}

/// What to do with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate<'a> {
    Drop,
    /// Something inside it is dropped.
    Enter(&'a DropFields),
    Keep,
}

impl DropFields {
    /// Adds a path; the empty one is none.
    pub(crate) fn add(&mut self, path: &[&str]) {
        let tag = if let ["metadata", field] = path { tag_of(field) } else { None };
        match (path, tag) {
            ([], _) => return,
            (_, Some(tag)) => self.metadata_tags |= 1 << tag,
            _ => self.beyond_metadata = self.beyond_metadata.take().or_else(|| Some(path.join(".").into())),
        }
        self.add_branch(path);
    }

    fn add_branch(&mut self, path: &[&str]) {
        let Some((name, rest)) = path.split_first() else { return };
        let at = self.children.iter().position(|(child, _)| **child == **name).unwrap_or_else(|| {
            self.children.push(((*name).into(), Branch::Inside(Self::default())));
            self.children.len() - 1
        });
        match &mut self.children[at].1 {
            branch if rest.is_empty() => *branch = Branch::Dropped,
            Branch::Inside(inside) => inside.add_branch(rest),
            Branch::Dropped => {}
        }
    }

    /// The fields of the metadata that are left out of messages, one bit for each number.
    pub(crate) fn metadata_tags(&self) -> u32 {
        self.metadata_tags
    }

    /// A path that cannot be left out of messages: what fields they have is known of the metadata alone.
    pub(crate) fn beyond_metadata(&self) -> Option<&str> {
        self.beyond_metadata.as_deref()
    }

    /// What to do with the field of this name.
    pub(crate) fn fate(&self, name: &str) -> Fate<'_> {
        match self.children.iter().find(|(child, _)| **child == *name) {
            None => Fate::Keep,
            Some((_, Branch::Dropped)) => Fate::Drop,
            Some((_, Branch::Inside(inside))) => Fate::Enter(inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_path_covers_the_longer_ones() {
        let mut fields = DropFields::default();
        fields.add(&["metadata", "managedFields"]);
        fields.add(&["spec", "containers", "env"]);
        fields.add(&["spec"]);
        fields.add(&["spec", "volumes"]);
        fields.add(&[]);
        assert_eq!(fields.fate("spec"), Fate::Drop);
        assert_eq!(fields.fate("status"), Fate::Keep);
        let Fate::Enter(metadata) = fields.fate("metadata") else { panic!("metadata is kept in part") };
        assert_eq!((metadata.fate("managedFields"), metadata.fate("name")), (Fate::Drop, Fate::Keep));
    }
}
