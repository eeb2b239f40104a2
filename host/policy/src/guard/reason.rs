//! Tells the author of the policy why no declared origin allows a value.

use serde_json::Value;

use super::GuardedManifest;
use crate::{
    cut::{VALUE, cut},
    origins::{Author, OriginPlace, PathStep, is_equal, written},
    settings::Origin,
};

/// Returns the reason, and the origin that the author has to declare. `places` are the places that the declared origins
/// name. `is_its` returns whether a place can contain values for this field, and `rule` describes this condition in
/// words.
pub(super) fn of(
    stage: &GuardedManifest<'_, '_>,
    path: &[PathStep],
    places: &[OriginPlace<'_>],
    value: &Value,
    is_its: impl Fn(&OriginPlace<'_>) -> bool,
    rule: &str,
) -> String {
    // Prefer a place with an equal value: a message about this place helps more than a message about the origin of the
    // whole pod.
    let Some(place) = places.iter().find(|place| is_equal(place.value, value)).or(places.first()) else {
        return if stage.origins.is_declared(stage.index, path) {
            "the declared origin has no value: correct the origin in the plan".to_owned()
        } else {
            "declare the origin of the value in the plan's `origins`".to_owned()
        };
    };
    let shown = shown(place);
    if !is_equal(place.value, value) {
        return format!("the declared origin {shown} has another value: correct the origin in the plan");
    }
    if let (Author::Setting(policy, source), true) = (place.author, place.is_below)
        && source.origin != Origin::Annotation
    {
        return format!(
            "the declared origin {shown} is a setting of the layer below (policy {policy}), which does not apply to an \
             overlay: set the value in the overlay's settings"
        );
    }
    if let Author::Setting(_, source) = place.author
        && source.origin == Origin::SchemaDefault
    {
        return format!("the declared origin {shown} has the policy's own default: set the value in the settings");
    }
    if !matches!(place.author, Author::Setting(..)) && !place.is_of_the_spec() {
        return format!(
            "the declared origin {shown} is neither in the object's spec nor in the settings: declare an origin there"
        );
    }
    if is_its(place) {
        return format!("the declared origin {shown} does not allow this value: declare another origin");
    }
    format!("the declared origin {shown} is not a field for such values: {rule}: declare another origin")
}

/// Returns the place of an origin as text, in the form in which a plan declares the origin.
fn shown(place: &OriginPlace<'_>) -> String {
    let path = written(&place.path);
    let text = match place.author {
        Author::Object => path,
        Author::Setting(..) => format!("settings.{path}"),
        Author::Found(id) => format!("{id} {path}"),
    };
    cut(&text, VALUE).into_owned()
}
