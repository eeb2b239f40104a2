//! The form of an effect in a status. Its size is limited.

use std::collections::BTreeMap;

use kaos_crds::{PolicyPreview, PreviewFuel, PreviewInputs, PreviewPath, PreviewProblem};
use serde::Serialize;

use super::{
    Effect, Examples, ObjectProblem, PathKey,
    counts::{count, number},
};

/// The maximum size of a preview as JSON, in bytes.
const SIZE: usize = 90 << 10;
/// The maximum number of paths in a preview.
const PATHS: usize = 50;
/// The maximum number of objects with problems in a preview.
const PROBLEMS: usize = 100;

impl Effect {
    /// Returns the effect for a status. If the effect would be too large, leaves out the rarest paths and the least
    /// important problems.
    pub fn preview(&self, inputs: PreviewInputs) -> PolicyPreview {
        let counts = self.counts();
        let [before, after] = self.fuel();
        let (mut paths, more_paths) = self.paths();
        let (mut problems, more_problems) = self.problems();
        let mut preview = PolicyPreview {
            summary: counts.to_string(),
            objects: number(counts.objects),
            changed: number(counts.changed),
            unchanged: number(count(self.objects.values().filter(|it| it.is_unchanged()).count())),
            children: number(counts.children),
            pods: number(counts.pods),
            pods_replaced: number(counts.pods_replaced),
            refused: number(counts.refused),
            failed: number(counts.failed),
            unknown: number(counts.unknown),
            fuel: PreviewFuel {
                median_before: number(before.median),
                median_after: number(after.median),
                max_before: number(before.most),
                max_after: number(after.most),
            },
            paths: Vec::new(),
            more_paths,
            problems: Vec::new(),
            more_problems,
            inputs,
        };
        let (mut of_paths, mut of_problems) = (sizes(&paths), sizes(&problems));
        while of_paths.iter().chain(&of_problems).sum::<usize>() > SIZE {
            if of_paths.iter().sum::<usize>() > of_problems.iter().sum() {
                paths.pop();
                of_paths.pop();
                preview.more_paths += 1;
            } else {
                problems.pop();
                of_problems.pop();
                preview.more_problems += 1;
            }
        }
        PolicyPreview { paths, problems, ..preview }
    }

    /// Returns the most frequent paths, and the number of other paths.
    fn paths(&self) -> (Vec<PreviewPath>, i64) {
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for (at, many) in self.objects.values().flat_map(|it| &it.paths) {
            *counts.entry(*at).or_default() += many;
        }
        let uncounted: u64 = self.objects.values().map(|it| it.uncounted).sum();
        let known = |(at, many)| self.paths.get(at).map(|(key, examples)| (key, examples, many));
        let mut sorted: Vec<(&PathKey, &Examples, u64)> = counts.into_iter().filter_map(known).collect();
        sorted.sort_by(|(one, _, many), (other, _, more)| more.cmp(many).then_with(|| one.cmp(other)));
        let more = number(count(sorted.len().saturating_sub(PATHS)) + uncounted);
        let shown = sorted.into_iter().take(PATHS).map(|(key, Examples(examples), many)| PreviewPath {
            kind: key.kind.clone(),
            child: key.child.clone(),
            path: key.path.clone(),
            change: key.change.to_owned(),
            value: key.value.map(str::to_owned),
            count: number(many),
            examples: examples.values().cloned().collect(),
        });
        (shown.collect(), more)
    }

    /// Returns the most important problems, and the number of other problems.
    fn problems(&self) -> (Vec<PreviewProblem>, i64) {
        let of_objects = self.objects.iter().filter_map(|(object, it)| {
            let (problem, message) = it.problem.as_ref()?;
            Some((*problem, object.to_string(), message))
        });
        let of_kinds = self
            .unknown_kinds
            .iter()
            .map(|(kind, why)| (ObjectProblem::Unknown, format!("all objects of {}", kind.kind), why));
        let mut all: Vec<_> = of_kinds.chain(of_objects).collect();
        all.sort_by_key(|(problem, ..)| *problem);
        let more = number(count(all.len().saturating_sub(PROBLEMS)));
        let shown = all.into_iter().take(PROBLEMS).map(|(problem, object, message)| PreviewProblem {
            object,
            problem: problem.word().to_owned(),
            message: message.clone(),
        });
        (shown.collect(), more)
    }
}

/// Returns the size of each item as JSON, in bytes.
fn sizes<T: Serialize>(items: &[T]) -> Vec<usize> {
    items.iter().map(|item| serde_json::to_string(item).map_or(0, |text| text.len() + 1)).collect()
}
