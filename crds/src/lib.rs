//! The spec and status types of the KAOS kinds.
