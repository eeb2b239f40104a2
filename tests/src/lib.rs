//! What the suites share: recorded cases, and what has to be masked before two objects are compared.

pub mod case;
pub mod normalize;
