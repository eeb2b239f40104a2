use std::{sync::Arc, time::Duration};

use kaos_objects::ResourceType;
use tokio::{
    sync::Mutex,
    time::{Instant, advance, timeout},
};

use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "t", name)
}

fn queue() -> Queue {
    Queue::new(Backoff { first: Duration::from_secs(1), max: Duration::from_mins(1) }, Duration::ZERO, 1)
}

/// Takes all waiting keys, and returns their names in the order in which the queue returned the keys.
async fn drain(queue: &Queue) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(Some(lease)) = timeout(Duration::ZERO, queue.next()).await {
        names.push(lease.key().name.clone());
    }
    names
}

fn fresh(queue: &Queue, names: &[&str]) {
    for name in names {
        queue.add(&key(name), Urgency::Fresh);
    }
}

fn bulk(queue: &Queue, names: &[&str]) {
    for name in names {
        queue.add(&key(name), Urgency::Bulk);
    }
}

#[tokio::test(start_paused = true)]
async fn a7_many_events_of_one_object_are_one_entry_and_the_first_come_are_first_served() {
    let queue = queue();
    fresh(&queue, &["a", "b", "a", "c", "a", "b"]);
    assert_eq!(queue.depth(), 3);
    assert_eq!(drain(&queue).await, ["a", "b", "c"]);
    assert_eq!((queue.depth(), queue.leased(), queue.delayed()), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a11_a_key_is_held_by_one_at_a_time_and_others_are_not_held_up() {
    let queue = queue();
    fresh(&queue, &["a", "b"]);
    let first = queue.next().await.unwrap();
    fresh(&queue, &["a", "a"]);
    let second = queue.next().await.unwrap();
    assert_eq!((first.key().name.as_str(), second.key().name.as_str()), ("a", "b"));
    assert!(timeout(Duration::from_mins(1), queue.next()).await.is_err(), "a pass still works on a");
    drop(first);
    let again = timeout(Duration::ZERO, queue.next()).await.unwrap().unwrap();
    assert_eq!(again.key().name, "a");
    drop((again, second));
    assert!(
        drain(&queue).await.is_empty(),
        "if a key was added twice during its pass, the queue returns the key only once more"
    );
}

#[tokio::test(start_paused = true)]
async fn a11_with_many_workers_no_key_is_worked_on_twice_at_once() {
    let queue = queue();
    let at_work = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let worker = |queue: Queue| {
        let at_work = Arc::clone(&at_work);
        async move {
            let mut passes = 0;
            while let Some(lease) = queue.next().await {
                assert!(at_work.lock().await.insert(lease.key().clone()));
                tokio::time::sleep(Duration::from_millis(7)).await;
                assert!(at_work.lock().await.remove(lease.key()));
                passes += 1;
            }
            passes
        }
    };
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(worker(queue.clone()))).collect();
    for _ in 0..50 {
        fresh(&queue, &["a", "b", "c"]);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((queue.depth(), queue.leased()), (0, 0));
    queue.close();
    let mut passes = 0;
    for worker in workers {
        passes += worker.await.unwrap();
    }
    assert!((3..150).contains(&passes), "{passes}");
}

#[tokio::test(start_paused = true)]
async fn fresh_events_go_before_bulk_and_bulk_is_not_starved() {
    let queue = queue();
    bulk(&queue, &["x", "y", "z"]);
    let names: Vec<String> = (0..20).map(|i| format!("f{i:02}")).collect();
    fresh(&queue, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let order = drain(&queue).await;
    let at = |name: &str| order.iter().position(|other| other == name).unwrap();
    assert_eq!((at("f00"), at("f07"), at("x"), at("y")), (0, 7, 8, 17));
    assert_eq!(order.len(), 23);
    assert_eq!(order.last().unwrap(), "z");
}

#[tokio::test(start_paused = true)]
async fn an_event_moves_a_key_of_bulk_to_the_fresh_ones() {
    let queue = queue();
    bulk(&queue, &["x", "y", "z"]);
    fresh(&queue, &["z"]);
    bulk(&queue, &["z"]);
    assert_eq!(queue.depth(), 3);
    assert_eq!(drain(&queue).await, ["z", "x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_swap_are_paced_and_other_objects_do_not_wait_for_them() {
    let queue = Queue::new(Backoff::default(), Duration::from_millis(100), 1);
    for name in ["x", "y", "z", "late"] {
        queue.add(&key(name), Urgency::Paced);
    }
    let start = Instant::now();
    for _ in 0..3 {
        drop(queue.next().await);
    }
    assert_eq!(start.elapsed().as_millis(), 200);
    fresh(&queue, &["a"]);
    bulk(&queue, &["b", "c"]);
    assert_eq!(queue.depth(), 4);
    for name in ["a", "b", "c"] {
        assert_eq!(queue.next().await.unwrap().key().name, name);
    }
    assert_eq!(start.elapsed().as_millis(), 200, "only the paced keys wait");
    assert_eq!(queue.next().await.unwrap().key().name, "late");
    assert_eq!(start.elapsed().as_millis(), 300);
}

#[tokio::test(start_paused = true)]
async fn paced_objects_of_a_namespace_that_used_its_share_wait_without_a_time() {
    let queue = Queue::new(Backoff::default(), Duration::from_millis(100), 1).sharing(1);
    for name in ["x", "y"] {
        queue.add(&key_in("busy", name), Urgency::Paced);
    }
    let held = queue.next().await.unwrap();
    // If `next` polled the queue in a loop, the simulated time would not pass, and the timeout would never end.
    assert!(timeout(Duration::from_hours(1), queue.next()).await.is_err());
    drop(held);
    assert_eq!(queue.next().await.unwrap().key().name, "y");
}

#[tokio::test(start_paused = true)]
async fn e11_after_a_delay_with_backoff_or_not_at_all() {
    let queue = queue();
    fresh(&queue, &["later", "failed", "done"]);
    let start = Instant::now();
    for _ in 0..3 {
        let lease = queue.next().await.unwrap();
        match lease.key().name.as_str() {
            "later" => queue.add_after(lease.key(), Duration::from_secs(30)),
            "failed" => drop(queue.retry(lease.key(), None)),
            _ => queue.succeeded(lease.key()),
        }
    }
    assert_eq!((queue.depth(), queue.delayed()), (0, 2));
    let lease = queue.next().await.unwrap();
    assert_eq!(lease.key().name, "failed");
    assert!(start.elapsed() >= Duration::from_millis(500) && start.elapsed() <= Duration::from_secs(1));
    drop(lease);
    let lease = queue.next().await.unwrap();
    assert_eq!((lease.key().name.as_str(), start.elapsed()), ("later", Duration::from_secs(30)));
    drop(lease);
    assert!(timeout(Duration::from_hours(24), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn e1_failures_in_a_row_wait_longer_up_to_the_cap() {
    let queue = queue();
    let mut before = Duration::ZERO;
    for failure in 1..=10 {
        let wait = queue.retry(&key("a"), None);
        let full = Duration::from_secs(1 << (failure - 1)).min(Duration::from_mins(1));
        assert!(wait >= full / 2 && wait <= full, "{failure}: {wait:?}");
        assert!(failure > 6 || wait > before / 2);
        before = wait;
        let lease = queue.next().await.unwrap();
        assert_eq!(lease.key(), &key("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn e5_success_resets_the_backoff() {
    let queue = queue();
    for _ in 0..6 {
        queue.retry(&key("a"), None);
    }
    assert_eq!(queue.failures(&key("a")), 6);
    queue.succeeded(&key("a"));
    assert_eq!(queue.failures(&key("a")), 0);
    assert!(queue.retry(&key("a"), None) <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn e12_what_fails_delays_nobody_else() {
    let queue = queue();
    for _ in 0..10 {
        queue.retry(&key("bad"), None);
    }
    assert!(queue.retry(&key("good"), None) <= Duration::from_secs(1));
    fresh(&queue, &["another"]);
    assert_eq!(drain(&queue).await, ["another"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_does_not_wait_for_a_backoff_and_makes_it_void() {
    let queue = queue();
    queue.add_after(&key("a"), Duration::from_secs(50));
    fresh(&queue, &["a"]);
    assert_eq!(drain(&queue).await, ["a"]);
    assert_eq!(queue.delayed(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_delays_the_earlier_one_applies() {
    let queue = queue();
    let start = Instant::now();
    for seconds in [20, 10, 30] {
        queue.add_after(&key("a"), Duration::from_secs(seconds));
    }
    assert_eq!(queue.delayed(), 1);
    drop(queue.next().await);
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert!(timeout(Duration::from_hours(1), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_is_set_while_a_key_is_held_counts_afterwards() {
    let queue = queue();
    fresh(&queue, &["a"]);
    let lease = queue.next().await.unwrap();
    queue.add_after(lease.key(), Duration::from_secs(5));
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(timeout(Duration::from_secs(1), queue.next()).await.is_err(), "a pass still works on the key");
    drop(lease);
    assert_eq!(drain(&queue).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn depth_and_age_describe_waiting_objects() {
    let queue = queue();
    assert_eq!(queue.oldest_age(), Duration::ZERO);
    bulk(&queue, &["x"]);
    advance(Duration::from_secs(3)).await;
    fresh(&queue, &["a"]);
    advance(Duration::from_secs(2)).await;
    assert_eq!((queue.depth(), queue.oldest_age()), (2, Duration::from_secs(5)));
    fresh(&queue, &["x"]);
    assert_eq!(
        queue.oldest_age(),
        Duration::from_secs(2),
        "the oldest age comes from the first key of each urgency alone"
    );
    assert_eq!(drain(&queue).await, ["a", "x"]);
    assert_eq!(queue.oldest_age(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_age_of_a_paced_object_begins_at_its_turn() {
    let queue = Queue::new(Backoff::default(), Duration::from_secs(1), 1);
    for name in ["x", "y", "z"] {
        queue.add(&key(name), Urgency::Paced);
    }
    advance(Duration::from_secs(2)).await;
    assert_eq!(queue.oldest_age(), Duration::from_secs(2), "the first key has been due since it was added");
    drop(queue.next().await);
    assert_eq!(queue.oldest_age(), Duration::ZERO, "the next key is not due yet");
    advance(Duration::from_secs(4)).await;
    assert_eq!(queue.oldest_age(), Duration::from_secs(3), "the next key has been due for 3 of the 4 seconds");
}

#[tokio::test(start_paused = true)]
async fn closing_wakes_all_waiting_workers() {
    let queue = queue();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    fresh(&queue, &[]);
    queue.close();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
    fresh(&queue, &["a"]);
    assert!(queue.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_of_keys_that_are_done() {
    let queue = queue();
    for _ in 0..3 {
        queue.retry(&key("a"), None);
        drop(queue.next().await);
        queue.succeeded(&key("a"));
    }
    assert!(format!("{:?}", queue.0.state.lock().unwrap()).contains("entries: {}"));
}

#[tokio::test(start_paused = true)]
async fn e1_a_wait_that_the_server_asked_for_is_kept_whatever_happens_meanwhile() {
    let queue = queue();
    fresh(&queue, &["a"]);
    let lease = queue.next().await.unwrap();
    fresh(&queue, &["a"]);
    let start = Instant::now();
    assert_eq!(queue.retry(&key("a"), Some(Duration::from_secs(30))), Duration::from_secs(30));
    drop(lease);
    fresh(&queue, &["a"]);
    let lease = queue.next().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    // The queue limits the requested wait, so that the key still gets a turn from time to time.
    assert_eq!(queue.retry(&key("a"), Some(Duration::from_hours(9))), Duration::from_mins(1));
    drop(lease);
}

fn key_in(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), namespace, name)
}

#[tokio::test(start_paused = true)]
async fn namespaces_take_turns_however_much_one_of_them_has_to_do() {
    let queue = queue();
    for number in 0..50 {
        queue.add(&key_in("busy", &format!("b{number}")), Urgency::Fresh);
    }
    queue.add(&key_in("calm", "c0"), Urgency::Fresh);
    queue.add(&key_in("calm", "c1"), Urgency::Fresh);
    assert_eq!(drain(&queue).await[..5], ["b0", "c0", "b1", "c1", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn one_namespace_does_not_get_all_workers() {
    let queue = queue().sharing(2);
    for name in ["b0", "b1", "b2"] {
        queue.add(&key_in("busy", name), Urgency::Fresh);
    }
    let first = queue.next().await.unwrap();
    let _second = queue.next().await.unwrap();
    assert!(timeout(Duration::from_mins(1), queue.next()).await.is_err(), "the namespace already has two passes");
    queue.add(&key_in("calm", "c0"), Urgency::Bulk);
    assert_eq!(timeout(Duration::ZERO, queue.next()).await.unwrap().unwrap().key().name, "c0");
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.map(|lease| lease.key().name.clone()) }
    });
    tokio::task::yield_now().await;
    drop(first);
    assert_eq!(waiting.await.unwrap().unwrap(), "b2", "a waiting caller gets the key when a pass ends");
    assert_eq!(queue.oldest_age(), Duration::ZERO);
}
