//! Tests which cases the recorder keeps and which it leaves out.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kaos_policy::contract::ResourceType;
use serde_json::json;

use super::{
    super::{Case, Why},
    Recorder, WAITING,
};
use crate::{clock::Clock, replay::tests::Bench};

/// Returns a case about another object, with another decision for each number.
fn numbered(bench: &Bench, number: u64, why: Why) -> Case {
    let mut case = bench.case("short");
    case.decision = format!("{number:016x}").parse().unwrap();
    case.object.name = format!("k{number}");
    Case { why, ..case }
}

#[test]
fn a_full_recorder_drops_routine_decisions_first_and_counts_what_it_drops() {
    let (bench, now) = (Bench::new(), Timestamp::UNIX_EPOCH);
    let recorder = Recorder::new(30_000);
    for number in 0..8 {
        recorder.keep(&numbered(&bench, number, Why::Routine), now);
        recorder.keep(&numbered(&bench, 100 + number, Why::Failure), now);
    }
    assert_eq!(recorder.size(now).dropped, 0);
    for number in 0..100 {
        recorder.keep(&numbered(&bench, 1000 + number, Why::Change), now);
    }
    let size = recorder.size(now);
    assert!(size.bytes <= 30_000 && size.dropped > 8 && size.cases > 4, "{size:?}");
    assert!(!serde_json::to_string(&recorder.list(now, |_| true)).unwrap().contains("Routine"));
    let newest = numbered(&bench, 1099, Why::Change);
    assert_eq!(recorder.case(newest.decision, now), Some(newest));
}

#[test]
fn a_case_stays_for_a_day_and_an_object_has_a_share() {
    let (bench, now) = (Bench::new(), Timestamp::UNIX_EPOCH);
    let recorder = Recorder::new(1 << 20);
    for number in 0..40 {
        let mut case = numbered(&bench, number, Why::Change);
        case.object.name = "same".to_owned();
        recorder.keep(&case, now);
    }
    assert_eq!((recorder.size(now).cases, recorder.size(now).dropped), (32, 8));
    assert!(recorder.list(now + SignedDuration::from_hours(25), |_| true).is_empty());
    assert_eq!((recorder.size(now).cases, recorder.size(now).bytes), (0, 0));
}

#[test]
fn a_recorder_without_memory_wants_nothing_and_a_decision_is_kept_once() {
    let bench = Bench::new();
    let case = numbered(&bench, 16, Why::Failure);
    assert!(!Recorder::new(0).wants(case.decision, Why::Failure));
    let recorder = Recorder::new(1 << 20);
    assert!(recorder.wants(case.decision, Why::Failure) && recorder.wants(case.decision, Why::Routine));
    assert!(!recorder.wants(numbered(&bench, 17, Why::Routine).decision, Why::Routine));
    recorder.keep(&case, Timestamp::UNIX_EPOCH);
    assert!(!recorder.wants(case.decision, Why::Failure));
}

#[test]
fn a_case_that_did_not_fit_is_not_written_again_for_a_day() {
    let (bench, now) = (Bench::new(), Timestamp::UNIX_EPOCH);
    let recorder = Recorder::new(200_000);
    let mut large = numbered(&bench, 1, Why::Failure);
    large.at = "x".repeat(300_000);
    assert!(recorder.wants(large.decision, Why::Failure));
    recorder.keep(&large, now);
    assert_eq!((recorder.size(now).cases, recorder.size(now).dropped), (0, 1));
    assert!(!recorder.wants(large.decision, Why::Failure));
    // Not all refusals fit: the recorder keeps the newest cases, and does not want the dropped cases again.
    for number in 100..300 {
        let case = numbered(&bench, number, Why::Refusal);
        assert!(recorder.wants(case.decision, Why::Refusal));
        recorder.keep(&case, now);
    }
    let size = recorder.size(now);
    assert!(size.bytes <= 200_000 && size.cases > 20 && size.dropped > 20, "{size:?}");
    let first = numbered(&bench, 100, Why::Refusal);
    assert_eq!(recorder.case(first.decision, now), None);
    let wanted =
        (100..300).filter(|number| recorder.wants(numbered(&bench, *number, Why::Refusal).decision, Why::Refusal));
    assert_eq!(wanted.count(), 0);
    let later = now + SignedDuration::from_hours(25);
    assert_eq!((recorder.size(later).cases, recorder.size(later).bytes), (0, 0));
    assert!(recorder.wants(first.decision, Why::Refusal));
}

#[test]
fn a_case_of_yesterday_is_not_found_by_its_id() {
    let (bench, now) = (Bench::new(), Timestamp::UNIX_EPOCH);
    let recorder = Recorder::new(1 << 20);
    let case = numbered(&bench, 1, Why::Failure);
    recorder.keep(&case, now);
    assert!(recorder.case(case.decision, now + SignedDuration::from_hours(23)).is_some());
    assert!(recorder.case(case.decision, now + SignedDuration::from_hours(25)).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_old_case_is_dropped_although_nobody_looks() {
    let bench = Bench::new();
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let recorder = Arc::new(Recorder::new(1 << 20));
    let dropping = tokio::spawn({
        let recorder = Arc::clone(&recorder);
        async move { recorder.drop_old(clock).await }
    });
    tokio::task::yield_now().await;
    recorder.keep(&numbered(&bench, 1, Why::Failure), clock.now());
    tokio::time::sleep(Duration::from_hours(23)).await;
    recorder.keep(&numbered(&bench, 2, Why::Failure), clock.now());
    tokio::time::sleep(Duration::from_hours(2)).await;
    // A list for an earlier time drops nothing.
    assert_eq!(recorder.list(Timestamp::UNIX_EPOCH, |_| true).len(), 1);
    tokio::time::sleep(Duration::from_hours(23)).await;
    assert!(recorder.list(Timestamp::UNIX_EPOCH, |_| true).is_empty());
    dropping.abort();
}

#[test]
fn changes_are_left_out_before_failures_if_many_decisions_come_at_once() {
    let now = Timestamp::UNIX_EPOCH;
    let recorder = Arc::new(Recorder::new(1 << 20));
    let changes: Vec<_> = std::iter::from_fn(|| recorder.place(Why::Change)).collect();
    assert_eq!(changes.len(), WAITING / 2);
    let failures: Vec<_> = std::iter::from_fn(|| recorder.place(Why::Failure)).collect();
    assert_eq!(failures.len(), WAITING / 2);
    assert_eq!(recorder.size(now).dropped, 2);
    drop(failures);
    assert!(recorder.place(Why::Change).is_none() && recorder.place(Why::Failure).is_some());
    drop(changes);
    assert!(recorder.place(Why::Change).is_some());
}

#[test]
fn the_decisions_of_one_object_are_found_by_its_kind_and_place() {
    let (bench, now) = (Bench::new(), Timestamp::UNIX_EPOCH);
    let recorder = Recorder::new(1 << 20);
    recorder.keep(&numbered(&bench, 1, Why::Failure), now);
    let mut of_cluster = numbered(&bench, 2, Why::Failure);
    of_cluster.object.namespace = None;
    recorder.keep(&of_cluster, now);
    let kite = ResourceType::new("example.org/v1", "Kite");
    let many = |of: &ResourceType, namespace: &str, name: &str| recorder.list_of(now, (of, namespace, name)).len();
    assert_eq!((many(&kite, "n", "k1"), many(&kite, "default", "k1"), many(&kite, "default", "k2")), (1, 0, 1));
    let other = ResourceType::new("example.com/v1", "Kite");
    assert_eq!(
        (many(&other, "n", "k1"), recorder.list(now, |_| true).len()),
        (0, 2),
        "{}",
        json!(recorder.list(now, |_| true))
    );
}
