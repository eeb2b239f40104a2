//! Tests the updates that a browser gets for an open page, and the number of requests that an open page causes.

use std::sync::Mutex;

use kaos_cluster::{
    Cluster as TestCluster,
    faults::{Attempt, Failure, NoFaults, Outcome, Verb, Verdict},
};
use serde_json::json;

use super::*;
use crate::{
    cli::console::model::tests::sample::{USED, USER, add, cluster, model, stored, until},
    locking::lock,
};

/// A simulated browser that has a page open, with the updates that it received.
struct Browser {
    updates: Arc<Mutex<Vec<Update>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Browser {
    fn open(model: &Arc<Model>, address: &str) -> Self {
        let address = Address::parse(address).expect("an address");
        let mut page = FollowedPage::new(Arc::clone(model), "/base".into(), address, HashMap::new());
        let updates = Arc::<Mutex<Vec<Update>>>::default();
        let seen = Arc::clone(&updates);
        let task = tokio::spawn(async move {
            while let Some(update) = page.next().await {
                lock(&seen).push(update);
            }
        });
        Self { updates, task }
    }

    fn has(&self, is_it: impl Fn(&Update) -> bool) -> bool {
        lock(&self.updates).iter().any(is_it)
    }

    /// Returns the number of updates so far.
    fn count(&self) -> usize {
        lock(&self.updates).len()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn has_text(update: &Update, text: &str) -> bool {
    matches!(update, Update::Parts(parts) if parts.iter().any(|part| part["html"].as_str().is_some_and(|it| it.contains(text))))
}

/// Returns the address of an object's page.
fn writer() -> String {
    format!("/object/kaos.tools/{}/team/writer", USER.kind)
}

async fn team(others: usize) -> TestCluster {
    let cluster = cluster(&["team"]).await;
    add(&cluster, &USED, ("team", "llm"), true);
    add(&cluster, &USER, ("team", "writer"), true);
    for number in 0..others {
        add(&cluster, &USER, ("team", &format!("other-{number}")), true);
    }
    cluster
}

/// Changes the status of an object.
fn change(cluster: &TestCluster, name: &str, message: &str) {
    let mut object = stored(cluster, "team", name);
    object["status"]["conditions"][0]["message"] = json!(message);
    object["status"]["message"] = json!(message);
    cluster.plant("kaos.tools", USER.plural, object);
}

#[tokio::test(start_paused = true)]
async fn open_pages_with_ready_objects_send_no_requests_and_other_changes_do_not_wake_them() {
    let cluster = team(70).await;
    let model = model(&cluster, &[]).await;
    let [overview, list, policies] = ["/", "/objects", "/policies"].map(|address| Browser::open(&model, address));
    until(|| [&overview, &list, &policies].iter().all(|page| page.has(|update| *update == Update::Fresh))).await;
    let before = [overview.count(), list.count(), policies.count()];
    cluster.journal().clear();
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(cluster.journal().count(|_| true), 0);
    change(&cluster, "writer", "another message");
    until(|| list.count() > before[1] || list.has(|update| has_text(update, "another message"))).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!([overview.count(), policies.count()], [before[0], before[2]], "these pages look the same");
    assert_eq!(cluster.journal().count(|_| true), 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_page_sends_as_many_requests_under_churn_as_at_rest() {
    let cluster = team(20).await;
    let model = model(&cluster, &[]).await;
    let page = Browser::open(&model, &writer());
    until(|| page.has(|update| *update == Update::Fresh)).await;
    let half_a_minute = async |is_churning: bool| {
        cluster.journal().clear();
        for step in 0..300 {
            if is_churning {
                change(&cluster, "writer", &format!("message {step}"));
                change(&cluster, &format!("other-{}", step % 20), &format!("message {step}"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        cluster.journal().count(|entry| entry.attempt.verb != Verb::Watch)
    };
    let (at_rest, updates) = (half_a_minute(false).await, page.count());
    let under_churn = half_a_minute(true).await;
    let updates = page.count() - updates;
    println!("an open page: {at_rest} requests in half a minute at rest, {under_churn} under churn, {updates} updates");
    assert!(updates > 30, "the page follows the changes: {updates}");
    // The console remembers each read for 10 s, and reads again after 15 s at rest.
    assert!(at_rest > 0 && under_churn <= 3 * at_rest, "{under_churn} requests under churn, {at_rest} at rest");
}

#[tokio::test(start_paused = true)]
async fn pages_with_the_same_objects_share_their_requests() {
    let cluster = team(0).await;
    let model = model(&cluster, &[]).await;
    let requests = async |pages: usize| {
        cluster.journal().clear();
        let open: Vec<Browser> = (0..pages).map(|_| Browser::open(&model, &writer())).collect();
        until(|| open.iter().all(|page| page.has(|update| *update == Update::Fresh))).await;
        tokio::time::sleep(Duration::from_mins(2)).await;
        cluster.journal().count(|entry| entry.attempt.verb != Verb::Watch)
    };
    let (one, five) = (requests(1).await, requests(5).await);
    println!("{one} requests of one page, {five} of five pages");
    assert!(five <= 3 * one, "{one} requests of one page, {five} of five pages");
}

#[tokio::test(start_paused = true)]
async fn an_object_page_shows_new_events_although_nothing_that_is_watched_changes() {
    let cluster = team(0).await;
    let model = model(&cluster, &[]).await;
    let page = Browser::open(&model, &writer());
    until(|| page.has(|update| *update == Update::Fresh)).await;
    let uid = stored(&cluster, "team", "writer")["metadata"]["uid"].clone();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "team"},
        "involvedObject": {"kind": USER.kind, "namespace": "team", "name": "writer", "uid": uid},
        "reason": "BackOff", "message": "crashes again and again", "type": "Warning", "count": 1,
        "lastTimestamp": "2026-01-01T00:01:00Z"});
    cluster.plant("", "events", event);
    until(|| page.has(|update| has_text(update, "crashes again and again"))).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_says_that_it_is_out_of_date_and_recovers_although_nothing_changes() {
    let cluster = team(0).await;
    let model = model(&cluster, &[]).await;
    let page = Browser::open(&model, &writer());
    until(|| page.has(|update| *update == Update::Fresh)).await;
    cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
        let is_lost = attempt.resource == "events";
        if is_lost { Verdict::from(Outcome::FailBefore(Failure::Server(500))) } else { Verdict::default() }
    });
    until(|| page.has(|update| matches!(update, Update::Stale(_)))).await;
    let count = page.count();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(page.count(), count, "the page says so once");
    cluster.set_faults(NoFaults);
    until(|| lock(&page.updates).last() == Some(&Update::Fresh)).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_of_an_object_that_comes_and_goes_reloads_and_ends() {
    let cluster = team(0).await;
    let model = model(&cluster, &[]).await;
    let page = Browser::open(&model, &writer());
    until(|| page.has(|update| *update == Update::Fresh)).await;
    let seen = HashMap::from([("loading".to_owned(), "0".to_owned())]);
    let address = Address::parse(&writer()).expect("an address");
    let mut loading = FollowedPage::new(Arc::clone(&model), "/base".into(), address, seen);
    assert_eq!(
        loading.next().await,
        Some(Update::Reload),
        "the browser has the page of an object that was not found yet"
    );
    assert_eq!(loading.next().await, None);
    let client = kube::Client::new(cluster.service(), "team");
    let resource =
        kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("kaos.tools", "v1alpha1", USER.kind));
    let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(client, "team", &resource);
    api.delete("writer", &kube::api::DeleteParams::default()).await.expect("the object is deleted");
    until(|| page.has(|update| *update == Update::Gone)).await;
}
