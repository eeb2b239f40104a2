//! Checks the table `Rust to JavaScript` of the guide. The test has two policies: a script, which contains all code in
//! the table's second column, and a policy in Rust, which contains all code in the first column. The two policies must
//! give the same answers.

mod policy;

use kaos_policy::code::Code;
use kaos_policy::contract::{
    Answer, EnvVar, Found, Need, Observation, Outcome, Plan, Refusal, Report, SecretFacts, Subject,
};
use kaos_policy::limits::Limits;
use kaos_policy::native_code;
use kaos_tests::websites;
use serde_json::json;

use super::same::load;

const GUIDE: &str = include_str!("../../../../docs/guide/writing-scripts.md");
const RUST: &str = include_str!("policy.rs");
const SCRIPT: &str = include_str!("policy.js");

/// A row of the table: the text of the first column, and the code in each column.
struct Row {
    rust: String,
    codes: [Vec<String>; 2],
}

/// Returns the code in a text: the parts in backquotes.
fn codes(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows() -> Vec<Row> {
    let (_, table) = GUIDE.split_once("| Rust | JavaScript |\n|---|---|\n").expect("the guide has the table");
    let rows = table.lines().take_while(|line| line.starts_with('|')).map(|line| {
        let (rust, script) = line.trim_matches(['|', ' ']).split_once(" | ").expect("a row has two columns");
        Row { rust: rust.replace('`', ""), codes: [codes(rust), codes(script)] }
    });
    rows.collect()
}

/// Puts the code of the table into the script. Fails if the script contains no «…» for a piece of code.
fn script() -> String {
    let rows = rows();
    assert!(rows.len() > 10, "the table has only {} rows", rows.len());
    let mut script = SCRIPT.to_owned();
    for Row { rust, codes: [_, codes] } in &rows {
        for (number, code) in codes.iter().enumerate() {
            let places =
                |start: &str| if number == 0 { format!("«{start}»") } else { format!("«{start}:{number}»") };
            let start =
                (1..=rust.len()).filter_map(|end| rust.get(..end)).find(|start| script.contains(&places(start)));
            let start = start.unwrap_or_else(|| panic!("policy.js does not use `{code}` of the row `{rust}`"));
            script = script.replace(&places(start), code);
        }
    }
    // Put a blocker into this code, because the guide writes `…` there.
    script = script.replace("kaos.waiting(…)", "kaos.waiting(gate)");
    let (_, code) = script.split_once("\nconst ").unwrap();
    assert!(!code.contains(['«', '…']), "the table has no such code: {code}");
    script
}

type Answers = (Vec<Need>, Vec<Need>, Result<(Vec<EnvVar>, Result<Plan, Refusal>), Refusal>, Report);

/// Makes all calls of a pass to a policy, with these answers to its needs.
fn answers(code: &dyn Code, subject: &Subject, found: &[Found]) -> Answers {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(subject).unwrap();
    let (first, again) = (sandbox.needs(&[]).unwrap(), sandbox.needs(found).unwrap());
    let planned = sandbox.map_env(Vec::new()).unwrap().map(|env| (env.clone(), sandbox.translate(env).unwrap()));
    let (outcome, extra) = (Outcome::Applied, "{}".to_owned());
    let (children, gates, env, notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let seen = Observation { outcome, children, gates, env, notes, extra };
    (first, again, planned, sandbox.assess(&seen).unwrap())
}

#[test]
fn the_code_of_the_table_in_the_guide_exists_and_answers_alike_in_both_languages() {
    let without_spaces = |text: &str| text.replace(char::is_whitespace, "");
    for code in rows().iter().flat_map(|row| &row.codes[0]) {
        assert!(without_spaces(RUST).contains(&without_spaces(code)), "policy.rs does not use `{code}` of the table");
    }
    let (script, rust) = (load(&script()), native_code!(kaos_policy_sdk, policy::Table));
    let secret = |present: bool| {
        let keys = if present { vec!["password".to_owned(), "user".to_owned()] } else { Vec::new() };
        Answer::Secret(SecretFacts { present, keys, digest: "d1".to_owned() })
    };
    let model = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm"}});
    let mut refusals = 0;
    for login in [secret(true), secret(false), Answer::Forbidden("no right".to_owned())] {
        for models in [Vec::new(), vec![model.to_string()]] {
            for waits in [true, false] {
                let subject = websites::subject(
                    &websites::blog(),
                    &json!({"title": "Hello", "waits": waits,
                    "passwordFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}),
                );
                let subject = Subject { settings: "{}".to_owned(), ..subject };
                let found = |id: &str, answer: &Answer| Found { id: id.to_owned(), answer: answer.clone() };
                let found = [found("login", &login), found("model", &Answer::Objects(models.clone()))];
                let (own, wanted) = (answers(script.code(), &subject, &found), answers(&rust, &subject, &found));
                refusals += usize::from(matches!(own.2, Ok((_, Err(Refusal::Waiting(_))))));
                assert_eq!(own, wanted, "{login:?}, {models:?}, waits: {waits}");
            }
        }
    }
    assert_eq!(refusals, 2, "only an object that waits for an absent Secret is refused");
}
