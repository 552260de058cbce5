package kubernetes

// InClusterWith is InCluster with another client configuration.
var InClusterWith = inCluster

// DocumentName is the name of the object of a document.
var DocumentName = documentName
