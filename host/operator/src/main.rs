//! The operator's binary.

fn main() {}
