//! Compares the effect of a candidate with the limits of the operator and of `policy.yaml`. Every limit applies, so a
//! package can add limits, but cannot loosen the operator's limits.

use kaos_crds::{PolicyPreview, PreviewFuel};
use kaos_policy::rollout::{Increase, Rollout, RolloutGate, RolloutMode};
use serde_json::json;

use super::previews::EffectOfProposal;

/// The limits that apply to candidates: the operator's limits, and the `rollout` of each package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EffectLimits {
    operator: RolloutGate,
    packages: Vec<Rollout>,
}

/// Why the operator holds a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExceededLimit {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl ExceededLimit {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl EffectLimits {
    pub(super) fn new<'a>(operator: &RolloutGate, packages: impl IntoIterator<Item = &'a Rollout>) -> Self {
        let packages = packages.into_iter().filter(|rollout| !rollout.is_open()).cloned().collect();
        Self { operator: operator.clone(), packages }
    }

    /// Returns whether there are no limits, so that packages can serve before their effect is known.
    pub(super) fn are_none(&self) -> bool {
        self.operator.is_open() && self.packages.is_empty()
    }

    fn gates(&self) -> impl Iterator<Item = &RolloutGate> {
        std::iter::once(&self.operator).chain(self.packages.iter().map(|rollout| &rollout.gate))
    }

    /// Returns the paths that must not change.
    pub(super) fn frozen(&self) -> Vec<String> {
        let mut frozen: Vec<String> = self.gates().flat_map(|gate| gate.frozen_paths.iter().cloned()).collect();
        frozen.sort();
        frozen.dedup();
        frozen
    }

    /// Returns the limits as text.
    ///
    /// The operator compares the effect of a held package with the limits again if this text changes.
    pub(super) fn text(&self) -> String {
        json!({"operator": self.operator, "packages": self.packages}).to_string()
    }

    /// Returns the limits that the effect exceeds, the most important first.
    pub(super) fn exceeded(
        &self,
        EffectOfProposal { preview, frozen_changes }: &EffectOfProposal,
    ) -> Vec<ExceededLimit> {
        let mut exceeded = Vec::new();
        let is_set = |is_set: fn(&RolloutGate) -> bool| self.gates().any(is_set);
        if is_set(|gate| gate.none_refused) && preview.refused > 0 {
            exceeded.push(ExceededLimit::new(
                "WouldRefuse",
                format!(
                    "the package refuses {} that the policies accept now{}, but `noneRefused` allows no refused \
                     objects",
                    objects(preview.refused),
                    named(preview, "Refused")
                ),
            ));
        }
        if is_set(|gate| gate.none_failed) && preview.failed > 0 {
            exceeded.push(ExceededLimit::new(
                "WouldFail",
                format!(
                    "the package fails on {}{}, but `noneFailed` allows no failures",
                    objects(preview.failed),
                    named(preview, "Failed")
                ),
            ));
        }
        for (path, many) in frozen_changes {
            let changes = format!("the package changes the frozen path {path} of {}", objects(count(*many)));
            exceeded.push(ExceededLimit::new("FrozenPath", changes));
        }
        exceeded.extend(self.shares(preview));
        exceeded.extend(self.fuel(preview.fuel));
        if preview.unknown > 0 && self.gates().any(|gate| !gate.is_open()) {
            exceeded.push(ExceededLimit::new(
                "EffectUnknown",
                format!("the effect on {} is not known{}", objects(preview.unknown), named(preview, "Unknown")),
            ));
        }
        if is_set(|gate| gate.approval.is_some()) {
            exceeded.push(ExceededLimit::new("AwaitsApproval", "a person must approve the package"));
        }
        if self.packages.iter().any(|rollout| rollout.mode == Some(RolloutMode::Shadow)) {
            exceeded.push(ExceededLimit::new("ShadowOnly", "the package only shows its effect (rollout.mode: shadow)"));
        }
        exceeded
    }

    /// Returns the limits for objects and pods that the effect exceeds.
    fn shares(&self, preview: &PolicyPreview) -> Vec<ExceededLimit> {
        let mut exceeded = Vec::new();
        let number = |many: i64| u64::try_from(many).unwrap_or_default();
        for gate in self.gates() {
            for (limit, name, reason, what, changed, all) in [
                (
                    gate.max_objects_changed,
                    "maxObjectsChanged",
                    "TooManyObjects",
                    "objects change",
                    preview.changed,
                    preview.objects,
                ),
                (
                    gate.max_pods_replaced,
                    "maxPodsReplaced",
                    "TooManyPods",
                    "pods are replaced",
                    preview.pods_replaced,
                    preview.pods,
                ),
            ] {
                if let Some(limit) = limit.filter(|limit| number(changed) > limit.of(number(all))) {
                    let message = format!("{changed} of {all} {what}, but `{name}` allows only {limit}");
                    exceeded.push(ExceededLimit::new(reason, message));
                }
            }
        }
        exceeded
    }
}

impl EffectLimits {
    /// Returns the fuel limits that the effect exceeds.
    fn fuel(&self, fuel: PreviewFuel) -> impl Iterator<Item = ExceededLimit> {
        let PreviewFuel { median_before, median_after, max_before, max_after } = fuel;
        let number = |fuel: i64| u64::try_from(fuel).unwrap_or_default();
        let rises = move |limit: Increase| {
            [("median", median_before, median_after), ("maximum", max_before, max_after)]
                .into_iter()
                .find(|(_, before, after)| limit.is_exceeded(number(*before), number(*after)))
                .map(|(what, before, after)| {
                    let message = format!(
                        "the {what} of the fuel of a pass rises from {before} to {after}, but `maxFuelIncrease` allows \
                         only {limit}"
                    );
                    ExceededLimit::new("TooMuchFuel", message)
                })
        };
        self.gates().filter_map(|gate| gate.max_fuel_increase).filter_map(rises)
    }
}

fn count(many: u64) -> i64 {
    i64::try_from(many).unwrap_or(i64::MAX)
}

fn objects(many: i64) -> String {
    format!("{many} object{}", if many == 1 { "" } else { "s" })
}

/// Returns the names of the first objects with a problem, as a part of a message.
fn named(preview: &PolicyPreview, problem: &str) -> String {
    let mut names = preview.problems.iter().filter(|it| it.problem == problem).map(|it| it.object.as_str());
    let first: Vec<&str> = names.by_ref().take(3).collect();
    match (first.is_empty(), names.next()) {
        (true, _) => String::new(),
        (false, None) => format!(" ({})", first.join(", ")),
        (false, Some(_)) => format!(" ({}, …)", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use kaos_crds::PreviewProblem;
    use kaos_policy::manifest::PolicyFile;

    use super::*;

    fn rollout(text: &str) -> Rollout {
        PolicyFile::parse(&format!("rollout: {text}")).unwrap().rollout
    }

    fn effect() -> EffectOfProposal {
        let problem = |number: usize| PreviewProblem {
            object: format!("Widget n/w{number}"),
            problem: "Refused".to_owned(),
            message: String::new(),
        };
        let preview = PolicyPreview {
            objects: 200,
            changed: 20,
            pods: 400,
            pods_replaced: 21,
            refused: 4,
            failed: 0,
            fuel: PreviewFuel { median_before: 100, median_after: 110, max_before: 200, max_after: 260 },
            problems: (0..4).map(problem).collect(),
            ..PolicyPreview::default()
        };
        EffectOfProposal { preview, frozen_changes: Vec::new() }
    }

    fn reasons(operator: &str, package: &str, effect: &EffectOfProposal) -> Vec<&'static str> {
        let limits = EffectLimits::new(&rollout(operator).gate, [&rollout(package)]);
        limits.exceeded(effect).into_iter().map(|limit| limit.reason).collect()
    }

    #[test]
    fn each_limit_holds_an_effect_that_exceeds_it() {
        for (gate, expected) in [
            ("{}", &[][..]),
            ("{gate: {noneFailed: true}}", &[]),
            ("{gate: {noneRefused: true}}", &["WouldRefuse"]),
            ("{gate: {maxObjectsChanged: 20}}", &[]),
            ("{gate: {maxObjectsChanged: 9%}}", &["TooManyObjects"]),
            ("{gate: {maxPodsReplaced: 5%}}", &["TooManyPods"]),
            ("{gate: {maxPodsReplaced: 21}}", &[]),
            ("{gate: {maxFuelIncrease: 30%}}", &[]),
            ("{gate: {maxFuelIncrease: 20%}}", &["TooMuchFuel"]),
            ("{gate: {approval: required}}", &["AwaitsApproval"]),
            ("{mode: shadow}", &["ShadowOnly"]),
        ] {
            assert_eq!(reasons("{}", gate, &effect()), expected, "{gate}");
            if !gate.contains("mode") {
                assert_eq!(reasons(gate, "{}", &effect()), expected, "the operator's own limit: {gate}");
            }
        }
    }

    #[test]
    fn a_package_cannot_loosen_the_operators_limits() {
        let all = reasons(
            "{gate: {maxObjectsChanged: 10, noneRefused: true}}",
            "{gate: {maxObjectsChanged: 50%}}",
            &effect(),
        );
        assert_eq!(all, ["WouldRefuse", "TooManyObjects"]);
    }

    #[test]
    fn an_unknown_effect_holds_only_under_limits_of_the_effect() {
        let mut unknown = effect();
        unknown.preview.unknown = 1;
        assert_eq!(reasons("{}", "{gate: {maxObjectsChanged: 100}}", &unknown), ["EffectUnknown"]);
        assert_eq!(reasons("{}", "{mode: shadow}", &unknown), ["ShadowOnly"]);
    }

    #[test]
    fn a_frozen_path_holds_and_the_message_names_the_objects() {
        let frozen = EffectOfProposal { frozen_changes: vec![("spec.a".to_owned(), 1)], ..effect() };
        let limits = EffectLimits::new(
            &RolloutGate::default(),
            [&rollout("{gate: {noneRefused: true, frozenPaths: [spec.a]}}")],
        );
        assert_eq!(limits.frozen(), ["spec.a"]);
        let told: Vec<String> = limits.exceeded(&frozen).into_iter().map(|limit| limit.message).collect();
        let refused =
            "the package refuses 4 objects that the policies accept now (Widget n/w0, Widget n/w1, Widget n/w2, …)";
        assert!(told[0].starts_with(refused), "{}", told[0]);
        assert_eq!(told[1], "the package changes the frozen path spec.a of 1 object");
        assert!(EffectLimits::new(&RolloutGate::default(), [&Rollout::default()]).are_none());
    }
}
