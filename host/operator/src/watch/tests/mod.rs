mod behaviour;
mod convergence;
mod heals;
mod support;
