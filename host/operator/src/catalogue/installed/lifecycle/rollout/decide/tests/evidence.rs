//! Tests what counts as evidence: objects that show nothing about the revision, and harm that comes late or again and
//! again. Also tests with which other objects the operator compares the harmed objects.

use super::*;

/// Returns a rollout whose second and last step moved the other objects in two parts: up to hash 500 at minute 110, and
/// all others at minute 170.
fn in_parts(all: &[ObjectSight]) -> PolicyRollout {
    let mut rollout = begun(all, &["1", "100%"]);
    advance(&mut rollout, &Decision::Begin { step: 1, up_to: 500, goal: u64::MAX }, at(110));
    advance(&mut rollout, &Decision::Move { up_to: u64::MAX }, at(170));
    rollout
}

fn ready(object: &mut ObjectSight, since: i64) {
    (object.is_ready, object.ready_since) = (true, Some(at(since)));
}

#[test]
fn an_object_that_failed_before_its_own_part_moved_is_no_evidence() {
    let mut all = objects(8);
    let rollout = in_parts(&all);
    not_ready(&mut all[6], 130);
    not_ready(&mut all[7], 130);
    assert_eq!(decide(&rollout, &all, at(175)), Decision::Finish, "both failed an hour before their own move");
    not_ready(&mut all[6], 171);
    not_ready(&mut all[7], 171);
    assert!(matches!(decide(&rollout, &all, at(181)), Decision::Return { .. }));
}

#[test]
fn in_the_last_step_objects_of_earlier_steps_are_the_comparison() {
    let mut all = objects(4);
    let mut rollout = begun(&all, &["1", "50%", "100%"]);
    advance(&mut rollout, &begin(1, 200), at(110));
    advance(&mut rollout, &begin(2, u64::MAX), at(120));
    all[2..].iter_mut().for_each(|object| not_ready(object, 121));
    assert!(matches!(decide(&rollout, &all, at(131)), Decision::Return { .. }), "the earlier objects stay ready");
    all[..2].iter_mut().for_each(|object| not_ready(object, 121));
    assert_eq!(reason(&decide(&rollout, &all, at(131))), "ClusterTrouble", "a lost node returns nothing");
}

#[test]
fn without_other_objects_harm_pauses() {
    let mut all = objects(2);
    let mut rollout = rollout(&["100%"]);
    advance(&mut rollout, &begin(0, u64::MAX), at(100));
    for object in &mut all {
        not_ready(object, 101);
    }
    assert_eq!(reason(&decide(&rollout, &all, at(111))), "NothingToCompare");
}

#[test]
fn one_harmed_object_of_several_pauses_and_harm_of_one_namespace_does_not_return_all() {
    let mut all = objects(40);
    let mut rollout = begun(&all, &["1", "10%", "100%"]);
    advance(&mut rollout, &begin(1, 400), at(105));
    not_ready(&mut all[1], 106);
    let few = decide(&rollout, &all, at(116));
    assert_eq!(reason(&few), "FewHarmed");
    for (number, object) in all.iter_mut().enumerate() {
        object.key.namespace = format!("n{}", number % 2);
    }
    not_ready(&mut all[3], 106);
    assert_eq!(reason(&decide(&rollout, &all, at(116))), "FewHarmed", "one team can have caused both");
    not_ready(&mut all[2], 106);
    assert!(matches!(decide(&rollout, &all, at(116)), Decision::Return { .. }));
}

#[test]
fn the_only_object_that_counts_is_enough_also_beside_an_object_that_was_not_ready_before() {
    let mut all = objects(8);
    not_ready(&mut all[0], 50);
    let mut rollout = rollout(&["1", "100%"]);
    advance(&mut rollout, &begin(0, 200), at(100));
    not_ready(&mut all[1], 101);
    assert!(matches!(decide(&rollout, &all, at(111)), Decision::Return { .. }));
}

#[test]
fn an_object_that_its_user_changes_after_the_move_shows_nothing() {
    let mut all = objects(4);
    let rollout = begun(&all, &["1", "100%"]);
    let mut watched = Watched::new(&rollout, &all, at(100));
    not_ready(&mut all[0], 102);
    all[0].spec = 2;
    assert_eq!(reason(&decide_in(&mut watched, &rollout, &all, at(120))), "NothingWasReady");
    all[0].spec = 1;
    assert_eq!(reason(&decide_in(&mut watched, &rollout, &all, at(121))), "NothingWasReady", "the change counts once");
    all[0].changed = Some(at(101));
    assert_eq!(reason(&decide(&rollout, &all, at(120))), "NothingWasReady", "another process sees the time");
    all[0].changed = Some(at(99));
    assert!(matches!(decide(&rollout, &all, at(120)), Decision::Return { .. }));
    all[0].pods = PodCounts { is_scaled_to_zero: true, ..pods(0) };
    assert_eq!(reason(&decide(&rollout, &all, at(120))), "NothingWasReady", "without pods, nothing can be ready");
}

#[test]
fn pods_that_crash_again_and_again_return_although_each_crash_is_short() {
    let mut all = objects(40);
    let mut rollout = begun(&all, &["1", "100%"]);
    let (mut watched, mut minute) = (Watched::new(&rollout, &all, at(100)), 101);
    let why = loop {
        assert!(minute < 130, "the rollout does not return");
        // In every five minutes, the pods are not ready for three minutes and run for two.
        let crash = minute / 5 * 5;
        if minute < crash + 3 {
            not_ready(&mut all[0], crash);
        } else {
            ready(&mut all[0], crash + 3);
        }
        let decision = decide_in(&mut watched, &rollout, &all, at(minute));
        rollout.unsteady = watched.unsteady();
        match decision {
            Decision::Return { why, .. } => break why,
            Decision::Begin { .. } | Decision::Finish => panic!("minute {minute}: {decision:?}"),
            decision => advance(&mut rollout, &decision, at(minute)),
        }
        if minute == 107 {
            assert_eq!(rollout.unsteady.len(), 1, "the first loss is recorded");
            watched = Watched::new(&rollout, &all, at(minute));
        }
        minute += 1;
    };
    assert!(why.contains("1 of 1 moved objects"), "{why}");
}

#[test]
fn pods_that_are_ready_at_every_look_but_never_stay_ready_return() {
    let mut all = objects(40);
    let rollout = begun(&all, &["1", "100%"]);
    let mut watched = Watched::new(&rollout, &all, at(100));
    for minute in 101..116 {
        ready(&mut all[0], minute);
        let decision = decide_in(&mut watched, &rollout, &all, at(minute));
        assert!(matches!(decision, Decision::Wait(_)), "minute {minute}: {decision:?}");
    }
    ready(&mut all[0], 116);
    let Decision::Return { why, .. } = decide_in(&mut watched, &rollout, &all, at(116)) else { panic!() };
    assert!(why.contains("did not stay ready"), "{why}");
}

#[test]
fn an_object_counts_for_the_package_only_when_it_was_ready_for_long_enough() {
    let mut all = objects(4);
    let rollout = begun(&all, &["1", "100%"]);
    ready(&mut all[0], 104);
    assert_eq!(decide(&rollout, &all, at(106)), Decision::Wait(Some(at(109))));
    assert_eq!(decide(&rollout, &all, at(109)), begin(1, u64::MAX));
}

#[test]
fn an_object_that_a_tool_replaces_is_evidence_if_it_was_ready_before() {
    let mut all = objects(4);
    let rollout = begun(&all, &["1", "100%"]);
    let mut watched = Watched::new(&rollout, &all, at(100));
    assert_eq!(decide_in(&mut watched, &rollout, &all, at(101)), Decision::Wait(Some(at(105))));
    assert_eq!(decide_in(&mut watched, &rollout, &all[1..], at(102)), Decision::Wait(Some(at(105))));
    not_ready(&mut all[0], 103);
    (all[0].created, all[0].changed) = (Some(at(103)), Some(at(103)));
    assert!(matches!(decide_in(&mut watched, &rollout, &all, at(113)), Decision::Return { .. }));
}

#[test]
fn passes_that_never_end_pause_the_rollout_with_names_until_they_end() {
    let mut all = objects(4);
    let mut rollout = begun(&all, &["1", "100%"]);
    all[0].had_pass = false;
    let pause = decide(&rollout, &all, at(115));
    assert_eq!(reason(&pause), "PassesMissing");
    let Decision::Pause(told) = &pause else { unreachable!() };
    assert!(told.message.contains("Widget n/w0"), "{told:?}");
    advance(&mut rollout, &pause, at(115));
    all[0].had_pass = true;
    assert_eq!(decide(&rollout, &all, at(116)), begin(1, u64::MAX), "the pause ended by itself");
    all[0].had_pass = false;
    let judged = Watched::new(&rollout, &all, at(200)).judge(&rollout, all.clone(), at(201));
    let facts = RolloutFacts {
        rollout: &PolicyRollout { paused: None, ..rollout.clone() },
        objects: Some(&judged),
        can_yield: true,
        request: None,
        watched_since: at(200),
        now: at(201),
    };
    assert_eq!(facts.decide(), Decision::Wait(Some(at(215))), "another process gives the passes their own time");
}

#[test]
fn an_accepted_object_does_not_pause_the_rollout_again() {
    let mut all = objects(40);
    let mut rollout = begun(&all, &["1", "10%", "50%", "100%"]);
    advance(&mut rollout, &begin(1, 400), at(105));
    not_ready(&mut all[1], 106);
    let few = decide(&rollout, &all, at(120));
    advance(&mut rollout, &few, at(120));
    let resume = decide_for(&rollout, &all, Verb::Resume, at(121));
    assert_eq!(resume, begin(2, 2000));
    accept(&mut rollout, Some(&requested(Verb::Resume)), at(121));
    advance(&mut rollout, &resume, at(121));
    assert_eq!(decide(&rollout, &all, at(125)), Decision::Wait(Some(at(126))));
    assert_eq!(decide(&rollout, &all, at(126)), begin(3, u64::MAX));
    all[2..5].iter_mut().for_each(|object| not_ready(object, 122));
    assert!(matches!(decide(&rollout, &all, at(132)), Decision::Return { .. }), "other objects were not accepted");
}

#[test]
fn a_pause_is_written_again_only_if_its_message_names_no_right_object_any_more() {
    let mut all = objects(40);
    let mut rollout = rollout(&["25%", "100%"]);
    advance(&mut rollout, &begin(0, 1000), at(100));
    all[..5].iter_mut().for_each(|object| not_ready(object, 101));
    let pause = decide(&rollout, &all, at(106));
    assert_eq!(reason(&pause), "SlowToStart");
    advance(&mut rollout, &pause, at(106));
    ready(&mut all[4], 106);
    assert_eq!(decide(&rollout, &all, at(107)), Decision::Wait(Some(at(111))), "only the count changed");
    ready(&mut all[0], 107);
    let Decision::Pause(again) = decide(&rollout, &all, at(108)) else { panic!("the named object is ready") };
    assert!(again.message.contains("Widget n/w1"), "{again:?}");
    assert_eq!(again.since, Some(written(at(106))), "it is the same pause");
}

#[test]
fn a_step_counts_only_objects_that_can_be_evidence() {
    let mut all = objects(40);
    all[0].pods = PodCounts { is_scaled_to_zero: true, ..pods(0) };
    not_ready(&mut all[0], 50);
    not_ready(&mut all[1], 50);
    assert_eq!(decide(&rollout(&["1", "100%"]), &all, at(100)), begin(0, 300), "the third object is the first to show");
    for object in &mut all {
        not_ready(object, 50);
    }
    assert_eq!(decide(&rollout(&["1", "100%"]), &all, at(100)), begin(0, 100), "no object can show anything");
}

#[test]
fn missing_pods_of_ready_objects_count_against_the_allowed_pods() {
    let mut all = objects(4);
    for object in &mut all {
        object.pods = pods(10);
    }
    let mut rollout = begun(&all, &["1", "100%"]);
    rollout.max_unavailable = "25%".to_owned();
    all[0].pods.missing = 9;
    assert_eq!(decide(&rollout, &all, at(105)), Decision::Begin { step: 1, up_to: 100, goal: u64::MAX });
    advance(&mut rollout, &Decision::Begin { step: 1, up_to: 100, goal: u64::MAX }, at(105));
    assert_eq!(decide(&rollout, &all, at(106)), Decision::Wait(Some(at(110))));
    let pause = decide(&rollout, &all, at(110));
    assert_eq!(reason(&pause), "PodsMissing", "nine of ten pods are broken");
    advance(&mut rollout, &pause, at(110));
    assert_eq!(decide_for(&rollout, &all, Verb::Resume, at(111)), Decision::Move { up_to: 200 });
    all[0].pods.missing = 0;
    assert_eq!(decide(&rollout, &all, at(111)), Decision::Move { up_to: 200 });
    let mut first = begun(&all, &["1", "100%"]);
    first.max_unavailable = "5".to_owned();
    all[0].pods.missing = 9;
    assert_eq!(reason(&decide(&first, &all, at(105))), "PodsMissing");
}

#[test]
fn a_pause_whose_reason_is_over_ends_before_the_next_step() {
    let mut all = objects(40);
    let mut rollout = begun(&all, &["1", "100%"]);
    advance(&mut rollout, &begin(1, u64::MAX), at(105));
    rollout.paused = Some(PolicyRolloutPause { reason: "PredecessorMissing".to_owned(), ..Default::default() });
    assert_eq!(decide(&rollout, &all, at(107)), Decision::Resume);
    for object in &mut all {
        not_ready(object, 106);
    }
    let trouble = decide(&rollout, &all, at(116));
    assert_eq!(reason(&trouble), "ClusterTrouble");
}
