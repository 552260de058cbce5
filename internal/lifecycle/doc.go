// Package lifecycle holds, per actor system, the functions to run before a member counts as started
// and before it leaves its cluster.
//
// Components register functions here, and package node runs them, so that neither imports the
// other.
package lifecycle
