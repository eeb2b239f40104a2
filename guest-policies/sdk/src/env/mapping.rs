//! Building the mapping: the user's variables win over the operator's.

use crate::types::{EnvSource, EnvVar, Refusal};
use serde_json::Value;

/// The variables of all containers, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Env {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    var: EnvVar,
    users: bool,
}

impl Env {
    /// An empty mapping.
    pub fn new() -> Self {
        Self::default()
    }

    /// A mapping on top of the one of the layer below.
    pub fn over(base: Vec<EnvVar>) -> Self {
        Self { entries: base.into_iter().map(|var| Entry { var, users: false }).collect() }
    }

    /// The variables of one container.
    pub fn container<'a>(&'a mut self, name: &'a str) -> ContainerEnv<'a> {
        ContainerEnv { env: self, container: name }
    }

    /// The finished mapping.
    pub fn into_vars(self) -> Vec<EnvVar> {
        self.entries.into_iter().map(|entry| entry.var).collect()
    }
}

/// One container's part of a mapping.
#[derive(Debug)]
pub struct ContainerEnv<'a> {
    env: &'a mut Env,
    container: &'a str,
}

impl ContainerEnv<'_> {
    /// The operator's variable `name` with a literal value. What the user has set stays; what the operator
    /// has set is replaced in place.
    pub fn set(&mut self, name: &str, value: impl Into<String>, origin: &str) -> &mut Self {
        self.bind(name, EnvSource::Literal(value.into()), origin)
    }

    /// As [`set`](Self::set), and nothing at all for no value or an empty one.
    pub fn set_some(&mut self, name: &str, value: Option<&str>, origin: &str) -> &mut Self {
        match value {
            Some(value) if !value.is_empty() => self.set(name, value, origin),
            _ => self,
        }
    }

    /// As [`set`](Self::set), with any source.
    pub fn bind(&mut self, name: &str, source: EnvSource, origin: &str) -> &mut Self {
        let var = EnvVar {
            container: self.container.to_owned(),
            name: name.to_owned(),
            source,
            origin: origin.to_owned(),
        };
        match self.position(name) {
            Some(at) if self.env.entries[at].users => {}
            Some(at) => self.env.entries[at].var = var,
            None => self.env.entries.push(Entry { var, users: false }),
        }
        self
    }

    /// The user's variables from the `env` array at `path` of the object, as one block in the user's
    /// order: what the operator set under these names before is dropped, what it sets later is ignored.
    pub fn user(&mut self, list: &[Value], path: &str) -> Result<&mut Self, Refusal> {
        for var in super::from_json(self.container, list, path)? {
            self.remove(&var.name);
            self.env.entries.push(Entry { var, users: true });
        }
        Ok(self)
    }

    /// Whether `name` is set.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// The source of `name`.
    pub fn get(&self, name: &str) -> Option<&EnvSource> {
        self.position(name).map(|at| &self.env.entries[at].var.source)
    }

    /// Drops `name`, whoever set it.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        if let Some(at) = self.position(name) {
            self.env.entries.remove(at);
        }
        self
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.env.entries.iter().position(|entry| entry.var.container == self.container && entry.var.name == name)
    }
}
