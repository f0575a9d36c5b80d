//! What it lets go of. Over a plain struct alone: packed objects have no weak handles.

use std::sync::Arc;

use kubewire_informer::reflector::ReflectorOptions;
use kubewire_listwatch::ListMeta;

use super::fake_server::pod;
use super::running::Running;

#[tokio::test(start_paused = true)]
async fn objects_are_not_held_after_the_store_has_let_them_go() {
    let running = Running::start(false, ReflectorOptions::new());
    let mut weak = Vec::new();
    for page in 0..5 {
        let pods: Vec<_> = (0..100).map(|n| pod(&format!("p{page}-{n}@1"))).collect();
        weak.extend(pods.iter().map(Arc::downgrade));
        let meta = ListMeta::new("1");
        let meta = if page < 4 { meta.continued(format!("t{page}")) } else { meta };
        running.server.list().await.items(pods.into_iter().map(Ok).collect(), meta);
    }
    // The fake store keeps none.
    let _stream = running.server.watch().await.open();
    assert_eq!(weak.iter().filter(|pod| pod.upgrade().is_some()).count(), 0);
    running.stop().await;
}
