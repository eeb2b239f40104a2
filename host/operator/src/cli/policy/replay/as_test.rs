//! `--as-test`: writes cases as tests into a project of `policy new`, in the form of the project's tests.
//!
//! - A project in Rust gets `tests/cases/NAME.json` for each case, and one `tests/cases.rs`, which compares all cases.
//! - A project with a script gets `tests/NAME.yaml` with the objects and `tests/NAME.expected.yaml` with the manifests.
//!   If `render` needs flags, the project also gets `tests/NAME.flags`. The project's `test.sh` renders the objects,
//!   and compares the manifests. If `render` cannot repeat the case, the project gets `tests/cases/NAME.kaos` instead,
//!   which its `test.sh` replays.
//! - Any other project gets the case itself as `tests/cases/NAME.kaos`, for `policy replay --policy`.

use std::{fs, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context as _, bail};
use kaos_policy::{
    contract::{Plan, Refusal, Subject},
    failure::Failure,
    policy::Policy,
    render::{AnsweredNeed, LayerInputs},
    settings::Effective,
};
use serde_json::{Value, json};

use super::{
    super::{HELD_BACK, output::complain},
    files::CaseFile,
    outcome::complain_of,
    project::{put, put_case},
    script_test,
};
use crate::{
    record::{Case, CaseVerdict},
    replay::{KnownCode, ReplayError},
};

/// The test that compares the cases of a project in Rust. This test contains the names of the template instead of the
/// project's names.
const HARNESS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/tests/cases.rs"));

/// Writes each case as a test.
pub(super) fn write(project: &Path, cases: &[CaseFile], code: &KnownCode<'_>) -> anyhow::Result<ExitCode> {
    let mut is_complete = true;
    for file in cases {
        let Case { object, decision, .. } = &file.case;
        let name = format!("{}-{}-{decision}", object.kind.to_lowercase(), object.name);
        let written = if project.join("Cargo.toml").exists() {
            match rust(&file.case, code) {
                Ok(test) => {
                    let path = format!("tests/cases/{name}.json");
                    put(project, &path, &format!("{test:#}\n"))?;
                    harness(project)?;
                    path
                }
                Err(error) => {
                    complain_of(file, &error);
                    is_complete = false;
                    continue;
                }
            }
        } else if project.join("policy.js").exists() {
            script_test::write(project, &name, &file.case)?
        } else if project.join("policy.yaml").exists() || project.join("go.mod").exists() {
            let run = "kaos-operator policy replay tests/cases --policy X.wasm";
            complain("note", format_args!("run `{run}` with the component of the project"));
            put_case(project, &name, &file.case)?
        } else {
            bail!("{}: is not a project of `policy new`", project.display());
        };
        complain("made", project.join(written).display());
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(HELD_BACK) })
}

/// Returns the test for a project in Rust: the inputs of the policy, and the answer that the host got from the policy.
fn rust(case: &Case, code: &KnownCode<'_>) -> Result<Value, ReplayError> {
    let incomplete = || ReplayError::Incomplete("it has no policy".to_owned());
    let layer = case.inputs.layers.first().ok_or_else(incomplete)?;
    let found: Vec<Value> =
        layer.needs.iter().map(|AnsweredNeed { need, answer, .. }| json!({"id": need.id, "answer": answer})).collect();
    let mut test = json!({
        "object": case.inputs.object, "applied": case.inputs.applied, "settings": layer.settings.values,
        "domain": case.inputs.cluster.domain, "served": case.inputs.cluster.served, "found": found,
    });
    let expected = match &case.answer.verdict {
        CaseVerdict::Planned(_) => {
            let policy = code.policy(layer, case.policies.first())?;
            answer(&policy, case, layer)?.ok().map(|answer| document(&answer))
        }
        CaseVerdict::Refused(refusal) => Some(refused(refusal)),
        CaseVerdict::Failed(_) => None,
    };
    if let Some(expected) = expected {
        test["expected"] = expected;
    }
    Ok(test)
}

/// Returns the policy's own answer: without the changes of overlays, and without the metadata that the host adds to
/// manifests.
fn answer(
    policy: &Arc<Policy>,
    case: &Case,
    layer: &LayerInputs,
) -> Result<Result<Result<Plan, Refusal>, Failure>, ReplayError> {
    let settings: Arc<Effective> = Arc::new(layer.settings.effective());
    let Some(repeated) = case.inputs.repeat(vec![(Arc::clone(policy), settings)]) else {
        return Err(ReplayError::Incomplete("it has no policy".to_owned()));
    };
    let rendered = repeated?.rendered;
    let plan = |subject: &Subject| {
        let mut sandbox = policy.code().open(policy.limits())?;
        sandbox.begin(subject)?;
        match sandbox.map_env(Vec::new())? {
            Ok(env) => sandbox.translate(env),
            Err(refusal) => Ok(Err(refusal)),
        }
    };
    Ok(plan(rendered.subject()))
}

/// Returns the part of an answer that the test compares.
fn document(answer: &Result<Plan, Refusal>) -> Value {
    match answer {
        Ok(Plan { manifests, gates, .. }) => {
            let manifests: Vec<Value> =
                manifests.iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect();
            let gates: Vec<String> =
                gates.iter().map(|gate| format!("{}/{}: {}", gate.on.kind, gate.on.name, gate.reason)).collect();
            json!({"manifests": manifests, "gates": gates})
        }
        Err(refusal) => refused(refusal),
    }
}

fn refused(refusal: &Refusal) -> Value {
    match refusal {
        Refusal::Invalid(all) => {
            json!({"invalid": all.iter().map(|it| format!("{}: {}", it.path, it.message)).collect::<Vec<_>>()})
        }
        Refusal::Waiting(all) => {
            let told = all.iter().map(|it| format!("{}/{}: {}", it.on.kind, it.on.name, it.reason));
            json!({"waiting": told.collect::<Vec<_>>()})
        }
        Refusal::Unsupported(message) => json!({"unsupported": message}),
    }
}

/// Writes the test that compares the cases, if the project does not have it.
fn harness(project: &Path) -> anyhow::Result<()> {
    let path = "tests/cases.rs";
    if project.join(path).exists() {
        return Ok(());
    }
    let read =
        |path: &str| fs::read_to_string(project.join(path)).with_context(|| project.join(path).display().to_string());
    let (manifest, source) = (read("Cargo.toml")?, read("src/lib.rs")?);
    let package = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let policy = source.lines().find_map(|line| {
        let (_, inside) = line.split_once("export_policy!(")?;
        inside.split([',', ')']).next()
    });
    let (Some(package), Some(policy)) = (package, policy) else {
        bail!("{}: Cargo.toml has no name, or src/lib.rs does not export a policy", project.display());
    };
    put(project, path, &HARNESS.replace("website_policy", &package.replace('-', "_")).replace("Website", policy.trim()))
}
