package kubernetes

// InClusterWith is InCluster with another client configuration.
var InClusterWith = inCluster
