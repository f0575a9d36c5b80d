//! Against the embedded server.

use std::convert::Infallible;

use k8s_openapi::api::apps::v1::Deployment;
use kubewire_apiserver::{ApiServer, Fault, Verb};
use serde_json::json;

use super::*;
use crate::{MergeFrom, ensure_finalizer, patch_object, patch_status, release_finalizer};

fn deployment() -> Deployment {
    serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "default"}})).unwrap()
}

fn replicas(count: i32) -> impl Fn(&mut Deployment) -> Result<(), Infallible> {
    move |deployment| {
        deployment.spec.replicas = Some(count);
        Ok(())
    }
}

fn ready(count: i32) -> impl Fn(&mut Deployment) -> Result<(), Infallible> {
    move |deployment| {
        deployment.status.get_or_insert_default().ready_replicas = Some(count);
        Ok(())
    }
}

fn writes(server: &ApiServer) -> Vec<(Option<Verb>, String)> {
    let writes = server.requests().into_iter().filter(|request| request.method != "GET");
    let writes = writes.map(|request| (request.verb, request.path)).collect();
    server.clear_requests();
    writes
}

#[tokio::test]
async fn an_object_is_created_updated_or_left_alone() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    for (count, result, written) in [
        (1, OperationResult::Created, 1),
        (1, OperationResult::Unchanged, 0),
        (2, OperationResult::Updated, 1),
        (2, OperationResult::Unchanged, 0),
    ] {
        let (object, done) = create_or_update(&api, deployment(), replicas(count)).await.unwrap();
        assert_eq!(done, result);
        assert_eq!(object.spec.replicas, Some(count));
        assert_eq!(writes(&server).len(), written);
    }
}

#[tokio::test]
async fn a_patch_writes_the_object_and_its_status_each_where_it_differs() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let both =
        |count| move |deployment: &mut Deployment| replicas(count)(deployment).and_then(|()| ready(count)(deployment));
    let (created, result) = create_or_patch(&api, deployment(), both(1)).await.unwrap();
    assert_eq!(result, OperationResult::Created);
    assert!(
        created.status.is_none_or(|status| status.ready_replicas.is_none()),
        "the status is not written on creation"
    );
    writes(&server);

    let plain = "/apis/apps/v1/namespaces/default/deployments/web";
    let status = format!("{plain}/status");
    let patched = |paths: &[&str]| paths.iter().map(|path| (Some(Verb::Patch), (*path).to_owned())).collect::<Vec<_>>();
    let (object, result) = create_or_patch(&api, deployment(), both(1)).await.unwrap();
    assert_eq!((result, writes(&server)), (OperationResult::UpdatedStatusOnly, patched(&[&status])));
    assert_eq!(object.status.unwrap().ready_replicas, Some(1));
    let (object, result) = create_or_patch(&api, deployment(), both(2)).await.unwrap();
    assert_eq!((result, writes(&server)), (OperationResult::UpdatedStatus, patched(&[plain, &status])));
    assert_eq!((object.spec.replicas, object.status.unwrap().ready_replicas), (Some(2), Some(2)));
    let (_, result) = create_or_patch(&api, deployment(), replicas(3)).await.unwrap();
    assert_eq!((result, writes(&server)), (OperationResult::Updated, patched(&[plain])));
    let (_, result) = create_or_patch(&api, deployment(), replicas(3)).await.unwrap();
    assert_eq!((result, writes(&server)), (OperationResult::Unchanged, vec![]));
}

#[tokio::test]
async fn a_function_that_fails_or_renames_and_a_read_that_fails_write_nothing() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    create_or_update(&api, deployment(), replicas(1)).await.unwrap();
    writes(&server);
    let rename = |deployment: &mut Deployment| {
        deployment.metadata.name = Some("other".to_owned());
        Ok::<(), Infallible>(())
    };
    let error = create_or_update(&api, deployment(), rename).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the function must change neither name nor namespace: default/web became default/other"
    );
    let error = create_or_patch(&api, deployment(), |_| Err("no")).await.unwrap_err();
    assert!(matches!(error, CreateOrUpdateError::Mutate(_)), "{error}");
    let error = create_or_update(&api, Deployment::default(), replicas(1)).await.unwrap_err();
    assert!(matches!(error, CreateOrUpdateError::NoName), "{error}");

    server.fault(Fault::internal_error());
    let mut called = false;
    let mutate = |_: &mut Deployment| {
        called = true;
        Ok::<(), Infallible>(())
    };
    let error = create_or_update(&api, deployment(), mutate).await.unwrap_err();
    assert!(matches!(error, CreateOrUpdateError::Server(_)), "{error}");
    assert!(!called);
    assert_eq!(writes(&server), []);
}

#[tokio::test]
async fn a_status_is_patched_where_it_differs_and_with_a_lock_only_over_what_was_read() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let (read, _) = create_or_update(&api, deployment(), replicas(1)).await.unwrap();
    writes(&server);
    let before = MergeFrom::new(&read).unwrap();
    let mut after = read.clone();
    assert!(before.patch_status(&api, &after).await.unwrap().is_none());
    after.spec.replicas = Some(7);
    assert!(before.patch_status(&api, &after).await.unwrap().is_none(), "no difference of the status");
    assert_eq!(writes(&server), []);
    ready(1)(&mut after).unwrap();
    let written = before.patch_status(&api, &after).await.unwrap().unwrap();
    assert_eq!((written.spec.replicas, written.status.unwrap().ready_replicas), (Some(1), Some(1)));

    // What was read first is old by now.
    let locked = MergeFrom::new(&read).unwrap().optimistic_lock();
    ready(2)(&mut after).unwrap();
    let error = locked.patch_status(&api, &after).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(before.patch_status(&api, &after).await.unwrap().is_some(), "without a lock it is written");
    let unversioned = MergeFrom::new(&deployment()).unwrap().optimistic_lock();
    assert!(matches!(unversioned.patch_status(&api, &after).await, Err(crate::PatchError::NoVersion)));
}

#[tokio::test]
async fn a_status_by_itself_is_patched_where_it_differs() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let (read, _) = create_or_update(&api, deployment(), replicas(1)).await.unwrap();
    writes(&server);
    let mut wanted = read.clone();
    ready(1)(&mut wanted).unwrap();
    let status = wanted.status.unwrap();
    let mut changed = read.clone();
    changed.spec.replicas = Some(7);
    let written = patch_status(&api, &changed, &status).await.unwrap().unwrap();
    assert_eq!((written.spec.replicas, written.status.clone().unwrap().ready_replicas), (Some(1), Some(1)));
    assert_eq!(writes(&server).len(), 1);
    assert!(patch_status(&api, &written, &status).await.unwrap().is_none());
    assert_eq!(writes(&server), []);
    let error = patch_status(&api, &Deployment::default(), &status).await.unwrap_err();
    assert!(matches!(error, crate::PatchError::NoName), "{error}");
}

#[tokio::test]
async fn what_a_function_changes_is_written_unless_somebody_else_has_written_since() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let (read, _) = create_or_update(&api, deployment(), replicas(1)).await.unwrap();
    writes(&server);
    assert!(patch_object(&api, &read, |_| {}).await.unwrap().is_none());
    assert_eq!(writes(&server), []);
    let scaled = patch_object(&api, &read, |deployment| deployment.spec.replicas = Some(2)).await.unwrap().unwrap();
    assert_eq!(scaled.spec.replicas, Some(2));
    let error = patch_object(&api, &read, |deployment| deployment.spec.replicas = Some(3)).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
}

#[tokio::test]
async fn a_finalizer_is_written_once_and_over_nobody_and_released_also_where_the_object_is_gone() {
    let server = ApiServer::start().await;
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let (read, _) = create_or_update(&api, deployment(), replicas(1)).await.unwrap();
    writes(&server);
    let with = ensure_finalizer(&api, &read, "x/a").await.unwrap().unwrap();
    assert_eq!(with.metadata.finalizers.as_deref().unwrap(), ["x/a"]);
    assert!(ensure_finalizer(&api, &with, "x/a").await.unwrap().is_none());
    assert_eq!(writes(&server).len(), 1);
    // The list that was read first knows nothing of the other one.
    let error = ensure_finalizer(&api, &read, "x/b").await.unwrap_err();
    assert!(error.is_conflict(), "{error}");

    assert!(release_finalizer(&api, &read, "x/a").await.unwrap().is_none(), "it is not there: nothing is written");
    api.delete(with.metadata.name.as_deref().unwrap(), &Default::default()).await.unwrap();
    let deleted = api.get(with.metadata.name.as_deref().unwrap()).await.unwrap();
    assert!(deleted.metadata.deletion_timestamp.is_some(), "it waits for its finalizer");
    // None is added to what is to go: the server would refuse it.
    assert!(ensure_finalizer(&api, &deleted, "x/c").await.unwrap().is_none());
    assert!(release_finalizer(&api, &deleted, "x/a").await.unwrap().is_some());
    assert_eq!(server.count("apps/v1/deployments"), 0);
    assert!(release_finalizer(&api, &deleted, "x/a").await.unwrap().is_none(), "it is gone: so is the finalizer");
}
