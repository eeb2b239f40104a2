//! Builds the mapping. The user's variables win over the policy's variables.

use super::convert;
use super::order::{order, picked};
use crate::quote::unexpanded;
use crate::types::{EnvSource, EnvVar, Refusal};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::Value;

/// The variables of all containers, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Env {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    var: EnvVar,
    /// Whether the variable keeps its value when the policy sets another value.
    stays: bool,
}

impl Env {
    /// Creates an empty mapping.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts from `base`, the mapping of the layer below. If this policy sets a variable of `base`, the new value
    /// replaces the old value, even if the user set the old value. The origin of a variable shows whether the user set
    /// it (`spec.container.env[0]`).
    pub fn over(base: Vec<EnvVar>) -> Self {
        Self { entries: base.into_iter().map(|var| Entry { var, stays: false }).collect() }
    }

    /// Returns the variables of one container.
    pub fn container<'a>(&'a mut self, name: &'a str) -> ContainerEnv<'a> {
        ContainerEnv { env: self, container: name }
    }

    /// Returns the finished mapping.
    pub fn into_vars(self) -> Vec<EnvVar> {
        self.entries.into_iter().map(|entry| entry.var).collect()
    }
}

/// The variables of one container in a mapping.
#[derive(Debug)]
pub struct ContainerEnv<'a> {
    env: &'a mut Env,
    container: &'a str,
}

impl ContainerEnv<'_> {
    /// Sets the policy's variable `name`. The process sees exactly `value`, because the function escapes `$(NAME)` for
    /// Kubernetes. A variable that [`user`](Self::user) or [`hold`](Self::hold) set keeps its value. Otherwise, `value`
    /// replaces an earlier variable of this name, in the same position.
    pub fn set(&mut self, name: &str, value: impl Into<String>, origin: &str) -> &mut Self {
        let mut value = value.into();
        if value.bytes().any(|byte| byte == b'$') {
            value = unexpanded(&value);
        }
        self.bind(name, EnvSource::Literal(value), origin)
    }

    /// Like [`set`](Self::set), but does nothing if the value is absent or empty.
    pub fn set_some(&mut self, name: &str, value: Option<&str>, origin: &str) -> &mut Self {
        match value {
            Some(value) if !value.is_empty() => self.set(name, value, origin),
            _ => self,
        }
    }

    /// Like [`set`](Self::set), but takes any source and does not escape a literal: Kubernetes expands `$(NAME)` in the
    /// literal.
    pub fn bind(&mut self, name: &str, source: EnvSource, origin: &str) -> &mut Self {
        self.put(name, source, origin, false)
    }

    /// Like [`bind`](Self::bind), but the value stays even if the policy later sets another value. The user's value
    /// still wins.
    pub fn hold(&mut self, name: &str, source: EnvSource, origin: &str) -> &mut Self {
        self.put(name, source, origin, true)
    }

    fn put(&mut self, name: &str, source: EnvSource, origin: &str, stays: bool) -> &mut Self {
        let var =
            EnvVar { container: self.container.to_owned(), name: name.to_owned(), source, origin: origin.to_owned() };
        match self.position(name) {
            Some(at) if self.env.entries[at].stays => {}
            Some(at) => self.env.entries[at] = Entry { var, stays },
            None => self.env.entries.push(Entry { var, stays }),
        }
        self
    }

    /// Adds the user's variables from the `env` array at `path` of the object, in the user's order.
    ///
    /// If a variable already exists, it gets the user's value and keeps its position, so that later variables can still
    /// refer to it. But if the user's value refers to one of these later variables, the variable moves to the position
    /// that it has in the user's list. If the policy later sets the same variable, the user's value stays.
    pub fn user(&mut self, list: &[Value], path: &str) -> Result<&mut Self, Refusal> {
        let vars = convert::all(self.container, list, path)?;
        let mut both = core::mem::take(&mut self.env.entries);
        both.extend(vars.into_iter().map(|var| Entry { var, stays: true }));
        let order = order(both.iter().map(|Entry { var, .. }| {
            let is_here = var.container == self.container;
            is_here.then(|| convert::definition(var))
        }));
        self.env.entries = picked(both, &order);
        Ok(self)
    }

    /// Returns whether `name` is set.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Returns the source of the variable `name`, or `None` if the container does not have this variable.
    pub fn get(&self, name: &str) -> Option<&EnvSource> {
        self.position(name).map(|at| &self.env.entries[at].var.source)
    }

    /// Removes the variable `name`, even if the user set this variable.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        if let Some(at) = self.position(name) {
            self.env.entries.remove(at);
        }
        self
    }

    fn position(&self, name: &str) -> Option<usize> {
        // Compare the names of variables first, because their lengths differ more often than those of container names.
        self.env.entries.iter().position(|entry| entry.var.name == name && entry.var.container == self.container)
    }
}

#[cfg(test)]
mod tests {
    use super::Env;
    use crate::env::{self, to_json};
    use serde_json::{Value, json};

    fn list(value: Value) -> Vec<Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_users_variables_win_over_variables_before_and_after_them() {
        let user = list(json!([
            {"name": "TOOLS", "value": "user"}, {"name": "LEVEL", "value": "ERROR"}, {"name": "NAME", "value": "mine"}
        ]));
        let mut env = Env::new();
        let mut c = env.container("c");
        c.set("TOOLS", "params", "spec.params").user(&user, "spec.container.env").unwrap();
        c.set("NAME", "t", "metadata.name").set("LEVEL", "INFO", "settings.logLevel").set("LAST", "1", "x");
        let vars = env.into_vars();
        assert_eq!(
            to_json(&vars, "c"),
            list(json!([
                {"name": "TOOLS", "value": "user"}, {"name": "LEVEL", "value": "ERROR"},
                {"name": "NAME", "value": "mine"}, {"name": "LAST", "value": "1"}
            ]))
        );
        assert_eq!(vars[2].origin, "spec.container.env[2]");
    }

    #[test]
    fn the_users_variables_come_after_those_that_they_refer_to() {
        let rendered = |lists: &[Value]| {
            let mut env = Env::new();
            let mut c = env.container("c");
            c.set("NAME", "t", "metadata.name").set("TEXT", "x", "spec.text");
            for user in lists {
                c.user(&list(user.clone()), "spec.env").unwrap();
            }
            c.set("LAST", "1", "y");
            to_json(&env.into_vars(), "c")
        };
        let own = json!([{"name": "Z", "value": "$(NAME)"}, {"name": "NAME", "value": "mine"}]);
        let wanted = [("NAME", "mine"), ("TEXT", "x"), ("Z", "$(NAME)"), ("LAST", "1")];
        let wanted = wanted.map(|(name, value)| json!({"name": name, "value": value}));
        assert_eq!(rendered(&[own]), wanted);
        let made_of = json!([{"name": "Z", "value": "1"}, {"name": "NAME", "value": "$(Z)"}]);
        let wanted = [("TEXT", "x"), ("Z", "1"), ("NAME", "$(Z)"), ("LAST", "1")];
        let wanted = wanted.map(|(name, value)| json!({"name": name, "value": value}));
        assert_eq!(rendered(&[made_of]), wanted);
        let older = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]);
        let newer = json!([{"name": "C", "value": "$(B)"}, {"name": "A", "value": "2"}]);
        let wanted = [("NAME", "t"), ("TEXT", "x"), ("A", "2"), ("B", "$(A)"), ("C", "$(B)"), ("LAST", "1")];
        let wanted = wanted.map(|(name, value)| json!({"name": name, "value": value}));
        assert_eq!(rendered(&[older, newer]), wanted);
    }

    #[test]
    fn texts_are_escaped_and_literal_sources_are_expanded_by_kubernetes() {
        let mut env = Env::new();
        env.container("c").set("A", "$(B) $$ $5", "a").bind("C", env::literal("$(A)"), "c");
        let wanted = json!([{"name": "A", "value": "$$(B) $$$ $5"}, {"name": "C", "value": "$(A)"}]);
        assert_eq!(to_json(&env.into_vars(), "c"), list(wanted));
    }

    #[test]
    fn only_the_user_replaces_a_held_variable() {
        let mut env = Env::new();
        let mut c = env.container("c");
        c.hold("A", env::literal("1"), "a").hold("B", env::literal("1"), "b").set("A", "2", "c").set("B", "2", "d");
        c.user(&list(json!([{"name": "B", "value": "3"}])), "spec.env").unwrap().set("B", "4", "e");
        let wanted = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]);
        assert_eq!(to_json(&env.into_vars(), "c"), list(wanted));
    }

    #[test]
    fn a_layer_above_replaces_in_place() {
        let mut below = Env::new();
        below.container("c").set("A", "1", "a").set("B", "2", "b");
        let mut above = Env::over(below.into_vars());
        above.container("c").set("A", "3", "overlay").bind("C", env::secret_key("s", "k"), "overlay");
        above.container("other").set("A", "4", "overlay");
        let vars = above.into_vars();
        let said: Vec<_> = vars.iter().map(|v| (v.container.as_str(), v.name.as_str(), v.origin.as_str())).collect();
        let wanted = [("c", "A", "overlay"), ("c", "B", "b"), ("c", "C", "overlay"), ("other", "A", "overlay")];
        assert_eq!(said, wanted);
    }

    #[test]
    fn absent_values_set_no_variable() {
        let mut env = Env::new();
        let mut c = env.container("c");
        c.set_some("A", None, "a").set_some("B", Some(""), "b").set_some("C", Some("x"), "c");
        assert!(!c.has("A") && !c.has("B") && c.has("C"));
        assert_eq!(c.get("C"), Some(&env::literal("x")));
        c.remove("C");
        assert!(env.into_vars().is_empty());
    }
}
