//! The figures of an operator, and their upper bounds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::load::Load;

/// A measured number: its key, its text in the table, its unit, and its upper bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) key: &'static str,
    pub(crate) text: &'static str,
    pub(crate) unit: &'static str,
    aim: Aim,
}

/// The upper bound of a figure.
#[derive(Debug, Clone, Copy)]
enum Aim {
    None,
    /// The bound applies to any load and any build.
    Always(u32),
    /// The bound applies to the full load with a release build.
    AtFullLoad(f64),
    /// The bound is this number for each Agent, plus a constant.
    PerAgent(u32, u32),
}

const fn figure(key: &'static str, text: &'static str, unit: &'static str, aim: Aim) -> Figure {
    Figure { key, text, unit, aim }
}

/// All figures, in the order in which the bench measures them.
pub(crate) const FIGURES: [Figure; 35] = [
    figure("binary", "Size of the program", "MB", Aim::AtFullLoad(47.0)),
    figure("ready", "Start until ready", "s", Aim::AtFullLoad(1.0)),
    figure("children", "Load: until every child exists", "s", Aim::None),
    figure("settled", "Load: until every status is final", "s", Aim::AtFullLoad(16.0)),
    figure("load.writes", "Load: writes", "", Aim::AtFullLoad(6500.0)),
    figure("load.status", "Load: writes of statuses, which are part of the writes", "", Aim::None),
    figure("load.events", "Load: Events", "", Aim::None),
    figure("load.reads", "Load: reads", "", Aim::None),
    figure("load.passes", "Load: passes", "", Aim::None),
    figure("load.processor", "Load: processor of the operator, from its start", "s", Aim::AtFullLoad(7.2)),
    figure("load.cluster", "Load: processor of etcd and the API server", "s", Aim::None),
    figure("peak", "Load: peak memory of the operator (VmHWM)", "MiB", Aim::AtFullLoad(60.0)),
    figure("peaks", "Load: peak memory with child processes", "MiB", Aim::AtFullLoad(60.0)),
    figure("silence.writes", "Silence: writes", "", Aim::Always(0)),
    figure("silence.calls", "Silence: calls, except Lease renewals and ended watches", "", Aim::Always(0)),
    figure("silence.leases", "Silence: Lease renewals", "", Aim::None),
    figure("silence.processor", "Silence: processor", "s", Aim::None),
    figure("models.writes", "List of models changed: writes", "", Aim::Always(4)),
    figure("models.agents", "List of models changed: writes for Agents", "", Aim::Always(0)),
    figure("models.events", "List of models changed: Events", "", Aim::None),
    figure("models.passes", "List of models changed: passes", "", Aim::None),
    figure("models.processor", "List of models changed: processor", "s", Aim::None),
    figure("mode.writes", "Mode changed: writes", "", Aim::PerAgent(2, 5)),
    figure("mode.deployments", "Mode changed: writes of Deployments", "", Aim::PerAgent(1, 1)),
    figure("mode.events", "Mode changed: Events", "", Aim::None),
    figure("mode.passes", "Mode changed: passes", "", Aim::None),
    figure("mode.processor", "Mode changed: processor", "s", Aim::None),
    figure("recovery", "kill -9 while a child was deleted: until the child is back", "s", Aim::None),
    figure("recovery.writes", "kill -9 while a child was deleted: writes until quiet", "", Aim::Always(2)),
    figure("restart.ready", "Restart: until ready", "s", Aim::AtFullLoad(1.0)),
    figure("restart.quiet", "Restart: until quiet", "s", Aim::None),
    figure("restart.writes", "Restart: writes", "", Aim::Always(0)),
    figure("restart.reads", "Restart: reads", "", Aim::None),
    figure("restart.processor", "Restart: processor until quiet", "s", Aim::None),
    figure("restart.peak", "Restart: peak memory (VmHWM)", "MiB", Aim::None),
];

impl Figure {
    /// Returns the upper bound of the figure for this load, or `None` if the figure has no bound.
    pub(crate) fn aim(&self, load: &Load) -> Option<f64> {
        match self.aim {
            Aim::None => None,
            Aim::Always(most) => Some(f64::from(most)),
            Aim::AtFullLoad(most) => load.is_full().then_some(most),
            Aim::PerAgent(each, more) => {
                let agents = u32::try_from(load.agents).unwrap_or(u32::MAX);
                Some(f64::from(agents) * f64::from(each) + f64::from(more))
            }
        }
    }
}

/// The measurements of one round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// The figures by key.
    pub(crate) values: BTreeMap<&'static str, f64>,
    /// The number of requests in each chapter, by verb and type.
    pub(crate) calls: BTreeMap<&'static str, Value>,
}

impl Figures {
    /// Records a figure.
    pub(crate) fn note(&mut self, key: &'static str, value: f64) {
        self.values.insert(key, value);
    }

    /// Records a count.
    pub(crate) fn count(&mut self, key: &'static str, count: usize) {
        self.note(key, f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    }
}
