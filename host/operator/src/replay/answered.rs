//! The answer of a repeated decision.

use kaos_policy::render::Repeated;

use crate::record::{Case, CaseAnswer, CaseVerdict};

/// Returns the answer of a repeated decision: the answer of the pass. If the case records a failure of `assess`,
/// repeats `assess`, and returns its failure.
pub(super) fn answer_of(case: &Case, Repeated { renderer, rendered, .. }: &Repeated) -> CaseAnswer {
    let of_pass = || CaseAnswer::new(CaseVerdict::of(rendered), rendered.fuel);
    let Some(assessed) = case.assessed.as_ref().filter(|_| rendered.failed().is_none()) else { return of_pass() };
    match renderer.assess_counted(rendered, assessed.outcome.clone(), assessed.children()) {
        (Err(failure), fuel, _) => CaseAnswer::new(CaseVerdict::failed(&failure), fuel),
        (Ok(_), ..) => of_pass(),
    }
}
