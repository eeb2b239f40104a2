//! Tests the decisions about rollouts. The module `evidence` tests objects that show nothing about the revision, and
//! objects that show harm late. The module `model` plays rollouts on random clusters.

mod evidence;
mod model;

use kaos_crds::{PolicyRolloutPause, PolicyRolloutStep};
use kaos_policy::contract::ResourceType;

use super::{
    super::{advance, objects::ObjectSight, watched::Watched},
    *,
};
use crate::pods::PodCounts;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + MINUTE * i32::try_from(minutes).unwrap()
}

fn rollout(shares: &[&str]) -> PolicyRollout {
    let step = |share: &&str| PolicyRolloutStep { share: (*share).to_owned(), ..PolicyRolloutStep::default() };
    PolicyRollout {
        started: written(at(100)),
        pause: "5m".to_owned(),
        patience: "10m".to_owned(),
        max_unavailable: "100%".to_owned(),
        steps: shares.iter().map(step).collect(),
        ..PolicyRollout::default()
    }
}

/// Returns an object that has been ready for a long time.
fn object(number: u64, hash: u64) -> ObjectSight {
    let of = ResourceType::new("test.io/v1", "Widget");
    ObjectSight {
        key: ObjectKey { of, namespace: "n".to_owned(), name: format!("w{number}") },
        hash,
        is_left: false,
        had_pass: true,
        pods: pods(1),
        is_ready: true,
        ready_since: Some(at(10)),
        created: Some(at(1)),
        changed: Some(at(1)),
        spec: 1,
    }
}

fn pods(wanted: u64) -> PodCounts {
    PodCounts { wanted, ..PodCounts::default() }
}

fn objects(many: u64) -> Vec<ObjectSight> {
    (0..many).map(|number| object(number, (number + 1) * 100)).collect()
}

/// Decides as a process that has just started.
fn decide(rollout: &PolicyRollout, objects: &[ObjectSight], now: Timestamp) -> Decision {
    decide_in(&mut Watched::new(rollout, objects, at(100)), rollout, objects, now)
}

/// Decides as a process that saw the objects before.
fn decide_in(watched: &mut Watched, rollout: &PolicyRollout, objects: &[ObjectSight], now: Timestamp) -> Decision {
    let objects = watched.judge(rollout, objects.to_vec(), now);
    let watched_since = watched.since();
    RolloutFacts { rollout, objects: Some(&objects), can_yield: true, request: None, watched_since, now }.decide()
}

fn decide_for(rollout: &PolicyRollout, objects: &[ObjectSight], verb: Verb, now: Timestamp) -> Decision {
    let request = Some(requested(verb));
    let objects = Watched::new(rollout, objects, now).judge(rollout, objects.to_vec(), now);
    RolloutFacts { rollout, objects: Some(&objects), can_yield: true, request, watched_since: now, now }.decide()
}

fn requested(verb: Verb) -> RolloutRequest {
    RolloutRequest { verb, by: "alice".to_owned() }
}

/// Returns the decision to begin a step that moves all its objects at once.
fn begin(step: usize, up_to: u64) -> Decision {
    Decision::Begin { step, up_to, goal: up_to }
}

/// Returns a rollout whose first step has moved the first object.
fn begun(all: &[ObjectSight], shares: &[&str]) -> PolicyRollout {
    let mut rollout = rollout(shares);
    let first = decide(&rollout, all, at(100));
    assert_eq!(first, begin(0, 100));
    advance(&mut rollout, &first, at(100));
    rollout
}

fn not_ready(object: &mut ObjectSight, since: i64) {
    (object.is_ready, object.ready_since) = (false, Some(at(since)));
}

fn reason(decision: &Decision) -> &str {
    match decision {
        Decision::Pause(pause) => &pause.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_healthy_rollout_moves_more_objects_in_each_step_and_ends() {
    let all = objects(40);
    let mut rollout = begun(&all, &["1", "5%", "25%", "100%"]);
    for (minutes, expected) in [
        (104, Decision::Wait(Some(at(105)))),
        (105, begin(1, 200)),
        (110, begin(2, 1000)),
        (114, Decision::Wait(Some(at(115)))),
        (115, begin(3, u64::MAX)),
        (119, Decision::Wait(Some(at(120)))),
        (120, Decision::Finish),
    ] {
        let decision = decide(&rollout, &all, at(minutes));
        assert_eq!(decision, expected, "after {minutes} minutes");
        advance(&mut rollout, &decision, at(minutes));
    }
    assert!(!rollout.is_open());
}

#[test]
fn a_step_that_moves_no_further_object_is_skipped_and_no_object_means_no_step() {
    let all = objects(3);
    let mut few = begun(&all, &["1", "5%", "25%", "100%"]);
    let next = decide(&few, &all, at(105));
    assert_eq!(next, begin(3, u64::MAX));
    advance(&mut few, &next, at(105));
    assert_eq!((few.begun(), few.current().unwrap().share.as_str()), (4, "100%"));
    assert_eq!(decide(&rollout(&["1", "100%"]), &[], at(100)), Decision::Finish);
    let one = objects(1);
    assert_eq!(decide(&begun(&one, &["1", "100%"]), &one, at(105)), Decision::Finish, "the first step moved all");
}

#[test]
fn a_moved_object_that_stays_not_ready_pauses_first_and_returns_after_the_patience() {
    let mut all = objects(40);
    let mut rollout = begun(&all, &["1", "100%"]);
    not_ready(&mut all[0], 101);
    assert_eq!(decide(&rollout, &all, at(104)), Decision::Wait(Some(at(105))));
    let pause = decide(&rollout, &all, at(106));
    assert_eq!(reason(&pause), "SlowToStart");
    advance(&mut rollout, &pause, at(106));
    assert_eq!(decide(&rollout, &all, at(107)), Decision::Wait(Some(at(111))), "the same pause is not written again");
    let Decision::Return { cause: ReturnCause::Harm, why } = decide(&rollout, &all, at(111)) else {
        panic!("it does not return")
    };
    assert!(why.contains("1 of 1 moved objects") && why.contains("Widget n/w0"), "{why}");
    (all[0].is_ready, all[0].ready_since) = (true, Some(at(110)));
    let resume = decide(&rollout, &all, at(111));
    assert_eq!(resume, Decision::Resume, "it was only slow, and must stay ready for a while");
    advance(&mut rollout, &resume, at(111));
    assert_eq!(decide(&rollout, &all, at(112)), Decision::Wait(Some(at(115))));
    assert_eq!(decide(&rollout, &all, at(115)), begin(1, u64::MAX));
}

#[test]
fn the_trouble_of_all_objects_pauses_and_does_not_return() {
    let mut all = objects(40);
    let rollout = begun(&all, &["1", "100%"]);
    for object in &mut all {
        not_ready(object, 101);
    }
    assert_eq!(reason(&decide(&rollout, &all, at(111))), "ClusterTrouble");
    for object in &mut all[1..30] {
        not_ready(object, 50);
    }
    assert_eq!(
        reason(&decide(&rollout, &all, at(111))),
        "ClusterTrouble",
        "these were never ready, so they do not count"
    );
    all[30..].iter_mut().for_each(|object| object.is_ready = true);
    assert!(matches!(decide(&rollout, &all, at(111)), Decision::Return { .. }));
}

#[test]
fn an_object_that_was_not_ready_before_or_is_new_is_no_evidence() {
    let mut all = objects(4);
    let rollout = begun(&all, &["1", "100%"]);
    not_ready(&mut all[0], 50);
    assert_eq!(reason(&decide(&rollout, &all, at(120))), "NothingWasReady");
    not_ready(&mut all[0], 102);
    all[0].created = Some(at(101));
    assert_eq!(reason(&decide(&rollout, &all, at(120))), "NothingWasReady");
    all[0].ready_since = None;
    assert_eq!(reason(&decide(&rollout, &all, at(120))), "NothingWasReady");
    let mut more: Vec<_> = (0..3).map(|number| object(number, 100 - number)).collect();
    more[1..].iter_mut().for_each(|object| not_ready(object, 50));
    assert_eq!(reason(&decide(&rollout, &more, at(120))), "TooFewReady");
}

#[test]
fn a_step_waits_for_passes_and_for_the_objects() {
    let mut all = objects(4);
    let rollout = begun(&all, &["1", "100%"]);
    all[0].had_pass = false;
    assert_eq!(decide(&rollout, &all, at(104)), Decision::Wait(Some(at(105))));
    assert_eq!(decide(&rollout, &all, at(105)), Decision::Wait(Some(at(115))));
    let unseen = RolloutFacts {
        rollout: &rollout,
        objects: None,
        can_yield: true,
        request: None,
        watched_since: at(100),
        now: at(120),
    };
    assert_eq!(unseen.decide(), Decision::Wait(None));
    let lost = RolloutFacts { can_yield: false, ..unseen };
    assert_eq!(reason(&lost.decide()), "PredecessorMissing");
    let asked = |verb| Some(RolloutRequest { verb, by: "alice".to_owned() });
    let returned = RolloutFacts { request: asked(Verb::Return), ..lost };
    assert_eq!(reason(&returned.decide()), "PredecessorMissing", "no revision can take over the objects");
    let promoted = RolloutFacts { request: asked(Verb::Promote), ..returned };
    assert_eq!(promoted.decide(), Decision::Finish);
    let mut by_person = rollout.clone();
    by_person.paused = Some(PolicyRolloutPause { by: Some("alice".to_owned()), ..PolicyRolloutPause::default() });
    let paused = RolloutFacts { rollout: &by_person, request: None, ..promoted };
    assert_eq!(paused.decide(), Decision::Wait(None), "only a person ends the pause of a person");
}

#[test]
fn a_person_pauses_resumes_promotes_and_returns() {
    let mut all = objects(40);
    let mut rollout = begun(&all, &["1", "100%"]);
    let pause = decide_for(&rollout, &all, Verb::Pause, at(101));
    assert_eq!(reason(&pause), PAUSED_BY_PERSON);
    advance(&mut rollout, &pause, at(101));
    assert_eq!(decide(&rollout, &all, at(200)), Decision::Wait(None), "only a person ends the pause of a person");
    assert_eq!(decide_for(&rollout, &all, Verb::Resume, at(101)), Decision::Resume);
    assert_eq!(decide_for(&rollout, &all, Verb::Promote, at(101)), Decision::Finish);
    assert!(
        matches!(decide_for(&rollout, &all, Verb::Return, at(101)), Decision::Return { why, .. } if why.contains("alice"))
    );
    not_ready(&mut all[0], 101);
    assert!(matches!(decide(&rollout, &all, at(200)), Decision::Return { .. }), "a pause does not protect the package");
    let mut waiting = begun(&objects(40), &["1", "100%"]);
    let slow = decide(&waiting, &all, at(106));
    advance(&mut waiting, &slow, at(106));
    let accepted = decide_for(&waiting, &all, Verb::Resume, at(101));
    assert_eq!(accepted, begin(1, u64::MAX), "a person accepts the step");
}

#[test]
fn a_step_moves_further_objects_only_while_the_allowed_pods_are_not_ready() {
    let mut all = objects(8);
    let mut rollout = begun(&all, &["1", "100%"]);
    rollout.max_unavailable = "3".to_owned();
    all[2].pods = pods(2);
    let second = decide(&rollout, &all, at(105));
    assert_eq!(second, Decision::Begin { step: 1, up_to: 300, goal: u64::MAX }, "one pod and two pods");
    advance(&mut rollout, &second, at(105));
    all[1..3].iter_mut().for_each(|object| object.had_pass = false);
    assert_eq!(decide(&rollout, &all, at(106)), Decision::Wait(Some(at(110))), "the passes may replace three pods");
    all[1].had_pass = true;
    let more = decide(&rollout, &all, at(106));
    assert_eq!(more, Decision::Move { up_to: 400 });
    advance(&mut rollout, &more, at(106));
    all[2].had_pass = true;
    not_ready(&mut all[2], 106);
    not_ready(&mut all[3], 106);
    assert_eq!(decide(&rollout, &all, at(107)), Decision::Wait(Some(at(111))), "the pause begins with the last move");
    assert_eq!(reason(&decide(&rollout, &all, at(111))), "SlowToStart");
    for object in &mut all {
        object.is_ready = true;
    }
    all[4].pods = pods(50);
    let large = decide(&rollout, &all, at(111));
    assert_eq!(large, Decision::Move { up_to: 500 }, "an object with more pods than allowed moves alone");
    advance(&mut rollout, &large, at(111));
    let last = decide(&rollout, &all, at(112));
    assert_eq!(last, Decision::Move { up_to: u64::MAX });
    advance(&mut rollout, &last, at(112));
    assert_eq!((&rollout.steps[1].goal, rollout.steps[1].since.as_deref()), (&None, Some(&*written(at(105)))));
    assert_eq!(decide(&rollout, &all, at(116)), Decision::Wait(Some(at(117))));
    assert_eq!(decide(&rollout, &all, at(117)), Decision::Finish);
}

#[test]
fn the_share_of_unavailable_pods_counts_all_pods_and_objects_that_move_together_count_together() {
    let mut all = objects(8);
    all[1].hash = 300;
    let mut rollout = begun(&all, &["1", "100%"]);
    rollout.max_unavailable = "25%".to_owned();
    let second = decide(&rollout, &all, at(105));
    assert_eq!(second, Decision::Begin { step: 1, up_to: 300, goal: u64::MAX }, "two of eight pods");
    rollout.max_unavailable = "12%".to_owned();
    assert_eq!(decide(&rollout, &all, at(105)), second, "both objects have the same hash");
    for object in &mut all {
        object.pods = pods(0);
    }
    assert_eq!(decide(&rollout, &all, at(105)), begin(1, u64::MAX), "objects without pods move at once");
}

#[test]
fn objects_that_only_the_predecessor_answered_for_move_in_steps_too_and_show_nothing() {
    let mut all = objects(8);
    all[4..].iter_mut().for_each(|object| object.is_left = true);
    let mut rollout = begun(&all, &["1", "100%"]);
    rollout.max_unavailable = "3".to_owned();
    let second = decide(&rollout, &all, at(105));
    assert_eq!(second, Decision::Begin { step: 1, up_to: 400, goal: u64::MAX });
    advance(&mut rollout, &second, at(105));
    assert_eq!(decide(&rollout, &all, at(106)), Decision::Move { up_to: 700 });
    advance(&mut rollout, &Decision::Move { up_to: 700 }, at(106));
    all[4].had_pass = false;
    not_ready(&mut all[5], 107);
    all[6].pods.missing = 1;
    assert_eq!(decide(&rollout, &all, at(107)), Decision::Wait(Some(at(111))), "three of their pods are unavailable");
    all[4].had_pass = true;
    assert_eq!(decide(&rollout, &all, at(107)), Decision::Move { up_to: u64::MAX });
    advance(&mut rollout, &Decision::Move { up_to: u64::MAX }, at(107));
    all[4..].iter_mut().for_each(|object| not_ready(object, 107));
    let waits = decide(&rollout, &all, at(120));
    assert_eq!(reason(&waits), "PodsMissing", "no harm of the revision, but a reason to wait");
    let new = super::tests::rollout(&["1", "100%"]);
    let only: Vec<_> = all.into_iter().skip(4).map(|it| ObjectSight { is_ready: true, ..it }).collect();
    assert_eq!(decide(&new, &only, at(120)), begin(0, 500));
}

#[test]
fn a_person_who_resumes_accepts_harm_only_if_the_pause_is_about_harm() {
    let accepted = |reason: &str| {
        let mut rollout = rollout(&["1", "100%"]);
        rollout.paused = Some(PolicyRolloutPause { reason: reason.to_owned(), ..PolicyRolloutPause::default() });
        accept(&mut rollout, Some(&requested(Verb::Resume)), at(200));
        rollout.accepted.is_some()
    };
    for reason in ["FewHarmed", "NothingToCompare", "ClusterTrouble"] {
        assert!(accepted(reason), "{reason}");
    }
    for reason in ["PredecessorMissing", "NotLoaded", "PassesMissing", "PodsMissing", "SlowToStart", "NothingWasReady"]
    {
        assert!(!accepted(reason), "{reason}");
    }
}
