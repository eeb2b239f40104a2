//! Measures how much memory and processor time the operator's program needs to check a hostile component. The figures
//! come from the kernel, not from the operator's own counters.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kaos_tests::control_plane::programs::Programs;
use kaos_tests::{guests, usage};

/// The modes of the hostile guest that use the most memory or time, and the reported error for each.
const MODES: [(&str, &str); 13] = [
    ("loops for ever", "ran out of fuel"),
    ("recurses for ever", "trapped"),
    ("grows for ever", "ran out of memory"),
    ("grows by nothing for ever", "ran out of fuel"),
    ("allocates a gibibyte", "ran out of memory"),
    ("answers 100 MiB", "ran out of memory"),
    ("answers 20 MiB", "the answer of translate is larger"),
    ("answers 100000 manifests", "the guard rejected the answer"),
    ("answers no UTF-8", "is not UTF-8"),
    ("needs for ever", "new needs in 5 successive rounds"),
    ("thirty dear samples", "30 of 30 samples"),
    ("counts calls of translate", "answers differently"),
    ("trap in translate", "trapped"),
];
/// The maximum of the additional memory that the check of a hostile component needs, compared with the check of a
/// normal policy. This number is the sum of 32 MiB for a sandbox, 8 MiB for an answer, and a margin.
const MORE: u64 = 56 << 20;
/// The maximum processor time of a check. On a slow machine, a component that uses up the fuel of each sample takes
/// half of this time.
const LONG: Duration = Duration::from_secs(30);

/// The output of a check, and the costs of the check.
struct Cost {
    said: String,
    memory: u64,
}

/// Runs `policy check` on a component. Returns what the command prints, and the peak memory of the command's process
/// and its compile child. Fails the test if they use too much processor time.
fn check(folder: &Path, component: &[u8]) -> Cost {
    let file = folder.join("component.wasm");
    std::fs::write(&file, component).unwrap();
    let mut child = Command::new(Programs::operator().unwrap())
        .args(["policy", "check"])
        .arg(&file)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdout(std::fs::File::create(folder.join("said")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut memory = 0;
    while child.try_wait().unwrap().is_none() {
        let all = usage::children(child.id()).into_iter().chain([child.id()]);
        memory = all.filter_map(usage::peak).sum::<u64>().max(memory);
        assert!(usage::processor(child.id()).is_none_or(|used| used < LONG), "the check takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
    Cost { said: std::fs::read_to_string(folder.join("said")).unwrap(), memory }
}

#[test]
fn a_hostile_component_costs_little_more_than_a_well_behaved_one() {
    let folder = std::env::temp_dir().join(format!("kaos-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let usual = check(&folder, &guests::hostile("well-behaved").unwrap());
    for (mode, reason) in MODES {
        let cost = check(&folder, &guests::hostile(mode).unwrap());
        println!("{}", cost.said.lines().last().unwrap_or_default());
        assert!(cost.said.contains(reason), "{mode}: {}", cost.said);
        let more = cost.memory.saturating_sub(usual.memory);
        assert!(
            more < MORE,
            "{mode}: the check needs {mebibytes} MiB more than for a well-behaved component",
            mebibytes = more >> 20
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
