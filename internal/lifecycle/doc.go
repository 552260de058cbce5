// Package lifecycle keeps, per actor system, what has to be done before a member counts as started and
// before it leaves its cluster.
//
// Components register here, and package node runs what they registered; so neither imports the other.
package lifecycle
