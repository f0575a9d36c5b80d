//! Which API resource a user's own struct is read from.

/// Says which resource a user's own struct represents, so that a lister-watcher knows what to list.
///
/// `#[derive(Meta)]` writes it from `#[kubewire(resource = Pod)]`. The trait knows nothing of Kubernetes:
/// kubewire-listwatch asks for `T: Represents` with `T::Resource: kube_core::Resource<DynamicType = ()>`, and takes
/// group, version, plural and scope from there.
///
/// ```
/// use kubewire_indexer::Represents;
///
/// struct Pod; // for instance k8s-openapi's
/// struct PodBrief;
///
/// impl Represents for PodBrief {
///     type Resource = Pod;
/// }
/// ```
pub trait Represents {
    /// The type that knows its group, version, plural name and scope.
    type Resource;
}
