mod behaviour;
mod convergence;
mod heals;
mod large;
mod rights;
mod support;
