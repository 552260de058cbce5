// Package core decides, without clock, actors or I/O, which member runs the one instance and where
// its messages go. Machine is the host's side, and Route the sender's. Both are deterministic: the
// same events at the same times give the same effects.
package core
