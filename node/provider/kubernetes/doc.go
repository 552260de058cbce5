// Package kubernetes is a cluster provider that keeps the list of members in the labels of their pods.
//
//	provider := kubernetes.New(kubernetes.Config{})
//
// Each member labels its own pod, and watches the pods with its cluster's label, in its own namespace.
// Labels are those of Proto.Actor's provider of the same name, so members with either of them see each
// other. It differs in that
//
//   - labels that an earlier process has left on the pod are replaced. Proto.Actor's takes them up
//     instead: a container that was killed and started again in its pod comes back under the id of the
//     dead one, which the others have banned;
//   - a pod counts by what its container does, not by whether it is ready: one that fails a readiness
//     check for a moment is not banned for good, and a readiness check may ask whether the member is up;
//   - it gives up at start after ten seconds, with an error that says why;
//   - it lists pods before it watches them, and misses nothing between.
//
// # Guarantees
//
// A member is listed as soon as the API server has answered, and is off the list when it has shut down.
// Others drop it when
//
//   - its pod is deleted, or has failed or succeeded;
//   - its container does not run: the kubelet reports that within a second or two;
//   - its node is lost: the control plane marks the pod not ready, by default after 40 s to 50 s,
//     while its containers are still said to be.
//
// A frozen process is nobody's business until its liveness check fails: have one. While the API server
// does not answer the last list stands, however long that takes.
//
// # Duties
//
// The account of the pod needs get, list, watch and patch on pods of its namespace; see
// examples/kubernetes/provider.yaml. The member must advertise the address of its pod
// (node.Config.Advertised, from the downward API). The cluster's name and the kinds must be legal in
// labels: letters, digits, "-", "_" and ".", at most 63, and 58 for a kind.
package kubernetes
