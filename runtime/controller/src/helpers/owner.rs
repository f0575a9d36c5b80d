//! Owner references, which the garbage collector follows and owner handlers read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{ApiResource, Resource};

/// Makes an object owned and controlled by another one, see [`Owner::set_controller`]; as controller-runtime's
/// `SetControllerReference`.
///
/// ```
/// use k8s_openapi::api::apps::v1::ReplicaSet;
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_controller::set_controller_reference;
///
/// let mut owner = ReplicaSet::default();
/// owner.metadata.name = Some("web".into());
/// owner.metadata.namespace = Some("default".into());
/// owner.metadata.uid = Some("u1".into());
/// let mut pod = Pod::default();
/// pod.metadata.namespace = Some("default".into());
///
/// set_controller_reference(&owner, &mut pod)?;
/// let reference = &pod.metadata.owner_references.as_ref().unwrap()[0];
/// assert_eq!((reference.kind.as_str(), reference.controller), ("ReplicaSet", Some(true)));
/// # Ok::<(), kubewire_controller::OwnerError>(())
/// ```
///
/// # Errors
/// See [`OwnerError`].
pub fn set_controller_reference<K, T>(owner: &K, object: &mut T) -> Result<(), OwnerError>
where
    K: Resource<DynamicType = ()>,
    T: Resource,
{
    Owner::of(owner).set_controller(object)
}

/// Makes an object owned by another one, among others, see [`Owner::set_owner`]; as controller-runtime's `SetOwnerReference`.
///
/// # Errors
/// See [`OwnerError`].
pub fn set_owner_reference<K, T>(owner: &K, object: &mut T) -> Result<(), OwnerError>
where
    K: Resource<DynamicType = ()>,
    T: Resource,
{
    Owner::of(owner).set_owner(object)
}

/// An object that owns others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    api_version: String,
    kind: String,
    group: String,
    namespace: String,
    name: String,
    uid: String,
    block_owner_deletion: bool,
}

/// Why an object cannot be owned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// Only an owner of cluster scope can own one of cluster scope.
    #[error("{object:?} is of cluster scope, so its owner cannot be in the namespace {namespace:?}")]
    ClusterScope {
        /// The object's name.
        object: String,
        /// The owner's namespace.
        namespace: String,
    },
    /// Nobody owns objects of another namespace.
    #[error("{object:?} is in the namespace {of_object:?}, so its owner cannot be in {of_owner:?}")]
    OtherNamespace {
        /// The object's name.
        object: String,
        /// Its namespace.
        of_object: String,
        /// The owner's.
        of_owner: String,
    },
    /// An object has one controller at most.
    #[error("{object:?} is controlled by {kind} {name:?} already")]
    AlreadyOwned {
        /// The object's name.
        object: String,
        /// The controller's kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The owner was not read from a server.
    #[error("the owner has no name or no uid: read it from the server first")]
    NotStored,
}

impl Owner {
    /// An object of a type.
    pub fn of<K: Resource<DynamicType = ()>>(owner: &K) -> Self {
        Self::dynamic(owner, &ApiResource::erase::<K>(&()))
    }

    /// An object whose resource is known at run time.
    pub fn dynamic<K: Resource>(owner: &K, resource: &ApiResource) -> Self {
        let metadata = owner.meta();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            group: resource.group.clone(),
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            block_owner_deletion: true,
        }
    }

    /// Whether a foreground deletion of the owner waits for what it owns. Default: yes.
    #[must_use = "it gives the changed owner back"]
    pub fn block_owner_deletion(self, block: bool) -> Self {
        Self { block_owner_deletion: block, ..self }
    }

    /// Makes the object owned and controlled by this. A reference to it that is there, found by group, kind and name whatever
    /// its version and uid, is replaced.
    ///
    /// # Errors
    /// Another one controls it, or the namespaces do not fit.
    pub fn set_controller(&self, object: &mut impl Resource) -> Result<(), OwnerError> {
        let others = object.meta().owner_references.iter().flatten();
        let mut controllers = others.filter(|other| other.controller == Some(true) && !self.is_same(other));
        if let Some(other) = controllers.next() {
            let (kind, name) = (other.kind.clone(), other.name.clone());
            return Err(OwnerError::AlreadyOwned { object: name_of(object), kind, name });
        }
        self.set(object, Some(true))
    }

    /// Makes the object owned by this, among others. A reference to it that is there is replaced.
    ///
    /// # Errors
    /// The namespaces do not fit.
    pub fn set_owner(&self, object: &mut impl Resource) -> Result<(), OwnerError> {
        self.set(object, None)
    }

    /// Takes the references to this from an object. True where there were any.
    pub fn remove_from(&self, object: &mut impl Resource) -> bool {
        let Some(references) = &mut object.meta_mut().owner_references else { return false };
        let before = references.len();
        references.retain(|reference| !self.is_same(reference));
        references.len() < before
    }

    /// Whether the object refers to this as one of its owners, by group, kind and name.
    pub fn owns(&self, object: &impl Resource) -> bool {
        object.meta().owner_references.iter().flatten().any(|reference| self.is_same(reference))
    }

    fn set(&self, object: &mut impl Resource, controller: Option<bool>) -> Result<(), OwnerError> {
        self.check(object)?;
        let reference = OwnerReference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller,
            block_owner_deletion: (controller == Some(true)).then_some(self.block_owner_deletion),
        };
        let references = object.meta_mut().owner_references.get_or_insert_default();
        match references.iter_mut().find(|reference| self.is_same(reference)) {
            Some(place) => *place = reference,
            None => references.push(reference),
        }
        Ok(())
    }

    fn check(&self, object: &impl Resource) -> Result<(), OwnerError> {
        let of_object = object.meta().namespace.clone().unwrap_or_default();
        match (self.namespace.as_str(), of_object.as_str()) {
            _ if self.name.is_empty() || self.uid.is_empty() => Err(OwnerError::NotStored),
            ("", _) => Ok(()),
            (namespace, "") => {
                Err(OwnerError::ClusterScope { object: name_of(object), namespace: namespace.to_owned() })
            }
            (of_owner, _) if of_owner != of_object => {
                Err(OwnerError::OtherNamespace { object: name_of(object), of_object, of_owner: of_owner.to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn is_same(&self, reference: &OwnerReference) -> bool {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        group == self.group && reference.kind == self.kind && reference.name == self.name
    }
}

fn name_of(object: &impl Resource) -> String {
    object.meta().name.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;

    use super::*;

    fn owner(namespace: &str, uid: &str) -> ReplicaSet {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": namespace, "uid": uid}})).unwrap()
    }

    fn pod(namespace: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "web-1", "namespace": namespace}})).unwrap()
    }

    #[test]
    fn a_reference_to_the_same_owner_is_replaced_whatever_its_version_and_uid() {
        let mut pod = pod("ns");
        set_controller_reference(&owner("ns", "old"), &mut pod).unwrap();
        pod.metadata.owner_references.as_mut().unwrap()[0].api_version = "apps/v1beta2".to_owned();
        set_controller_reference(&owner("ns", "new"), &mut pod).unwrap();
        let references = pod.metadata.owner_references.as_ref().unwrap();
        assert_eq!(references.len(), 1);
        assert_eq!((references[0].api_version.as_str(), references[0].uid.as_str()), ("apps/v1", "new"));
        assert_eq!((references[0].controller, references[0].block_owner_deletion), (Some(true), Some(true)));

        set_owner_reference(&owner("ns", "new"), &mut pod).unwrap();
        let references = pod.metadata.owner_references.as_ref().unwrap();
        assert_eq!((references.len(), references[0].controller), (1, None), "an owner that does not control");
        assert!(Owner::of(&owner("ns", "x")).owns(&pod));
        assert!(Owner::of(&owner("ns", "x")).remove_from(&mut pod));
        assert!(!Owner::of(&owner("ns", "x")).remove_from(&mut pod));
    }

    #[test]
    fn an_object_has_one_controller_and_any_number_of_owners() {
        let deployment: Deployment =
            serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns", "uid": "d"}})).unwrap();
        let mut pod = pod("ns");
        set_controller_reference(&owner("ns", "r"), &mut pod).unwrap();
        let error = set_controller_reference(&deployment, &mut pod).unwrap_err();
        assert_eq!(error.to_string(), r#""web-1" is controlled by ReplicaSet "web" already"#);
        set_owner_reference(&deployment, &mut pod).unwrap();
        assert_eq!(pod.metadata.owner_references.unwrap().len(), 2);
    }

    #[test]
    fn an_owner_of_the_same_kind_and_name_in_another_group_is_another_one() {
        let mut pod = pod("ns");
        set_owner_reference(&owner("ns", "u"), &mut pod).unwrap();
        pod.metadata.owner_references.as_mut().unwrap()[0].api_version = "example.com/v1".to_owned();
        assert!(!Owner::of(&owner("ns", "u")).owns(&pod));
        set_owner_reference(&owner("ns", "u"), &mut pod).unwrap();
        assert_eq!(pod.metadata.owner_references.unwrap().len(), 2);
    }

    #[test]
    fn an_owner_lives_in_the_namespace_of_what_it_owns_or_in_none() {
        let other = set_controller_reference(&owner("a", "u"), &mut pod("b")).unwrap_err();
        assert!(matches!(other, OwnerError::OtherNamespace { .. }), "{other}");
        let mut node = Node::default();
        let cluster = set_controller_reference(&owner("a", "u"), &mut node).unwrap_err();
        assert!(matches!(cluster, OwnerError::ClusterScope { .. }), "{cluster}");
        let owner: Node = serde_json::from_value(json!({"metadata": {"name": "n1", "uid": "u"}})).unwrap();
        set_controller_reference(&owner, &mut pod("b")).unwrap();
        set_controller_reference(&owner, &mut node).unwrap();
        let unstored = set_controller_reference(&Node::default(), &mut Node::default()).unwrap_err();
        assert_eq!(unstored, OwnerError::NotStored);
    }
}
