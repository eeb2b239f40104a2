//! Tests valid components that misbehave when the host calls them. Each misbehavior ends in a typed error of its own,
//! and no misbehavior exceeds the limits of a pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{cell::Cell, sync::Arc, time::Duration};

use crate::support::{check, check_beside, engine, hostile, limits, load};
use kaos_policy::{
    compile::CompileError,
    contract::{Child, Cluster, Observation, Outcome, ResourceType, Subject},
    describe::DescribeError,
    engine::Engine,
    failure::{Failure, Verb},
    gate::{Candidate, LoadError, Step, Turn, Turns},
    guard::Rule,
    limits::Limits,
    lookup::Fixed,
    policy::{Policy, Stack},
    render::Renderer,
    settings::SchemaError,
};
use serde_json::json;

/// Returns the failure that the gate reports for the only sample.
fn failure(mode: &str) -> Failure {
    match load(hostile(mode)) {
        Err(LoadError::FailsSample { failure, .. }) => failure,
        other => panic!("{mode}: {other:?}"),
    }
}

fn describe_error(mode: &str) -> DescribeError {
    match load(hostile(mode)) {
        Err(LoadError::Describe(error)) => error,
        other => panic!("{mode}: {other:?}"),
    }
}

fn breach(mode: &str) -> Rule {
    match failure(mode) {
        Failure::Guard(breaches) => breaches[0].rule,
        other => panic!("{mode}: {other:?}"),
    }
}

fn well_behaved() -> Arc<Policy> {
    load(hostile("well-behaved")).unwrap()
}

#[test]
fn the_well_behaved_guest_passes_the_gate_and_costs_little() {
    let policy = well_behaved();
    assert_eq!(policy.id().name, "hostile");
    let renderer = Renderer::new(&Stack::single(policy).unwrap(), &[], Cluster::default()).unwrap();
    let object = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n", "resourceVersion": "7"}, "status": {"phase": "Ready"}});
    let answer = renderer.render(&object, &Fixed::default()).unwrap();
    assert_eq!(answer.manifests().len(), 1);
    assert!(answer.fuel < 100_000, "{}", answer.fuel);
    assert!(!answer.subject().object.contains("resourceVersion") && !answer.subject().object.contains("status"));
    let child = Child::new(answer.object.reference(), Some(&answer.manifests()[0]));
    assert!(renderer.assess(&answer, Outcome::Applied, vec![child]).unwrap().report.ready);
}

#[test]
fn an_endless_loop_ends_when_the_fuel_does() {
    assert_eq!(failure("loops for ever"), Failure::OutOfFuel { verb: Verb::Translate, at: None, limit: limits().fuel });
}

#[test]
fn endless_recursion_traps_at_the_end_of_its_stack() {
    let Failure::Trap { verb: Verb::Translate, reason } = failure("recurses for ever") else { panic!() };
    assert!(!reason.is_empty());
}

#[test]
fn growing_memory_in_a_loop_ends_at_the_first_page_too_many() {
    let limit = limits().memory;
    let Failure::OutOfMemory { verb: Verb::Translate, wanted, limit: had, .. } = failure("grows for ever") else {
        panic!()
    };
    assert_eq!((had, wanted), (limit, limit + (64 << 10)));
}

#[test]
fn growing_memory_by_zero_in_a_loop_ends_when_the_fuel_does() {
    assert!(matches!(failure("grows by nothing for ever"), Failure::OutOfFuel { verb: Verb::Translate, .. }));
}

#[test]
fn an_allocation_of_a_gibibyte_is_denied_before_it_is_made() {
    let Failure::OutOfMemory { wanted, limit, .. } = failure("allocates a gibibyte") else { panic!() };
    assert!(wanted >= 1 << 30 && limit == limits().memory);
}

#[test]
fn an_answer_of_100_mebibytes_does_not_fit_the_sandbox() {
    assert!(matches!(failure("answers 100 MiB"), Failure::OutOfMemory { limit, .. } if limit == limits().memory));
}

#[test]
fn an_answer_that_fits_the_sandbox_but_not_the_host_is_not_copied() {
    assert_eq!(
        failure("answers 20 MiB"),
        Failure::AnswerTooLarge { verb: Verb::Translate, limit: limits().answer_bytes }
    );
}

#[test]
fn an_answer_that_is_small_as_text_and_large_in_memory_is_not_read() {
    for mode in ["answers a bomb of JSON", "reports a bomb of JSON"] {
        assert_eq!(breach(mode), Rule::Bounded, "{mode}");
    }
    let error = describe_error("a sample that is a bomb of JSON");
    assert!(matches!(&error, DescribeError::TooManyValues { path, .. } if path == "claims[0].samples[0]"), "{error}");
}

#[test]
fn a_hundred_thousand_manifests_are_refused() {
    match failure("answers 100000 manifests") {
        Failure::Guard(breaches) => assert_eq!(breaches.iter().map(|b| b.rule).collect::<Vec<_>>(), [Rule::Bounded]),
        Failure::AnswerTooLarge { verb: Verb::Translate, .. } => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(breach("answers 100 manifests"), Rule::Bounded);
}

#[test]
fn a_hundred_thousand_origins_are_refused() {
    assert_eq!(breach("answers 100000 origins"), Rule::Bounded);
}

#[test]
fn invalid_json_and_invalid_utf8_have_different_errors() {
    let Failure::NotJson { verb: Verb::Translate, what, .. } = failure("answers no JSON") else { panic!() };
    assert_eq!(what, "manifests[0]");
    assert_eq!(failure("answers no UTF-8"), Failure::NotUtf8 { verb: Verb::Translate });
    let Failure::NotJson { verb: Verb::Assess, what, .. } = failure("reports no JSON") else { panic!() };
    assert_eq!(what, "fields");
}

#[test]
fn a_trap_in_any_of_the_five_functions_names_the_function() {
    let Err(LoadError::Silent(Failure::Trap { verb: Verb::Describe, .. })) = load(hostile("trap in describe")) else {
        panic!()
    };
    for (mode, verb) in [
        ("trap in pass", Verb::Begin),
        ("trap in needs", Verb::Needs),
        ("trap in map-env", Verb::MapEnv),
        ("trap in translate", Verb::Translate),
        ("trap in assess", Verb::Assess),
    ] {
        assert!(matches!(failure(mode), Failure::Trap { verb: found, .. } if found == verb), "{mode}");
    }
}

#[test]
fn an_invalid_description_is_refused() {
    assert_eq!(describe_error("claims nothing"), DescribeError::NoClaims);
    assert!(matches!(describe_error("claims twice"), DescribeError::ClaimedTwice(of) if of.kind == "Widget"));
    for (mode, kind) in [("emits rbac", "RoleBinding"), ("emits namespaces", "Namespace")] {
        assert!(matches!(describe_error(mode), DescribeError::ClusterPower { of, .. } if of.kind == kind), "{mode}");
    }
    assert!(matches!(describe_error("bad name"), DescribeError::Name(_)));
    assert!(matches!(describe_error("bad version"), DescribeError::Version { .. }));
    assert!(matches!(describe_error("invalid schema"), DescribeError::Schema(SchemaError::Invalid(_))));
    assert!(matches!(describe_error("remote schema"), DescribeError::Schema(SchemaError::Reference { .. })));
    assert!(matches!(describe_error("invalid defaults"), DescribeError::Schema(SchemaError::Defaults(_))));
}

#[test]
fn a_claim_on_a_kind_that_is_served_in_other_capitals_is_refused() {
    let candidate = Candidate { bytes: hostile("well-behaved"), ..Candidate::default() };
    let beside = |kind: &str| check_beside(&candidate, limits(), &[ResourceType::new("example.com/v1", kind)]).result;
    assert!(beside("Widget").is_ok());
    let error = beside("WidGet").unwrap_err();
    assert_eq!((error.step(), error.reason(), error.is_lasting()), (Step::Describe, "BadDescription", true));
    let told = "claims[0].primary names example.com/v1 Widget, but the cluster spells this kind WidGet: use the \
        cluster's spelling";
    assert_eq!(error.to_string(), told);
}

#[test]
fn a_policy_that_never_plans_is_refused() {
    let Err(error @ LoadError::NoPlan { .. }) = load(hostile("refuses everything")) else { panic!() };
    let told = "no sample of Widget ends in a plan; the policy refused the last sample: Unsupported: no";
    assert_eq!(error.to_string(), told);
}

#[test]
fn samples_that_are_no_objects_of_their_kind_are_named() {
    for mode in ["a sample of another kind", "a sample without a name"] {
        match load(hostile(mode)) {
            Err(LoadError::BadSample { kind, sample, reason }) => {
                assert_eq!((&*kind, &*sample, reason.is_empty()), ("Widget", "smallest", false), "{mode}");
            }
            other => panic!("{mode}: {other:?}"),
        }
    }
}

#[test]
fn too_costly_samples_are_not_all_evaluated() {
    let limits = Limits { fuel: 10_000_000, ..limits() };
    let dear = Candidate { bytes: hostile("thirty dear samples"), ..Candidate::default() };
    let checked = check(&dear, limits);
    let Err(LoadError::SamplesTooCostly { allowed, before }) = checked.result else { panic!("{:?}", checked.result) };
    assert_eq!(allowed, 20 * limits.fuel);
    assert!(before != "s0" && checked.steps.last().is_some_and(|step| step.step == Step::Conformance), "{before}");
}

/// Calls every function of a misbehaving sandbox, and checks the fuel and the memory that the sandbox used.
#[test]
fn no_misbehavior_exceeds_the_limits_of_a_pass() {
    const MODES: [&str; 14] = [
        "loops for ever",
        "recurses for ever",
        "grows for ever",
        "grows by nothing for ever",
        "allocates a gibibyte",
        "answers 100 MiB",
        "answers 20 MiB",
        "answers 100000 manifests",
        "answers 100000 origins",
        "trap in pass",
        "trap in needs",
        "trap in map-env",
        "trap in translate",
        "trap in assess",
    ];
    let limits = Limits { fuel: 50_000_000, ..limits() };
    for mode in MODES {
        let checked = check(&Candidate { bytes: hostile(mode), ..Candidate::default() }, limits);
        assert!(checked.result.is_err(), "{mode} passes");
        let policy = checked.described.unwrap_or_else(|| panic!("{mode}: {:?}", checked.result));
        let mut sandbox = policy.code().open(policy.limits()).unwrap();
        let subject = subject();
        let seen = Observation {
            outcome: Outcome::Applied,
            children: vec![],
            gates: vec![],
            env: vec![],
            notes: vec![],
            extra: "{}".into(),
        };
        // Continue after a trap: calls of a trapped sandbox must also stay within the limits.
        let _began = sandbox.begin(&subject);
        let _needs = sandbox.needs(&[]);
        let _env = sandbox.map_env(vec![]);
        let _plan = sandbox.translate(vec![]);
        let _report = sandbox.assess(&seen);
        let (fuel, memory) = (sandbox.fuel_used(), sandbox.memory());
        assert!(fuel <= limits.fuel && memory <= limits.memory, "{mode}: {fuel} fuel, {memory} bytes");
    }
}

fn subject() -> Subject {
    Subject {
        object: json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}).to_string(),
        found: vec![],
        settings: "{}".into(),
        cluster: Cluster::default(),
        applied: false,
        extra: "{}".into(),
    }
}

#[test]
fn a_policy_that_keeps_state_between_calls_is_refused() {
    let kept = |mode| match load(hostile(mode)) {
        Err(LoadError::KeepsState { verb, .. }) => verb,
        other => panic!("{mode}: {other:?}"),
    };
    assert_eq!(kept("counts calls of needs"), Verb::Needs);
    assert_eq!(kept("counts calls of translate"), Verb::Translate);
}

#[test]
fn asking_for_ever_ends_after_five_rounds() {
    assert_eq!(failure("needs for ever"), Failure::TooManyRounds { limit: Limits::ROUNDS });
}

#[test]
fn the_guard_names_the_rule_that_an_answer_breaks() {
    assert_eq!(breach("needs what it does not read"), Rule::ReadsClaimed);
    assert_eq!(breach("emits a Pod"), Rule::EmitsClaimed);
    assert_eq!(breach("emits elsewhere"), Rule::OwnNamespace);
    assert_eq!(breach("emits twice"), Rule::NoDuplicates);
}

#[test]
fn a_stalled_sandbox_is_ended_and_its_policy_is_not_blamed() {
    let engine = Engine::new().unwrap();
    let candidate = Candidate { bytes: hostile("loops for ever"), ..Candidate::default() };
    let endless = Limits { fuel: u64::MAX, ..limits() };
    let error = std::thread::scope(|scope| {
        let check = scope.spawn(|| crate::support::check_on(&engine, &candidate, endless, &[]).result.unwrap_err());
        while !check.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
            engine.tick();
        }
        check.join().unwrap()
    });
    assert!(!error.is_lasting(), "{error}");
    let (LoadError::FailsSample { failure, .. } | LoadError::Silent(failure) | LoadError::Instantiate(failure)) = error
    else {
        panic!("{error}")
    };
    assert!(matches!(failure, Failure::Stalled { .. }), "{failure}");
    assert!(failure.says_nothing_of_the_object());
}

/// Gives a limited number of turns, and only one turn at a time.
#[derive(Default)]
struct Counted {
    left: Cell<usize>,
    given: Arc<()>,
}

impl Turns for Counted {
    fn next(&self) -> Option<Turn> {
        assert_eq!(Arc::strong_count(&self.given), 1, "the previous turn has ended");
        self.left.set(self.left.get().checked_sub(1)?);
        Some(Box::new(Arc::clone(&self.given)))
    }

    fn is_over(&self) -> bool {
        self.left.get() == 0
    }
}

#[test]
fn samples_take_a_turn_each_time_that_they_are_evaluated() {
    const TURNS: usize = 1000;
    let candidate = Candidate { bytes: hostile("thirty dear samples"), ..Candidate::default() };
    let checked = |turns: &Counted| crate::support::check_by(turns, engine(), &candidate, limits(), &[]).result;
    let turns = Counted { left: Cell::new(TURNS), ..Counted::default() };
    checked(&turns).unwrap();
    let taken = TURNS - turns.left.get();
    assert_eq!(taken, 1 + 30 * 4, "one turn to open the policy, and four for each sample");
    let turns = Counted { left: Cell::new(taken / 2), ..Counted::default() };
    let error = checked(&turns).unwrap_err();
    assert_eq!(error, LoadError::Compile(CompileError::Unwanted));
    assert!(!error.is_lasting());
}
