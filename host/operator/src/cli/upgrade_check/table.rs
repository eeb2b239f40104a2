//! The table of the operator's variables. It contains, for each variable, the value of the chart that sets the
//! variable, and the protection that the variable controls. The chart reads the same table.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde::Deserialize;

use super::service_address;

const TABLE: &str = include_str!("../../../../../deploy/helm/kaos-operator/files/variables.yaml");

/// The variable that turns on the decision point that the chart installs.
pub(super) const SERVED: &str = "SECURITY_PDP_ENABLED";
/// The variable with the address of a decision point that the user runs.
pub(super) const EXTERNAL: &str = "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL";
/// The variable in which the chart records when this operator replaced KAOS's operator.
pub(super) const TAKEOVER_TIME: &str = "TAKEOVER_TIME";
/// The name of the Service of the decision point that the chart installs.
pub(super) const SERVICE: &str = "kaos-pdp";

/// The operator's variables.
pub(super) type Environment = BTreeMap<String, String>;

/// A row of the table. A comment at the top of the table's file explains the fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Row {
    pub(super) variable: String,
    pub(super) value: String,
    pub(super) when: String,
    pub(super) negated: bool,
    usual: String,
    pub(super) weaker: Option<Weaker>,
    unless: Vec<String>,
    movable: bool,
    pub(super) implied: String,
    implied_by: Vec<String>,
    pub(super) implied_by_values: Vec<String>,
    pub(super) unserved: Vec<String>,
    pub(super) effect: String,
    #[serde(rename = "do")]
    pub(super) remedy: String,
    pub(super) needed: Vec<Need>,
    pub(super) because: String,
    pub(super) set: String,
    pub(super) instead: String,
    pub(super) flag: String,
}

/// The texts of a variable that weaken protection: a change to such a text makes the protection weaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Weaker {
    Off,
    On,
    Empty,
    Other,
}

/// A case in which the chart writes a variable or needs a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Case {
    Decided,
    Protected,
    Routed,
    Secured,
    Projected,
    Users,
    Automated,
    Anonymous,
}

/// A condition under which the chart needs a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Need {
    /// This case applies.
    Case(Case),
    /// The value at this path is true. If `not` precedes the path, the value is false instead.
    Value(String),
}

impl Case {
    /// Returns the case that the field `when` of a row names.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "secured" => Some(Self::Secured),
            "projected" => Some(Self::Projected),
            "routed" => Some(Self::Routed),
            "protected" => Some(Self::Protected),
            _ => None,
        }
    }
}

/// Reads the table.
pub(super) fn rows() -> anyhow::Result<Vec<Row>> {
    serde_saphyr::from_str(TABLE).context("the table of variables in this program")
}

/// Returns the cases that apply with these variables. `projection` is the ConfigMap that the operator writes for a
/// decision point; empty if it writes none.
pub(super) fn cases_of(given: &dyn Fn(&str) -> String, projection: &str) -> BTreeSet<Case> {
    let decided = is_on(&given(SERVED)) || !given(EXTERNAL).is_empty();
    let strict = is_on(&given("SECURITY_STRICT_GATEWAY_API_ENABLED"));
    let routed = strict || is_on(&given("SECURITY_GATEWAY_ROUTING_ENABLED"));
    let cases = [
        (Case::Decided, decided),
        (Case::Protected, decided || strict),
        (Case::Routed, routed),
        (Case::Secured, decided || routed),
        (Case::Projected, (decided || routed) && !projection.is_empty()),
        (Case::Users, !given("SECURITY_USER_AUTH_ISSUER").is_empty()),
        (Case::Automated, given("SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE") != "manual"),
    ];
    cases.into_iter().filter_map(|(case, holds)| holds.then_some(case)).collect()
}

/// Returns the text of a variable. Empty if the variable is missing.
pub(super) fn text<'a>(environment: &'a Environment, variable: &str) -> &'a str {
    environment.get(variable).map_or("", String::as_str)
}

/// Returns whether the text of a variable means true.
pub(super) fn is_on(text: &str) -> bool {
    ["true", "1"].contains(&text.to_lowercase().as_str())
}

/// Returns whether an address is the address of the Service of the release's decision point.
fn is_own(address: &str, home: &str) -> bool {
    service_address::service(&address.to_lowercase()) == Some((SERVICE, home))
}

/// Returns the Service of the decision point that these variables name. Returns `None` if the variables name no
/// decision point, or if the address is not the address of a Service.
pub(super) fn asked<'a>(environment: &'a Environment, home: &'a str) -> Option<(&'a str, &'a str)> {
    match text(environment, EXTERNAL) {
        "" => is_on(text(environment, SERVED)).then_some((SERVICE, home)),
        address => service_address::service(address),
    }
}

/// Returns the decision point that these variables name: its Service, and whether the Service belongs to the release.
/// If the address is not the address of a Service, returns the address itself. Two spellings of one Service give the
/// same result.
fn decision_point(environment: &Environment, home: &str) -> (String, bool) {
    let is_served = is_on(text(environment, SERVED));
    let own = format!("{SERVICE}.{home}");
    let service = match text(environment, EXTERNAL).to_lowercase() {
        address if !address.is_empty() => match service_address::service(&address) {
            Some((name, namespace)) => format!("{name}.{namespace}"),
            None => address,
        },
        _ if is_served => own.clone(),
        _ => String::new(),
    };
    let is_of_release = is_served && service == own;
    (service, is_of_release)
}

impl Row {
    /// Returns whether the change from one text to another weakens protection. `was` tells whether objects were
    /// protected before.
    pub(super) fn weakens(&self, from: &str, to: &str, was: bool) -> bool {
        match self.weaker {
            None => false,
            Some(Weaker::Off) => is_on(from) && !is_on(to),
            Some(Weaker::On) => was && !is_on(from) && is_on(to),
            Some(Weaker::Empty) => {
                let is_empty = |text: &str| text.is_empty() || text == self.usual;
                was && !is_empty(from) && is_empty(to)
            }
            Some(Weaker::Other) => was && !self.or_usual(from).is_empty() && !self.is_same(from, to),
        }
    }

    /// Returns the case in which the earlier release had the protection of this row.
    pub(super) fn case(&self) -> Case {
        Case::named(&self.when).unwrap_or(Case::Secured)
    }

    /// Returns whether other protection replaces the protection of this row under the new variables. `rows` is the
    /// whole table, and `home` is the namespace of the release.
    pub(super) fn is_excused(&self, rows: &[Self], earlier: &Environment, now: &Environment, home: &str) -> bool {
        let is_replaced = |other: &String| {
            let text = text(now, other);
            let is_switch = rows.iter().any(|row| row.variable == *other && row.weaker == Some(Weaker::Off));
            if is_switch { is_on(text) } else { !text.is_empty() && !is_own(text, home) }
        };
        let is_moved = !text(now, EXTERNAL).is_empty() && decision_point(now, home) != decision_point(earlier, home);
        (self.movable && is_moved) || self.unless.iter().any(is_replaced)
    }

    /// Returns the text of this variable in the earlier release. If the variable was not set, but a variable in the
    /// field `implied_by` was set, returns the text of the field `implied`.
    pub(super) fn before<'a>(&'a self, earlier: &'a Environment) -> &'a str {
        let own = text(earlier, &self.variable);
        let is_implied = || self.implied_by.iter().any(|other| !text(earlier, other).is_empty());
        if own.is_empty() && is_implied() { &self.implied } else { own }
    }

    /// Returns whether the row is about a value that protects objects.
    pub(super) fn protects(&self) -> bool {
        self.weaker.is_some() && !self.value.is_empty()
    }

    /// Returns whether an entry of `extraConfig` or a variable of the pods conflicts with the values. A different text
    /// conflicts if the values give the variable a text, if the variable belongs to the projection, or if the different
    /// text weakens protection.
    pub(super) fn is_contradicted(&self, own: &str, entry: &str) -> bool {
        let is_projected = Case::named(&self.when) == Some(Case::Projected);
        self.protects()
            && !self.is_same(own, entry)
            && (!own.is_empty() || is_projected || self.weakens(own, entry, true))
    }

    fn or_usual<'a>(&'a self, text: &'a str) -> &'a str {
        if text.is_empty() { &self.usual } else { text }
    }

    /// Returns whether two texts have the same meaning. Ignores the order of a list.
    fn is_same(&self, one: &str, other: &str) -> bool {
        let names = |text| self.or_usual(text).split(',').map(str::trim).collect::<BTreeSet<_>>();
        names(one) == names(other)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Args as _, Command};

    use super::{
        super::{
            super::decision_point::DecisionPointFlags,
            refused::schema,
            secured::{LISTENER, OBJECTS, TOKENS},
        },
        *,
    };

    fn row(weaker: Weaker, usual: &str) -> Row {
        Row { weaker: Some(weaker), usual: usual.to_owned(), ..Row::default() }
    }

    #[test]
    fn each_direction_weakens_protection_one_way_or_both() {
        let weakens = |weaker, from, to| row(weaker, "usual").weakens(from, to, true);
        assert!(weakens(Weaker::Off, "true", "") && !weakens(Weaker::Off, "", "true"));
        assert!(weakens(Weaker::On, "", "true") && !weakens(Weaker::On, "true", ""));
        assert!(!row(Weaker::On, "").weakens("", "true", false), "nothing was protected");
        assert!(weakens(Weaker::Empty, "a", "") && weakens(Weaker::Empty, "a", "usual"));
        assert!(!weakens(Weaker::Empty, "a", "b") && !weakens(Weaker::Empty, "", "b"));
        assert!(weakens(Weaker::Other, "a", "b") && weakens(Weaker::Other, "", "b"));
        assert!(weakens(Weaker::Other, "a", "a,b") && weakens(Weaker::Other, "a,b", "a"));
        assert!(!weakens(Weaker::Other, "a,b", "b,a"), "a list has no order");
        assert!(!weakens(Weaker::Other, "", "usual") && !weakens(Weaker::Other, "usual", ""));
        assert!(!row(Weaker::Other, "").weakens("", "b", true), "nothing is known about the earlier text");
        assert!(row(Weaker::Other, "*").weakens("", "b", true), "without a list, all counted");
    }

    #[test]
    fn only_another_decision_point_replaces_the_earlier_one() {
        let rows = rows().unwrap();
        let of = |variable: &str| rows.iter().find(|row| row.variable == variable).unwrap();
        let environment = |served: &str, address: &str| {
            Environment::from([(SERVED.to_owned(), served.to_owned()), (EXTERNAL.to_owned(), address.to_owned())])
        };
        let is_excused = |row: &str, earlier: (&str, &str), now: (&str, &str)| {
            of(row).is_excused(&rows, &environment(earlier.0, earlier.1), &environment(now.0, now.1), "home")
        };
        let (served, own) = (("true", ""), "grpc://KAOS-PDP.home.svc.cluster.local:9191");
        let moved = |earlier, now| is_excused("AUTHZ_POLICY_CONFIGMAP_NAME", earlier, now);
        assert!(moved(served, ("", "pdp.authz.svc:9191")) && moved(("", "a.b:1"), ("", "b.a:1")));
        assert!(moved(served, ("false", own)), "the release no longer has it");
        assert!(
            !moved(served, ("true", own)) && !moved(("", "a.b:1"), ("", "grpc://a.b.svc:1")) && !moved(served, served)
        );
        assert!(!moved(("", "x"), ("", "x")) && moved(("", "x"), ("", "y")), "no Services");
        let ends = |now| is_excused(SERVED, served, now);
        assert!(ends(("", "pdp.authz.svc:9191")) && !ends(("", own)) && !ends(("", "")));
        let goes = |now| is_excused(EXTERNAL, ("", "a.b:1"), now);
        assert!(goes(("True", "")) && goes(("1", "")), "the chart has a decision point");
        for off in ["False", "0", "false", ""] {
            assert!(!goes((off, "")), "{off:?}");
        }
    }

    #[test]
    fn the_flags_that_win_over_values_of_security_are_those_of_the_decision_point() {
        let command = DecisionPointFlags::augment_args(Command::new("run"));
        let of_flag = |it: &Arg| Some((format!("--{}", it.get_long()?), it.get_env()?.to_str()?.to_owned()));
        let mut flags: BTreeSet<(String, String)> = command.get_arguments().filter_map(of_flag).collect();
        assert!(flags.len() >= 5, "{flags:?}");
        flags.insert(("--without".to_owned(), "WITHOUT_KINDS".to_owned()));
        let rows = rows().unwrap().into_iter().filter(|row| !row.flag.is_empty());
        assert_eq!(rows.map(|row| (row.flag, row.variable)).collect::<BTreeSet<_>>(), flags);
    }

    #[test]
    fn every_row_about_protection_says_what_it_opens_and_what_to_do() {
        let rows = rows().unwrap();
        for row in &rows {
            let is_about = row.weaker.is_some() || !row.unserved.is_empty();
            assert_eq!(is_about, !row.effect.is_empty() && !row.remedy.is_empty(), "{row:?}");
            assert_eq!(row.needed.is_empty(), row.because.is_empty() || row.set.is_empty(), "{row:?}");
            assert!(row.value.is_empty() != row.instead.is_empty(), "{row:?}");
            for other in &row.unless {
                assert!(rows.iter().any(|row| row.variable == *other), "{other}");
            }
        }
    }

    #[test]
    fn users_can_accept_the_changes_of_the_table_and_those_of_objects() {
        let is_change = |row: &Row| !row.value.is_empty() && (row.weaker.is_some() || !row.unserved.is_empty());
        let rows = rows().unwrap();
        let changes = rows.iter().filter(|row| is_change(row)).map(|row| row.value.as_str());
        let all: BTreeSet<&str> = changes.chain(OBJECTS).chain([LISTENER, TOKENS]).collect();
        let schema = schema().unwrap();
        let accepted = &schema["properties"]["security"]["properties"]["acceptUnserved"]["items"]["enum"];
        assert_eq!(accepted.as_array().unwrap().iter().filter_map(|name| name.as_str()).collect::<BTreeSet<_>>(), all);
    }
}
