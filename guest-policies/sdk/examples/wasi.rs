//! A policy that calls WASI, for tests of the conversion of components. The field `spec.title` chooses the call.
#![allow(unsafe_code, reason = "the standard library has no function for some calls of WASI")]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Note, Plan, Refusal, Sample, Subject};
use kaos_policy_sdk::{Policy, SubjectExt, export_policy, json, need, note, plan};
use serde_json::json;

/// The policy.
pub struct Wasi;

impl Policy for Wasi {
    fn describe() -> Descriptor {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Website",
            "metadata": {"name": "blog", "namespace": "default"}, "spec": {"title": "harmless"},
        });
        let claim = Claim {
            primary: need::resource_type("example.com/v1", "Website"),
            emits: vec![need::resource_type("v1", "ConfigMap")],
            samples: vec![Sample { name: "harmless".to_owned(), object: json::text(&object), ..Sample::default() }],
            ..Claim::default()
        };
        Descriptor {
            name: "wasi".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: r#"{"type":"object"}"#.to_owned(),
            ..Descriptor::default()
        }
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let notes = notes(subject.object().str_at(&["spec", "title"]).unwrap_or_default());
        Ok(Plan { notes, ..plan::of(&[], env) })
    }
}

#[allow(clippy::panic, reason = "the tests read the message of the panic")]
fn notes(title: &str) -> Vec<Note> {
    match title {
        "clock" => {
            let (begin, now) = (Instant::now(), SystemTime::now());
            std::thread::sleep(Duration::from_hours(1));
            let since = now.duration_since(SystemTime::UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs());
            vec![note::debug("now", since), note::debug("slept", begin.elapsed() >= Duration::from_hours(1))]
        }
        "hash" => vec![note::debug("hash", RandomState::new().hash_one("kite"))],
        "random once" => vec![note::debug("random", raw::random())],
        "random" => vec![note::debug("random", raw::random()), note::debug("random", raw::random())],
        "nothing to wait for" => vec![note::debug("ready", raw::poll_nothing())],
        "exit" => std::process::exit(0),
        "chatter and exit" => {
            chatter();
            eprintln!("the kite is gone");
            std::process::exit(1);
        }
        "chatter" => {
            chatter();
            // The allocator takes new pages. The module that answers calls of WASI must not write to these pages.
            let numbers: Vec<u64> = (0..200_000).collect();
            chatter();
            vec![note::debug("sum", numbers.iter().sum::<u64>())]
        }
        "memory" => {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                kept.push(vec![1; 1 << 16]);
            }
        }
        "panic" => panic!("the kite is gone"),
        "network" => vec![note::debug("connected", TcpStream::connect("127.0.0.1:80").is_ok())],
        "outside" => {
            let mut input = [0];
            vec![
                note::debug("file", std::fs::read("/etc/passwd").is_ok()),
                note::debug("environment", std::env::vars().count() + std::env::args().count()),
                note::debug("input", std::io::stdin().read(&mut input).unwrap_or(usize::MAX)),
            ]
        }
        _ => Vec::new(),
    }
}

/// Writes so much to standard output and standard error that the record of a failure cannot contain all of it.
fn chatter() {
    for number in 0..1000 {
        eprintln!("chatter {number}");
        println!("chatter {number}");
    }
}

/// Calls of WASI for which the standard library has no function.
#[cfg(target_env = "p2")]
mod raw {
    #[link(wasm_import_module = "wasi:random/random@0.2.0")]
    unsafe extern "C" {
        #[link_name = "get-random-u64"]
        fn get_random_u64() -> u64;
    }

    #[link(wasm_import_module = "wasi:io/poll@0.2.0")]
    unsafe extern "C" {
        #[link_name = "poll"]
        fn poll(list: *const i32, length: usize, ready: *mut [usize; 2]);
    }

    pub(super) fn random() -> u64 {
        // SAFETY: the call gets no pointer.
        unsafe { get_random_u64() }
    }

    pub(super) fn poll_nothing() -> usize {
        let (list, mut ready) = ([0], [0; 2]);
        // SAFETY: both pointers are valid, and the values have the layout of the canonical ABI.
        unsafe { poll(list.as_ptr(), 0, &raw mut ready) };
        ready[1]
    }
}

/// Other targets do not run this policy.
#[cfg(not(target_env = "p2"))]
mod raw {
    pub(super) const fn random() -> u64 {
        0
    }

    pub(super) const fn poll_nothing() -> usize {
        0
    }
}

export_policy!(Wasi);
