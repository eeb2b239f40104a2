use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_cluster::{
    Cluster,
    faults::{Attempt, Outcome, Verdict},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams, WatchParams},
    client::ClientBuilder,
};
use serde_json::json;

use super::*;
use crate::{leader_election::Fence, recorded::Recorded};

struct Setup {
    cluster: Cluster,
    api: Api<ConfigMap>,
    fence: Fence,
    metrics: Arc<Recorded>,
}

fn setup() -> Setup {
    let cluster = Cluster::start();
    let (fence, metrics) = (Fence::open(), Arc::new(Recorded::default()));
    let layer = CallLayer { deadline: Duration::from_secs(5), fence: fence.clone(), metrics: metrics.clone() };
    let client: Client = ClientBuilder::new(cluster.service(), "default").with_layer(&layer).build();
    Setup { cluster, api: Api::default_namespaced(client), fence, metrics }
}

fn config_map() -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": "c"}})).expect("a ConfigMap")
}

const HOUR: Verdict = Verdict { delay: Duration::from_hours(1), outcome: Outcome::Proceed };

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_verb_resource_and_code() {
    let Setup { api, metrics, cluster, .. } = setup();
    api.create(&PostParams::default(), &config_map()).await.expect("it is created");
    api.get("absent").await.expect_err("nothing there");
    api.list(&ListParams::default()).await.expect("a list");
    let text = metrics.text();
    for line in [
        r#"api_calls_total{verb="create",group="",resource="configmaps",code="201"} 1"#,
        r#"api_calls_total{verb="get",group="",resource="configmaps",code="404"} 1"#,
        r#"api_calls_total{verb="list",group="",resource="configmaps",code="200"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(cluster.journal().entries().iter().all(|entry| entry.attempt.program.starts_with("kaos-operator/")));
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_ends_with_the_reason_and_a_watch_continues() {
    let Setup { cluster, api, metrics, .. } = setup();
    let mut events = Box::pin(api.watch(&WatchParams::default(), "0").await.expect("a watch"));
    tokio::time::sleep(Duration::from_mins(1)).await;
    api.create(&PostParams::default(), &config_map()).await.expect("it is created");
    let seen = tokio::time::timeout(Duration::from_mins(1), events.next()).await;
    assert!(matches!(seen, Ok(Some(Ok(_)))), "{seen:?}");
    cluster.set_faults(|_: &Attempt, _: &mut _| HOUR);
    let error = api.get("c").await.expect_err("nobody waits an hour").to_string();
    assert!(error.contains("no answer to get configmaps within 5s"), "{error}");
    assert!(metrics.text().contains(r#"resource="configmaps",code="timeout"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_behind_a_closed_fence_and_everything_can_be_read() {
    let Setup { cluster, api, fence, .. } = setup();
    fence.shut();
    let patch = Patch::Apply(config_map());
    let error = api.patch("c", &PatchParams::apply("test").force(), &patch).await.expect_err("no write").to_string();
    assert!(error.contains("does not hold the lease"), "{error}");
    assert!(api.get_opt("c").await.expect("an answer").is_none());
    assert!(cluster.journal().writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_on_its_way_is_broken_off_when_the_fence_closes() {
    let Setup { cluster, api, fence, metrics } = setup();
    cluster.set_faults(|_: &Attempt, _: &mut _| HOUR);
    let writing = tokio::spawn(async move { api.create(&PostParams::default(), &config_map()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    fence.shut();
    let error = writing.await.expect("it returns").expect_err("no answer").to_string();
    assert!(error.contains("does not hold the lease"), "{error}");
    assert!(metrics.text().contains(r#"code="fenced"} 1"#));
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_or_has_no_such_context_is_named() {
    let place = ClusterChoice { kubeconfig: Some("/does/not/exist".into()), context: None };
    let error = place.config().await.expect_err("no file").to_string();
    assert!(error.contains("/does/not/exist"), "{error}");
}
