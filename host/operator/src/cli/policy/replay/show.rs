//! Prints whether the recorded policies give the recorded answers.

use std::process::ExitCode;

use kaos_policy::units::count;
use serde_json::{Value, json};

use super::{
    super::{
        HELD_BACK, OutputFormat,
        output::{Output, complain},
        plan::table,
        table::Table,
    },
    files::CaseFile,
    outcome::{DIFFERS, Outcome, complain_of, complain_of_unknown},
};
use crate::{
    error_text,
    plan::{Field, fields},
    record::{Case, CaseAnswer, MaskEffect, Masked},
    replay::Replayed,
};

/// Prints a line for each case, and the differences.
pub(super) fn show(
    cases: &[CaseFile],
    outcomes: &[Outcome],
    form: OutputFormat,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let both = || cases.iter().zip(outcomes);
    match form {
        OutputFormat::Json => out.json(&both().map(|(file, outcome)| document(file, outcome)).collect::<Vec<_>>())?,
        OutputFormat::Text => {
            let mut table = Table::new(&["CASE", "OBJECT", "DECISION", "ANSWER", "FUEL", "DIGEST", "RESULT"]);
            for (file, outcome) in both() {
                table.row(line(file, outcome));
            }
            out.text(&table.to_string())?;
            for (file, outcome) in both() {
                if let Ok(Some(replayed)) = outcome
                    && !replayed.is_same
                {
                    out.text(&format!("\n{}\n{}", file.name, differences(&file.case, replayed)?))?;
                }
            }
        }
    }
    out.flush()?;
    let (mut differs, mut failed) = (false, false);
    for (file, outcome) in both() {
        match outcome {
            Ok(Some(replayed)) => {
                differs |= !replayed.is_same;
                failed |= complain_of_unknown(file, replayed);
            }
            // This result is only possible with a candidate.
            Ok(None) => {}
            Err(error) => {
                complain_of(file, error);
                failed = true;
            }
        }
        tell_masks(file);
    }
    Ok(match (failed, differs) {
        (true, _) => ExitCode::from(HELD_BACK),
        (false, true) => ExitCode::from(DIFFERS),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn result(outcome: &Outcome) -> &'static str {
    match outcome {
        Ok(Some(replayed)) if replayed.is_same => "same",
        Ok(Some(replayed)) if !replayed.unknown.is_empty() => "unknown",
        Ok(Some(_)) => "differs",
        Ok(None) | Err(_) => "not replayed",
    }
}

fn line(CaseFile { name, case }: &CaseFile, outcome: &Outcome) -> [String; 7] {
    let CaseAnswer { digest, fuel, verdict } = &case.answer;
    [
        name.clone(),
        case.object.to_string(),
        case.decision.to_string(),
        verdict.word(),
        count(*fuel),
        digest.short(),
        result(outcome).to_owned(),
    ]
}

/// Returns the differences of one case, path by path.
fn differences(case: &Case, replayed: &Replayed) -> anyhow::Result<String> {
    let Replayed { answer, difference, .. } = replayed;
    let mut text = String::new();
    if answer.fuel != case.answer.fuel {
        text += &format!("fuel: {} -> {}\n", count(case.answer.fuel), count(answer.fuel));
    }
    if answer.digest != case.answer.digest {
        text += &format!("digest: {} -> {}\n", case.answer.digest.short(), answer.digest.short());
        text += &table(std::slice::from_ref(difference));
        if !difference.is_change() {
            for Field { path, before, after } in of_verdicts(&case.answer, answer)? {
                let shown = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
                text += &format!("{path}: {} -> {}\n", shown(before), shown(after));
            }
        }
    }
    Ok(text)
}

/// Returns the fields in which two answers differ, including fields outside of the manifests.
fn of_verdicts(before: &CaseAnswer, after: &CaseAnswer) -> anyhow::Result<Vec<Field>> {
    Ok(fields(&serde_json::to_value(&before.verdict)?, &serde_json::to_value(&after.verdict)?))
}

fn document(CaseFile { name, case }: &CaseFile, outcome: &Outcome) -> Value {
    let answer =
        |answer: &CaseAnswer| json!({"answer": answer.verdict.word(), "digest": answer.digest, "fuel": answer.fuel});
    let mut document = json!({
        "case": name, "object": case.object, "decision": case.decision, "why": case.why, "result": result(outcome),
        "recorded": answer(&case.answer), "masked": case.masked,
    });
    match outcome {
        Ok(Some(replayed)) => {
            document["replayed"] = answer(&replayed.answer);
            document["unknown"] = json!(replayed.unknown);
            if !replayed.is_same {
                document["difference"] = json!(replayed.difference);
            }
        }
        Ok(None) => {}
        Err(error) => document["error"] = json!(error_text::with_causes(error)),
    }
    document
}

/// Prints a note if the masks of a case changed its answer.
fn tell_masks(CaseFile { name, case }: &CaseFile) {
    let Some(Masked { effect, .. }) = &case.masked else { return };
    match effect {
        MaskEffect::Nothing => {}
        MaskEffect::Fuel { before } => {
            let what = format!("{} instead of {}", count(case.answer.fuel), count(*before));
            complain("note", format_args!("{name}: masked secret values change the fuel of this case: {what}"));
        }
        MaskEffect::Answer { what, .. } => {
            complain("note", format_args!("{name}: masked secret values change the answer of this case: {what}"));
        }
        MaskEffect::Unknown => {
            complain("note", format_args!("{name}: masked secret values may change the answer of this case"));
        }
    }
}
