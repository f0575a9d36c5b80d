//! Who owns an object.

/// One entry of `metadata.ownerReferences`. Absent parts are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OwnerReference<'a> {
    /// `apps/v1`
    pub api_version: &'a str,
    /// `ReplicaSet`
    pub kind: &'a str,
    /// The owner's name; its namespace is the object's, or none.
    pub name: &'a str,
    /// The owner's uid.
    pub uid: &'a str,
    /// Whether this is the one that controls the object.
    pub controller: bool,
}

impl<'a> OwnerReference<'a> {
    /// A reference to an owner that does not control the object; its uid is empty.
    pub const fn new(api_version: &'a str, kind: &'a str, name: &'a str) -> Self {
        Self { api_version, kind, name, uid: "", controller: false }
    }

    /// With this uid.
    #[must_use]
    pub const fn uid(self, uid: &'a str) -> Self {
        Self { uid, ..self }
    }

    /// The owner controls the object, or not.
    #[must_use]
    pub const fn controller(self, controller: bool) -> Self {
        Self { controller, ..self }
    }

    /// The API group: `apps` of `apps/v1`, empty of `v1`. `None` where the version is not of that form.
    ///
    /// ```
    /// use kubewire_indexer::OwnerReference;
    ///
    /// assert_eq!(OwnerReference::new("apps/v1", "ReplicaSet", "web").group(), Some("apps"));
    /// assert_eq!(OwnerReference::new("v1", "Node", "n1").group(), Some(""));
    /// assert_eq!(OwnerReference::new("a/b/c", "Node", "n1").group(), None);
    /// ```
    pub fn group(&self) -> Option<&'a str> {
        match self.api_version.split_once('/') {
            None => Some(""),
            Some((_, version)) if version.contains('/') => None,
            Some((group, _)) => Some(group),
        }
    }
}
