//! Loads, checks, limits and runs policies. Knows Kubernetes objects as JSON and no Kubernetes client.
