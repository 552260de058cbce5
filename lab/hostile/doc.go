// Package hostile contains only tests: attacks that are possible for anyone who reaches the port of
// a member, on real processes.
//
// The driver, which is the test, starts three members by executing the test binary again. They host
// a singleton under a lease, and replicate a counter to a majority. A stranger attacks one of them
// with its own gRPC client. Where that helps, it listens on its own address and vouches for every
// stream. After each attack the members must be in the same state as before: the same processes in
// their first incarnation, three in every view, one instance of the singleton and never two at a
// time, updates that a majority confirms, and goroutines and memory back to their former level.
//
// Without flags, some attacks run against members without TLS and secret. "make hostile" runs all
// attacks against members without either, with a secret, and with TLS.
package hostile
