// Package acceptance uses the testkit as a module outside this repository does: only through its
// public API, and as docs/testing.md says. Its tests are those of a new user. Its mistakes are bugs
// that a user plants in actors, stores and replicated types; each must make its test fail with a
// message that names it.
//
//	go test ./testkit/acceptance -run Mistakes -v
//
// prints the messages.
package acceptance
