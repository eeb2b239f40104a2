//! Checks a merged pod for mistakes that an API server would refuse. Reports the first mistake, with the path of the
//! user's field that contains it.

use crate::lists::{CONTAINER, POD_SPEC, items, name_of};
use alloc::{borrow::ToOwned, string::String};
use kaos_policy_sdk::types::Refusal;
use kaos_policy_sdk::{Places, quote, refusal};
use serde_json::Value;

/// Refuses a container with two ports of the same name. Ports merge by number, so a patch that gives a port another
/// number adds a second port of the same name.
fn check_ports(container: &Value, path: impl Fn() -> String) -> Result<(), Refusal> {
    let mut seen = Places::new();
    for port in items(container, "ports") {
        let Some(name) = name_of(port) else { continue };
        if seen.insert(name, 0).is_some() {
            let message = format!(
                "two ports are named `{name}`, since ports merge by number: choose another name, or set \
                 the policy setting containerPort to change the port",
                name = quote::shown(name, 15)
            );
            return Err(refusal::invalid(path(), message));
        }
    }
    Ok(())
}

/// The lists of containers. A name must be unique across both lists. If both lists contain a name, the check reports
/// the container in the second list.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Returns the path of `field` of the container with this name in the user's pod spec. Searches `list` first, and then
/// the other list of containers (`containers` or `initContainers`).
fn place(patch: Option<&Value>, list: &'static str, name: Option<&str>, field: &str) -> String {
    let written = |list: &'static str| {
        let items = patch.map_or(&[][..], |patch| items(patch, list));
        items.iter().rposition(|container| name_of(container) == name).map(|at| (list, at))
    };
    match written(list).or_else(|| LISTS.into_iter().find_map(written)) {
        Some((list, at)) => format!("{POD_SPEC}.{list}[{at}].{field}"),
        None => format!("{POD_SPEC}.{list}"),
    }
}

/// Checks the pod spec after all merges. Reports the first mistake, with its path in `patch`, the user's pod spec.
pub(crate) fn check(pod: &Value, patch: Option<&Value>, own: &str) -> Result<(), Refusal> {
    if !items(pod, "containers").iter().any(|container| name_of(container) == Some(own)) {
        let message = format!("the pod must keep the container `{own}`: remove the patch that deletes it");
        return Err(refusal::invalid(format!("{POD_SPEC}.containers"), message));
    }
    let mut names = Places::new();
    for list in LISTS {
        for container in items(pod, list) {
            let written =
                patch.and_then(|patch| items(patch, list).iter().rfind(|it| name_of(it) == name_of(container)));
            let has_image = written.is_some_and(|written| written.get("image").is_some());
            let at = |field: &str| place(patch, list, name_of(container), field);
            let name = check_container(container, own, has_image, at)?;
            if names.insert(name, 0).is_some() {
                let shown = quote::shown(name, 63);
                let message = format!("two containers are named `{shown}`: choose another name");
                return Err(refusal::invalid(place(patch, list, Some(name), "name"), message));
            }
        }
    }
    Ok(())
}

/// Checks a container of the pod spec. Returns the container's name. `has_image` tells whether the user's pod spec sets
/// the container's image.
fn check_container<'a>(
    container: &'a Value,
    own: &str,
    has_image: bool,
    place: impl Fn(&str) -> String,
) -> Result<&'a str, Refusal> {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let name = name_of(container).unwrap_or_default();
    if name.is_empty() {
        return Err(refusal::invalid(place("name"), "is required; it is the container's name"));
    }
    if image.is_empty() {
        let (path, message) = match (name == own, has_image) {
            (true, true) => {
                (place("image"), "removes the container's image: set an image, or remove this field".to_owned())
            }
            (true, false) => (
                format!("{CONTAINER}.image"),
                "no image is set: set it here, or set the default image of the operator".to_owned(),
            ),
            (false, _) => {
                let name = quote::shown(name, 63);
                let message = format!(
                    "container `{name}` needs an image; to change the container of this kind instead, name it `{own}`"
                );
                (place("image"), message)
            }
        };
        return Err(refusal::invalid(path, message));
    }
    check_ports(container, || place("ports"))?;
    Ok(name)
}
