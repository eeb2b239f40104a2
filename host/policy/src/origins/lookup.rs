//! Finds the places from which a value of a manifest may come: values in the object, in the settings or in found
//! objects.

use serde_json::Value;

use super::{
    Origins, PathStep, Source,
    path::{self, Selector, append, written},
};
use crate::{
    pods,
    settings::{self, Effective},
};

static NULL: Value = Value::Null;

/// A place from which a value may come, according to a declared origin.
#[derive(Debug, Clone)]
pub(crate) struct OriginPlace<'a> {
    pub(crate) author: Author<'a>,
    /// The path in the object, in the settings or in the found object.
    pub(crate) path: Vec<PathStep>,
    pub(crate) value: &'a Value,
    /// The object or list that contains `value`.
    pub(crate) above: &'a Value,
    /// The name of the container that contains `value`; `None` if no container contains it.
    pub(crate) container: Option<&'a str>,
    /// Whether the place is in the settings of a layer below the layer that set the value.
    pub(crate) is_below: bool,
}

/// The author of the value in the place that an origin names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Author<'a> {
    /// The user, in the object.
    Object,
    /// The author of a settings layer. The variant has the name of the policy and the source of the value.
    Setting(&'a str, &'a settings::Source),
    /// An unknown author. The value is in an object that answers the need with this id, and any program in the cluster
    /// may have written this object.
    Found(&'a str),
}

impl OriginPlace<'_> {
    /// Returns whether the place that the origin names is in the object's spec.
    pub(crate) fn is_of_the_spec(&self) -> bool {
        matches!(self.author, Author::Object) && self.path.first().and_then(PathStep::name) == Some("spec")
    }
}

/// The source that contains a place: the object, the settings or a found object.
#[derive(Clone, Copy)]
enum Root<'a> {
    Object,
    Settings { policy: &'a str, settings: &'a Effective, is_below: bool },
    Found(&'a str),
}

/// A value, and the path from the root to the value.
#[derive(Clone)]
struct Here<'a> {
    path: Vec<PathStep>,
    value: &'a Value,
    above: &'a Value,
    container: Option<&'a str>,
}

impl<'a> Here<'a> {
    fn root(value: &'a Value) -> Self {
        Self { path: Vec::new(), value, above: &NULL, container: None }
    }

    fn step(&self, step: &PathStep) -> Option<Self> {
        let value = step.of(self.value)?;
        let in_containers = self.path.last().and_then(PathStep::name).is_some_and(|of| pods::CONTAINERS.contains(&of));
        let is_container = matches!(step, PathStep::Index(_)) && in_containers;
        let container = if is_container { value["name"].as_str() } else { self.container };
        let mut path = self.path.clone();
        path.push(step.clone());
        Some(Self { path, value, above: self.value, container })
    }

    fn place(self, root: Root<'a>) -> Option<OriginPlace<'a>> {
        let author = match root {
            Root::Object => Author::Object,
            Root::Found(id) => Author::Found(id),
            Root::Settings { policy, settings, .. } => Author::Setting(policy, settings.source(&setting(&self.path))?),
        };
        let is_below = matches!(root, Root::Settings { is_below: true, .. });
        let Self { path, value, above, container } = self;
        Some(OriginPlace { author, path, value, above, container, is_below })
    }
}

impl<'a> Origins<'a> {
    /// Returns the places from which the value at `path` of a manifest may come, the most probable first. The caller
    /// must compare the values, because the policy may declare wrong origins.
    pub(crate) fn places(&self, index: usize, manifest: &Value, path: &[PathStep]) -> Vec<OriginPlace<'a>> {
        self.places_of(self.author(manifest, path), index, manifest, path)
    }

    /// Returns the places from which a value of this layer may come, as [`Origins::places`] does.
    pub(crate) fn places_of(
        &self,
        layer: usize,
        index: usize,
        manifest: &Value,
        path: &[PathStep],
    ) -> Vec<OriginPlace<'a>> {
        let mut places = Vec::new();
        for (source, rest, values) in self.covering(index, manifest, path) {
            self.follow(layer, source, (rest, &values), &mut places);
        }
        places
    }

    /// Returns the number of the layer that declared the sources of the value at a path. For a path into a variable
    /// that an overlay set, this is the overlay. For any other path, this is the layer that returned the plan.
    fn author(&self, manifest: &Value, path: &[PathStep]) -> usize {
        let overlay = || {
            let env = path.iter().position(|step| step.name() == Some("env"))?;
            let container = path.get(..env)?.iter().try_fold(manifest, |value, step| step.of(value))?;
            let variable = path.get(env + 1)?.of(&container["env"])?;
            let (container, name) = (container["name"].as_str()?, variable["name"].as_str()?);
            self.within.mapped?.get(&(container.to_owned(), name.to_owned())).copied()
        };
        self.within.mapped.filter(|mapped| !mapped.is_empty()).and_then(|_| overlay()).unwrap_or(self.within.layer)
    }

    /// Returns whether the plan declares an origin for exactly this path.
    pub(crate) fn is_declared(&self, index: usize, path: &[PathStep]) -> bool {
        self.declared.contains_key(&(index, written(path)))
    }

    /// Returns the path in the object's spec that a plan declares as the origin of a variable. `path` leads to the
    /// variable.
    pub(crate) fn of_variable(&self, manifest: &Value, path: &[PathStep]) -> Option<String> {
        let at = path.iter().position(|step| step.name() == Some("env"))? + 1;
        let mut values = vec![manifest];
        for step in path.get(..=at)? {
            values.push(step.of(values.last()?)?);
        }
        match self.variable(&values, at + 1)? {
            Source::Object(path) => {
                let steps = path::resolve(path, self.within.object)?;
                (steps.first()?.name() == Some("spec")).then(|| written(&steps))
            }
            Source::Setting(_) | Source::Found(..) => None,
        }
    }

    /// Returns the declared sources of the value at `path` and of the values that contain this value, the longest path
    /// first. Each source comes with the remaining steps to the value at `path`, and the manifest's value at each of
    /// these steps.
    fn covering<'s>(
        &'s self,
        index: usize,
        manifest: &'s Value,
        path: &'s [PathStep],
    ) -> Vec<(&'s Source, &'s [PathStep], Vec<&'s Value>)> {
        let mut values = Vec::with_capacity(path.len() + 1);
        let mut texts = vec![String::new()];
        values.push(manifest);
        for step in path {
            let Some(value) = values.last().and_then(|value| step.of(value)) else { return Vec::new() };
            values.push(value);
            let mut text = texts.last().cloned().unwrap_or_default();
            append(&mut text, step);
            texts.push(text);
        }
        let mut covering = Vec::new();
        if !self.spend(path.len()) {
            return covering;
        }
        for (at, text) in texts.into_iter().enumerate().rev() {
            let variable =
                (at >= 2 && path[at - 2].name() == Some("env")).then(|| self.variable(&values, at)).flatten();
            if let Some(source) = variable {
                // The origin of a variable may cover the whole variable, a part of the variable that contains the
                // value, or only the value.
                covering.extend((at..=path.len()).map(|at| (source, &path[at..], values[at + 1..].to_vec())));
            }
            for source in self.declared.get(&(index, text)).into_iter().flatten().rev() {
                covering.push((source, &path[at..], values[at + 1..].to_vec()));
            }
        }
        covering
    }

    /// Returns the origin of the variable to which the first `at` steps of the path lead.
    fn variable(&self, values: &[&Value], at: usize) -> Option<&Source> {
        let container = values.get(at.checked_sub(2)?)?["name"].as_str()?;
        let name = values.get(at)?["name"].as_str()?;
        self.env.get(container)?.get(name)
    }

    /// Adds the places that one declared source names. If the source is a setting, its path leads into the settings of
    /// `layer`. The places in the settings of lower layers only serve to explain to the author of an overlay why the
    /// guard rejects the value.
    fn follow(
        &self,
        layer: usize,
        source: &Source,
        (rest, values): (&[PathStep], &[&Value]),
        places: &mut Vec<OriginPlace<'a>>,
    ) {
        let within = self.within;
        match source {
            Source::Object(path) => self.walk(Root::Object, within.object, path, rest, values, places),
            Source::Setting(path) => {
                for (at, (policy, settings)) in within.layers.iter().enumerate().take(layer + 1).rev() {
                    let root = Root::Settings { policy, settings, is_below: at < layer };
                    self.walk(root, settings.tree(), path, rest, values, places);
                }
            }
            Source::Found(id, path) => {
                if let Some((id, objects)) = within.found.get(layer).and_then(|found| found.get_key_value(id)) {
                    for object in objects {
                        self.walk(Root::Found(id), object, path, rest, values, places);
                    }
                }
            }
        }
    }

    fn walk(
        &self,
        root: Root<'a>,
        value: &'a Value,
        path: &[Selector],
        rest: &[PathStep],
        values: &[&Value],
        places: &mut Vec<OriginPlace<'a>>,
    ) {
        if !self.spend(path.len() + 1) {
            return;
        }
        let Some(start) = path.iter().try_fold(Here::root(value), |here, step| here.step(&step.step(here.value)?))
        else {
            return;
        };
        let mut here = vec![start];
        for (step, planned) in rest.iter().zip(values) {
            let mut next = Vec::new();
            for here in &here {
                match (step, here.value.as_array()) {
                    (PathStep::Name(_), _) => next.extend(here.step(step)),
                    (PathStep::Index(_), Some(items)) => {
                        let corresponding = self.lists.corresponding(here.value, items, planned);
                        if !self.spend(corresponding.len()) {
                            return;
                        }
                        next.extend(corresponding.into_iter().filter_map(|i| here.step(&PathStep::Index(i))));
                    }
                    (PathStep::Index(_), None) => {}
                }
            }
            here = next;
            if !self.spend(here.len()) {
                return;
            }
        }
        places.extend(here.into_iter().filter_map(|here| here.place(root)));
    }
}

/// Returns the path of the setting that contains a value.
pub(crate) fn setting(path: &[PathStep]) -> settings::Path {
    path.iter().map_while(|step| step.name().map(str::to_owned)).collect()
}

/// Returns the first place with an equal value. If no place has an equal value, returns the first place that the policy
/// may have merged into the value: both are objects, or both are lists.
pub(crate) fn nearest<'p, 'a: 'p>(
    places: impl Iterator<Item = &'p OriginPlace<'a>>,
    value: &Value,
) -> Option<&'p OriginPlace<'a>> {
    let places: Vec<_> = places.collect();
    let is_merged = |place: &OriginPlace<'_>| {
        (place.value.is_object() && value.is_object()) || (place.value.is_array() && value.is_array())
    };
    let merged = || places.iter().find(|place| is_merged(place));
    places.iter().find(|place| is_equal(place.value, value)).or_else(merged).copied()
}

/// Returns whether both values are equal. Fractions may differ in the last digit, because a policy that reads and
/// writes a fraction may change this digit.
pub(crate) fn is_equal(one: &Value, other: &Value) -> bool {
    let fraction = |value: &Value| value.as_f64().filter(|_| value.is_f64());
    let is_same = |(one, other): (f64, f64)| (one - other).abs() <= one.abs() * 4.0 * f64::EPSILON;
    one == other || fraction(one).zip(fraction(other)).is_some_and(is_same)
}
