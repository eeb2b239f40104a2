mod behaviour;
mod convergence;
mod fields;
mod heals;
mod large;
mod rights;
mod support;
