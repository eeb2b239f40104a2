mod behaviour;
mod support;
