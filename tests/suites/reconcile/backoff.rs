//! E1, E5, E6, E11, E12: when the operator retries.

use std::time::Duration;

use kaos_cluster::faults::{Entry, Failure};
use kaos_operator::operator::Options;
use kaos_tests::gadget::gadget;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::{Fault, Scenario, World, is_ready, play, reason};
use serde_json::json;

use crate::support::{image, passes, retries, web, web_with};

const FAILS: Failure = Failure::Server(503);

/// Returns the times between the failed writes of a Deployment, in milliseconds.
fn intervals(w: &World, name: &str) -> Vec<i64> {
    let fits =
        |entry: &Entry| entry.attempt.resource == "deployments" && entry.attempt.name == name && !entry.attempt.dry_run;
    let times: Vec<_> =
        w.requests(Sort::Refused).into_iter().filter(fits).map(|entry| entry.at.as_millisecond()).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn e1_each_temporary_error_is_retried_until_it_passes() {
    for failure in [FAILS, Failure::Server(500), Failure::Conflict, Failure::Throttled(2), Failure::Disconnect] {
        play(Scenario::embedded("the test makes requests fail"), async |w| {
            w.break_it(Fault::on_writes().fail(failure).times(4));
            w.apply(&web()).await;
            w.until_ready("Gadget/web").await;
            assert!(retries(w) >= 1.0, "{failure:?}");
        });
    }
}

#[test]
fn e1_the_time_between_retries_grows_to_a_maximum() {
    let capped = |options: &mut Options| {
        options.backoff.first = Duration::from_secs(1);
        options.backoff.max = Duration::from_secs(30);
    };
    play(Scenario::embedded("the test makes requests fail").tuned(capped), async |w| {
        w.break_it(Fault::on_writes().of("deployments").fail(FAILS));
        w.apply(&web()).await;
        w.pass_time(Duration::from_secs(400)).await;
        let waited = intervals(w, "web");
        assert!(waited.len() >= 8, "{waited:?}");
        assert!(waited[4] > waited[0] * 2, "the backoff does not grow: {waited:?}");
        assert!(waited.iter().all(|time| *time <= 45_000), "the backoff has no maximum: {waited:?}");
        let capped = &waited[waited.len() - 4..];
        assert!(capped.windows(2).any(|pair| pair[0] != pair[1]), "there is no jitter: {waited:?}");
    });
}

#[test]
fn e1_a_retry_waits_as_long_as_the_server_asks() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.break_it(Fault::on_writes().of("deployments").fail(Failure::Throttled(60)).times(3));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let waited = intervals(w, "web");
        assert!(waited.len() == 2 && waited.iter().all(|time| *time >= 60_000), "{waited:?}");
    });
}

#[test]
fn e5_after_a_success_the_backoff_starts_small_again() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        for round in 0..2 {
            w.forget_requests();
            w.break_it(Fault::on_writes().of("deployments").fail(FAILS).times(6));
            w.apply(&web_with(&json!({"image": format!("registry.example/gadget:{round}")}))).await;
            w.until("the Deployment has the image of this round", "Deployment/web", |now| {
                image(now) == format!("registry.example/gadget:{round}")
            })
            .await;
            w.until_ready("Gadget/web").await;
            let waited = intervals(w, "web");
            assert!(waited[0] * 4 < *waited.last().unwrap(), "round {round}: {waited:?}");
        }
    });
}

#[test]
fn e6_neither_steady_nor_unready_objects_are_polled() {
    play(Scenario::embedded("the test counts requests and passes"), async |w| {
        w.pods_of("waits", kaos_cluster::PodFate::NotReady);
        w.apply_all(&[gadget("steady", &json!({})), gadget("waits", &json!({}))]).await;
        w.until_ready("Gadget/steady").await;
        w.quiet().await;
        let before = passes(w);
        w.forget_requests();
        w.pass_time(Duration::from_mins(4)).await;
        assert_eq!((passes(w), w.writes(), w.reads()), (before, Vec::new(), Vec::new()));
        w.pods_of("waits", kaos_cluster::PodFate::ReadyAfter(Duration::ZERO));
        w.until_ready("Gadget/waits").await;
    });
}

#[test]
fn e11_retry_later_check_and_rest_are_distinguished() {
    let resync = |options: &mut Options| options.resync = Duration::from_secs(100);
    play(Scenario::embedded("the test counts passes").tuned(resync), async |w| {
        // The operator must repeat the pass over a refused object only after a long time.
        w.apply(&web_with(&json!({"does": "refuse"}))).await;
        w.until("Gadget/web has the reason InvalidSpec for Accepted", "Gadget/web", |gadget| {
            reason(gadget, "Accepted") == "InvalidSpec"
        })
        .await;
        w.quiet().await;
        let (passed, retried) = (passes(w), retries(w));
        w.pass_time(Duration::from_secs(1000)).await;
        let later = passes(w) - passed;
        assert!((5.0..=25.0).contains(&later), "{later} passes in a time of ten resyncs");
        assert_eq!(retries(w), retried, "the operator does not retry a refusal");
        // The operator must soon repeat a pass that ended with an error, with a backoff.
        w.break_it(Fault::on_writes().of("deployments").fail(FAILS).times(5));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        assert!(retries(w) >= retried + 4.0);
        // The operator must repeat no pass over a deleted object.
        w.delete("Gadget/web").await;
        w.until_gone("Gadget/web").await;
        w.pass_time(Duration::from_secs(10)).await;
        let passed = passes(w);
        w.pass_time(Duration::from_secs(1000)).await;
        assert_eq!(passes(w), passed);
    });
}

#[test]
fn e12_a_failing_object_delays_no_other() {
    play(Scenario::embedded("the test makes requests fail"), async |w| {
        w.break_it(Fault::on_writes().of("deployments").named("bad").fail(FAILS));
        w.apply(&gadget("bad", &json!({}))).await;
        w.pass_time(Duration::from_mins(10)).await;
        w.break_it(Fault::on_writes().of("deployments").named("web").fail(FAILS).times(2));
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        let (bad, web) = (intervals(w, "bad"), intervals(w, "web"));
        assert!(!web.is_empty(), "the writes of Deployment web did not fail twice");
        assert!(web.iter().all(|time| *time * 4 < *bad.last().unwrap()), "{web:?} and {bad:?}");
        assert!(!is_ready(&w.look("Gadget/bad").await));
    });
}

#[test]
fn e1_a_repeatedly_deleted_child_is_created_at_a_limited_rate_and_reported() {
    play(Scenario::embedded("the test simulates time, and counts requests"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.forget_requests();
        for _ in 0..600 {
            w.delete("Service/web").await;
            w.pass_time(Duration::from_millis(100)).await;
        }
        let made = w.writes_by_type()["services"];
        assert!((20..=40).contains(&made), "{made} writes in a minute");
        w.until_warned("Gadget/web", "ChildUndone").await;
        let told = w.events("Gadget/web").await.into_iter().filter(|(_, reason, _)| reason == "ChildUndone").count();
        assert_eq!(told, 1);
        w.until_ready("Gadget/web").await;
        w.until("Service/web exists", "Service/web", |service| !service.is_null()).await;
    });
}
