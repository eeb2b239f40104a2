//! Tests with a policy for Kites. A Kite gets a ConfigMap with its variable `TOKEN`, and with the colour from a
//! ConfigMap that it names. A Kite with a token of more than ten letters and another length than [`MASK`] is refused.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kaos_policy::{
    code::Native,
    contract::{
        Answer, Claim, Cluster, Descriptor, EnvVar, Need, Observation, Plan, Reference, Refusal, Report, ResourceType,
        Sample, Subject, Target,
    },
    digest::Digest,
    limits::Limits,
    lookup::Fixed,
    manifest::{OnRefusal, PolicyFile},
    policy::{Policy, Stack},
    render::{LayerInputs, Renderer},
    settings::{Effective, Layer, Origin},
};
use serde_json::{Value, json};

use super::{KnownCode, Proposed, Replayed, Replayer, mask::masked_as, masked};
use crate::{
    catalogue::{Catalogue, Kind},
    masking::MASK,
    plan::{Effect, Said},
    policies::{Loader, sample_cluster},
    record::{Case, CaseAnswer, CaseVerdict, MaskEffect, Masked, PassedOver, RecordedPass, Recorder, Why},
};

const CANARY: &str = "canary-4711";

fn kite() -> ResourceType {
    ResourceType::new("example.org/v1", "Kite")
}

fn describe() -> Descriptor {
    let config_map = ResourceType::new("v1", "ConfigMap");
    let sample = Sample { name: "a kite".to_owned(), object: object("").to_string(), beside: Vec::new() };
    let claim = Claim {
        primary: kite(),
        emits: vec![config_map.clone()],
        reads: vec![config_map],
        wishes: Vec::new(),
        finalizer: None,
        samples: vec![sample],
        extra: "{}".to_owned(),
    };
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"apiKey": {"type": "string", "default": ""}, "size": {"type": "integer", "default": 1}},
    });
    Descriptor {
        name: "kite".to_owned(),
        version: "1.0.0".to_owned(),
        claims: vec![claim],
        settings_schema: schema.to_string(),
        extra: "{}".to_owned(),
    }
}

fn object_of(subject: &Subject) -> Value {
    serde_json::from_str(&subject.object).unwrap()
}

fn named(id: &str, name: &Value) -> Need {
    let (api_version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
    let name = name.as_str().unwrap_or_default().to_owned();
    let target = Target::Named(Reference { api_version, kind, namespace: None, name });
    Need { id: id.to_owned(), target, fields: vec!["data.color".to_owned()], optional: false }
}

fn needs(subject: &Subject) -> Vec<Need> {
    vec![named("colors", &object_of(subject)["spec"]["colors"])]
}

fn other_needs(_: &Subject) -> Vec<Need> {
    vec![named("others", &json!("others"))]
}

fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = object_of(subject);
    let token = object["spec"]["env"][0]["value"].as_str().unwrap_or_default();
    if token.len() > 10 && token.len() != CANARY.len() {
        return Err(Refusal::Unsupported("the token is too long".to_owned()));
    }
    let color = match subject.found.first().map(|found| &found.answer) {
        Some(Answer::Objects(texts)) => {
            let found: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            found.first().map_or(Value::Null, |found| found["data"]["color"].clone())
        }
        _ => Value::Null,
    };
    let settings: Value = serde_json::from_str(&subject.settings).unwrap();
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object["metadata"]["name"]},
        "data": {"url": format!("http://x?t={token}"), "color": color, "size": settings["size"].to_string()},
    });
    let manifests = vec![manifest.to_string()];
    let (origins, gates, notes, kept) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (finalizer, gates_hold, extra) = (None, false, "{}".to_owned());
    Ok(Plan { manifests, origins, gates, env, notes, finalizer, kept, gates_hold, extra })
}

fn assess(_: &Subject, _: &Observation) -> Report {
    Report {
        ready: true,
        phase: String::new(),
        message: String::new(),
        fields: "{}".to_owned(),
        conditions: Vec::new(),
        extra: "{}".to_owned(),
    }
}

fn policy(needs: fn(&Subject) -> Vec<Need>) -> Arc<Policy> {
    let code = Native { describe, needs, map_env: |_, base| Ok(base), translate, assess };
    let digest = Digest::of(b"kite");
    Arc::new(Policy::admit(Arc::new(code), digest, &PolicyFile::default(), Limits::default()).unwrap())
}

struct Bench {
    kind: Arc<Kind>,
    renderer: Renderer,
    policy: Arc<Policy>,
}

fn object(token: &str) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Kite", "metadata": {"name": "k", "namespace": "n", "uid": "u"},
        "spec": {"colors": "c", "env": [{"name": "API_TOKEN", "value": token}]},
        "status": {"appliedGeneration": 3},
    })
}

impl Bench {
    fn new() -> Self {
        let policy = policy(needs);
        let stacks = BTreeMap::from([(kite(), Stack::single(Arc::clone(&policy)).unwrap())]);
        let layers = [Layer::tree(Origin::CommandLine, "kite", json!({"apiKey": CANARY, "size": 7}))];
        let snapshot = Catalogue::new(&stacks, &layers).unwrap().load().unwrap();
        let kind = snapshot.answer_for(&object("")).kind().unwrap();
        let renderer = kind.renderer(&Cluster::default(), |_| true).unwrap();
        Self { kind, renderer, policy }
    }

    /// Records the pass over a Kite with this token.
    fn case(&self, token: &str) -> Case {
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
            "data": {"color": "red", "password": CANARY},
        });
        let rendered = self.renderer.render(&object(token), &Fixed::new([config])).unwrap();
        let pass = RecordedPass {
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
            why: Why::Requested,
            renderer: &self.renderer,
            rendered: &rendered,
            kind: &self.kind,
            without: &[],
            is_cluster_scoped: &|_| false,
        };
        pass.case()
    }

    fn layers(&self, case: &Case) -> Vec<(Arc<Policy>, Arc<Effective>)> {
        vec![(Arc::clone(&self.policy), Arc::new(case.inputs.layers[0].settings.effective()))]
    }

    fn masked(&self, token: &str) -> Case {
        let find = |_: &LayerInputs| Some(Arc::clone(&self.policy));
        masked(self.case(token), &find)
    }
}

#[test]
fn a_case_that_was_written_and_read_repeats_the_same_decision() {
    let bench = Bench::new();
    let case = bench.case("short");
    let read = Case::parse(&serde_json::to_string(&case).unwrap()).unwrap();
    assert_eq!(read, case);
    let repeated = read.inputs.repeat(bench.layers(&read)).unwrap().unwrap();
    assert!(repeated.unknown.is_empty(), "{:?}", repeated.unknown);
    assert_eq!(repeated.rendered.decision(), case.decision);
    assert_eq!(CaseAnswer::new(CaseVerdict::of(&repeated.rendered), repeated.rendered.fuel), case.answer);
    let CaseVerdict::Planned(planned) = &case.answer.verdict else { panic!("{case:?}") };
    assert_eq!(planned.manifests[0]["data"]["color"], "red");
}

#[test]
fn a_case_has_only_the_fields_that_the_policy_reads() {
    let text = serde_json::to_string(&Bench::new().case("short")).unwrap();
    let found = text.split("\"answer\":{\"objects\"").nth(1).unwrap().split("\"operator").next().unwrap();
    assert!(found.contains("red") && !found.contains("password"), "{found}");
}

#[test]
fn a_masked_case_has_no_secret_value_and_repeats_its_own_answer() {
    let bench = Bench::new();
    let case = bench.masked(CANARY);
    let text = serde_json::to_string(&case).unwrap();
    assert!(!text.contains(CANARY) && text.contains(MASK), "{text}");
    let masked = case.masked.clone().unwrap();
    assert!(masked.paths.contains(&"object.spec.env[0].value".to_owned()), "{masked:?}");
    let read = Case::parse(&text).unwrap();
    let repeated = read.inputs.repeat(bench.layers(&read)).unwrap().unwrap().rendered;
    let verdict = masked_as(CaseVerdict::of(&repeated), &read);
    assert_eq!(CaseAnswer::new(verdict, repeated.fuel), case.answer);
    assert_eq!(masked.effect, MaskEffect::Nothing);
}

#[test]
fn a_mask_that_changes_the_answer_is_reported() {
    let bench = Bench::new();
    let long = bench.masked("a token that is much too long");
    assert!(matches!(long.answer.verdict, CaseVerdict::Planned(_)), "{long:?}");
    let Some(Masked { effect: MaskEffect::Answer { what, .. }, .. }) = &long.masked else { panic!("{long:?}") };
    assert_eq!(what, "refused: Unsupported became plan of 1 child");
    let nobody = |_: &LayerInputs| None;
    let unknown = masked(bench.case(CANARY), &nobody);
    assert_eq!(unknown.masked.unwrap().effect, MaskEffect::Unknown);
}

#[test]
fn an_object_that_the_case_lacks_makes_the_result_unknown() {
    let bench = Bench::new();
    let case = bench.case("short");
    let layers = vec![(policy(other_needs), Arc::new(case.inputs.layers[0].settings.effective()))];
    let repeated = case.inputs.repeat(layers).unwrap().unwrap();
    assert_eq!(repeated.unknown.len(), 1, "{:?}", repeated.unknown);
}

type Translate = fn(&Subject, Vec<EnvVar>) -> Result<Plan, Refusal>;

fn refuse(_: &Subject, _: Vec<EnvVar>) -> Result<Plan, Refusal> {
    Err(Refusal::Unsupported("no kites today".to_owned()))
}

fn fail(_: &Subject, _: Vec<EnvVar>) -> Result<Plan, Refusal> {
    panic!("on purpose")
}

/// Replays a case with another version of the policy for Kites.
fn with_candidate(case: &Case, translate: Translate, on_refusal: OnRefusal) -> Replayed {
    let code = Native { describe, needs, map_env: |_, base| Ok(base), translate, assess };
    let file = PolicyFile { on_refusal, ..PolicyFile::default() };
    let policy = Policy::admit(Arc::new(code), Digest::of(b"candidate"), &file, Limits::default()).unwrap();
    let loader = Loader::new(sample_cluster()).unwrap();
    let code = KnownCode::new(&loader, &[]).unwrap();
    Replayer::new(code, Some(Proposed { policy: Arc::new(policy), file })).replay(case).unwrap().unwrap()
}

#[test]
fn a_candidate_that_does_not_answer_counts_as_in_a_preview_and_the_recorded_answer_stays() {
    let case = Bench::new().case("short");
    for (translate, refused, failing) in [(refuse as Translate, 1, 0), (fail, 0, 1)] {
        let Replayed { difference, answer, .. } = with_candidate(&case, translate, OnRefusal::Hold);
        assert!(!difference.is_change() && difference.newest[1].is_some(), "{difference:?}");
        assert!(!matches!(answer.verdict, CaseVerdict::Planned(_)), "{answer:?}");
        let counts = Effect::of([&difference]).counts();
        assert_eq!((counts.refused, counts.failing, counts.changed), (refused, failing, 0), "{difference:?}");
    }
    let Replayed { difference, .. } = with_candidate(&case, refuse, OnRefusal::Tell);
    assert!(difference.is_change() && difference.newest == [None, None], "{difference:?}");
}

#[test]
fn a_candidate_that_answers_where_a_fallback_answered_is_compared_with_the_failure() {
    let passed_over = PassedOver { revision: "kite-2".to_owned(), how: "translate trapped".to_owned() };
    let case = Case { passed_over: vec![passed_over], ..Bench::new().masked("short") };
    let Replayed { difference, is_same, .. } = with_candidate(&case, translate, OnRefusal::Tell);
    assert!(is_same && !difference.is_change());
    assert_eq!(difference.newest, [Some(Said::Failed("translate trapped".to_owned())), None]);
}

#[test]
fn a_file_of_another_format_is_refused_with_the_format() {
    let told = |text: &str| Case::parse(text).unwrap_err().to_string();
    assert!(told("{\"format\": \"kaos-case/9\"}").contains("kaos-case/9, but this program reads kaos-case/1"));
    assert!(told("{}").contains("is not a case") && told("nonsense").contains("is not a case"));
}

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
    assert_eq!(recorder.size().dropped, 0);
    for number in 0..100 {
        recorder.keep(&numbered(&bench, 1000 + number, Why::Change), now);
    }
    let size = recorder.size();
    assert!(size.bytes <= 30_000 && size.dropped > 8 && size.cases > 4, "{size:?}");
    assert!(!serde_json::to_string(&recorder.list(now)).unwrap().contains("Routine"));
    let newest = numbered(&bench, 1099, Why::Change);
    assert_eq!(recorder.case(newest.decision), Some(newest));
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
    assert_eq!((recorder.size().cases, recorder.size().dropped), (32, 8));
    assert!(recorder.list(now + SignedDuration::from_hours(25)).is_empty());
    assert_eq!((recorder.size().cases, recorder.size().bytes), (0, 0));
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
