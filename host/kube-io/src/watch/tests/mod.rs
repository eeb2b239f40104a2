mod behaviour;
mod convergence;
mod heals;
mod rights;
mod support;
