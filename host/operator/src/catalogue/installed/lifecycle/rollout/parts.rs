//! The times at which the objects of a rollout moved. A step can move its objects in several parts, over hours. So the
//! move of an object has the time of its part, and not of the step. This code is pure.

use jiff::{SignedDuration, Timestamp};
use kaos_crds::{PolicyRollout, PolicyRolloutPart, PolicyRolloutStep};

use crate::{
    catalogue::MovedObjects,
    timestamps::{parsed, written},
};

/// The maximum number of parts that the status keeps for a step.
const MAX_PARTS: usize = 32;

/// The parts in which a rollout moved its objects, in their order.
pub(super) struct Parts(Vec<(u64, Timestamp)>);

impl Parts {
    pub(super) fn of(rollout: &PolicyRollout) -> Self {
        let read = |up_to: Option<&str>, since: Option<&str>| Some((MovedObjects::read_hash(up_to?)?, parsed(since)?));
        let mut parts = Vec::new();
        for step in &rollout.steps {
            parts.extend(step.parts.iter().filter_map(|part| read(Some(&part.up_to), Some(&part.since))));
            if step.parts.is_empty() {
                parts.extend(read(step.up_to.as_deref(), step.since.as_deref()));
            }
        }
        Self(parts)
    }

    /// Returns the time at which the objects with this hash moved, or `None` if they are not moved.
    pub(super) fn moved_at(&self, hash: u64) -> Option<Timestamp> {
        self.0.iter().find(|(up_to, _)| hash <= *up_to).map(|(_, since)| *since)
    }
}

/// Returns the time at which a step moved its last part so far.
pub(super) fn last_move(step: &PolicyRolloutStep) -> Option<Timestamp> {
    parsed(step.moved_at.as_deref().or(step.since.as_deref()))
}

/// Records that a step moved the objects with hashes up to `up_to`.
pub(super) fn record_part(step: &mut PolicyRolloutStep, up_to: u64, now: Timestamp) {
    if step.parts.is_empty()
        && let (Some(up_to), Some(since)) = (&step.up_to, &step.since)
    {
        step.parts.push(PolicyRolloutPart { up_to: up_to.clone(), since: since.clone() });
    }
    let (up_to, since) = (format!("{up_to:016x}"), written(now));
    step.parts.push(PolicyRolloutPart { up_to: up_to.clone(), since: since.clone() });
    (step.up_to, step.moved_at) = (Some(up_to), Some(since));
    if step.parts.len() > MAX_PARTS {
        join_closest(&mut step.parts);
    }
    step.goal = step.goal.take().filter(|goal| step.up_to.as_ref() != Some(goal));
}

/// Sets the recorded times of a rollout as if all moved objects moved to the revision now, because the revision is
/// loaded again. Forgets how often these objects became not ready so far, because other policies answered for them in
/// the meantime.
pub(super) fn move_again(rollout: &mut PolicyRollout, now: Timestamp) {
    let now = written(now);
    for step in rollout.steps.iter_mut().filter(|step| step.since.is_some()) {
        step.since = Some(now.clone());
        step.moved_at = step.moved_at.take().map(|_| now.clone());
        step.parts.iter_mut().for_each(|part| part.since.clone_from(&now));
    }
    rollout.unsteady.clear();
}

/// Joins the two parts with the shortest time between them. The joined part has the time of the earlier part: otherwise
/// the operator would overlook an object that became not ready between the two times.
fn join_closest(parts: &mut Vec<PolicyRolloutPart>) {
    let time = |part: &PolicyRolloutPart| parsed(Some(&part.since)).unwrap_or_default();
    let gap = |at: &usize| -> SignedDuration { time(&parts[at + 1]).duration_since(time(&parts[*at])) };
    if let Some(at) = (0..parts.len().saturating_sub(1)).min_by_key(gap) {
        let earlier = parts.remove(at);
        parts[at].since = earlier.since;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i32) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1) * minutes
    }

    fn step(up_to: u64, since: i32) -> PolicyRolloutStep {
        PolicyRolloutStep {
            up_to: Some(format!("{up_to:016x}")),
            since: Some(written(at(since))),
            ..PolicyRolloutStep::default()
        }
    }

    #[test]
    fn each_object_has_the_time_of_the_part_in_which_it_moved() {
        let mut last = PolicyRolloutStep { goal: Some(format!("{:016x}", 400)), ..step(200, 10) };
        record_part(&mut last, 300, at(20));
        assert!(last.goal.is_some());
        record_part(&mut last, 400, at(30));
        assert!(last.goal.is_none(), "the step has moved all its objects");
        assert_eq!(last_move(&last), Some(at(30)));
        let rollout = PolicyRollout { steps: vec![step(100, 0), last], ..PolicyRollout::default() };
        let parts = Parts::of(&rollout);
        let moved = [100, 101, 200, 300, 301, 401].map(|hash| parts.moved_at(hash));
        let [zero, ten, twenty, thirty] = [0, 10, 20, 30].map(|minutes| Some(at(minutes)));
        assert_eq!(moved, [zero, ten, ten, twenty, thirty, None]);
    }

    #[test]
    fn when_its_revision_is_loaded_again_all_moved_objects_move_once_more() {
        let mut last = PolicyRolloutStep { goal: Some(format!("{:016x}", 400)), ..step(200, 10) };
        record_part(&mut last, 300, at(20));
        let next = PolicyRolloutStep::default();
        let mut rollout = PolicyRollout { steps: vec![step(100, 0), last, next.clone()], ..PolicyRollout::default() };
        move_again(&mut rollout, at(60));
        let parts = Parts::of(&rollout);
        let moved = [100, 200, 300, 301].map(|hash| parts.moved_at(hash));
        assert_eq!(moved, [Some(at(60)), Some(at(60)), Some(at(60)), None]);
        assert_eq!((last_move(&rollout.steps[1]), &rollout.steps[2]), (Some(at(60)), &next));
    }

    #[test]
    fn a_step_of_many_parts_keeps_a_bounded_number_and_joins_the_closest() {
        let mut long = step(0, 0);
        for part in 1..200_u64 {
            // The test moves the parts in pairs: the two parts of a pair are a minute apart, and a new pair begins
            // every hour.
            let minutes = i32::try_from(part / 2 * 60 + part % 2).unwrap();
            record_part(&mut long, part, at(minutes));
            assert!(long.parts.len() <= MAX_PARTS);
        }
        let parts = Parts::of(&PolicyRollout { steps: vec![long], ..PolicyRollout::default() });
        let times: Vec<Timestamp> = (0..200).filter_map(|hash| parts.moved_at(hash)).collect();
        assert_eq!(times.len(), 200, "each object has a time");
        assert!(times.is_sorted());
        let exact = |part: u64| at(i32::try_from(part / 2 * 60 + part % 2).unwrap());
        assert!((0..200).all(|hash| parts.moved_at(hash).is_some_and(|time| time <= exact(hash))));
    }
}
