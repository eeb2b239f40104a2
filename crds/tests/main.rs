//! The definitions, and what they accept.

mod acceptance;
mod definitions;
