// Package kubernetes is a cluster provider that keeps the list of members in the labels of their
// pods.
//
//	provider := kubernetes.New(kubernetes.Config{})
//
// Each member labels its own pod, and watches the pods in its namespace that have the label of its
// cluster. The labels match those of Proto.Actor's provider of the same name, so members with
// either of them see each other. It differs from that provider as follows:
//
//   - It replaces labels that an earlier process has left on the pod. Proto.Actor's provider
//     adopts them: a container that was killed and restarted in its pod comes back under the id of
//     the dead one, which the other members have banned.
//   - Whether a pod counts depends on its container, not on its readiness: a pod that fails a
//     readiness check for a moment is not banned permanently, and a readiness check may ask whether
//     the member is up.
//   - It gives up at start after ten seconds, with an error that gives the reason.
//   - It lists pods before it watches them, and misses no change in between.
//
// # Guarantees
//
// A member is listed as soon as the API server has answered, and is removed from the list when it
// has shut down. The other members drop it when
//
//   - its pod is deleted, or has failed or succeeded;
//   - its container does not run: the kubelet reports that within a second or two;
//   - its node is lost: the control plane marks the pod not ready, by default after 40 s to 50 s,
//     while its containers are still reported as ready.
//
// A frozen process is not detected until its liveness check fails, so configure one. While the API
// server does not answer, the last list remains in effect, however long that takes.
//
// # Duties
//
// The service account of the pod needs get, list, watch and patch on pods of its namespace; see
// examples/kubernetes/provider.yaml. The member must advertise the address of its pod
// (node.Config.Advertised, from the downward API). The cluster's name and the kinds must be valid
// in labels: letters, digits, "-", "_" and ".", at most 63 characters, and 58 for a kind.
//
// docs/providers.md compares the providers. Program examples/providers uses any of them, and its
// kubernetes.yaml deploys three members.
package kubernetes
