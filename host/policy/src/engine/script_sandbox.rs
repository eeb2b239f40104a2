//! Answers the calls of a pass with a script, and finds the place in the script at which a sandbox ended.
//!
//! A sandbox that runs out of fuel or memory ends at once, so the script engine cannot report a place. But `progress`
//! shows how far the script came. The host repeats the same calls in a second sandbox, and the script engine stops the
//! script at the last poll. A script is a pure function, so the second sandbox comes to the same place.

use std::rc::Rc;

use super::{
    code::WasmSandbox,
    progress::Progress,
    script_start::{NotLoaded, SCRIPT, Script},
};
use crate::{
    code::Sandbox,
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    failure::Failure,
    limits::Limits,
};

/// The additional memory of a second sandbox in bytes. The script engine needs this memory to report the place.
const MEMORY: usize = 4 << 20;

/// A call of a sandbox, without its answer.
type Call = Box<dyn Fn(&mut WasmSandbox) -> Result<(), Failure>>;

/// A sandbox that loaded a script.
pub(super) struct ScriptSandbox<'a> {
    script: &'a Script,
    sandbox: WasmSandbox,
    limits: Limits,
    /// All calls of this sandbox, in their order.
    calls: Vec<Call>,
}

impl<'a> ScriptSandbox<'a> {
    pub(super) fn new(script: &'a Script, sandbox: WasmSandbox, limits: Limits) -> Self {
        Self { script, sandbox, limits, calls: Vec::new() }
    }

    fn ask<A: 'static, T: 'static>(
        &mut self,
        argument: A,
        ask: fn(&mut WasmSandbox, &A) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let argument = Rc::new(argument);
        let same = Rc::clone(&argument);
        self.calls.push(Box::new(move |sandbox| ask(sandbox, &same).map(drop)));
        let Self { script, sandbox, limits, calls } = self;
        ask(sandbox, &argument).map_err(|failure| placed(script, failure, sandbox.progress(), limits, calls))
    }
}

/// Adds the place in the script to a failure. `calls` are the calls after the script was loaded; the last one failed.
pub(super) fn placed(
    script: &Script,
    failure: Failure,
    progress: Option<Progress>,
    limits: &Limits,
    calls: &[Call],
) -> Failure {
    let find = || find(script, progress, limits, calls);
    match failure {
        Failure::OutOfFuel { verb, limit, .. } => Failure::OutOfFuel { verb, at: Some(find()), limit },
        Failure::OutOfMemory { verb, wanted, limit, .. } => {
            Failure::OutOfMemory { verb, at: Some(find()), wanted, limit }
        }
        // When a script fails, the script engine traps with a message that begins with the place.
        Failure::Trap { verb, reason } if place(&reason).is_some() => Failure::Script { verb, reason },
        Failure::Trap { verb, reason } => {
            let at = find();
            Failure::Script { verb, reason: format!("{at}: {verb} trapped: {reason}: change the code at this place") }
        }
        other => other,
    }
}

/// Returns the last known place in the script. If the host finds no better place, returns the place of the function
/// that ran.
fn find(script: &Script, progress: Option<Progress>, limits: &Limits, calls: &[Call]) -> String {
    let Some(Progress { last_poll, line, column }) = progress else { return format!("{SCRIPT}:1:1") };
    let stopped = last_poll.and_then(|poll| stop(script, poll, limits, calls));
    stopped.unwrap_or_else(|| format!("{SCRIPT}:{line}:{column}"))
}

/// Repeats the calls in a second sandbox, stops the script at the poll with the number `poll`, and returns the place in
/// the script.
fn stop(script: &Script, poll: u64, limits: &Limits, calls: &[Call]) -> Option<String> {
    // A stopped script releases all its values before the script engine reports the place. This takes less fuel than
    // the script took to make the values, so twice the fuel is enough.
    let fuel = limits.fuel.saturating_mul(2);
    let room = Limits { fuel, memory: limits.memory.saturating_add(MEMORY), ..*limits };
    let repeat = |mut sandbox: WasmSandbox| calls.iter().find_map(|call| call(&mut sandbox).err());
    let failure = match script.start(limits, &room, poll) {
        Ok(sandbox) => repeat(sandbox)?,
        Err(NotLoaded { failure, .. }) => failure,
    };
    match failure {
        Failure::Script { reason, .. } | Failure::Trap { reason, .. } => place(&reason).map(str::to_owned),
        _ => None,
    }
}

/// Returns the place `policy.js:LINE:COLUMN` at the beginning of a message.
fn place(reason: &str) -> Option<&str> {
    let numbers = reason.strip_prefix(SCRIPT)?.strip_prefix(':')?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ':')?;
    let end = SCRIPT.len() + 1 + end;
    Some(reason.get(..end)?.trim_end_matches(':'))
}

impl Sandbox for ScriptSandbox<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.ask((), |sandbox, ()| sandbox.describe())
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.ask(subject.clone(), Sandbox::begin)
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.ask(found.to_vec(), |sandbox, found| sandbox.needs(found))
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.ask(base, |sandbox, base| sandbox.map_env(base.clone()))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.ask(env, |sandbox, env| sandbox.translate(env.clone()))
    }

    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        self.ask(below, |sandbox, below| sandbox.amend(below.clone()))
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.ask(seen.clone(), Sandbox::assess)
    }

    fn fuel_used(&self) -> u64 {
        self.sandbox.fuel_used()
    }

    fn memory(&self) -> usize {
        self.sandbox.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_beginning_of_a_message() {
        for (reason, expected) in [
            ("policy.js:3:14: InternalError: interrupted: x", Some("policy.js:3:14")),
            ("policy.js:3: no", Some("policy.js:3")),
            ("policy.js: no", Some("policy.js")),
            ("wasm trap: call stack exhausted", None),
            ("policy.js:3:14", None),
            ("policy.json:3: no", None),
        ] {
            assert_eq!(place(reason), expected, "{reason}");
        }
    }
}
