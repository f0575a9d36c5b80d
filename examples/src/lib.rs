//! Examples for kubewire: each stands in a folder or file of its own beside this one; this library is empty.
//! Begin with `pod_controller`.
#![forbid(unsafe_code)]
