//! Prints what a candidate would change for the objects of the recorded cases, as `policy plan` does.

use std::{collections::BTreeMap, process::ExitCode};

use super::{
    super::{
        HELD_BACK, OutputFormat,
        output::Output,
        plan::{Planned, show as show_plan},
    },
    files::CaseFile,
    outcome::{Outcome, complain_of, complain_of_unknown},
};
use crate::plan::Difference;

/// Prints the changes. If an object has several cases, uses the newest case.
pub(super) fn show(
    cases: Vec<CaseFile>,
    outcomes: Vec<Outcome>,
    form: OutputFormat,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let mut all: Vec<(CaseFile, Outcome)> = cases.into_iter().zip(outcomes).collect();
    all.sort_by(|(one, _), (other, _)| (&one.case.at, &one.name).cmp(&(&other.case.at, &other.name)));
    let mut newest = BTreeMap::new();
    for (file, outcome) in all {
        newest.insert(file.case.object.clone(), (file, outcome));
    }
    let (mut differences, mut is_unknown): (Vec<Difference>, bool) = (Vec::new(), false);
    for (file, outcome) in newest.into_values() {
        match outcome {
            Ok(Some(replayed)) => {
                if complain_of_unknown(&file, &replayed) {
                    is_unknown = true;
                } else {
                    differences.push(replayed.difference);
                }
            }
            // The candidate does not concern the object.
            Ok(None) => {}
            Err(error) => {
                complain_of(&file, &error);
                is_unknown = true;
            }
        }
    }
    let planned = Planned::new(differences.len(), differences);
    let code = show_plan(&planned, form, out)?;
    Ok(if is_unknown { ExitCode::from(HELD_BACK) } else { code })
}
