//! The steps of a rollout: how many objects move in each step, and how long the operator waits between two steps.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::share::Share;

/// The maximum number of steps.
const MAX_STEPS: usize = 20;
/// The shortest pause between two steps. In a shorter time, the controllers of a busy cluster do not report whether
/// pods stay ready.
const SHORTEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest possible [`Wait`].
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The unit in which steps count and move objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RolloutUnit {
    /// Single objects.
    #[default]
    Object,
    /// All objects of a namespace together.
    Namespace,
}

impl RolloutUnit {
    /// Returns the unit as `policy.yaml` contains it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Namespace => "namespace",
        }
    }
}

/// A duration in hours, minutes and seconds, such as `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

/// The steps of one rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSteps {
    /// The total number of objects that have moved by the end of each step. The last step moves all objects.
    pub shares: Vec<Share>,
    /// The minimum duration of a step.
    pub pause: Wait,
    /// How long the operator waits until a moved object is ready again.
    pub patience: Wait,
    /// The unit in which `shares` counts: objects or namespaces.
    pub by: RolloutUnit,
    /// The maximum number of pods of moved objects that are not ready at the same time.
    pub max_unavailable: Share,
}

impl Default for RolloutSteps {
    fn default() -> Self {
        Self {
            shares: vec![Share::Number(1), Share::Percent(5), Share::Percent(25), Share::Percent(100)],
            pause: Wait(Duration::from_mins(5)),
            patience: Wait(Duration::from_mins(10)),
            by: RolloutUnit::Object,
            // Kubernetes has the same default for the pods of one Deployment.
            max_unavailable: Share::Percent(25),
        }
    }
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration such as 90s, 5m or 1h30m");
        let (mut seconds, mut number, mut smallest) = (0_u64, String::new(), u64::MAX);
        for character in text.trim().chars() {
            let unit = match character {
                'h' => 3600,
                'm' => 60,
                's' => 1,
                digit if digit.is_ascii_digit() && number.len() < 9 => {
                    number.push(digit);
                    continue;
                }
                _ => return Err(wrong()),
            };
            let many: u64 = number.parse().map_err(|_| wrong())?;
            if unit >= smallest {
                return Err(wrong());
            }
            seconds = seconds.saturating_add(many.saturating_mul(unit));
            smallest = unit;
            number.clear();
        }
        let wait = Duration::from_secs(seconds);
        if smallest == u64::MAX || !number.is_empty() || wait > LONGEST { Err(wrong()) } else { Ok(Self(wait)) }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds == 0 {
            return f.write_str("0s");
        }
        for (many, unit) in [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')] {
            if many > 0 {
                write!(f, "{many}{unit}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Wait {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Reads the shares of the steps. The last step must move all objects, because a rollout without it would never end.
pub(super) fn shares<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Share>>, D::Error> {
    let Some(shares) = Option::<Vec<Share>>::deserialize(deserializer)? else { return Ok(None) };
    if shares.last() != Some(&Share::Percent(100)) {
        return Err(de::Error::custom("steps: the last step must be 100%"));
    }
    if shares.len() > MAX_STEPS {
        return Err(de::Error::custom(format!("steps: more than {MAX_STEPS} steps")));
    }
    if shares.iter().any(|share| matches!(share, Share::Number(0) | Share::Percent(0))) {
        return Err(de::Error::custom("steps: a step must move an object, so write a number from 1 or a percentage"));
    }
    let grows = |pair: &[Share]| match (pair[0], pair[1]) {
        (Share::Number(one), Share::Number(next)) => one < next,
        (Share::Percent(one), Share::Percent(next)) => one < next,
        _ => true,
    };
    if shares.windows(2).all(grows) {
        Ok(Some(shares))
    } else {
        Err(de::Error::custom("steps: each step must move more than the step before"))
    }
}

/// Reads the pause between two steps.
pub(super) fn pause<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Wait>, D::Error> {
    let pause = Option::<Wait>::deserialize(deserializer)?;
    match pause.filter(|Wait(pause)| *pause < SHORTEST_PAUSE) {
        Some(short) => Err(de::Error::custom(format!(
            "pause: {short} is too short to see whether pods stay ready: write {} or more",
            Wait(SHORTEST_PAUSE)
        ))),
        None => Ok(pause),
    }
}

/// Reads the maximum number of unavailable pods. Refuses zero, because the rollout would then never move an object with
/// pods.
pub(super) fn max_unavailable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Share>, D::Error> {
    let share = Option::<Share>::deserialize(deserializer)?;
    if matches!(share, Some(Share::Number(0) | Share::Percent(0))) {
        return Err(de::Error::custom("maxUnavailable: write a number from 1, or a percentage from 1%"));
    }
    Ok(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{Rollout, RolloutMode};

    #[test]
    fn a_duration_is_written_as_it_was_read() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h30m", 5400), ("0s", 0), ("2h0m5s", 7205)] {
            assert_eq!(text.parse(), Ok(Wait(Duration::from_secs(seconds))), "{text}");
        }
        let written = [90, 300, 5400, 0, 7205].map(|seconds| Wait(Duration::from_secs(seconds)).to_string());
        assert_eq!(written, ["1m30s", "5m", "1h30m", "0s", "2h5s"]);
        for wrong in ["", "5", "m", "5 m", "-5m", "1.5h", "5m5m", "5s1h", "99999999999s", "999999999h"] {
            assert!(wrong.parse::<Wait>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_fields_of_a_package_win_over_the_defaults_of_the_operator() {
        let package: Rollout = "{mode: staged, patience: 1m, steps: [2, 50%, 100%]}".parse().unwrap();
        let defaults: Rollout = "{pause: 30s, patience: 2m, by: namespace}".parse().unwrap();
        let steps = package.steps(&defaults, || true).unwrap();
        assert_eq!(steps.shares, [Share::Number(2), Share::Percent(50), Share::Percent(100)]);
        assert_eq!((steps.pause.to_string(), steps.patience.to_string()), ("30s".to_owned(), "1m".to_owned()));
        assert_eq!((steps.by, steps.max_unavailable), (RolloutUnit::Namespace, Share::Percent(25)));
        assert_eq!(Rollout::default().steps(&defaults, || true), None, "without a mode, a package serves at once");
        let staged: Rollout = "{mode: staged}".parse().unwrap();
        assert_eq!(Rollout::default().steps(&staged, || true), Some(RolloutSteps::default()));
        let now = Rollout { mode: Some(RolloutMode::Now), ..Rollout::default() };
        assert_eq!(
            now.steps(&staged, || true),
            None,
            "a package can serve at once although the default is to move in steps"
        );
    }

    #[test]
    fn with_mode_auto_a_package_serves_in_steps_only_if_it_replaces_pods() {
        let auto: Rollout = "{mode: auto}".parse().unwrap();
        let defaults = Rollout::default();
        assert_eq!(auto.steps(&defaults, || true), Some(RolloutSteps::default()));
        assert_eq!(auto.steps(&defaults, || false), None);
        assert!(auto.is_open(), "the mode is no limit");
    }

    #[test]
    fn steps_that_never_end_or_do_not_grow_are_an_error() {
        let steps = |steps: &str| format!("{{mode: staged, steps: {steps}}}").parse::<Rollout>();
        assert!(steps("[1, 5%, 25%, 100%]").is_ok() && steps("[100%]").is_ok());
        for (wrong, told) in [
            ("[]", "last step"),
            ("[1, 5%]", "last step"),
            ("[0, 100%]", "a number from 1"),
            ("[0%, 100%]", "a number from 1"),
            ("[5, 5, 100%]", "more than the step before"),
            ("[50%, 20%, 100%]", "more than the step before"),
        ] {
            let refused = steps(wrong).unwrap_err();
            assert!(refused.contains(told), "{wrong}: {refused}");
        }
        assert!("{maxUnavailable: 3}".parse::<Rollout>().is_ok());
        for wrong in ["0", "0%"] {
            let refused = format!("{{maxUnavailable: {wrong}}}").parse::<Rollout>().unwrap_err();
            assert!(refused.contains("a number from 1"), "{refused}");
        }
        assert!("{pause: 30s}".parse::<Rollout>().is_ok());
        for wrong in ["0s", "29s"] {
            let refused = format!("{{pause: {wrong}}}").parse::<Rollout>().unwrap_err();
            assert!(refused.contains(&format!("pause: {wrong} is too short")) && refused.contains("30s"), "{refused}");
        }
        let many: Vec<String> = (1..21).map(|number| number.to_string()).collect();
        assert!(steps(&format!("[{}, 100%]", many.join(", "))).unwrap_err().contains("more than 20"));
    }

    #[test]
    fn a_default_with_limits_or_without_service_is_an_error() {
        for wrong in ["{gate: {noneRefused: true}}", "{mode: shadow}"] {
            assert!(Rollout::defaults(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Rollout::defaults(""), Ok(Rollout::default()));
        assert_eq!(Rollout::defaults("{mode: staged}").unwrap().mode, Some(RolloutMode::Staged));
    }
}
