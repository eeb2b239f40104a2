//! Tests policies that are scripts: valid scripts load, and each defect has a typed error.

use std::{fmt::Write as _, sync::Arc};

use kaos_policy::{
    code::World,
    contract::{Cluster, ResourceType},
    failure::{Failure, Verb},
    gate::{Candidate, CodeForm, LoadError},
    policy::Policy,
};
use serde_json::{Value, json};

use crate::support::{check, limits, load_with};

const WEBSITE: &str = include_str!("../../../guest-policies/template/javascript/policy.js");

fn candidate(text: &str) -> Candidate {
    Candidate { form: CodeForm::Script, bytes: text.into(), ..Candidate::default() }
}

fn load(text: &str) -> Result<Arc<Policy>, LoadError> {
    load_with(&candidate(text))
}

/// Returns the message with which a script fails to load.
fn refused(text: &str) -> String {
    match load(text) {
        Err(LoadError::Script(reason)) => reason,
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns a script whose `translate` has this body. The body begins in line 3, column 1.
fn translating(body: &str) -> String {
    let describe = "export const describe = () => ({name: 'kite', version: '1.0.0', claims: [{primary: {apiVersion: \
                    'sky.io/v1', kind: 'Kite'}, emits: [{apiVersion: 'v1', kind: 'ConfigMap'}], samples: [{name: \
                    'one', object: {apiVersion: 'sky.io/v1', kind: 'Kite', metadata: {name: 'a', namespace: 'n'}}}]}]});";
    format!("{describe}\nexport function translate(subject, env) {{\n{body}\n}}\n")
}

/// Returns the failure that the gate reports for the only sample of a script whose `translate` has this body.
fn failure(body: &str) -> Failure {
    match load(&translating(body)) {
        Err(LoadError::FailsSample { failure, .. }) => failure,
        other => panic!("{body}: {other:?}"),
    }
}

fn told(body: &str) -> String {
    match failure(body) {
        Failure::Script { reason, .. } => reason,
        other => panic!("{body}: {other:?}"),
    }
}

const PLAN: &str = "return {manifests: [{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'a'}, data: {}}]};";

#[test]
fn a_script_passes_the_gate_and_names_its_engine() {
    let checked = check(&candidate(WEBSITE), limits());
    let policy = checked.result.unwrap();
    assert_eq!((policy.id().name.as_str(), policy.id().version.as_str()), ("website", "0.1.0"));
    assert_eq!(policy.id().digest, kaos_policy::digest::Digest::of(WEBSITE.as_bytes()));
    let engine = kaos_policy::engine::ScriptEngine::shipped().unwrap().digest;
    assert_eq!(policy.script_engine(), Some(engine));
    assert_eq!(checked.inspection.unwrap().script_engine, Some(engine));
    assert!(policy.claim(&ResourceType::new("example.com/v1", "Website")).is_some());
    assert!(load(&translating(PLAN)).is_ok(), "needs, mapEnv and assess have defaults");
}

#[test]
fn a_script_that_does_not_load_is_refused_with_place_and_remedy() {
    for (text, expected) in [
        (
            "const x = 1;\nlet y = ;",
            "policy.js:2:9: SyntaxError: unexpected token in expression: ';': correct the syntax",
        ),
        ("", "policy.js:1:1: the script does not export `describe`: write `export function describe`"),
        ("export const describe = 1;", "policy.js:1:1: the export `describe` is not a function: write"),
        ("import a from 'b';", "policy.js:1:1: ReferenceError: could not load module 'b': a script has one file: copy"),
        ("await 1;", "policy.js:1:1: the script awaits a Promise, and a policy does not wait: remove `await`"),
        ("\n\nnope();", "policy.js:3:1: ReferenceError: nope is not defined: define the name, or correct its spelling"),
        ("throw 'no';", "policy.js:1:1: Error: no: catch the error"),
        (
            "const t = Date.now();",
            "policy.js:1:15: TypeError: Date.now() is not available, since a policy is a pure function: ",
        ),
        ("const t = new Date();", "TypeError: new Date() is not available, since a policy is a pure function: "),
        ("Math.random();", "TypeError: Math.random() is not available, since a policy is a pure function: "),
        ("eval('1');", "TypeError: eval() is not available"),
        ("(() => {}).constructor('return 1')();", "TypeError: Function() is not available"),
        (
            "'a'.repeat(1e9);",
            "policy.js:1:4: InternalError: out of memory: build smaller values, or raise limits.memory",
        ),
        (
            "function f() { return 1 + f(); }\nf();",
            "RangeError: Maximum call stack size exceeded: use a loop instead of",
        ),
    ] {
        let reason = refused(text);
        assert!(reason.contains(expected), "{text}: {reason}");
    }
    let long = refused(&"x".repeat(300_000));
    assert!(long.starts_with("policy.js:1:1: the script has 300000 bytes, but the limit is 262144: remove"), "{long}");
    let bytes = Candidate { bytes: b"let a;\n\xff".to_vec(), ..candidate("") };
    let error = load_with(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "policy.js:2:1: the script is not UTF-8 text: save it as UTF-8");
    assert_eq!((error.reason(), error.is_lasting()), ("BadScript", true));
}

#[test]
fn a_wrong_answer_is_refused_with_its_path_and_remedy() {
    for (body, expected) in [
        ("return {};", "policy.js:2:8: translate returns a wrong value: manifests is missing: write a list"),
        ("", "translate returns a wrong value: the answer is missing: write an object"),
        ("return {manifests: {}};", "manifests is an object: write a list"),
        (
            "return {manifest: []};",
            "manifest is not a field of this record: remove the field, or use one of manifests, origins",
        ),
        (
            "return {manifests: [{a: 2 ** 53}]};",
            "manifests[0].a is 9007199254740992, and JavaScript has no exact integers",
        ),
        ("return {manifests: [{a: NaN}]};", "manifests[0].a is NaN, which JSON does not have"),
        ("return {manifests: [{a: 1n}]};", "manifests[0].a is a BigInt"),
        ("return {manifests: [{a: [() => 1]}]};", "manifests[0].a[0] is a function"),
        ("return {manifests: [new Map()]};", "manifests[0] is an object of a class"),
        ("return {manifests: [{a: [undefined]}]};", "manifests[0].a[0] is undefined"),
        ("const a = {}; a.a = a; return {manifests: [a]};", "has more than 64 levels, or contains itself"),
        (
            "return {manifests: [], gates: [{on: {kind: 'A'}, reason: 'R', message: 'm'}]};",
            "gates[0].on.apiVersion is missing",
        ),
        (
            "return {manifests: [], notes: [{severity: 'loud', reason: 'R', message: 'm'}]};",
            "notes[0].severity has the unknown tag \"loud\"",
        ),
        (
            "return {manifests: [], origins: [{manifest: -1, path: '', from: 'spec'}]};",
            "origins[0].manifest is a number: write a whole number from 0",
        ),
        ("return {manifests: [], origins: [{manifest: 0, path: ''}]};", "origins[0].from is missing: write a text"),
        ("return (async () => 1)();", "the answer is a Promise, and a policy does not wait"),
        ("throw {tag: 'invalid', val: [{path: 'spec'}]};", "val[0].message is missing: write a text"),
        (
            "return subject.no.x;",
            "policy.js:3:8: TypeError in translate: cannot read property 'x' of undefined: check the value",
        ),
        (
            "throw new RangeError('too far');",
            "RangeError in translate: too far: catch the error, or refuse the object with",
        ),
    ] {
        let reason = told(body);
        assert!(reason.starts_with("policy.js:") && reason.contains(expected), "{body}: {reason}");
    }
}

/// Returns whether a failure is at this place of the script. The text `place` is a line, or a line and a column.
fn is_at(failure: &Failure, place: &str) -> bool {
    failure.to_string().starts_with(&format!("policy.js:{place}:"))
}

#[test]
fn endless_work_ends_at_the_limit_for_fuel_and_names_the_line() {
    for (body, place) in [
        ("let a = 0;\nfor (;;) {\n  a += 1;\n}", "5"),
        ("while (true) {}", "3"),
        ("\nfor (;;) { try { for (;;) {} } catch { } finally { } }", "4"),
        ("for (;;) {\n  JSON.parse(JSON.stringify(subject));\n}", "4"),
        ("for (;;) {\n  kaos.yaml('a: 1');\n}", "4"),
        ("[1, 2].forEach((a) => {\n  for (;;) {}\n});", "4"),
        ("return [...'abc'].map((a) =>\n  { while (a) { } });", "4"),
        ("\n/(a+)+$/.test('a'.repeat(40) + 'b');", "4"),
        ("const a = {get b() {\n  for (;;) {} }};\nreturn a.b;", "4"),
        ("const endless = {*[Symbol.iterator]() {\n  for (;;) yield 1; }};\nfor (const a of endless) {}", "5"),
        ("\nreturn (async () => { for (;;) {} })();", "4"),
    ] {
        let failure = failure(body);
        assert!(matches!(failure, Failure::OutOfFuel { verb: Verb::Translate, .. }), "{body}: {failure:?}");
        assert!(is_at(&failure, place), "{body}: {failure}");
        assert!(failure.to_string().ends_with(": end the loop, or compute less"), "{body}: {failure}");
    }
    match load("let a = 1;\n\nfor (;;) a += 1;") {
        Err(LoadError::Instantiate(failure @ Failure::OutOfFuel { verb: Verb::Load, .. })) => {
            assert!(is_at(&failure, "3"), "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

/// The engine records every 16th poll. If the sandbox ends before the first recorded poll of a function, the error names
/// the place of the function's definition: `2:8`. Another build of the engine may record other polls.
#[test]
fn too_much_memory_ends_at_the_limit_and_names_the_line_or_the_function() {
    let mut wrong = Vec::new();
    for (body, place) in [
        ("\nreturn 'x'.repeat(1e9);", "4:12"),
        ("let a = 'x';\nfor (;;) {\n  a += a;\n}", "5"),
        ("const a = [];\nfor (;;) a.push({});", "4"),
        ("const a = [];\nfor (;;) a.push('x' + a.length);", "4"),
        ("const a = {};\nfor (let i = 0; ; i++) a['k' + i] = i;", "4"),
        ("\nreturn new Array(1e8).fill(0);", "4:23 2:8"),
        ("let a = 'x'.repeat(1e6);\nfor (;;) a = JSON.parse(JSON.stringify([a, a]));", "2:8"),
        ("const a = new Map();\nfor (;;) a.set({}, 'x'.repeat(1000));", "4"),
        ("const a = [];\nfor (;;) { try { a.push('x'.repeat(1e5) + a.length); } catch { } }", "4"),
        ("\nreturn {manifests: [{a: 'x'.repeat(9e6)}]};", "2:8"),
    ] {
        let failure = failure(body);
        let is_typed = matches!(failure.category(), "ScriptError" | "OutOfMemory" | "OutOfFuel");
        if !is_typed || !place.split(' ').any(|place| is_at(&failure, place)) {
            wrong.push(format!("{body}: {failure:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_script_that_stops_is_the_same_after_each_run() {
    let once = failure("for (let i = 0; ; i++) {\n  if (i % 7) JSON.stringify(subject);\n}");
    for _ in 0..3 {
        assert_eq!(failure("for (let i = 0; ; i++) {\n  if (i % 7) JSON.stringify(subject);\n}"), once);
    }
}

/// Returns a script for an overlay whose `amend` has this body. The body begins in line 3, column 1.
fn amending(body: &str) -> String {
    translating(body).replace("translate(subject, env)", "amend(subject, below)")
}

#[test]
fn a_script_that_exports_amend_is_an_overlay() {
    let checked = check(&candidate(&amending("return below;")), limits());
    assert_eq!(checked.result.unwrap().world(), World::Overlay);
    assert_eq!(checked.inspection.unwrap().world, World::Overlay);
    assert_eq!(load(&translating(PLAN)).unwrap().world(), World::Policy);
    for (body, place, told) in [
        ("return {};", "2:8", "amend returns a wrong value: manifests is missing: write a list"),
        ("below.manifests[7].kind;", "3:1", "TypeError in amend: cannot read property 'kind' of undefined"),
        ("\nwhile (below) { }", "4", "amend ran out of fuel: "),
    ] {
        match load(&amending(body)) {
            Err(LoadError::FailsSample { failure, .. }) => {
                assert!(is_at(&failure, place) && failure.to_string().contains(told), "{failure}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }
    let both = refused(&(amending("return below;") + "export const translate = () => {};"));
    assert!(both.starts_with("policy.js:1:1: the script exports `amend` and `translate`, but an overlay"), "{both}");
}

#[test]
fn deep_recursion_of_any_kind_is_an_error_of_the_script() {
    for body in [
        "function f() { return 1 + f(); } f();",
        "function f() { return [1].map(f); } f();",
        "function f() { return 'a'.replace(/a/, f); } f();",
        "function f() { return [2, 1].sort(f); } f();",
        "const o = {toString() { return '' + o; }}; '' + o;",
        "const o = {get a() { return o.a; }}; o.a;",
        "const o = {toJSON() { return JSON.stringify(o); }}; JSON.stringify(o);",
        "let a = []; for (let i = 0; i < 10000; i++) a = [a]; JSON.stringify(a);",
        "JSON.parse('['.repeat(100000));",
        "JSON.parse('{\"a\":'.repeat(100000));",
        "class A { constructor() { new A(); } } new A();",
        "function* g() { yield* g(); } [...g()];",
        "let b = () => 1; for (let i = 0; i < 1000; i++) b = b.bind(null); b();",
        "let a = []; for (let i = 0; i < 10000; i++) a = [a]; a.flat(Infinity);",
    ] {
        let reason = told(body);
        assert!(reason.contains("call stack size exceeded: use a loop"), "{body}: {reason}");
    }
    let many = |open: &str, close: &str| format!("x = {}1{}", open.repeat(20_000), close.repeat(20_000));
    for text in [many("(", ")"), many("[", "]"), many("{a:", "}"), many("!", ""), many("a=>", ""), many("`${", "}`")] {
        let reason = refused(&text);
        assert!(reason.starts_with("policy.js:1:"), "{reason}");
    }
}

#[test]
fn a_thousand_sandboxes_answer_alike_with_one_fuel_count() {
    let policy = load(WEBSITE).unwrap();
    let subject = subject(&json!({"apiVersion": "example.com/v1", "kind": "Website",
        "metadata": {"name": "blog", "namespace": "default"}, "spec": {"title": "Hi"}}));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        let mut sandbox = policy.code().open(policy.limits()).unwrap();
        sandbox.begin(&subject).unwrap();
        let env = sandbox.map_env(Vec::new()).unwrap().unwrap();
        let plan = sandbox.translate(env).unwrap().unwrap();
        seen.insert((format!("{plan:?}"), sandbox.fuel_used(), sandbox.memory()));
    }
    assert_eq!(
        seen.len(),
        1,
        "{}",
        seen.iter().fold(String::new(), |mut text, (_, fuel, memory)| {
            let _ = write!(text, "{fuel} {memory}; ");
            text
        })
    );
    let (_, fuel, memory) = seen.first().unwrap();
    assert!(*fuel < 20_000_000 && *memory < 8 << 20, "{fuel} {memory}");
}

fn subject(object: &Value) -> kaos_policy::contract::Subject {
    kaos_policy::contract::Subject {
        object: object.to_string(),
        found: Vec::new(),
        settings: json!({"image": "nginx:test", "port": 8080}).to_string(),
        cluster: Cluster::default(),
        applied: false,
        extra: "{}".to_owned(),
    }
}
