//! Tests with a policy for Kites. A Kite gets a ConfigMap with its variable `TOKEN`, and with the colour from a
//! ConfigMap that it names. A Kite with a token of more than ten letters and another length than [`MASK`] is refused.

use std::{collections::BTreeMap, sync::Arc};

use kaos_policy::{
    code::Native,
    contract::{
        Answer, Claim, Cluster, Descriptor, EnvVar, Need, Observation, Outcome, Plan, Reference, Refusal, Report,
        ResourceType, Sample, Subject, Target,
    },
    digest::Digest,
    limits::Limits,
    lookup::Fixed,
    manifest::{OnRefusal, PolicyFile},
    policy::{Policy, Stack},
    render::{LayerInputs, Rendered, Renderer},
    settings::{Effective, Layer, Origin},
    stamp::POD_SPEC_HASH,
};
use serde_json::{Value, json};

use super::{KnownCode, Proposed, Replayed, Replayer, mask::masked_as, masked};
use crate::{
    catalogue::{Catalogue, Kind},
    masking::MASK,
    plan::{Answers, Around, Difference, Effect, Said, difference},
    policies::{Loader, sample_cluster},
    record::{Case, CaseAnswer, CaseVerdict, MaskEffect, Masked, ObservedChildren, PassedOver, RecordedPass, Why},
};

const CANARY: &str = "canary-4711";

pub(crate) type Translate = fn(&Subject, Vec<EnvVar>) -> Result<Plan, Refusal>;

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

pub(crate) fn object_of(subject: &Subject) -> Value {
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
    let settings: Value = serde_json::from_str(&subject.settings).unwrap();
    let data =
        json!({"url": format!("http://x?t={token}"), "color": color(subject), "size": settings["size"].to_string()});
    Ok(plan(&object, &data, env))
}

/// Returns the colour in the ConfigMap that a Kite names.
pub(crate) fn color(subject: &Subject) -> Value {
    match subject.found.first().map(|found| &found.answer) {
        Some(Answer::Objects(texts)) => {
            let found: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            found.first().map_or(Value::Null, |found| found["data"]["color"].clone())
        }
        _ => Value::Null,
    }
}

/// Returns a plan with one ConfigMap, which contains `data`.
pub(crate) fn plan(object: &Value, data: &Value, env: Vec<EnvVar>) -> Plan {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object["metadata"]["name"]}, "data": data,
    });
    let manifests = vec![manifest.to_string()];
    let (origins, gates, notes, kept) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (finalizer, gates_hold, extra) = (None, false, "{}".to_owned());
    Plan { manifests, origins, gates, env, notes, finalizer, kept, gates_hold, extra }
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

fn policy(needs: fn(&Subject) -> Vec<Need>, translate: Translate) -> Arc<Policy> {
    let code = Native { describe, needs, map_env: |_, base| Ok(base), translate, assess };
    let digest = Digest::of(b"kite");
    Arc::new(Policy::admit(Arc::new(code), digest, &PolicyFile::default(), Limits::default()).unwrap())
}

/// A policy for Kites with its settings.
pub(crate) struct Bench {
    kind: Arc<Kind>,
    renderer: Renderer,
    policy: Arc<Policy>,
}

pub(crate) fn object(token: &str) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Kite", "metadata": {"name": "k", "namespace": "n", "uid": "u"},
        "spec": {"colors": "c", "env": [{"name": "API_TOKEN", "value": token}]},
        "status": {"appliedGeneration": 3},
    })
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(translate, &json!({"apiKey": CANARY, "size": 7}))
    }

    pub(crate) fn with(translate: Translate, settings: &Value) -> Self {
        let policy = policy(needs, translate);
        let stacks = BTreeMap::from([(kite(), Stack::single(Arc::clone(&policy)).unwrap())]);
        let layers = [Layer::tree(Origin::CommandLine, "kite", settings.clone())];
        let snapshot = Catalogue::new(&stacks, &layers).unwrap().load().unwrap();
        let kind = snapshot.answer_for(&object("")).kind().unwrap();
        let renderer = kind.renderer(&Cluster::default(), |_| true).unwrap();
        Self { kind, renderer, policy }
    }

    /// Makes a pass over a Kite that names a ConfigMap with this data.
    pub(crate) fn rendered(&self, kite: &Value, data: &Value) -> Rendered {
        let metadata = json!({"name": "c", "namespace": "n"});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        self.renderer.render(kite, &Fixed::new([config])).unwrap()
    }

    /// Records the pass over a Kite with this token.
    pub(crate) fn case(&self, token: &str) -> Case {
        self.case_of(&self.rendered(&object(token), &json!({"color": "red", "password": CANARY})))
    }

    fn case_of(&self, rendered: &Rendered) -> Case {
        let pass = RecordedPass {
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
            why: Why::Requested,
            renderer: &self.renderer,
            rendered,
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
        self.masked_case_of(&self.rendered(&object(token), &json!({"color": "red", "password": CANARY})))
    }

    pub(crate) fn masked_case_of(&self, rendered: &Rendered) -> Case {
        let find = |_: &LayerInputs| Some(Arc::clone(&self.policy));
        masked(self.case_of(rendered), &find)
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
    let layers = vec![(policy(other_needs, translate), Arc::new(case.inputs.layers[0].settings.effective()))];
    let repeated = case.inputs.repeat(layers).unwrap().unwrap();
    assert_eq!(repeated.unknown.len(), 1, "{:?}", repeated.unknown);
}

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

/// Changes the URL of every third Kite.
fn translate_differently(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let plan = translate(subject, env)?;
    let is_third = object_of(subject)["metadata"]["name"].as_str().unwrap_or_default().ends_with(['0', '3', '6', '9']);
    let manifests =
        plan.manifests.iter().map(|text| if is_third { text.replace("http:", "https:") } else { text.clone() });
    Ok(Plan { manifests: manifests.collect(), ..plan })
}

#[test]
fn replays_of_many_cases_count_the_same_changes_as_a_comparison_of_the_objects() {
    let settings = json!({"apiKey": CANARY, "size": 7});
    let (bench, candidate) = (Bench::new(), Bench::with(translate_differently, &settings));
    let (mut of_replays, mut of_objects) = (Vec::new(), Vec::new());
    for number in 0..200 {
        let mut kite = object(&format!("t{number:04}"));
        kite["metadata"]["name"] = json!(format!("k{number}"));
        let colors = json!({"color": "red"});
        let (before, after) = (bench.rendered(&kite, &colors), candidate.rendered(&kite, &colors));
        let case = bench.masked_case_of(&before);
        let Replayed { difference: replayed, unknown, .. } =
            with_candidate(&case, translate_differently, OnRefusal::Hold);
        assert!(unknown.is_empty());
        of_replays.push(replayed);
        let around = Around { live: &|_| None, exists: &|_| None, settings: Vec::new() };
        of_objects.push(difference(&kite, [Some(Answers::of(&before)), Some(Answers::of(&after))], &around));
    }
    let children = |all: &[Difference]| all.iter().map(|it| json!([it.object, it.children])).collect::<Vec<_>>();
    assert_eq!(children(&of_replays), children(&of_objects));
    let (of_replays, of_objects) = (Effect::of(&of_replays), Effect::of(&of_objects));
    assert_eq!(of_replays.counts(), of_objects.counts());
    assert_eq!(of_replays.counts().changed, 80);
}

#[test]
fn a_file_of_another_format_is_refused_with_the_format() {
    let told = |text: &str| Case::parse(text).unwrap_err().to_string();
    assert!(told("{\"format\": \"kaos-case/9\"}").contains("kaos-case/9, but this program reads kaos-case/1"));
    assert!(told("{}").contains("is not a case") && told("nonsense").contains("is not a case"));
}

#[test]
fn the_id_of_a_masked_case_shows_nothing_about_the_masked_value() {
    let bench = Bench::new();
    let (one, other) = (bench.case("1234"), bench.case("9876"));
    assert_ne!(one.decision, other.decision);
    let (one, other) = (bench.masked("1234"), bench.masked("9876"));
    assert_eq!((one.decision, &one.inputs, &one.answer), (other.decision, &other.inputs, &other.answer));
    let repeated = one.inputs.repeat(bench.layers(&one)).unwrap().unwrap();
    assert_eq!(repeated.rendered.decision(), one.decision, "the id belongs to the inputs in the case");
    let nobody = |_: &LayerInputs| None;
    let [one, other] = ["1234", "9876"].map(|token| masked(bench.case(token), &nobody));
    assert_eq!((one.decision, &one.answer.digest), (other.decision, &other.answer.digest));
}

#[test]
fn the_hashes_of_unmasked_manifests_are_masked() {
    let bench = Bench::new();
    let mut case = bench.case(CANARY);
    let live = json!({"kind": "Deployment", "metadata": {"annotations": {POD_SPEC_HASH: "0123", "other": "4567"}}});
    let child = Reference {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: None,
        name: "d".to_owned(),
    };
    let outcome = Outcome::Failed(format!("cannot use {CANARY}"));
    case.assessed = Some(ObservedChildren { outcome, children: vec![(child, Some(live))] });
    let find = |_: &LayerInputs| Some(Arc::clone(&bench.policy));
    let assessed = masked(case, &find).assessed.unwrap();
    let live = assessed.children[0].1.as_ref().unwrap();
    assert_eq!(live["metadata"]["annotations"], json!({POD_SPEC_HASH: MASK, "other": "4567"}));
    assert_eq!(assessed.outcome, Outcome::Failed(format!("cannot use {MASK}")));
}
