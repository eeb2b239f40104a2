//! What an API server would refuse of a merged pod, told as something that the user wrote.

use crate::deployment::{CONTAINER, POD_SPEC, items, name_of};
use alloc::string::String;
use kaos_policy_sdk::types::Refusal;
use kaos_policy_sdk::{Places, quote, refusal};
use serde_json::Value;

/// Two ports of one name, as they come from a patch that gives a port another number: ports merge by number.
fn check_ports(container: &Value, path: impl Fn() -> String) -> Result<(), Refusal> {
    let mut seen = Places::new();
    for port in items(container, "ports") {
        let Some(name) = name_of(port) else { continue };
        if seen.insert(name, 0).is_some() {
            let message = format!(
                "two ports are named `{}`, since ports merge by number: name yours otherwise, or set \
                 the policy setting containerPort to change the port",
                quote::shown(name, 15)
            );
            return Err(refusal::invalid(path(), message));
        }
    }
    Ok(())
}

/// What no pod can be without. What is wrong is told where it stands in `patch`, where the merged containers come from.
pub(crate) fn check(pod: &Value, patch: Option<&Value>, own: &str) -> Result<(), Refusal> {
    let list = items(pod, "containers");
    let place = |name: Option<&str>, field: &str| {
        let written = patch.map_or(&[][..], |patch| items(patch, "containers"));
        let at = written.iter().position(|container| name_of(container) == name);
        let item = at.map_or_else(String::new, |at| format!("[{at}].{field}"));
        format!("{POD_SPEC}.containers{item}")
    };
    if !list.iter().any(|container| name_of(container) == Some(own)) {
        let message = format!("the pod must keep the container `{own}`: take out what deletes it");
        return Err(refusal::invalid(format!("{POD_SPEC}.containers"), message));
    }
    for container in list {
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        let name = name_of(container);
        if image.is_empty() && name == Some(own) {
            return Err(refusal::invalid(
                format!("{CONTAINER}.image"),
                "there is no image: set one here, or a default for the operator",
            ));
        }
        if image.is_empty() {
            let shown = quote::shown(name.unwrap_or_default(), 63);
            return Err(refusal::invalid(place(name, "image"), format!("container `{shown}` needs an image")));
        }
        check_ports(container, || place(name, "ports"))?;
    }
    Ok(())
}
