//! Plays rollouts on random clusters, minute by minute. The tests check that each rollout ends, moves only the objects
//! that its steps allow, and returns if and only if the package harms objects. In these clusters, objects also fail by
//! themselves, are edited, scaled to zero or deleted, and get their passes late or never. The result is the same if a
//! process ends at any time and the next process continues.

use super::*;
use crate::catalogue::installed::lifecycle::random::Random;

const SEEDS: u64 = 500;

fn minutes(random: &mut Random, limit: u64) -> i64 {
    i64::try_from(random.below(limit)).unwrap()
}

/// The effect of the package on the pods of an object. The numbers are minutes after the object moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The package does not replace the pods.
    Same,
    /// The pods are not ready for this time.
    Slow(i64),
    /// The pods never become ready.
    Broken,
    /// The pods run for two of every five minutes.
    Crashing,
}

/// The events of an object that do not depend on the package. The numbers are minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Nothing,
    /// The object fails at the first time, and recovers at the second.
    Fails(i64, i64),
    /// A user changes the object's spec, and the object fails.
    Edited(i64),
    ScaledToZero(i64),
    Deleted(i64),
    /// The object was never ready.
    NeverReady,
}

struct Member {
    sight: ObjectSight,
    fate: Fate,
    own: Own,
    /// The minutes from the move of the object to its pass.
    pass: i64,
    moved_at: Option<i64>,
}

impl Member {
    fn is_broken(&self) -> bool {
        matches!(self.fate, Fate::Broken | Fate::Crashing)
    }

    fn is_down_by_package(&self, now: i64) -> bool {
        let Some(since) = self.moved_at.map(|moved| now - moved - 1).filter(|since| *since >= 0) else { return false };
        match self.fate {
            Fate::Same => false,
            Fate::Slow(time) => since < time,
            Fate::Broken => true,
            Fate::Crashing => since % 5 < 3,
        }
    }

    fn is_down_by_itself(&self, now: i64) -> bool {
        match self.own {
            Own::Nothing | Own::Deleted(_) => false,
            Own::Fails(from, until) => (from..until).contains(&now),
            Own::Edited(from) | Own::ScaledToZero(from) => from <= now,
            Own::NeverReady => true,
        }
    }

    /// Updates `sight` to a time. The readiness in `sight` changes only after the object's pass.
    fn show(&mut self, now: i64, is_moved: bool) {
        if is_moved {
            self.moved_at.get_or_insert(now);
        }
        self.sight.had_pass = self.moved_at.is_none_or(|moved| now >= moved + self.pass);
        match self.own {
            Own::Edited(from) if from <= now => (self.sight.spec, self.sight.changed) = (2, Some(at(from))),
            Own::ScaledToZero(from) if from <= now => {
                (self.sight.spec, self.sight.changed) = (2, Some(at(from)));
                self.sight.pods = PodCounts { is_scaled_to_zero: true, ..pods(0) };
            }
            _ => {}
        }
        let is_ready = !self.is_down_by_package(now) && !self.is_down_by_itself(now);
        if self.sight.had_pass && self.sight.is_ready != is_ready {
            // Assume that the readiness changed halfway between two looks.
            (self.sight.is_ready, self.sight.ready_since) = (is_ready, Some(at(now) - MINUTE / 2));
        }
    }

    fn is_there(&self, now: i64) -> bool {
        !matches!(self.own, Own::Deleted(from) if from <= now)
    }
}

/// A random cluster.
struct Model {
    members: Vec<Member>,
    is_harmful: bool,
}

impl Model {
    fn random(random: &mut Random) -> Self {
        let (many, is_harmful, is_disturbed) = (4 + random.below(30), random.one_in(2), random.one_in(2));
        let mut members: Vec<Member> = (0..many)
            .map(|number| {
                let mut sight = object(number, random.below(u64::MAX - 1));
                sight.pods = pods(random.below(5));
                let fate = match random.below(6) {
                    0 if is_harmful => Fate::Crashing,
                    1..4 if is_harmful => Fate::Broken,
                    1 | 4 => Fate::Slow(1 + minutes(random, 8)),
                    _ => Fate::Same,
                };
                Member { sight, fate, own: Own::Nothing, pass: 1 + minutes(random, 3), moved_at: None }
            })
            .collect();
        for member in members.iter_mut().filter(|_| is_disturbed) {
            let at = 90 + minutes(random, 60);
            member.own = match random.below(12) {
                0 => Own::Edited(at),
                1 => Own::ScaledToZero(at),
                2 => Own::Deleted(at),
                3 => Own::NeverReady,
                _ => Own::Nothing,
            };
            if member.own == Own::NeverReady {
                not_ready(&mut member.sight, 5);
            }
        }
        if is_disturbed {
            // Only one object fails by itself, because more such objects would look like harm. One other object gets no
            // pass.
            let chosen = usize::try_from(random.below(many)).unwrap();
            let at = 90 + minutes(random, 60);
            members[chosen].own = Own::Fails(at, at + 1 + minutes(random, 40));
            if random.one_in(4) {
                let next = (chosen + 1) % members.len();
                members[next].pass = 10_000;
            }
        }
        Self { members, is_harmful }
    }

    fn show(&mut self, rollout: &PolicyRollout, now: i64) -> Vec<ObjectSight> {
        let up_to = rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
        for member in &mut self.members {
            member.show(now, up_to >= Some(member.sight.hash));
        }
        self.members.iter().filter(|it| it.is_there(now)).map(|it| it.sight.clone()).collect()
    }

    /// Checks that the pods of at most one object, or at most the allowed pods, are not ready because of the package.
    fn is_within(&self, max: &str, now: i64) -> bool {
        let there = || self.members.iter().filter(|it| it.is_there(now));
        let all: u64 = there().map(|it| it.sight.pods.wanted).sum();
        let max = match max.strip_suffix('%') {
            Some(percent) => all * percent.parse::<u64>().unwrap() / 100,
            None => max.parse().unwrap(),
        };
        let unavailable = there().filter(|it| {
            let waits = it.moved_at.is_some() && !it.sight.had_pass;
            it.own == Own::Nothing && (waits || it.is_down_by_package(now))
        });
        let pods: Vec<u64> = unavailable.map(|it| it.sight.pods.wanted).filter(|pods| *pods > 0).collect();
        pods.len() <= 1 || pods.iter().sum::<u64>() <= max
    }

    fn moved(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|it| it.moved_at.is_some())
    }
}

/// Plays a rollout until it ends. Returns the rollout, whether it returned, and the reasons for which a person resumed
/// it.
fn play(model: &mut Model, rollout: &mut PolicyRollout, seed: u64) -> (bool, Vec<String>) {
    let (mut now, mut moved, mut accepted) = (100, 0, Vec::new());
    let first = model.show(rollout, now);
    let mut watched = Watched::new(rollout, &first, at(now));
    loop {
        assert!(now < 5000, "seed {seed}: the rollout does not end: {rollout:?}");
        let objects = model.show(rollout, now);
        let may_exceed = !accepted.is_empty() || model.members.iter().any(|it| it.fate == Fate::Crashing);
        assert!(
            may_exceed || model.is_within(&rollout.max_unavailable, now),
            "seed {seed}: too many pods are not ready"
        );
        if seed.is_multiple_of(3) && now % 7 == 0 {
            // The next process has only the recorded state.
            *rollout = serde_json::from_str(&serde_json::to_string(rollout).unwrap()).unwrap();
            let since = watched.since();
            watched = Watched::new(rollout, &objects, since);
        }
        let mut decision = decide_in(&mut watched, rollout, &objects, at(now));
        let paused_since = rollout.paused.as_ref().and_then(|paused| paused.since.as_deref()?.parse().ok());
        if paused_since.is_some_and(|since: Timestamp| at(now).duration_since(since) >= MINUTE * 60) {
            accepted.push(rollout.paused.as_ref().unwrap().reason.clone());
            let judged = watched.judge(rollout, objects, at(now));
            let request = Some(requested(Verb::Resume));
            accept(rollout, request.as_ref(), at(now));
            let facts = RolloutFacts {
                rollout,
                objects: Some(&judged),
                can_yield: true,
                request,
                watched_since: watched.since(),
                now: at(now),
            };
            decision = facts.decide();
        }
        if matches!(decision, Decision::Return { .. }) {
            return (true, accepted);
        }
        advance(rollout, &decision, at(now));
        rollout.unsteady = watched.unsteady();
        let up_to = rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
        let many = model.members.iter().filter(|it| up_to >= Some(it.sight.hash)).count();
        assert!(many >= moved, "seed {seed}: a larger step contains the smaller one");
        moved = many;
        if !rollout.is_open() {
            return (false, accepted);
        }
        now += 1;
    }
}

#[test]
fn a_rollout_ends_and_returns_only_if_the_package_harms_objects() {
    let (mut returns, mut arrivals) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let (mut model, mut rollout) = (Model::random(&mut random), rollout(&["1", "10%", "50%", "100%"]));
        let max = ["100%", "25%", "1", "3"][usize::try_from(random.below(4)).unwrap()];
        max.clone_into(&mut rollout.max_unavailable);
        let (returned, accepted) = play(&mut model, &mut rollout, seed);
        let told = || format!("seed {seed}: accepted {accepted:?}: {rollout:?}");
        let fails = |it: &&Member| matches!(it.own, Own::Fails(..));
        // A rollout may also return if only one object moved, and this object failed by itself.
        let is_alone = model.moved().filter(|it| fails(it) || it.own == Own::Nothing).count() == 1;
        let may_return = model.moved().any(Member::is_broken) || (is_alone && model.moved().any(|it| fails(&it)));
        assert!(!returned || may_return, "{}", told());
        let is_calm = model.members.iter().all(|it| it.own == Own::Nothing);
        if is_calm {
            let broken = model.moved().filter(|it| it.is_broken()).count();
            assert!(model.is_harmful || (!returned && accepted.is_empty()), "{}", told());
            assert!(returned || broken == 0 || !accepted.is_empty(), "{}", told());
        }
        if returned { returns += 1 } else { arrivals += 1 }
    }
    assert!(returns > SEEDS / 5 && arrivals > SEEDS / 5, "{returns} returns, {arrivals} arrivals");
}
