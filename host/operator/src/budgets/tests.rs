use fastrand::Rng;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn budgets(fuel: Option<u64>, passes: Option<u64>) -> Budgets {
    Budgets::new(BudgetLimits { fuel, passes })
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), namespace, name)
}

/// Runs a pass that uses fuel in two parts, or returns how long the object must wait.
fn pass(budgets: &Budgets, now: Instant, key: &ObjectKey, fuel: u64) -> Result<(), Duration> {
    match budgets.begin(key, std::iter::once(None), now) {
        Admission::Begins => {}
        Admission::Waits(wait) | Admission::BeginsToWait(wait) => return Err(wait),
    }
    budgets.pay(key, now, fuel / 2);
    budgets.pay(key, now, fuel - fuel / 2);
    Ok(())
}

#[test]
fn without_limits_every_pass_begins_and_counts() {
    let (budgets, now, key) = (budgets(None, None), Instant::now(), key("team-a", "a"));
    for _ in 0..1000 {
        assert_eq!(pass(&budgets, now, &key, 5), Ok(()));
    }
    let spending = Spending { of: key.of, namespace: "team-a".to_owned(), fuel: 5000, passes: 1000 };
    assert_eq!(budgets.largest(now, 20), [spending]);
    assert!(budgets.used_up(now).is_empty());
    assert!(budgets.largest(now + 2 * MINUTE, 20).is_empty());
}

#[test]
fn objects_get_turns_in_the_order_in_which_they_asked() {
    let (budgets, now) = (budgets(Some(600), None), Instant::now());
    let keys = ["a", "b", "c"].map(|name| key("team-a", name));
    for _ in 0..10 {
        assert_eq!(pass(&budgets, now, &key("team-a", "first"), 60), Ok(()));
    }
    let seconds = Duration::from_secs;
    let turns = keys.each_ref().map(|key| pass(&budgets, now, key, 60));
    assert_eq!(turns, [6, 12, 18].map(|turn| Err(seconds(turn))));
    assert_eq!((budgets.waiting(now), budgets.has_turn(&keys[0], now)), (3, true));
    // Events before the turn change nothing.
    assert_eq!(pass(&budgets, now + seconds(5), &keys[0], 60), Err(seconds(1)));
    // An object with many events cannot get ahead of the others.
    assert_eq!(pass(&budgets, now + seconds(5), &key("team-a", "first"), 60), Err(seconds(19)));
    assert_eq!(pass(&budgets, now + seconds(6), &keys[0], 60), Ok(()));
    assert_eq!(pass(&budgets, now + seconds(12), &keys[1], 300), Ok(()));
    // The last pass used more than expected. So the next objects wait for longer, and keep their order.
    let second = pass(&budgets, now + seconds(24), &key("team-a", "first"), 60).unwrap_err();
    let first = pass(&budgets, now + seconds(24), &keys[2], 60).unwrap_err();
    assert!(first > seconds(15) && second > first, "{first:?}, {second:?}");
}

#[test]
fn each_kind_has_its_own_budget_in_each_namespace() {
    let (budgets, now) = (budgets(None, Some(2)), Instant::now());
    let other = ObjectKey::new(ResourceType::new("x.io/v1", "Gadget"), "team-a", "a");
    for key in [key("team-a", "a"), key("team-b", "a"), other] {
        let passes = [(); 3].map(|()| pass(&budgets, now, &key, 1).is_ok());
        assert_eq!(passes, [true, true, false]);
    }
}

#[test]
fn an_object_that_waits_for_hours_is_shown_until_its_turn() {
    let (budgets, now) = (budgets(Some(1), None), Instant::now());
    assert_eq!(pass(&budgets, now, &key("team-a", "a"), 60), Ok(()));
    assert!(pass(&budgets, now, &key("team-a", "b"), 60).is_err());
    let used_up = || budgets.used_up(now + 30 * MINUTE).into_values().flatten().map(|(_, namespace)| namespace);
    assert_eq!(used_up().collect::<Vec<_>>(), ["team-a"]);
    budgets.forget(&key("team-a", "b"));
    assert_eq!((budgets.waiting(now), used_up().count()), (0, 0));
}

#[test]
fn unused_accounts_and_missed_turns_are_removed() {
    let (budgets, now) = (budgets(None, Some(1)), Instant::now());
    for number in 0..100 {
        let key = key(&format!("team-{number}"), "a");
        assert_eq!(pass(&budgets, now, &key, 1), Ok(()));
        assert!(pass(&budgets, now, &key, 1).is_err());
    }
    assert_eq!(budgets.waiting(now), 100);
    assert_eq!(pass(&budgets, now + 10 * MINUTE, &key("team-0", "b"), 1), Ok(()));
    assert_eq!((budgets.waiting(now), lock(&budgets.accounts).open.len()), (0, 1));
}

#[test]
fn an_object_with_many_events_does_not_displace_others() {
    let (budgets, start) = (budgets(Some(100), None), Instant::now());
    let keys: Vec<ObjectKey> = (0..11).map(|number| key("team-a", &number.to_string())).collect();
    let mut passes = vec![0_u32; 11];
    // The first object asks for a pass every 100 milliseconds, and the others every second.
    for tick in 0..30 * 600_u32 {
        let now = start + tick * Duration::from_millis(100);
        let asking = if tick % 10 == 0 { 0..11 } else { 0..1 };
        for object in asking {
            passes[object] += u32::from(pass(&budgets, now, &keys[object], 10).is_ok());
        }
    }
    assert!(passes.iter().all(|passes| (20..=60).contains(passes)), "{passes:?}");
}

#[test]
fn no_namespace_uses_more_than_its_limits_and_every_object_gets_its_turn() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let (fuel, passes) = (random.u64(1..1000), random.u64(1..100));
        let (budgets, start) = (budgets(Some(fuel), Some(passes)), Instant::now());
        let keys: Vec<ObjectKey> = (0..4).map(|number| key("team-a", &number.to_string())).collect();
        let (mut now, mut used) = (start, [0, 0]);
        for _ in 0..300 {
            now += Duration::from_millis(random.u64(0..5000));
            let cost = random.u64(0..200);
            if pass(&budgets, now, &keys[random.usize(0..4)], cost).is_ok() {
                used = [used[0] + u128::from(cost), used[1] + 1];
            }
            // At the start, the unused limit of one more minute is available. The last pass may use more than the
            // limit, because its fuel is known only after the pass.
            let elapsed = (now - start + MINUTE).as_millis();
            let allowed = [u128::from(fuel) * elapsed / 60_000 + 200, u128::from(passes) * elapsed / 60_000 + 1];
            assert!(used[0] <= allowed[0] && used[1] <= allowed[1], "seed {seed}: {used:?} of {allowed:?}");
        }
        for key in &keys {
            // Only this object asks for passes, each time after the wait that the budget returned.
            for _ in 0..100 {
                let Err(wait) = pass(&budgets, now, key, 0) else { break };
                now += wait;
            }
            assert!(!budgets.has_turn(key, now), "seed {seed}");
        }
    }
}
