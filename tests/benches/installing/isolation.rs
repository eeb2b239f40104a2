//! Measures how much a policy that burns fuel in one namespace slows down the passes in another namespace.

use std::time::Duration;

use anyhow::{Result, ensure};
use kaos_tests::widgets::widget_in;
use kaos_tests::{shipped, widgets};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::part::Part;
use crate::stage::{Stage, ratio, row};

/// The bench measures this number of edits under load, and the same number without load.
const EDITS: usize = 2_000;
/// The upper bound of a ratio: the time of an edit under load, divided by the time of an edit without load.
const LONGER: f64 = 2.0;
/// The number of objects of the policy that burns fuel. These objects are in one namespace. As soon as an object's pass
/// has ended, the bench edits this object again.
const MANY: usize = 50;

/// Repeatedly edits an object of the namespace `default`, whose policy burns no fuel. Returns the time of each edit.
async fn calm(stage: &Stage, from: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for edit in from..from + EDITS {
        times.push(stage.served(&widget_in("default", "calm", &json!({"edit": edit}))).await?);
    }
    Ok(times)
}

/// Edits, without a pause, every object of the namespace whose policy burns fuel.
///
/// Returns the number of passes over these objects.
async fn burn(stage: &Stage, stop: &CancellationToken) -> Result<usize> {
    let work = |number: usize| async move {
        for edit in 0.. {
            let object = widget_in("greedy", &format!("a{number}"), &json!({"fragile": true, "edit": edit}));
            match stop.run_until_cancelled(stage.served(&object)).await {
                Some(served) => drop(served?),
                None => return Ok(edit),
            }
        }
        anyhow::Ok(0)
    };
    let mut passes = 0;
    for done in futures_util::future::join_all((0..MANY).map(work)).await {
        passes += done?;
    }
    Ok(passes)
}

/// Measures the edits with and without the load. Returns the rows of the table.
pub(crate) async fn measure() -> Result<Part> {
    let stop = CancellationToken::new();
    let stage = Stage::with_operator(&stop).await?;
    stage.apply(&widgets::definition()).await?;
    stage.cluster.settled().await;
    stage.apply(&shipped::package("widgets", Some(&widgets::component("1")?), "")?).await?;
    let mut own = shipped::package("own", Some(&widgets::component("2 burns")?), "")?;
    own["metadata"]["namespace"] = json!("greedy");
    stage.apply(&own).await?;
    let is_active = |source: &str| {
        let all = stage.all("PolicyRevision");
        all.iter().any(|it| it["spec"]["source"]["configMap"] == source && it["status"]["state"] == "Active")
    };
    stage.until("both policies serve", || is_active("own") && is_active("widgets")).await?;
    calm(&stage, 0).await?;
    let alone = calm(&stage, EDITS).await?;
    let enough = CancellationToken::new();
    let (beside, passes) = tokio::join!(
        async {
            let times = calm(&stage, 2 * EDITS).await;
            enough.cancel();
            times
        },
        burn(&stage, &enough)
    );
    let (beside, passes) = (beside?, passes?);
    ensure!(passes > 0, "the policy that burns fuel made no pass in that time");
    stop.cancel();
    let ratio = |percent| ratio(&beside, &alone, percent);
    let missed = (ratio(95) > LONGER).then(|| {
        format!(
            "edits take {:.2} times as long at p95 next to a policy that burns fuel, but the aim is at most {LONGER}",
            ratio(95)
        )
    });
    let text = format!(
        "{MANY} objects of one namespace whose own policy burns fuel, edited without a pause ({passes} passes in that \
         time), and {EDITS} edits of an object of another namespace, each until the operator served the object:\n\n| \
         ms | median | p95 \
         |\n|---|---:|---:|\n{}{}| times as long (aim: 2) | {:.2} | {:.2} |\n",
        row("alone", &alone),
        row("next to a busy namespace", &beside),
        ratio(50),
        ratio(95),
    );
    Ok(Part { text, missed })
}
