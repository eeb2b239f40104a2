//! Implements [`Code`] for components of contract 0.1. Each sandbox gets a fresh store and instance.

use wasmtime::{
    Store,
    component::{Instance as WasmInstance, InstancePre, ResourceAny},
};

use super::{progress::Progress, state::State, trap};
use crate::{
    adapter::v0_1::{convert, overlay, policy},
    code::{Code, Sandbox, World},
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    failure::{Failure, Verb},
    limits::Limits,
};

/// A compiled and linked component.
pub(crate) struct WasmCode {
    engine: wasmtime::Engine,
    linked: Linked,
    /// The size of the compiled code in bytes.
    bytes: usize,
}

enum Linked {
    Policy(policy::PolicyPre<State>),
    Overlay(overlay::OverlayPre<State>),
}

enum Instance {
    Policy(policy::Policy),
    Overlay(overlay::Overlay),
}

/// An instance of a component.
pub(super) struct WasmSandbox {
    store: Store<State>,
    instance: Instance,
    /// The component's resource for the pass; `None` before the pass begins.
    pass: Option<ResourceAny>,
    limits: Limits,
}

impl WasmCode {
    pub(super) fn new(engine: wasmtime::Engine, linked: InstancePre<State>, world: World) -> wasmtime::Result<Self> {
        let code = linked.component().image_range();
        let bytes = code.end.addr().saturating_sub(code.start.addr());
        let linked = match world {
            World::Policy => Linked::Policy(policy::PolicyPre::new(linked)?),
            World::Overlay => Linked::Overlay(overlay::OverlayPre::new(linked)?),
        };
        Ok(Self { engine, linked, bytes })
    }
}

impl WasmCode {
    /// Opens a sandbox of the script engine, and calls `load` with the instance of the script engine. `load` returns
    /// the world of the script. The script engine exports both worlds.
    pub(super) fn open_script(
        &self,
        limits: &Limits,
        load: impl FnOnce(&mut Store<State>, &WasmInstance) -> Result<World, Failure>,
    ) -> Result<WasmSandbox, Failure> {
        let Linked::Policy(linked) = &self.linked else {
            return Err(Failure::Sandbox("an overlay is not a script engine".to_owned()));
        };
        let mut store = State::store(&self.engine, limits).map_err(|error| Failure::Sandbox(format!("{error:#}")))?;
        store.data_mut().runs_script = true;
        let whole = linked.instance_pre().instantiate(&mut store);
        let whole = whole.map_err(|error| trap::failure(&mut store, limits, Verb::Open, &error))?;
        let instance = match load(&mut store, &whole)? {
            World::Policy => policy::Policy::new(&mut store, &whole).map(Instance::Policy),
            World::Overlay => overlay::Overlay::new(&mut store, &whole).map(Instance::Overlay),
        };
        let instance = instance.map_err(|error| trap::failure(&mut store, limits, Verb::Open, &error))?;
        Ok(WasmSandbox { store, instance, pass: None, limits: *limits })
    }
}

impl Code for WasmCode {
    fn world(&self) -> World {
        match self.linked {
            Linked::Policy(_) => World::Policy,
            Linked::Overlay(_) => World::Overlay,
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        let mut store = State::store(&self.engine, limits).map_err(|error| Failure::Sandbox(format!("{error:#}")))?;
        let instance = match &self.linked {
            Linked::Policy(linked) => linked.instantiate(&mut store).map(Instance::Policy),
            Linked::Overlay(linked) => linked.instantiate(&mut store).map(Instance::Overlay),
        };
        match instance {
            Ok(instance) => Ok(Box::new(WasmSandbox { store, instance, pass: None, limits: *limits })),
            Err(error) => Err(trap::failure(&mut store, limits, Verb::Open, &error)),
        }
    }
}

impl WasmSandbox {
    /// Returns the world whose functions the sandbox has.
    pub(super) fn world(&self) -> World {
        match self.instance {
            Instance::Policy(_) => World::Policy,
            Instance::Overlay(_) => World::Overlay,
        }
    }

    /// Returns the progress of the script when the sandbox ended.
    pub(super) fn progress(&self) -> Option<Progress> {
        self.store.data().progress
    }

    fn pass(&self) -> Result<ResourceAny, Failure> {
        self.pass.ok_or_else(Failure::no_pass)
    }

    fn typed<T>(&mut self, verb: Verb, answer: wasmtime::Result<T>) -> Result<T, Failure> {
        answer.map_err(|error| trap::failure(&mut self.store, &self.limits, verb, &error))
    }
}

impl Sandbox for WasmSandbox {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let answer = match &self.instance {
            Instance::Policy(instance) => instance.kaos_policy_meta().call_describe(&mut self.store),
            Instance::Overlay(instance) => instance.kaos_policy_meta().call_describe(&mut self.store),
        };
        self.typed(Verb::Describe, answer).map(convert::descriptor)
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        let subject = convert::to_subject(subject);
        let store = &mut self.store;
        let pass = match &self.instance {
            Instance::Policy(instance) => instance.kaos_policy_translation().pass().call_constructor(store, &subject),
            Instance::Overlay(instance) => instance.kaos_policy_amendment().pass().call_constructor(store, &subject),
        };
        self.pass = Some(self.typed(Verb::Begin, pass)?);
        Ok(())
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        let (pass, found) = (self.pass()?, convert::to_founds(found));
        let store = &mut self.store;
        let answer = match &self.instance {
            Instance::Policy(instance) => instance.kaos_policy_translation().pass().call_needs(store, pass, &found),
            Instance::Overlay(instance) => instance.kaos_policy_amendment().pass().call_needs(store, pass, &found),
        };
        self.typed(Verb::Needs, answer).map(convert::needs)
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        let (pass, base) = (self.pass()?, convert::to_env(base));
        let store = &mut self.store;
        let answer = match &self.instance {
            Instance::Policy(instance) => instance.kaos_policy_translation().pass().call_map_env(store, pass, &base),
            Instance::Overlay(instance) => instance.kaos_policy_amendment().pass().call_map_env(store, pass, &base),
        };
        Ok(self.typed(Verb::MapEnv, answer)?.map(convert::env).map_err(convert::refusal))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let Instance::Policy(instance) = &self.instance else {
            return Err(Failure::NotOfThisWorld { verb: Verb::Translate });
        };
        let (pass, env) = (self.pass()?, convert::to_env(env));
        let answer = instance.kaos_policy_translation().pass().call_translate(&mut self.store, pass, &env);
        Ok(self.typed(Verb::Translate, answer)?.map(convert::plan).map_err(convert::refusal))
    }

    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        let Instance::Overlay(instance) = &self.instance else {
            return Err(Failure::NotOfThisWorld { verb: Verb::Amend });
        };
        let (pass, below) = (self.pass()?, convert::to_plan(below));
        let answer = instance.kaos_policy_amendment().pass().call_amend(&mut self.store, pass, &below);
        Ok(self.typed(Verb::Amend, answer)?.map(convert::plan).map_err(convert::refusal))
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        let Instance::Policy(instance) = &self.instance else {
            return Err(Failure::NotOfThisWorld { verb: Verb::Assess });
        };
        let (pass, seen) = (self.pass()?, convert::to_observation(seen));
        let answer = instance.kaos_policy_translation().pass().call_assess(&mut self.store, pass, &seen);
        self.typed(Verb::Assess, answer).map(convert::report)
    }

    fn fuel_used(&self) -> u64 {
        self.limits.fuel.saturating_sub(self.store.get_fuel().unwrap_or_default())
    }

    fn memory(&self) -> usize {
        self.store.data().memory()
    }
}
