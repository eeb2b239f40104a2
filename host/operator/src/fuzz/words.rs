//! Chooses valid and invalid values for fields. The name of a field decides which values are valid.

use fastrand::Rng;
use serde_json::{Value, json};

/// Texts that are invalid in most fields.
const NASTY: [&str; 26] = [
    "",
    " ",
    "A B",
    "é",
    "a=b",
    "-a",
    "a-",
    "..",
    "../x",
    "/abs",
    "a/b/c",
    "\u{7}",
    "\u{85}",
    "\u{1f600}",
    "UPPER",
    "a_b",
    "1.2.3",
    "$(X)",
    "tcp",
    "true",
    "a\nb",
    "metadata.labels['a']",
    "123",
    "a--b",
    ".",
    "kubernetes.io/x",
];

/// Returns a text for a field of a type.
pub(super) fn text(of: &str, field: &str, rng: &mut Rng, is_nasty: bool) -> String {
    if is_nasty {
        return match rng.usize(..30) {
            0 => "a".repeat(64),
            1 => "a".repeat(254),
            2 => "a".repeat(16),
            _ => rng.choice(NASTY).unwrap_or_default().to_owned(),
        };
    }
    let pool: &[&str] = match (of, field) {
        ("EnvVar" | "env", "name") => &["A", "B_C", "LOG_LEVEL", "a.b-c", "MODEL_NAME", "d e"],
        ("Container", "name") => &["agent", "mcp-server", "model-api", "side", "other"],
        ("Volume" | "VolumeMount" | "VolumeDevice" | "volumeMounts", "name") => &["data", "cache"],
        ("ContainerPort", "name") => &["web", "http-1", "metrics"],
        ("HTTPHeader", "name") => &["X-A", "Accept"],
        ("Sysctl", "name") => &["net.core.somaxconn", "kernel/shm_rmid_forced"],
        (_, "mountPath" | "devicePath") => &["/data", "/cache", "relative", "/with blank"],
        (_, "image" | "reference") => &["img:1", "busybox", "r:5000/a@sha256:b"],
        (_, "fieldPath") => &["metadata.name", "status.podIP", "metadata.labels['a.b/c']", "metadata.labels"],
        (_, "resource") => &["limits.cpu", "requests.memory", "limits.hugepages-2Mi"],
        (_, "topologyKey") => &["kubernetes.io/hostname", "zone"],
        (_, "ip" | "hostIP" | "nameservers") => &["10.0.0.1", "::1", "010.0.0.1"],
        (_, "stopSignal") => &["SIGTERM"],
        (_, "server" | "driver" | "hostnames" | "searches") => &["a.example.com", "b"],
        (_, "path" | "subPath" | "subPathExpr") => &["a", "b/c", "/health"],
        (_, "conditionType") => &["a.b/c", "Ready"],
        (_, "maxSurge") => &["25%"],
        _ => &["a", "b-c", "a.b", "settings", "x1"],
    };
    rng.choice(pool.iter()).copied().unwrap_or_default().to_owned()
}

/// Returns an integer for a field.
pub(super) fn number(field: &str, rng: &mut Rng, is_nasty: bool) -> Value {
    const ODD: [i64; 8] = [0, -1, 65536, 1 << 31, i32::MAX as i64, i32::MIN as i64, 1 << 53, 777];
    if is_nasty {
        return if rng.u8(..10) == 0 { json!(1.5) } else { json!(rng.choice(ODD)) };
    }
    let pool: &[i64] = match field {
        "containerPort" | "hostPort" | "port" => &[80, 8080, 1, 65535],
        "expirationSeconds" => &[600, 3600],
        "weight" => &[1, 50, 100],
        "successThreshold" => &[1],
        "defaultMode" | "mode" => &[0, 420, 511],
        _ => &[1, 2, 5, 30],
    };
    json!(rng.choice(pool.iter()))
}

/// Returns a quantity.
pub(super) fn amount(rng: &mut Rng, is_nasty: bool) -> Value {
    let pool = if is_nasty {
        json!([
            "-1",
            "lots",
            "",
            "1gi",
            "1.5.5",
            "1e400",
            "0.0001m",
            -1,
            "1 Gi",
            "10000000000000000000000",
            0.5,
            "1.5",
            true
        ])
    } else {
        json!(["1", "2", "500m", "1Gi", "0", 2, "1e3", "100Mi", "4Mi"])
    };
    let pool = pool.as_array().cloned().unwrap_or_default();
    rng.choice(pool).unwrap_or_default()
}

/// Returns a key of a map.
pub(super) fn key(map: &str, rng: &mut Rng, is_nasty: bool) -> String {
    let pool: &[&str] = match (map, is_nasty) {
        ("limits" | "requests" | "overhead", false) => {
            &["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi"]
        }
        ("limits" | "requests" | "overhead", true) => {
            &["memroy", "limits.cpu", "requests.a/b", "a b", "x.kubernetes.io/y", "hugepages-", "pods"]
        }
        (_, false) => &["a", "b.c/d", "kubernetes.io/os"],
        (_, true) => &["", "A B", "/a", "a/", "é", "-a", "a/b/c"],
    };
    rng.choice(pool.iter()).copied().unwrap_or_default().to_owned()
}
