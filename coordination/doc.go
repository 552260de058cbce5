// Package coordination is a distributed lock with a time to live, a fencing token and notice of loss.
package coordination
