//! Tests the results that the ledger keeps for a revision.

use super::*;
use crate::{
    catalogue::{Ledger, Without},
    watch::ObjectKey,
};

#[test]
fn one_object_cannot_revoke_a_policy() {
    let (ledger, revision) = (Ledger::default(), Arc::<str>::from("r"));
    let key = |namespace: &str, name: &str| ObjectKey::new(widget(), namespace, name);
    let fails = |namespace: &str, name: &str| {
        let without = Without { revision: Arc::clone(&revision), how: "trap".to_owned(), counts: true, is_lost: false };
        ledger.served(&key(namespace, name), std::iter::empty(), &[without]);
    };
    let failing = ["x", "y", "z"].map(|name| key("a", name));
    let all = [&failing[..], &[key("b", "x"), key("b", "y")]].concat();
    for key in &failing {
        fails(&key.namespace, &key.name);
    }
    assert_eq!(ledger.book("r").verdict(&all), None, "all failures are in one namespace");
    fails("b", "x");
    assert!(ledger.book("r").verdict(&all).unwrap().starts_with("the policy failed on 4 objects"));
    assert_eq!(ledger.outstanding("r", &all), 1);
    ledger.gone(&key("b", "x"));
    assert_eq!((ledger.book("r").verdict(&all), ledger.outstanding("r", &all)), (None, 2));
    assert!(ledger.book("r").verdict(&failing).is_some(), "the revision failed on all objects");
    ledger.served(&key("b", "chose it"), [&revision].into_iter(), &[]);
    assert_eq!(ledger.book("r").verdict(&failing), None, "the revision serves the object that pins it");
    assert_eq!(ledger.book("r").verdict(&[]), None, "an object that pins the revision causes no quarantine");
}

#[test]
fn a_refusal_that_is_held_back_is_counted_against_no_revision() {
    let (ledger, of) = (Ledger::default(), widget());
    let without = Without { revision: "r".into(), how: "refused".to_owned(), counts: false, is_lost: false };
    let keys = ["a", "b", "c"].map(|namespace| ObjectKey::new(of.clone(), namespace, "x"));
    for key in &keys {
        ledger.served(key, std::iter::empty(), std::slice::from_ref(&without));
    }
    assert_eq!((ledger.counts("r"), ledger.book("r").verdict(&keys)), ((0, 3), None));
    assert_eq!(ledger.outstanding("r", &keys), 0);
}

#[test]
fn an_object_had_its_pass_only_when_its_status_shows_the_result() {
    let (ledger, revision) = (Ledger::default(), Arc::<str>::from("r"));
    let keys = ["a", "b"].map(|namespace| ObjectKey::new(widget(), namespace, "x"));
    let serve = || ledger.served(&keys[0], [&revision].into_iter(), &[]);
    assert_eq!(ledger.had_pass("r", &keys), [false, false]);
    serve();
    assert_eq!(ledger.had_pass("r", &keys), [false, false], "the status is still about the earlier pass");
    assert_eq!(ledger.outstanding("r", &keys[..1]), 0);
    serve();
    assert_eq!(ledger.had_pass("r", &keys), [false, false], "the result did not change, but the status is not written");
    ledger.reported(&keys[0]);
    serve();
    assert_eq!(ledger.had_pass("r", &keys), [true, false]);
    let without = Without { revision: Arc::clone(&revision), how: "trap".to_owned(), counts: true, is_lost: false };
    ledger.served(&keys[0], std::iter::empty(), &[without]);
    assert_eq!(ledger.had_pass("r", &keys), [false, false], "a new result needs a new status");
    ledger.gone(&keys[0]);
    assert_eq!(ledger.had_pass("r", &keys), [false, false]);
}

#[test]
fn a_pass_while_the_revision_is_not_loaded_is_no_pass_of_the_revision() {
    let (ledger, [new, old]) = (Ledger::default(), ["new", "old"].map(Arc::<str>::from));
    let keys = [ObjectKey::new(widget(), "a", "x")];
    let lost = Without { revision: Arc::clone(&new), how: "lost".to_owned(), counts: false, is_lost: true };
    let serve = |by: &Arc<str>, without: &[Without]| {
        ledger.served(&keys[0], [by].into_iter(), without);
        ledger.reported(&keys[0]);
    };
    serve(&old, &[lost]);
    assert_eq!((ledger.had_pass("new", &keys), ledger.outstanding("new", &keys)), (vec![false], 0));
    assert_eq!(ledger.had_pass_without("old", &keys), [false]);
    serve(&new, &[]);
    assert_eq!((ledger.had_pass("new", &keys), ledger.had_pass_without("old", &keys)), (vec![true], vec![true]));
    let refused = Without { revision: Arc::clone(&new), how: "refused".to_owned(), counts: false, is_lost: false };
    serve(&old, &[refused]);
    assert_eq!(ledger.had_pass("new", &keys), [true], "a refusal is a result of the revision");
}
