//! Calls each function of a policy or an overlay twice in one sandbox, to find code that keeps state. In a pass, the
//! number of calls depends on the rounds of needs, so code with state could give different answers.

use super::Case;
use crate::{
    code::{Sandbox, World},
    contract::{EnvVar, Subject},
    failure::{Failure, Verb},
    gate::{LoadError, beneath::plan_beneath},
    render::Rendered,
};

/// The function that answered differently in its second call; `None` if no function did.
type Answered = Result<Option<Verb>, Failure>;

impl Case<'_> {
    /// Returns an error if a function gives different answers in one sandbox.
    pub(super) fn keeps_no_state(&self, rendered: &Rendered) -> Result<(), LoadError> {
        let _turn = self.turn()?;
        let outcome = match self.policy.world() {
            World::Policy => self.in_sandbox(|sandbox| policy(sandbox, rendered.subject())),
            World::Overlay => self.overlay(rendered),
        };
        match outcome {
            Ok(None) => Ok(()),
            Ok(Some(verb)) => {
                let (kind, sample) = self.names();
                Err(LoadError::KeepsState { kind, sample, verb })
            }
            Err(failure) => Err(self.fails(failure)),
        }
    }

    /// Calls the functions of an overlay. As in a pass, `amend` runs in a sandbox of its own.
    fn overlay(&self, rendered: &Rendered) -> Answered {
        let Some(mut subject) = rendered.subject_of_overlay(0) else { return Ok(None) };
        subject.cluster.served.clone_from(&self.claim.wishes);
        let mut mapped = None;
        let differs = self.in_sandbox(|sandbox| map(sandbox, &subject, &mut mapped))?;
        let (None, Some(env)) = (differs, mapped) else { return Ok(differs) };
        let below = plan_beneath(self.claim, &rendered.object.name, &env);
        self.in_sandbox(|sandbox| {
            sandbox.begin(&subject)?;
            let plan = sandbox.amend(below.clone())?;
            Ok((plan != sandbox.amend(below.clone())?).then_some(Verb::Amend))
        })
    }

    /// Calls functions in a new sandbox. Two calls of each function can take twice the fuel of one call. The memory can
    /// also double, because a component need not free memory.
    fn in_sandbox(&self, calls: impl FnOnce(&mut dyn Sandbox) -> Answered) -> Answered {
        let limits = self.policy.limits().doubled();
        let mut sandbox = self.policy.code().open(&limits)?;
        let answered = calls(&mut *sandbox);
        self.spend(sandbox.fuel_used());
        answered
    }
}

/// Begins a pass, and calls `needs` and `map-env`, each twice. Unless the code refuses, stores the mapping in `mapped`.
fn map(sandbox: &mut dyn Sandbox, subject: &Subject, mapped: &mut Option<Vec<EnvVar>>) -> Answered {
    sandbox.begin(subject)?;
    if sandbox.needs(&[])? != sandbox.needs(&[])? {
        return Ok(Some(Verb::Needs));
    }
    let env = sandbox.map_env(Vec::new())?;
    if env != sandbox.map_env(Vec::new())? {
        return Ok(Some(Verb::MapEnv));
    }
    *mapped = env.ok();
    Ok(None)
}

fn policy(sandbox: &mut dyn Sandbox, subject: &Subject) -> Answered {
    let mut mapped = None;
    let differs = map(sandbox, subject, &mut mapped)?;
    let (None, Some(env)) = (differs, mapped) else { return Ok(differs) };
    let plan = sandbox.translate(env.clone())?;
    Ok((plan != sandbox.translate(env)?).then_some(Verb::Translate))
}

#[cfg(test)]
mod tests;
