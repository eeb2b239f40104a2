//! Finds the time of the upgrade from KAOS's operator as the chart does. Proxies of ModelAPIs from before this time
//! keep their pods, because they do not get the permission to run without a master key.

use jiff::{Span, Timestamp};
use kaos_crds::API_VERSION;
use serde_json::Value;

use super::{
    keyless::{PERMISSION, is_keyless, is_permitted, server},
    recorded::Recorded,
    report::{Sort, UpgradeFinding},
    rolls::workloads,
    table::TAKEOVER_TIME,
    values::Values,
};
use crate::{input::Document, presets::Preset};

/// The chart value that contains the time of the takeover.
const VALUE: &str = "takeoverTime";
/// If this value is true, the chart installs rights and reads ModelAPIs.
const RIGHTS: &str = "rbac.create";

/// The time of the takeover.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Takeover {
    /// The time that the chart records. Empty if the preset's own time keeps the pods of all proxies. If the chart
    /// would record the current time, this field has the earliest time that keeps the pods of the same proxies.
    pub(super) time: String,
    /// Why the chart stops, or records another time than before.
    pub(super) finding: Option<UpgradeFinding>,
}

/// A ModelAPI with the Deployment of its proxy.
struct Proxy<'a> {
    model: &'a Document,
    created: &'a str,
    /// The container with the proxy. `None` if there is no Deployment.
    server: Option<&'a Value>,
}

/// The proxies that KAOS's operator created after a time.
struct Late {
    /// The name of the newest of these ModelAPIs.
    name: String,
    /// The earliest time of a takeover with which all these proxies keep their pods.
    time: String,
    /// A proxy that this operator created. With the time in the field `time`, this proxy would lose the permission.
    contested: Option<String>,
}

/// Returns the finding about a value that is not a valid time, or that lies in the future.
pub(super) fn refused(values: &Values) -> Option<UpgradeFinding> {
    let given = given(values);
    let stops =
        |message: &str, remedy: &str| UpgradeFinding::new(Sort::Stops, VALUE, format!("is {given}, {message}"), remedy);
    if given.is_empty() {
        return None;
    }
    let Some(time) = given.parse::<Timestamp>().ok().filter(|time| time.to_string() == given) else {
        return Some(stops("which is no time", "use the form 2026-12-01T08:00:00Z"));
    };
    let latest = Timestamp::now().checked_add(Span::new().hours(24)).unwrap_or(Timestamp::MAX);
    let message = "which is in the future: until then, LiteLLM 1.104 would not start for new ModelAPIs";
    (time > latest).then(|| stops(message, "set the time of the upgrade"))
}

/// Returns the time that the chart records at the upgrade.
pub(super) fn decided(documents: &[Document], values: &Values, preset: &Preset, recorded: &Recorded) -> Takeover {
    let (is_permitting, since) = of_preset(preset);
    let all = proxies(documents, values);
    // If the chart does not install rights, the user may lack the right to read ModelAPIs, so the chart does not read
    // them.
    let read = if values.is_on(RIGHTS) { &all[..] } else { &[] };
    let late = |time: &str| late(read, time.max(since), recorded.is_of_go);
    let given = given(values);
    if !given.is_empty() {
        let late = late(&given).filter(|late| is_permitting && late.contested.is_none());
        let finding = late.map(|Late { name, time, .. }| {
            let message = format!(
                "is {given}, but KAOS's operator created ModelAPIs later, such as {name}: the upgrade would replace the \
                 pods of their proxies"
            );
            let remedy = format!("remove the value, so that the chart finds the time, or set it to {time:?}");
            UpgradeFinding::new(Sort::Stops, VALUE, message, remedy)
        });
        return Takeover { time: given, finding };
    }
    if recorded.is_installed && !recorded.is_of_go {
        return later(&recorded.time, late(&recorded.time), since);
    }
    // If the chart does not read ModelAPIs, it records the time of the upgrade.
    let counted = if recorded.is_of_go { &all[..] } else { read };
    Takeover { time: found(counted, since, recorded.is_of_go), finding: None }
}

/// Returns the recorded time, or, if KAOS's operator created proxies after this time, a later time with which these
/// proxies keep their pods, too.
fn later(recorded: &str, late: Option<Late>, since: &str) -> Takeover {
    let Some(Late { name, time, contested }) = late else {
        return Takeover { time: recorded.to_owned(), finding: None };
    };
    if let Some(contested) = contested {
        let message = format!(
            "is not set, and {TAKEOVER_TIME} is {recorded:?}: KAOS's operator created ModelAPIs later, such as {name}, and \
             this operator created ModelAPIs before those, such as {contested}, so each time replaces pods of proxies"
        );
        let others = if recorded.is_empty() { since } else { recorded };
        let remedy = format!(
            "set it to {time:?} to keep the pods of those of KAOS's operator, or to {others:?} to keep the pods of the others"
        );
        let finding = Some(UpgradeFinding::new(Sort::Stops, VALUE, message, remedy));
        return Takeover { time: recorded.to_owned(), finding };
    }
    let message = format!(
        "KAOS's operator created ModelAPIs after the recorded takeover, such as {name}: the chart sets {TAKEOVER_TIME} to \
         {time:?}, and the pods of their proxies stay"
    );
    Takeover { finding: Some(UpgradeFinding::new(Sort::Note, VALUE, message, "")), time }
}

/// Returns the earliest time with which all proxies without the permission keep their pods. A proxy that has the
/// permission from an earlier release of this operator keeps its pods only with the permission. If there are such
/// proxies, returns the creation time of the oldest. Ignores proxies from before the preset's own time, because their
/// pods stay in any case.
fn found(proxies: &[Proxy<'_>], since: &str, is_of_go: bool) -> String {
    let counted = || proxies.iter().filter(|proxy| proxy.created >= since);
    let permitted = counted().filter(|proxy| !is_of_go && proxy.is_permitted_by_operator());
    let oldest = permitted.map(|proxy| proxy.created.to_owned()).min();
    oldest.or_else(|| second_after(counted().map(|proxy| proxy.created).max()?)).unwrap_or_default()
}

/// Returns the proxies that KAOS's operator created at this time or later. Recognizes a proxy of KAOS's operator by its
/// ModelAPI, which has no conditions: KAOS's operator writes no conditions.
fn late(proxies: &[Proxy<'_>], from: &str, is_of_go: bool) -> Option<Late> {
    let counted = || proxies.iter().filter(|proxy| proxy.created >= from);
    let newest = counted().filter(|proxy| is_of_go || !proxy.has_conditions()).max_by_key(|proxy| proxy.created)?;
    let mut permitted =
        counted().filter(|it| !is_of_go && it.created <= newest.created && it.is_permitted_by_operator());
    Some(Late {
        name: newest.model.identity.to_string(),
        time: second_after(newest.created)?,
        contested: permitted.next().map(|proxy| proxy.model.identity.to_string()),
    })
}

/// Returns the time one second after `time`. Returns `None` if the text is not a time.
fn second_after(time: &str) -> Option<String> {
    let time: Timestamp = time.parse().ok()?;
    Some(Timestamp::from_second(time.as_second().checked_add(1)?).ok()?.to_string())
}

/// Returns whether the preset gives proxies the permission, and the preset's own time: older proxies do not get the
/// permission.
fn of_preset(preset: &Preset) -> (bool, &str) {
    let settings = &preset.sections["modelapi"]["proxyConfig"];
    (settings["withoutMasterKey"] == true, settings["withoutMasterKeySince"].as_str().unwrap_or_default())
}

/// Returns a note about proxies whose pods stay only because the chart finds the time in the cluster. If the chart does
/// not read the cluster for this time, returns a note about the proxies whose pods the upgrade replaces.
pub(super) fn finding(
    documents: &[Document],
    values: &Values,
    preset: &Preset,
    recorded: &Recorded,
) -> Option<UpgradeFinding> {
    let (is_permitting, usual) = of_preset(preset);
    if !given(values).is_empty() || !is_permitting {
        return None;
    }
    let proxies = proxies(documents, values);
    let keyless = || proxies.iter().filter(|proxy| proxy.created >= usual && proxy.server.is_some_and(is_keyless));
    let time = values.takeover.as_str();
    if !values.is_on(RIGHTS) && !recorded.is_of_go && !recorded.is_installed {
        let newest = keyless().max_by_key(|proxy| proxy.created)?;
        let message = format!(
            "is empty, and {RIGHTS} is false, so the chart does not read the ModelAPIs: it replaces the pods of their \
             proxies, such as {}",
            newest.model.identity
        );
        let remedy = format!("set {VALUE} to {:?}", second_after(newest.created)?);
        return Some(UpgradeFinding::new(Sort::Note, VALUE, message, remedy));
    }
    let mut kept = keyless().filter(|proxy| proxy.created < time);
    let first = &kept.next()?.model.identity;
    let more = match kept.count() {
        0 => String::new(),
        more => format!(" and of {more} more"),
    };
    let message = format!(
        "is empty: `helm upgrade` finds the time in the cluster, but a chart that is rendered without a cluster, for \
         example by Argo CD, replaces the pods of {first}{more}"
    );
    let when = if recorded.time == time { "" } else { ", or to the later time of the upgrade" };
    let remedy = format!("if you render the chart without a cluster, set {VALUE} to {time:?}{when}");
    Some(UpgradeFinding::new(Sort::Note, VALUE, message, remedy))
}

/// Returns the time of the takeover in the values. The text is empty if the chart must find this time itself.
fn given(values: &Values) -> String {
    values.extra(TAKEOVER_TIME).filter(|text| !text.is_empty()).unwrap_or_else(|| values.text(VALUE))
}

/// Returns the ModelAPIs of the mode Proxy in the namespaces of the operator. Omits objects without a time, which come
/// from files, and objects without a phase, which have no pods yet.
fn proxies<'a>(documents: &'a [Document], values: &Values) -> Vec<Proxy<'a>> {
    let is_of = |document: &Document, api: &str, kind: &str| {
        document.object["apiVersion"] == api && document.identity.kind == kind
    };
    let of = workloads();
    let proxy = |model: &'a Document| {
        let namespace = model.identity.namespace.as_deref().unwrap_or_default();
        let is_proxy = is_of(model, API_VERSION, "ModelAPI") && model.object["spec"]["mode"] != "Hosted";
        if !is_proxy || model.object["status"]["phase"].is_null() || !values.works_in(namespace) {
            return None;
        }
        let child = format!("modelapi-{}", model.identity.name);
        let is_its = |document: &&Document| {
            is_of(document, &of.api_version, &of.kind)
                && document.identity.name == child
                && document.identity.namespace == model.identity.namespace
        };
        let server = documents.iter().find(is_its).and_then(|deployment| server(&deployment.object));
        Some(Proxy { model, created: model.object["metadata"]["creationTimestamp"].as_str()?, server })
    };
    documents.iter().filter_map(proxy).collect()
}

impl Proxy<'_> {
    /// Returns whether this operator ever worked on the ModelAPI. KAOS's operator writes no conditions.
    fn has_conditions(&self) -> bool {
        self.model.object["status"]["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty())
    }

    /// Returns whether this operator, and not the user, gave the proxy the permission.
    fn is_permitted_by_operator(&self) -> bool {
        let is_of_user = self.model.object["spec"].to_string().contains(PERMISSION);
        self.has_conditions() && !is_of_user && self.server.is_some_and(is_permitted)
    }
}
